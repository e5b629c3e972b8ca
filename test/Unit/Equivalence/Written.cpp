//===- Written.cpp - Schedules as a user writes them ---------------------===//
#include "Written.h"

#include "llvm/Support/FormatVariadic.h"

using namespace equivalence;

std::string Written::str() const {
  bool reduces = kind == "all_reduce" || kind == "reduce_scatter";
  bool cutsInput = kind == "all_to_all" || kind == "reduce_scatter";
  int64_t all = members * elements;
  auto memref = [&](int64_t count) {
    return llvm::formatv("memref<{0}x{1}>", count, element).str();
  };
  std::string text = llvm::formatv(R"(ctran.program @{0} grid ["r" = {1}] {{
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {1} : index
  %me = ctran.coord "r"
  %free = ctran.slots "free" ["r" = {1}] per_run 1
  %came = ctran.slots "came" ["r" = {1}] per_run 1
)",
                                   name, members);
  std::string in = memref(cutsInput ? all : elements);
  if (inPlace)
    text += "  %in = ctran.window \"x\" inout 0 : " + in + "\n";
  else
    text += "  %in = ctran.window \"in\" input 0 : " + in +
            "\n  %out = ctran.window \"out\" output 0" +
            (reduces ? " : " + memref(elements) : " peers put : " + memref(all)) + "\n";
  if (reduces)
    text += "  %parts = ctran.window \"parts\" scratch peers put : " + memref(all) +
            "\n  %to = ctran.reindex %parts [\"r\" = " + std::to_string(members) + "]\n";
  else
    text += "  %to = ctran.reindex %out [\"r\" = " + std::to_string(members) + "]\n";
  if (cutsInput)
    text += "  %from = ctran.reindex %in [\"r\" = " + std::to_string(members) + "]\n";
  auto piece = [&](const char *whose) {
    return cutsInput ? std::string("ctran.range %from[") + whose + " : \"r\"]"
                     : std::string("ctran.range %in");
  };
  text += "  %say = ctran.range %in\n  %given = ctran.source %say holds \"v\"[%me : \"r\"] after "
          "%entry on host\n";
  text += R"(  %told = scf.for %d = %c1 to %n step %c1 iter_args(%t = %entry) -> (!ctran.token) {
    %p = ctran.shift %me by %d : !ctran.coord<"r">
    %there = ctran.peer_view %free at (%p : "r") : !ctran.slots
    %slot = ctran.slot %there[%me : "r"]
    %said = ctran.signal %slot after %entry on host
    scf.yield %said : !ctran.token
  }
  %sent = scf.for %d = %c1 to %n step %c1 iter_args(%t = %given) -> (!ctran.token) {
    %p = ctran.shift %me by %d : !ctran.coord<"r">
    %slot = ctran.slot %free[%p : "r"]
    %may = ctran.wait %slot >= %c1 on nic
    %box = )" +
          piece("%p") + R"(
    %view = ctran.peer_view %to at (%p : "r") : !ctran.window
    %place = ctran.range %view[%me : "r"]
    %note = ctran.peer_view %came at (%p : "r") : !ctran.slots
    %flag = ctran.slot %note[%me : "r"]
    %put = ctran.copy %box to %place notify %flag after %given, %may on nic
    scf.yield %put : !ctran.token
  }
  %mine = )" +
          piece("%me") + R"(
  %home = ctran.range %to[%me : "r"]
  %kept = ctran.copy %mine to %home after %given, %entry on host
  %here = scf.for %d = %c1 to %n step %c1 iter_args(%t = %kept) -> (!ctran.token) {
    %p = ctran.shift %me by %d : !ctran.coord<"r">
    %slot = ctran.slot %came[%p : "r"]
    %got = ctran.wait %slot >= %c1 on host
    %seen = ctran.flush after %got, %t on host
    scf.yield %seen : !ctran.token
  }
)";
  if (!reduces)
    return text +
           "  ctran.return %here, %told, %sent : !ctran.token, !ctran.token, !ctran.token\n}\n";
  return text + "  %every = ctran.range %to from %c0 size %n\n  %result = ctran.range " +
         (inPlace ? "%in" : "%out") + "\n  %sum = ctran.reduce " + reduction +
         " %every into %result after %here, %kept, %entry, %sent on sm\n" +
         "  ctran.return %sum, %told : !ctran.token, !ctran.token\n}\n";
}

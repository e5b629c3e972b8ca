//===- ncclx-topo.cpp - Look at topologies --------------------------------===//
#include "Print.h"
#include "ncclx/Topology/IO.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include <fmt/format.h>

using namespace mlir::ncclx::topology;
namespace cl = llvm::cl;

namespace {
enum ExitCode { ok = 0, refused = 1, usage = 2, different = 3 };

constexpr const char overview[] =
    "ncclx-topo: read a machine's topology, say what is wrong with it, and know its limits\n\n"
    "  ncclx-topo show FILE                       what the file describes\n"
    "  ncclx-topo show --this-machine [--ranks=N] processes on this machine\n"
    "  ncclx-topo bounds FILE --collective=all_gather --bytes=268435456 [--rate=raw]\n"
    "  ncclx-topo convert FILE -o OUT.json\n"
    "  ncclx-topo diff FILE FILE\n\n"
    "FILE is NCCL's or RCCL's <system> XML or this project's JSON, told by content; - is standard\n"
    "input. Findings go to standard error as FILE:LINE: SEVERITY: MESSAGE [RULE] at ELEMENT.\n"
    "Exit codes: 0 done (warnings allowed), 1 a file was refused or could not be written,\n"
    "2 wrong command line, 3 diff found differences.\n";

cl::OptionCategory category("ncclx-topo options");
cl::SubCommand show("show", "print what a topology describes");
cl::SubCommand boundsCommand("bounds", "print lower bounds of collectives");
cl::SubCommand convert("convert", "write a topology as JSON");
cl::SubCommand diff("diff", "compare two topologies");

cl::list<std::string> files(cl::Positional, cl::desc("FILE..."), cl::cat(category), cl::sub(show),
                            cl::sub(boundsCommand), cl::sub(convert), cl::sub(diff));
cl::opt<bool> thisMachine("this-machine", cl::desc("describe this machine instead of a file"),
                          cl::cat(category), cl::sub(show), cl::sub(boundsCommand),
                          cl::sub(convert));
cl::opt<unsigned> ranks("ranks", cl::desc("with --this-machine: processes (default: one a core)"),
                        cl::init(0), cl::cat(category), cl::sub(show), cl::sub(boundsCommand),
                        cl::sub(convert));
cl::opt<bool> strict("strict", cl::desc("refuse a topology with warnings"), cl::cat(category),
                     cl::sub(show), cl::sub(boundsCommand), cl::sub(convert), cl::sub(diff));
cl::opt<std::string> graphs("graphs", cl::value_desc("FILE"),
                            cl::desc("check that this NCCL <graphs> file fits the topology"),
                            cl::cat(category), cl::sub(show));
cl::opt<std::string> output("o", cl::value_desc("FILE"), cl::desc("where to write (default: -)"),
                            cl::init("-"), cl::cat(category), cl::sub(convert));

cl::opt<std::string> collective("collective", cl::value_desc("NAME"),
                                cl::desc("all_gather, reduce_scatter, all_reduce, all_to_all, "
                                         "broadcast, reduce, scatter, gather, permute, or all "
                                         "(default)"),
                                cl::init("all"), cl::cat(category), cl::sub(boundsCommand));
cl::list<unsigned> group("group", cl::CommaSeparated, cl::value_desc("RANK,..."),
                         cl::desc("the ranks that take part (default: all)"), cl::cat(category),
                         cl::sub(boundsCommand));
cl::opt<unsigned long long>
    bytes("bytes",
          cl::desc("the larger of a rank's two buffers, as nccl-tests count (default: 256 MiB): "
                   "all_gather: the output; reduce_scatter: the input; all_reduce, broadcast, "
                   "reduce: the buffer; all_to_all, permute: the send buffer of one rank; scatter, "
                   "gather: the root's buffer"),
          cl::init(uint64_t(256) << 20), cl::cat(category), cl::sub(boundsCommand));
enum class Rates { raw, payload, both };
cl::opt<Rates> rate("rate", cl::desc("which rate of the links counts:"), cl::init(Rates::both),
                    cl::values(clEnumValN(Rates::raw, "raw", "what the wire signals"),
                               clEnumValN(Rates::payload, "payload",
                                          "what NCCL and RCCL count on after protocol overhead"),
                               clEnumValN(Rates::both, "both", "one block for each (default)")),
                    cl::cat(category), cl::sub(boundsCommand));
cl::opt<unsigned> root("root", cl::desc("root, as a position in the group"), cl::init(0),
                       cl::cat(category), cl::sub(boundsCommand));
cl::opt<bool> relays("relays", cl::desc("let ranks outside the group forward data"),
                     cl::cat(category), cl::sub(boundsCommand));
cl::opt<bool> inNetwork("in-network", cl::desc("let switches that can reduce do so (NVLS)"),
                        cl::cat(category), cl::sub(boundsCommand));

int misuse(const llvm::Twine &message) {
  llvm::errs() << "ncclx-topo: error: " << message << " (see ncclx-topo --help)\n";
  return usage;
}

/// Reads, prints the findings, and gives the topology unless it is refused.
std::optional<Topology> load(ReadResult result, llvm::StringRef file) {
  bool warned = false;
  for (const Diagnostic &d : result.diagnostics) {
    llvm::errs() << toString(d, file) << "\n";
    warned = warned || d.severity == Severity::warning;
  }
  if (result.topology && strict && warned) {
    llvm::errs() << file << ": error: refused for its warnings (--strict)\n";
    return std::nullopt;
  }
  return std::move(result.topology);
}

ReadResult read(const std::string &file) {
  if (file != "-")
    return readTopologyFile(file);
  if (auto buffer = llvm::MemoryBuffer::getSTDIN())
    return readTopology((*buffer)->getBuffer(), "stdin");
  ReadResult result;
  result.diagnostics.push_back({Severity::error, "", 0, "file", "standard input cannot be read"});
  return result;
}

int runShow(const Topology &topo, llvm::StringRef format) {
  printTopology(llvm::outs(), topo, format);
  if (graphs.empty())
    return ok;
  auto buffer = llvm::MemoryBuffer::getFile(graphs);
  if (!buffer) {
    llvm::errs() << graphs << ": error: cannot be read: " << buffer.getError().message() << "\n";
    return refused;
  }
  Diagnostics found = checkGraphs((*buffer)->getBuffer(), topo);
  for (const Diagnostic &d : found)
    llvm::errs() << toString(d, graphs) << "\n";
  return hasErrors(found) ? refused : ok;
}

int runBounds(const Topology &topo) {
  std::vector<unsigned> members(group.begin(), group.end());
  for (unsigned r = 0; group.empty() && r < topo.numRanks(); ++r)
    members.push_back(r);
  BoundQuery query;
  query.group = members;
  query.bytes = bytes;
  query.root = root;
  query.relays = relays;
  query.inNetwork = inNetwork;
  if (std::string problem = checkQuery(topo, query); !problem.empty())
    return misuse(problem);
  std::vector<Collective> wanted;
  if (std::optional<Collective> one = parseCollective(collective))
    wanted = {*one};
  else if (collective == "all")
    wanted = {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
              Collective::all_to_all, Collective::broadcast,      Collective::permute};
  else
    return misuse("--collective=" + collective + " is not a collective");
  for (Collective each : wanted)
    for (Rate r : {Rate::raw, Rate::payload}) {
      if ((r == Rate::raw && rate == Rates::payload) || (r == Rate::payload && rate == Rates::raw))
        continue;
      query.collective = each;
      query.rate = r;
      printBounds(llvm::outs(), topo, query);
    }
  return ok;
}

int runConvert(const Topology &topo) {
  std::error_code ec;
  llvm::ToolOutputFile file(output, ec, llvm::sys::fs::OF_None);
  if (ec) {
    llvm::errs() << output << ": error: cannot be written: " << ec.message() << "\n";
    return refused;
  }
  file.os() << writeJson(topo);
  file.os().flush();
  if (file.os().has_error()) {
    llvm::errs() << output << ": error: " << file.os().error().message() << "\n";
    file.os().clear_error();
    return refused;
  }
  file.keep();
  return ok;
}

int run() {
  size_t wanted = diff ? 2 : thisMachine ? 0 : 1;
  if (files.size() != wanted)
    return misuse(fmt::format("expected {} FILE(s), found {}", wanted, files.size()));
  if (diff) {
    std::optional<Topology> a = load(read(files[0]), files[0]);
    std::optional<Topology> b = load(read(files[1]), files[1]);
    if (!a || !b)
      return refused;
    return printDifference(llvm::outs(), *a, *b) ? different : ok;
  }
  DiscoverOptions options;
  options.ranks = ranks;
  std::string file = thisMachine ? "this machine" : files[0];
  ReadResult result = thisMachine ? discoverThisMachine(options) : read(file);
  std::string format = result.format;
  std::optional<Topology> topo = load(std::move(result), file);
  if (!topo)
    return refused;
  if (show)
    return runShow(*topo, format);
  return boundsCommand ? runBounds(*topo) : runConvert(*topo);
}
} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  for (cl::SubCommand *command :
       {&show, &boundsCommand, &convert, &diff, &cl::SubCommand::getTopLevel()})
    cl::HideUnrelatedOptions(category, *command);
  cl::SetVersionPrinter([](llvm::raw_ostream &out) { out << "ncclx-topo " NCCLX_VERSION "\n"; });
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    return usage;
  if (!show && !boundsCommand && !convert && !diff)
    return misuse("say what to do: show, bounds, convert or diff");
  return run();
}

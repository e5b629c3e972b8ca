//===- ncclx-topo.cpp - Look at topologies --------------------------------===//
#include "Print.h"
#include "ncclx/Support/ReadFile.h"
#include "ncclx/Topology/IO.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"
#include <fmt/format.h>

using namespace mlir::ncclx::topology;
namespace cl = llvm::cl;

namespace {
enum ExitCode { ok = 0, refused = 1, usage = 2, different = 3 };

constexpr const char overview[] =
    "ncclx-topo: read a machine's topology, say what is wrong with it, and know its limits\n\n"
    "  ncclx-topo show FILE                what the file describes: ranks, switches, who reaches "
    "whom\n"
    "  ncclx-topo show --this-machine      this machine's GPUs, or processes where it has none\n"
    "  ncclx-topo show FILE --graphs=G.xml does NCCL's graph file fit?\n"
    "  ncclx-topo bounds FILE --collective=all_gather --bytes=268435456 --rate=raw\n"
    "                                      the least time any schedule takes, and why\n"
    "  ncclx-topo bounds FILE --counts=COUNTS.csv\n"
    "                                      the same for an all_to_all of unequal parts\n"
    "  ncclx-topo convert FILE -o OUT.json anything that is read, as this project's JSON; with\n"
    "                                      --to=mlir as an attribute of a module\n"
    "  ncclx-topo diff FILE FILE           what only one of two describes\n\n"
    "FILE is NCCL's or RCCL's <system> XML (NCCL_TOPO_DUMP_FILE writes one) or this project's "
    "JSON\n"
    "(dialect/lib/Topology/README.md), told by content; - is standard input. With --json, show,\n"
    "bounds and diff print one JSON document (tools/ncclx-topo/README.md). Findings go to "
    "standard\n"
    "error, one a line: FILE:LINE: SEVERITY: MESSAGE [RULE] at ELEMENT. Every link has two rates:\n"
    "raw, what the wire signals, and payload, what NCCL and RCCL count on.\n"
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
cl::opt<unsigned>
    ranks("ranks",
          cl::desc("with --this-machine: describe so many processes (default: the GPUs, "
                   "or one process a core)"),
          cl::init(0), cl::cat(category), cl::sub(show), cl::sub(boundsCommand), cl::sub(convert));
cl::opt<bool> sockets("sockets",
                      cl::desc("with --this-machine: processes that send each other what they have "
                               "by TCP, not through shared memory"),
                      cl::cat(category), cl::sub(show), cl::sub(boundsCommand), cl::sub(convert));
cl::opt<std::string> machineRoot(
    "sysroot", cl::value_desc("DIR"),
    cl::desc("with --this-machine: a folder with copies of /sys and /proc, read instead of them"),
    cl::cat(category), cl::sub(show), cl::sub(boundsCommand), cl::sub(convert));
cl::opt<std::string> nvml("nvml", cl::value_desc("FILE"),
                          cl::desc("with --this-machine: NVIDIA's management library (default: "
                                   "libnvidia-ml.so.1)"),
                          cl::cat(category), cl::sub(show), cl::sub(boundsCommand),
                          cl::sub(convert));
cl::opt<bool> asJson("json", cl::desc("print one JSON document"), cl::cat(category), cl::sub(show),
                     cl::sub(boundsCommand), cl::sub(diff));
cl::opt<bool> strict("strict", cl::desc("refuse a topology with warnings"), cl::cat(category),
                     cl::sub(show), cl::sub(boundsCommand), cl::sub(convert), cl::sub(diff));
cl::opt<std::string> graphs("graphs", cl::value_desc("FILE"),
                            cl::desc("check that this NCCL <graphs> file fits the topology"),
                            cl::cat(category), cl::sub(show));
cl::opt<std::string> output("o", cl::value_desc("FILE"), cl::desc("where to write (default: -)"),
                            cl::init("-"), cl::cat(category), cl::sub(convert));

enum class Form { json, mlir };
cl::opt<Form> form("to", cl::desc("what to write:"), cl::init(Form::json),
                   cl::values(clEnumValN(Form::json, "json", "this project's JSON (default)"),
                              clEnumValN(Form::mlir, "mlir", "an #ncclx.topology for a module")),
                   cl::cat(category), cl::sub(convert));

cl::opt<std::string> collective("collective", cl::value_desc("NAME"),
                                cl::desc("all_gather, reduce_scatter, all_reduce, all_to_all, "
                                         "all_to_all_v, broadcast, reduce, scatter, gather, "
                                         "permute, or all (default)"),
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
cl::opt<std::string> countsFile(
    "counts", cl::value_desc("FILE"),
    cl::desc("all_to_all_v: a line for each member of the group, with the bytes it sends to each, "
             "separated by commas, semicolons or blanks"),
    cl::cat(category), cl::sub(boundsCommand));
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

int runShow(const Topology &topo, llvm::StringRef format, const Diagnostics &findings) {
  if (asJson)
    printTopologyJson(llvm::outs(), topo, format, findings);
  else
    printTopology(llvm::outs(), topo, format);
  if (graphs.empty())
    return ok;
  std::string problem;
  std::optional<std::string> text = mlir::ncclx::readFile(graphs, problem);
  if (!text) {
    llvm::errs() << graphs << ": error: " << problem << "\n";
    return refused;
  }
  Diagnostics found = checkGraphs(*text, topo);
  for (const Diagnostic &d : found)
    llvm::errs() << toString(d, graphs) << "\n";
  return hasErrors(found) ? refused : ok;
}

/// What a file says, fit for a message: short, and without what a terminal would act on.
std::string shown(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream out(result);
  llvm::printEscapedString(text.take_front(40), out);
  return text.size() > 40 ? result + "..." : result;
}

/// Reads n x n whole numbers; an error message, or "".
std::string readCounts(size_t members, std::vector<uint64_t> &counts) {
  std::string problem;
  std::optional<std::string> text = mlir::ncclx::readFile(countsFile, problem);
  if (!text)
    return countsFile + ": " + problem;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(*text).split(lines, '\n');
  size_t row = 0;
  for (size_t number = 1; number <= lines.size(); ++number) {
    llvm::StringRef line = lines[number - 1].trim();
    if (line.empty() || line.starts_with("#"))
      continue;
    size_t column = 0;
    for (++row; !line.empty(); ++column) {
      uint64_t bytes;
      size_t end = line.find_first_of(",; \t");
      if (line.substr(0, end).getAsInteger(10, bytes))
        return fmt::format("{}:{}: '{}' is not a number of bytes", std::string(countsFile), number,
                           shown(line.substr(0, end)));
      counts.push_back(bytes);
      line = end == llvm::StringRef::npos ? "" : line.substr(end).ltrim(",; \t");
    }
    if (column != members)
      return fmt::format("{}:{}: {} numbers, expected {}: one for each member of the group",
                         std::string(countsFile), number, column, members);
  }
  if (row != members)
    return fmt::format("{}: {} lines of numbers, expected {}: one for each member of the group",
                       std::string(countsFile), row, members);
  return "";
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
  std::vector<uint64_t> counts;
  std::vector<Collective> wanted;
  if (!countsFile.empty() && collective == "all")
    collective = "all_to_all_v";
  if (std::optional<Collective> one = parseCollective(collective))
    wanted = {*one};
  else if (collective == "all")
    wanted = {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
              Collective::all_to_all, Collective::broadcast,      Collective::permute};
  else
    return misuse("--collective=" + collective + " is not a collective");
  if (wanted[0] == Collective::all_to_all_v) {
    if (countsFile.empty())
      return misuse("all_to_all_v needs --counts=FILE");
    if (std::string problem = readCounts(members.size(), counts); !problem.empty())
      return misuse(problem);
    query.counts = counts;
    query.bytes = largestTotal(counts, members.size());
  } else if (!countsFile.empty()) {
    return misuse("--counts is for all_to_all_v");
  }
  query.collective = wanted[0];
  if (std::string problem = checkQuery(topo, query); !problem.empty())
    return misuse(problem);
  std::vector<BoundQuery> queries;
  for (Collective each : wanted)
    for (Rate r : {Rate::raw, Rate::payload}) {
      if ((r == Rate::raw && rate == Rates::payload) || (r == Rate::payload && rate == Rates::raw))
        continue;
      query.collective = each;
      query.rate = r;
      queries.push_back(query);
    }
  BoundSolver solver(topo);
  if (asJson)
    printBoundsJson(llvm::outs(), topo, queries);
  else
    for (const BoundQuery &one : queries)
      printBounds(llvm::outs(), solver, one);
  return ok;
}

int runConvert(const Topology &topo) {
  std::error_code ec;
  llvm::ToolOutputFile file(output, ec, llvm::sys::fs::OF_None);
  if (ec) {
    llvm::errs() << output << ": error: cannot be written: " << ec.message() << "\n";
    return refused;
  }
  if (form == Form::mlir)
    printAttribute(file.os(), topo);
  else
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
    std::optional<Topology> a = load(readTopologyFile(files[0]), files[0]);
    std::optional<Topology> b = load(readTopologyFile(files[1]), files[1]);
    if (!a || !b)
      return refused;
    bool differ =
        asJson ? printDifferenceJson(llvm::outs(), *a, *b) : printDifference(llvm::outs(), *a, *b);
    return differ ? different : ok;
  }
  DiscoverOptions options;
  options.ranks = ranks;
  options.sockets = sockets;
  options.root = machineRoot;
  if (!nvml.empty())
    options.nvml = nvml;
  if (!thisMachine && (!machineRoot.empty() || !nvml.empty() || ranks > 0 || sockets))
    return misuse("--sysroot, --nvml, --ranks and --sockets are for --this-machine");
  if (!machineRoot.empty() && !llvm::sys::fs::is_directory(machineRoot))
    return misuse("--sysroot=" + machineRoot + " is not a directory");
  if (constexpr unsigned most = 4096; ranks > most)
    return misuse(
        fmt::format("--ranks={}: at most {} processes are described", unsigned(ranks), most));
  std::string file = thisMachine ? "this machine" : files[0];
  ReadResult result = thisMachine ? discoverThisMachine(options) : readTopologyFile(file);
  std::string format = result.format;
  Diagnostics findings = result.diagnostics;
  std::optional<Topology> topo = load(std::move(result), file);
  if (!topo)
    return refused;
  if (show)
    return runShow(*topo, format, findings);
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

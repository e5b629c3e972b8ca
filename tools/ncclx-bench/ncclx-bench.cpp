//===- ncclx-bench.cpp - Collectives of the host, measured -----------------===//
#include "Bench.h"
#include "Calibrate.h"

#include "ncclx/Overlap/CostModel.h"
#include "ncclx/Topology/IO.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"

#include <csignal>
#include <spawn.h>
#include <sys/wait.h>

using namespace ncclx_bench;
using namespace mlir::ncclx;

namespace {

namespace cl = llvm::cl;
cl::OptionCategory category("ncclx-bench options");
cl::list<int> ranksOption("ranks", cl::CommaSeparated, cl::desc("Rank counts (2,4,8)"),
                          cl::cat(category));
cl::list<std::string> collectivesOption("collectives", cl::CommaSeparated,
                                        cl::desc("all_reduce, all_gather, reduce_scatter, "
                                                 "all_to_all, broadcast (all of them); on GPUs "
                                                 "permute, too"),
                                        cl::cat(category));
cl::opt<std::string> minOption("min-bytes", cl::init("8"), cl::desc("Smallest size, as 8 or 64K"),
                               cl::cat(category));
cl::opt<std::string> maxOption("max-bytes", cl::init("64M"), cl::desc("Largest size"),
                               cl::cat(category));
cl::opt<int> factorOption("factor", cl::init(8), cl::desc("From one size to the next"),
                          cl::cat(category));
cl::opt<std::string> transportOption("transport", cl::init("shm"), cl::desc("shm or tcp"),
                                     cl::cat(category));
cl::opt<std::string> algorithmOption("algorithm", cl::desc("direct, ring, ... (chosen by cost)"),
                                     cl::cat(category));
cl::opt<int> roundsOption("rounds", cl::init(9), cl::desc("Rounds of which the median is taken"),
                          cl::cat(category));
cl::opt<int> batchOption("batch-ms", cl::init(10), cl::desc("Least time of a round's iterations"),
                         cl::cat(category));
cl::opt<bool> checkOption("check", cl::init(true), cl::desc("Compare every output element"),
                          cl::cat(category));
cl::opt<std::string> againstOption("against",
                                   cl::desc("openmpi, or nccl on GPUs: by turns in the same run"),
                                   cl::cat(category));
cl::opt<std::string> backendOption("backend", cl::init("host"),
                                   cl::desc("host, or cuda: the GPUs of this machine"),
                                   cl::cat(category));
cl::opt<std::string> dtypeOption("dtype", cl::desc("On GPUs: f32 or bf16 (bf16)"),
                                 cl::cat(category));
cl::opt<int64_t> graphOption("graph", cl::init(20), cl::value_desc("N"),
                             cl::desc("On GPUs: runs in a graph that is replayed; fewer of long "
                                      "ones; 0: none (20)"),
                             cl::cat(category));
cl::opt<std::string> topologyOption("topology", cl::value_desc("FILE"),
                                    cl::desc("On GPUs: what to compile for (this machine)"),
                                    cl::cat(category));
cl::opt<std::string> driverOption("cuda-driver", cl::desc("As in ncclx-run"), cl::cat(category));
cl::opt<std::string> nvrtcOption("cuda-nvrtc", cl::desc("As in ncclx-run"), cl::cat(category));
cl::opt<std::string> headersOption("cuda-headers", cl::desc("As in ncclx-run"), cl::cat(category));
cl::opt<std::string> cacheOption("cuda-cache", cl::desc("As in ncclx-run (none)"),
                                 cl::cat(category));
cl::opt<std::string> machineOption("machine", cl::value_desc("FILE"),
                                   cl::desc("Machine file that --calibrate starts from; on GPUs "
                                            "each cell is predicted by it"),
                                   cl::cat(category));
cl::opt<std::string> calibrateOption(
    "calibrate", cl::value_desc("FILE"),
    cl::desc("Write --machine with an engine for each collective (on GPUs: and "
             "form) of what was measured; on the host with products and power, too"),
    cl::cat(category));
cl::opt<std::string> powercapOption("powercap", cl::value_desc("FOLDER"),
                                    cl::init("/sys/class/powercap"),
                                    cl::desc("Where the energy counters of processors are"),
                                    cl::cat(category));
cl::opt<std::string> tuneOption("tune", cl::value_desc("FILE"),
                                cl::desc("Measure each algorithm, and write a rule file (CSV) with "
                                         "the fastest by size"),
                                cl::cat(category));
cl::opt<int64_t> scratchOption("scratch-limit", cl::value_desc("BYTES"), cl::init(-1),
                               cl::desc("Scratch memory that a collective may take on a rank (no "
                                        "limit; with --tune 256 MiB)"),
                               cl::cat(category));
cl::opt<std::string> jsonOption("json", cl::value_desc("FILE"),
                                cl::desc("Write a JSON line a cell"), cl::cat(category));

int usage(const std::string &text) {
  llvm::outs() << "error: " << text << "\n";
  return 1;
}

bool parseBytes(llvm::StringRef text, int64_t &bytes) {
  int shift = text.consume_back_insensitive("K")   ? 10
              : text.consume_back_insensitive("M") ? 20
              : text.consume_back_insensitive("G") ? 30
                                                   : 0;
  if (text.getAsInteger(10, bytes) || bytes < 1 || bytes > (int64_t(1) << 40 >> shift))
    return false;
  bytes <<= shift;
  return true;
}

/// What is wrong with the command line; "" if nothing.
std::string readOptions(Options &o) {
  o.ranks.assign(ranksOption.begin(), ranksOption.end());
  if (o.ranks.empty())
    o.ranks = {2, 4, 8};
  for (int n : o.ranks)
    if (n < 1 || n > Stage::maxRanks)
      return llvm::formatv("--ranks has {0}, expected 1 to {1}", n, int(Stage::maxRanks));
  for (const std::string &name : collectivesOption) {
    auto *end = collectiveNames + numCollectives;
    auto *found = std::find(collectiveNames, end, name);
    if (found == end)
      return "--collectives has '" + name + "', expected " +
             llvm::join(std::vector<std::string>(collectiveNames, end), ", ");
    o.collectives.push_back(int(found - collectiveNames));
  }
  if (o.collectives.empty())
    o.collectives = {AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast};
  if (!parseBytes(minOption, o.minBytes) || !parseBytes(maxOption, o.maxBytes) ||
      o.minBytes > o.maxBytes)
    return "--min-bytes and --max-bytes are '" + minOption + "' and '" + maxOption +
           "', expected sizes as 8, 64K or 1M, in this order";
  if (factorOption < 2)
    return "--factor is " + std::to_string(factorOption) + ", expected at least 2";
  if (transportOption != "shm" && transportOption != "tcp")
    return "--transport is '" + transportOption + "', expected shm or tcp";
  if (!algorithmOption.empty() && !mlir::ncclx::symbolizeAlgorithm(algorithmOption))
    return "--algorithm is '" + algorithmOption + "', expected the name of an algorithm, as direct";
  if (roundsOption < 1 || roundsOption > Stage::maxRounds)
    return llvm::formatv("--rounds is {0}, expected 1 to {1}", int(roundsOption),
                         int(Stage::maxRounds));
  if (batchOption < 1 || batchOption > 10'000)
    return "--batch-ms is " + std::to_string(batchOption) + ", expected 1 to 10000";
  bool cuda = backendOption == "cuda";
  if (!cuda && llvm::is_contained(o.collectives, int(Permute)))
    return "--collectives has 'permute', which is measured with --backend=cuda alone";
  if ((!cuda && !machineOption.empty() && calibrateOption.empty()) ||
      (machineOption.empty() && !calibrateOption.empty()))
    return "--machine is for --backend=cuda, or for --calibrate, and --calibrate takes it";
  if (!cuda && backendOption != "host")
    return "--backend is '" + backendOption + "', expected host or cuda";
  const char *other = cuda ? "nccl" : "openmpi";
  if (!againstOption.empty() && againstOption != other)
    return "--against is '" + againstOption + "', expected " + other;
  if (dtypeOption.empty())
    dtypeOption = cuda ? "bf16" : "f32";
  if (dtypeOption != "f32" && (!cuda || dtypeOption != "bf16"))
    return "--dtype is '" + dtypeOption + "', expected f32" + (cuda ? " or bf16" : "");
  if (graphOption < 0 || graphOption > 10'000)
    return "--graph is " + std::to_string(graphOption) + ", expected 0 to 10000";
  o.factor = factorOption;
  o.transport = transportOption;
  o.algorithm = algorithmOption;
  o.against = againstOption;
  o.json = jsonOption;
  o.tune = tuneOption;
  o.scratchLimit = scratchOption;
  if (!o.tune.empty() && (cuda || !o.algorithm.empty() || !o.against.empty()))
    return "--tune measures each algorithm on the host, expected neither --backend=cuda nor "
           "--algorithm nor --against";
  if (!o.tune.empty() && o.scratchLimit < 0)
    o.scratchLimit = 256 << 20;
  o.rounds = roundsOption;
  o.batchMs = batchOption;
  o.check = checkOption;
  o.dtype = dtypeOption;
  o.graphRuns = graphOption;
  o.cudaDriver = driverOption;
  o.cudaNvrtc = nvrtcOption;
  o.cudaHeaders = headersOption;
  o.cudaCache = cacheOption;
  o.machine = machineOption;
  o.calibrate = calibrateOption;
  o.powercap = powercapOption;
  if (!o.calibrate.empty() && !o.tune.empty())
    return "--tune and --calibrate measure other things, expected one of them";
  return "";
}

/// Starts the other side; -1 if it cannot be.
pid_t startOpenMPI(const Options &options, int nranks, const std::string &stagePath,
                   const std::string &worker) {
  std::string n = std::to_string(nranks);
  std::vector<const char *> arguments = {"mpirun",
                                         "-n",
                                         n.c_str(),
                                         "--allow-run-as-root",
                                         "--oversubscribe",
                                         "--bind-to",
                                         "none",
                                         "--mca",
                                         "btl",
                                         options.transport == "shm" ? "self,vader" : "self,tcp",
                                         worker.c_str(),
                                         stagePath.c_str(),
                                         nullptr};
  pid_t pid;
  if (posix_spawnp(&pid, "mpirun", nullptr, nullptr, const_cast<char **>(arguments.data()),
                   environ))
    return -1;
  return pid;
}

/// All cells of one rank count.
bool runRanks(mlir::MLIRContext &context, const Options &options, int nranks, Table &table,
              const std::string &worker) {
  std::vector<Cell> cells = makeCells(options, nranks);
  topology::DiscoverOptions discover;
  discover.ranks = unsigned(nranks);
  discover.sockets = options.transport == "tcp";
  topology::ReadResult machine = topology::discoverThisMachine(discover);
  if (!machine.topology) {
    llvm::outs() << "error: this machine cannot be described\n";
    return false;
  }
  std::vector<Program> programs = compileCells(context, *machine.topology, options, cells, nranks);
  if (programs.size() != cells.size()) {
    llvm::outs() << "error: a cell cannot be compiled\n";
    return false;
  }
  if (cells.size() > size_t(Stage::maxCells)) {
    llvm::outs() << "error: " << cells.size() << " cells are too many\n";
    return false;
  }
  int fd = memfd_create("ncclx-bench", MFD_CLOEXEC);
  std::string path = llvm::formatv("/proc/{0}/fd/{1}", getpid(), fd);
  Stage *stage = fd < 0 || ftruncate(fd, sizeof(Stage)) ? nullptr : Stage::open(path.c_str());
  if (!stage) {
    llvm::outs() << "error: no shared memory\n";
    return false;
  }
  llvm::scope_exit unmap([&] {
    munmap(stage, sizeof(Stage));
    ::close(fd);
  });
  stage->nranks = nranks;
  stage->libraries = options.against.empty() ? 1 : 2;
  stage->rounds = options.rounds;
  stage->check = options.check;
  stage->batchNs = options.batchMs * 1'000'000;
  stage->numCells = int(cells.size());
  std::copy(cells.begin(), cells.end(), stage->cells);
  snprintf(stage->waitPolicy[0], sizeof(stage->waitPolicy[0]), "%s",
           "polls, then, with more ranks than cores, yields, then sleeps on a futex");
  snprintf(stage->waitPolicy[1], sizeof(stage->waitPolicy[1]), "%s",
           nranks > int(sysconf(_SC_NPROCESSORS_ONLN))
               ? "polls and yields (--oversubscribe --bind-to none)"
               : "polls (--oversubscribe --bind-to none)");
  pid_t theirs = -1;
  if (!options.against.empty() && (theirs = startOpenMPI(options, nranks, path, worker)) < 0) {
    llvm::outs() << "error: mpirun cannot be started; is openmpi-bin installed?\n";
    return false;
  }
  bool ok = runOurs(*stage, options, programs);
  if (theirs > 0) {
    int status = 0;
    if (!ok)
      kill(theirs, SIGTERM);
    waitpid(theirs, &status, 0);
    ok &= status == 0;
  }
  if (!ok) {
    llvm::outs() << "error: a rank failed\n";
    return false;
  }
  table.add(*stage, programs);
  return true;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(
          argc, argv,
          "Measures collectives between processes of this machine, as nccl-tests does on GPUs: "
          "each\n"
          "size, the time of the slowest rank as a median over rounds, algbw and busbw in GB/s.\n\n"
          "  ncclx-bench --against=openmpi --json=bench.jsonl\n",
          &llvm::errs()))
    return usage("the command line is not understood (see ncclx-bench --help)");
  Options options;
  if (std::string wrong = readOptions(options); !wrong.empty())
    return usage(wrong);
  std::string worker;
  if (options.against == "openmpi") {
    std::string self = llvm::sys::fs::getMainExecutable(argv[0], (void *)&main);
    worker = self + "-openmpi";
    if (!llvm::sys::fs::can_execute(worker))
      return usage(worker + " is not there: it is built where libopenmpi-dev is installed");
  }
  mlir::DialectRegistry registry;
  registerDriverDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context, llvm::errs());
  if (backendOption == "cuda") {
    topology::ReadResult read;
    if (!topologyOption.empty()) {
      read = topology::readTopologyFile(topologyOption);
      for (const topology::Diagnostic &d : read.diagnostics)
        if (d.severity != topology::Severity::note)
          llvm::errs() << topology::toString(d, topologyOption) << "\n";
      if (!read.topology)
        return usage("the topology " + topologyOption + " cannot be used");
    }
    return runOnGpus(context, read.topology ? &*read.topology : nullptr, options);
  }
  Table table(options);
  for (int nranks : options.ranks)
    if (!runRanks(context, options, nranks, table, worker))
      return 2;
  if (!table.finish())
    return 3;
  if (options.calibrate.empty())
    return 0;
  std::vector<Sample> samples;
  for (const Table::Measured &cell : table.cells()) {
    std::string kind = collectiveNames[cell.collective];
    double wire = overlap::wireBytes(kind, cell.ranks, double(cell.bytes));
    if (wire > 0) // one rank alone tells nothing
      samples.push_back({"host " + kind, kind, wire, cell.us * 1e-6, 0});
  }
  int most = *std::max_element(options.ranks.begin(), options.ranks.end());
  if (std::string what = calibrateHost(context, options, most, std::move(samples)); !what.empty()) {
    llvm::outs() << "error: " << what << "\n";
    return 2;
  }
  return 0;
}

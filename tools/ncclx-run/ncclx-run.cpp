//===- ncclx-run.cpp - Compile a graph, prove it, run it, and compare --------------------===//
#include "Compare.h"
#include "CppCarrier.h"
#include "CudaCarrier.h"
#include "Execute.h"
#include "GpuForm.h"
#include "MachineFile.h"
#include "Nccl.h"
#include "Report.h"
#include "SerialForm.h"
#include "SizeOption.h"

#include "ncclx/Analysis/TopologyCost.h"
#include "ncclx/Cpp/CppSource.h"
#include "ncclx/NCCLX/Branches.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/Topology/Bounds.h"
#include "ncclx/Topology/IO.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

#include <algorithm>
#include <chrono>

using namespace mlir;
using namespace mlir::ncclx;

namespace {

namespace cl = llvm::cl;
cl::OptionCategory category("ncclx-run options");
cl::opt<std::string> graphFile(cl::Positional, cl::desc("GRAPH.mlir"), cl::Required,
                               cl::cat(category));
cl::opt<std::string> topologyFile("topology", cl::value_desc("FILE"), cl::Required,
                                  cl::desc("Target: a topology as JSON or NCCL system XML"),
                                  cl::cat(category));
cl::opt<int64_t> ranksOption("ranks", cl::value_desc("N"), cl::init(0),
                             cl::desc("Ranks; must be the size of the graph's grid (default: it)"),
                             cl::cat(category));
cl::opt<std::string>
    functionOption("function", cl::value_desc("NAME"),
                   cl::desc("Function, or written ctran.program, to run (default: the only one)"),
                   cl::cat(category));
cl::opt<std::string> ruleFile("rules", cl::value_desc("FILE"),
                              cl::desc("Rule file (CSV) that is asked for algorithms before any "
                                       "prediction"),
                              cl::cat(category));
cl::opt<int64_t> scratchLimit("scratch-limit", cl::value_desc("BYTES"), cl::init(-1),
                              cl::desc("Scratch memory that collectives may take on a rank (no "
                                       "limit)"),
                              cl::cat(category));
cl::opt<std::string> transport("transport", cl::init("shm"), cl::value_desc("shm|tcp"),
                               cl::desc("How the processes of this machine talk (default shm)"),
                               cl::cat(category));
cl::opt<std::string> backend("backend", cl::init("host"), cl::value_desc("host|cuda"),
                             cl::desc("What runs the schedule: processes of this machine, or its "
                                      "GPUs, of which ranks share where there are fewer"),
                             cl::cat(category));
cl::opt<std::string> cudaDriver("cuda-driver", cl::value_desc("FILE"),
                                cl::desc("Library with the CUDA driver (default libcuda.so.1)"),
                                cl::cat(category));
cl::opt<std::string> cudaNvrtc("cuda-nvrtc", cl::value_desc("FILE"),
                               cl::desc("Library with NVRTC (default: that of CUDA 13 or 12)"),
                               cl::cat(category));
cl::opt<std::string> cudaHeaders("cuda-headers", cl::value_desc("DIR"),
                                 cl::desc("CUDA's headers (default /usr/local/cuda/include)"),
                                 cl::cat(category));
cl::opt<std::string> cudaPtxas("ptxas", cl::value_desc("PROGRAM"),
                               cl::desc("Assembler for --carrier=cpp on GPUs (default: that on "
                                        "PATH, or of /usr/local/cuda)"),
                               cl::cat(category));
cl::opt<std::string> cudaCache("cuda-cache", cl::value_desc("DIR"),
                               cl::desc("Compiled kernels, by content (default: ncclx/cuda in the "
                                        "user's cache)"),
                               cl::cat(category));
cl::opt<std::string> cudaKernel(
    "cuda-kernel", cl::value_desc("BLOCKS|auto|model"),
    cl::desc("Run the program as one kernel: a written one of sm lanes, or a graph, whose "
             "collectives then send packets; so many blocks where ops may share them; "
             "model: where --cuda-machine says that this is faster (default: on streams)"),
    cl::cat(category));
cl::opt<std::string> cudaMachine("cuda-machine", cl::value_desc("FILE"),
                                 cl::desc("Machine file of --cuda-kernel=model, as ncclx-bench "
                                          "--calibrate writes it"),
                                 cl::cat(category));
cl::opt<std::string>
    gemmOption("gemm", cl::init("generated"), cl::value_desc("generated|cublaslt"),
               cl::desc("On GPUs: products of matrices as kernels of the reference's bits, or by "
                        "cuBLASLt, then compared within what its order of additions can change "
                        "(default generated)"),
               cl::cat(category));
cl::opt<std::string> cudaCublasLt("cuda-cublaslt", cl::value_desc("FILE"),
                                  cl::desc("Library with cuBLASLt (default: that of CUDA 13 or "
                                           "12)"),
                                  cl::cat(category));
cl::opt<std::string> inputsOption("inputs", cl::init("random"), cl::value_desc("random|whole"),
                                  cl::desc("Inputs: multiples of 0.1, or whole numbers from -2 to "
                                           "2, of which no order changes a sum, so that every bit "
                                           "is compared (default random)"),
                                  cl::cat(category));
cl::opt<bool> processes("processes",
                        cl::desc("On GPUs: ranks are processes that open each other's memory, not "
                                 "threads of this one"),
                        cl::cat(category));
cl::opt<std::string> emitPtx("emit-ptx", cl::value_desc("FILE"),
                             cl::desc("Write the graph's computation as PTX (--backend=cuda)"),
                             cl::cat(category));
cl::opt<std::string>
    machineFile("machine", cl::value_desc("FILE"),
                cl::desc("Description of this machine; measured and written if it is "
                         "not there (default: ncclx/ in the user's cache)"),
                cl::cat(category));
cl::opt<int64_t> repeat("repeat", cl::init(3), cl::value_desc("N"),
                        cl::desc("Timed runs, after one that is not (default 3)"),
                        cl::cat(category));
cl::opt<int64_t> burst("burst", cl::init(0), cl::value_desc("N"),
                       cl::desc("On GPUs: rounds of N more runs back to back (default 0: none)"),
                       cl::cat(category));
cl::opt<int64_t> graphRuns("graph", cl::init(0), cl::value_desc("N"),
                           cl::desc("On GPUs: captures N runs in a CUDA graph and replays it; "
                                    "times it in the rounds of --burst, NCCL's likewise"),
                           cl::cat(category));
cl::opt<int64_t>
    replays("replays", cl::init(10), cl::value_desc("N"),
            cl::desc("Replays of --graph, of which every bit is compared (default 10)"),
            cl::cat(category));
cl::opt<std::string> against("against", cl::value_desc("nccl"),
                             cl::desc("On GPUs, with --burst: NCCL's same collective by turns"),
                             cl::cat(category));
cl::opt<uint64_t> seed("seed", cl::init(1), cl::desc("Seed of the inputs (default 1)"),
                       cl::cat(category));
cl::opt<int64_t> timeoutMs("timeout-ms", cl::init(30'000), cl::value_desc("MS"),
                           cl::desc("Deadline of each wait of a rank (default 30000)"),
                           cl::cat(category));
cl::opt<std::string> traceFile("trace", cl::value_desc("FILE"),
                               cl::desc("Write a timeline, measured and predicted, for Perfetto"),
                               cl::cat(category));
cl::opt<std::string> jsonFile("json", cl::value_desc("FILE"),
                              cl::desc("Write the report as JSON (- for standard output)"),
                              cl::cat(category));
cl::opt<std::string> emitSchedule("emit-schedule", cl::value_desc("FILE"),
                                  cl::desc("Write the program and its kernels as MLIR"),
                                  cl::cat(category));
cl::opt<std::string> emitHost("emit-host", cl::value_desc("FILE"),
                              cl::desc("Write the lowered host code as MLIR"), cl::cat(category));
cl::opt<int64_t> proofBudget("proof-budget", cl::value_desc("N"),
                             cl::init(ctran::machine::ProofOptions().eventBudget),
                             cl::desc("Ops that the proof may step; a schedule that needs more is "
                                      "undecided, and not run (default 16000000)"),
                             cl::cat(category));
cl::opt<std::string>
    carrier("carrier", cl::init("jit"), cl::value_desc("jit|cpp"),
            cl::desc("How the schedule becomes code: by LLVM in this process, or as "
                     "the C++ of ncclx-compile (default jit)"),
            cl::cat(category));
cl::opt<std::string> compiler("cxx", cl::init("c++"), cl::value_desc("PROGRAM"),
                              cl::desc("C++ compiler for --carrier=cpp (default c++)"),
                              cl::cat(category));
cl::list<std::string>
    sizeOptions("size", cl::value_desc("NAME=VALUE[,VALUE]"),
                cl::desc("Value of a size that the graph leaves open; several are run one by one "
                         "(default: the ends of its range and one between)"),
                cl::cat(category));
cl::opt<bool> noRun("compile-only", cl::desc("Stop after the proof and the predictions"),
                    cl::cat(category));

/// Exit codes, as documented in tools/ncclx-run/README.md.
enum Exit { Good = 0, BadUsage = 1, BadInput = 2, NotProved = 3, RunFailed = 4, Wrong = 5 };

class Stopwatch {
public:
  double lap() {
    auto now = std::chrono::steady_clock::now();
    double seconds = std::chrono::duration<double>(now - last).count();
    last = now;
    return seconds;
  }

private:
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

/// A folder that goes when this object does.
struct TemporaryFolder {
  std::string path;
  bool make(std::string &error) {
    SmallString<128> made;
    if (std::error_code code = llvm::sys::fs::createUniqueDirectory("ncclx", made)) {
      error = "cannot make a temporary folder: " + code.message();
      return false;
    }
    path = made.str().str();
    return true;
  }
  ~TemporaryFolder() {
    if (!path.empty())
      llvm::sys::fs::remove_directories(path);
  }
};

/// Ends with one line and the code that belongs to it.
int finish(const Report &report, Exit code, std::string text) {
  if (!report.sizes.empty())
    text = "at " + report.sizes + ": " + text;
  if (!jsonFile.empty()) {
    std::error_code failed;
    llvm::raw_fd_ostream os(jsonFile, failed);
    if (!failed)
      report.printJson(os, code == Good ? "" : text);
    else if (code == Good) {
      code = BadUsage;
      text = "cannot write " + jsonFile + ": " + failed.message();
    } else {
      llvm::errs() << "cannot write " << jsonFile << ": " << failed.message() << "\n";
    }
  }
  llvm::outs().flush();
  (code == Good ? llvm::outs() << "ok: " : llvm::outs() << "error: ") << text << "\n";
  llvm::outs().flush();
  return code;
}

bool writeModule(ModuleOp module, const std::string &path, std::string &error) {
  std::error_code failed;
  llvm::raw_fd_ostream os(path, failed);
  if (failed) {
    error = "cannot write " + path + ": " + failed.message();
    return false;
  }
  module.print(os);
  os << "\n";
  return true;
}

/// Times each branch; `result` is that of the slowest, whose name is `slowest`, and each row of
/// `timing` that of its own branch. Empty, or why one cannot be timed.
std::string
predict(const Compilation &compilation,
        llvm::function_ref<ctran::machine::TimeResult(const ctran::machine::Schedule &)> simulate,
        Timing &timing, ctran::machine::TimeResult &result, const GraphBranch *&slowest) {
  slowest = nullptr;
  auto row = compilation.collectives().begin();
  for (const GraphBranch &branch : compilation.branches()) {
    ctran::machine::TimeResult here = simulate(*branch.machine);
    if (!here.ok)
      return here.message;
    // Barriers are no rows.
    for (auto [info, time] : llvm::zip(branch.machine->collectives, here.collectives))
      if (row != compilation.collectives().end() && StringRef(row->name).ends_with(info.name)) {
        timing.exposed.push_back(time.exposedMax);
        ++row;
      }
    if (!slowest || here.makespan > timing.makespan) {
      slowest = &branch;
      timing.makespan = here.makespan;
      timing.compute = here.computeMax;
      result = std::move(here);
    }
  }
  timing.exposed.resize(compilation.collectives().size());
  return "";
}

/// What the ranks' own traces say, in the words of the prediction: the host plays one op at a time,
/// so all the time that a collective's ops take is exposed.
Timing timingOf(const HostPlan &plan, const std::vector<GraphCollective> &collectives,
                const Execution &execution) {
  Timing timing;
  std::vector<double> sorted = execution.seconds;
  std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
  timing.makespan = sorted[sorted.size() / 2];
  timing.exposed.assign(collectives.size(), 0);
  for (const std::vector<ncclxrtTraceEvent_t> &events : execution.events) {
    double compute = 0;
    std::vector<double> spent(collectives.size(), 0);
    for (const ncclxrtTraceEvent_t &event : events) {
      if (event.op < 0 || size_t(event.op) >= plan.ops.size() || event.end_ns < event.start_ns)
        continue;
      double seconds = double(event.end_ns - event.start_ns) * 1e-9;
      const std::string &collective = plan.ops[event.op].collective;
      if (collective.empty() && plan.lanes[event.lane].kind == ctran::LaneKind::Compute)
        compute += seconds;
      for (auto [i, c] : llvm::enumerate(collectives))
        if (c.name == collective)
          spent[i] += seconds;
    }
    timing.compute = std::max(timing.compute, compute);
    for (auto [i, seconds] : llvm::enumerate(spent))
      timing.exposed[i] = std::max(timing.exposed[i], seconds);
  }
  return timing;
}

/// What NCCL is to do beside the graph; "" or why it cannot.
std::string ncclCallOf(Compilation &compilation, const CudaDevices &gpus, NcclCall &call) {
  std::string why;
  if (!Nccl::available(why))
    return "--against=nccl: " + why;
  const std::vector<GraphCollective> &collectives = compilation.collectives();
  Type element;
  for (const HostPlan::Window &window : compilation.plan().windows)
    if (window.role == ctran::WindowRole::Input)
      element = window.type.getElementType();
  call = {collectives.front().kind, collectives.front().bytes, element && element.isBF16()};
  bool known = call.kind == "all_gather" || call.kind == "all_reduce" ||
               call.kind == "reduce_scatter" || call.kind == "all_to_all";
  if (collectives.size() != 1 || !known || !element || !(element.isBF16() || element.isF32()) ||
      int64_t(collectives.front().group.size()) != compilation.ranks() ||
      compilation.ranks() > gpus.count)
    return "--against=nccl takes a graph of one all_gather, all_reduce, reduce_scatter or "
           "all_to_all of bf16 or f32 over all ranks, each with a GPU of its own";
  return "";
}

/// ncclx/cuda in the user's cache.
std::string defaultCudaCache() {
  SmallString<128> path;
  if (!llvm::sys::path::cache_directory(path))
    llvm::sys::path::system_temp_directory(true, path);
  llvm::sys::path::append(path, "ncclx", "cuda");
  return path.str().str();
}

std::vector<ctran::machine::TraceEvent> measuredEvents(const HostPlan &plan,
                                                       const Execution &execution) {
  int64_t origin = std::numeric_limits<int64_t>::max();
  for (const auto &events : execution.events)
    for (const ncclxrtTraceEvent_t &event : events)
      origin = std::min(origin, event.start_ns);
  std::vector<ctran::machine::TraceEvent> out;
  for (auto [rank, events] : llvm::enumerate(execution.events))
    for (const ncclxrtTraceEvent_t &event : events) {
      if (event.op < 0 || size_t(event.op) >= plan.ops.size())
        continue;
      const HostPlan::Op &op = plan.ops[event.op];
      out.push_back({"rank " + std::to_string(rank) + " (measured here)",
                     int64_t(rank),
                     plan.lanes[event.lane].name,
                     op.name,
                     op.collective.empty() ? "compute" : op.collective,
                     double(event.start_ns - origin) * 1e-9,
                     event.end_ns ? double(event.end_ns - event.start_ns) * 1e-9 : 0,
                     {{"bytes", std::to_string(event.bytes)}}});
    }
  return out;
}

/// Of a graph, or of each, for which nothing went wrong.
std::string whatHolds(const Report &report, bool cuda) {
  if (noRun)
    return "proved; not run (--compile-only)";
  std::string ranks = std::to_string(report.ranks);
  return "proved, run " +
         (cuda ? "by " + ranks + (processes ? " processes on " : " ranks on ") + report.machine
               : "on " + ranks + " processes over " + transport) +
         (report.hasTolerance() ? ", every output within its products' rounding of the reference"
                                : ", every output equal to the reference");
}

/// What all graphs of one call share.
struct Setting {
  const topology::Topology &topology;
  MLIRContext &context;
  topology::Rate rate;
  bool cuda, oneKernel;
  int64_t kernelBlocks;
};

/// Of an argument that holds sizes of collectives the largest that all of them allow; else -1.
int64_t largestSize(BlockArgument argument) {
  int64_t most = -1;
  for (Operation *user : argument.getUsers())
    if (auto exchange = dyn_cast<AllToAllVOp>(user); exchange && exchange.getSizes() == argument) {
      int64_t rows = exchange.getInputType().getDimSize(int64_t(exchange.getDim()));
      int64_t here = rows / std::max<int64_t>(1, getGroupSize(exchange));
      most = most < 0 ? here : std::min(most, here);
    }
  return most;
}

/// Compiles a graph of known sizes, proves it, runs it and compares, and says so; gives the exit
/// code.
int runGraph(Compilation &compilation, const Setting &setting, Report &report) {
  auto &[topology, context, rate, cuda, oneKernel, kernelBlocks] = setting;
  Stopwatch watch;
  if (failed(compilation.choose()) || failed(compilation.lower()))
    return finish(report, BadInput, "the graph " + graphFile + " cannot be compiled");
  report.compileSeconds = watch.lap();
  std::string error;
  if (!emitSchedule.empty() && !writeModule(compilation.scheduleModule(), emitSchedule, error))
    return finish(report, BadUsage, error);

  ctran::machine::ProofOptions proofOptions;
  proofOptions.eventBudget = proofBudget;
  compilation.prove(proofOptions);
  report.proof = compilation.proof();
  report.proveSeconds = watch.lap();
  if (!report.proof)
    return finish(report, NotProved, "the schedule is not proved: " + report.proof.str());

  for (const GraphCollective &c : compilation.collectives()) {
    CollectiveReport row{c, 0, ""};
    if (std::optional<topology::Collective> kind = topology::parseCollective(c.kind)) {
      topology::BoundQuery query;
      query.collective = *kind;
      query.group = c.group;
      query.bytes = c.bytes;
      query.root = c.root;
      query.rate = rate;
      if (std::string wrong = topology::checkQuery(topology, query); wrong.empty()) {
        topology::LowerBound bound = topology::bound(topology, query);
        row.bound = bound.unreachable ? 0 : bound.seconds.toDouble();
        row.argument = bound.unreachable ? "unreachable" : bound.argument;
      } else {
        row.argument = wrong;
      }
    }
    report.collectives.push_back(row);
  }
  TopologyCost targetCost(topology, rate);
  ctran::machine::TimeResult onTarget, here;
  const GraphBranch *slowest = nullptr, *slowestHere = nullptr;
  error = predict(
      compilation,
      [&](const ctran::machine::Schedule &schedule) {
        return ctran::machine::simulate(schedule, targetCost);
      },
      report.target, onTarget, slowest);
  if (!error.empty())
    return finish(report, BadInput, "the schedule cannot be timed on the target: " + error);
  report.branches = compilation.branches().size();
  report.slowest = slowest->name;
  report.staged = llvm::any_of(compilation.scheduleModule().getOps<func::FuncOp>(),
                               [](func::FuncOp f) { return f->hasAttr(stagesAttrName); });
  ncclxrtProgram_t program = nullptr;
  std::unique_ptr<LoadedCpp> loaded;
  TemporaryFolder folder;
  CudaProgram gpuProgram;
  CudaDevices gpus;
  if (cuda) {
    report.transport = "cuda";
    if (!noRun && !gpus.find(cudaDriver, processes, error))
      return finish(report, RunFailed, error);
    gpuProgram.cublasLt = gemmOption == "cublaslt";
    if (carrier == "cpp") {
      if (!folder.make(error))
        return finish(report, BadInput, error);
      CudaFileOptions options;
      options.directory = folder.path;
      options.name = toIdentifier(compilation.function());
      options.architectures = {gpus.architecture};
      if (oneKernel)
        options.kernelBlocks = kernelBlocks;
      options.timeline = !traceFile.empty();
      options.nvrtc = cudaNvrtc, options.headers = cudaHeaders, options.ptxas = cudaPtxas;
      std::vector<StringRef> files;
      if (failed(writeCuda(compilation, options, gpuProgram, files)))
        return finish(report, BadInput, "no C++ can be made for GPUs");
      auto made = LoadedCpp::create({folder.path, options.name, ""}, compiler);
      if (!made)
        return finish(report, BadInput, llvm::toString(made.takeError()));
      loaded = std::move(*made);
      gpuProgram.describe = loaded->find("describe");
      program = oneKernel ? nullptr : loaded->program();
    } else {
      if (oneKernel ? failed(gpuProgram.makeKernel(compilation, kernelBlocks, !traceFile.empty()))
                    : failed(gpuProgram.make(compilation, gpus.architecture)))
        return finish(report, BadInput, "no code can be made for GPUs");
      program = compilation.entry();
    }
    if (std::error_code failed; !emitPtx.empty()) {
      llvm::raw_fd_ostream os(emitPtx, failed);
      if (failed)
        return finish(report, BadUsage, "cannot write " + emitPtx + ": " + failed.message());
      os << gpuProgram.ptx;
    }
  } else if (carrier == "cpp") {
    if (!folder.make(error))
      return finish(report, BadInput, error);
    CppOptions options{folder.path, toIdentifier(compilation.function()), ""};
    if (failed(writeCpp(compilation, options)))
      return finish(report, BadInput, "no C++ can be made of the schedule");
    auto made = LoadedCpp::create(options, compiler);
    if (!made)
      return finish(report, BadInput, llvm::toString(made.takeError()));
    loaded = std::move(*made);
    program = loaded->program();
  } else {
    if (failed(compilation.generate()))
      return finish(report, BadInput, "no code can be made for this machine");
    program = compilation.entry();
  }
  report.jitSeconds = watch.lap();
  if (!emitHost.empty() && !writeModule(compilation.hostModule(), emitHost, error))
    return finish(report, BadUsage, error);
  for (const HostPlan::Window &window : compilation.plan().windows) {
    int64_t bytes = int64_t(window.bytes) * window.generations;
    (window.role == ctran::WindowRole::Scratch  ? report.scratchBytes
     : window.role == ctran::WindowRole::Output ? report.outputBytes
                                                : report.inputBytes) += bytes;
  }

  if (cuda) {
    report.machine = std::to_string(gpus.count) + " x " + gpus.name;
    report.predicted = report.target;
  } else {
    std::optional<topology::Topology> machine =
        machineTopology(context, machineFile, compilation.ranks(), transport == "tcp",
                        report.machineMeasured, error);
    if (!machine)
      return finish(report, BadInput, error);
    report.machine = machine->name;
    TopologyCost machineCost(*machine, topology::Rate::payload);
    // The host plays one op at a time; over tcp the sockets carry the puts meanwhile.
    error = predict(
        compilation,
        [&](const ctran::machine::Schedule &schedule) {
          SerialForm serial(schedule, /*keepNic=*/transport == "tcp");
          return ctran::machine::simulate(serial, machineCost);
        },
        report.predicted, here, slowestHere);
    if (!error.empty())
      return finish(report, BadInput, "the schedule cannot be timed on this machine: " + error);
  }
  if (noRun) {
    report.measured.exposed.assign(report.collectives.size(), 0);
    report.print(llvm::outs());
    return finish(report, Good, whatHolds(report, cuda));
  }

  auto function = compilation.graph().lookupSymbol<func::FuncOp>(compilation.function());
  ExecuteOptions options;
  options.exact = compilation.isProgram() || inputsOption == "whole";
  options.reordered = gpuProgram.cublasLt;
  options.transport = transport;
  options.timeoutMs = timeoutMs;
  options.repeat = repeat;
  options.burst = std::max<int64_t>(0, burst);
  options.graphRuns = graphRuns;
  options.replays = replays;
  options.processes = processes;
  options.timeline = cuda && !traceFile.empty();
  options.seed = seed;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    options.uniform.push_back(
        static_cast<bool>(function.getArgAttr(i, NCCLXDialect::getUniformAttrName())));
  for (BlockArgument argument : function.getArguments())
    options.most.push_back(largestSize(argument));
  llvm::outs().flush();
  Execution execution;
  CudaPaths where{cudaDriver, cudaNvrtc, cudaHeaders,
                  cudaCache.empty() ? defaultCudaCache() : std::string(cudaCache), cudaCublasLt};
  NcclCall nccl;
  if (!against.empty()) {
    if (std::string wrong = ncclCallOf(compilation, gpus, nccl); !wrong.empty())
      return finish(report, BadUsage, wrong);
    options.nccl = &nccl;
  }
  if (cuda ? !execution.runCuda(compilation.plan(), program, gpuProgram, where, gpus, options)
           : !execution.run(compilation.plan(), program, options))
    return finish(report, RunFailed, execution.error);
  report.runSeconds = execution.seconds;
  for (auto [contender, seconds] : llvm::enumerate(execution.burstSeconds)) {
    size_t kinds = options.nccl ? 1 + options.nccl->modes() : 1;
    bool replayed = contender >= kinds;
    if (contender % kinds == 0)
      (replayed ? report.graphSeconds : report.burstSeconds) = seconds;
    else
      (replayed ? report.ncclGraphSeconds : report.ncclSeconds)
          .push_back({Nccl::modeName(int(contender % kinds) - 1), seconds});
  }
  report.measured = timingOf(compilation.plan(), compilation.collectives(), execution);
  if (cuda)
    report.measured.exposed.clear(); // lanes of GPUs run beside each other
  report.clockErrorSeconds = execution.clockErrorSeconds;
  if (!traceFile.empty()) {
    std::vector<ctran::machine::TraceEvent> events = measuredEvents(compilation.plan(), execution);
    llvm::append_range(
        events, ctran::machine::traceEvents(*slowest->machine, onTarget, " (predicted, target)"));
    std::error_code failedToOpen;
    llvm::raw_fd_ostream os(traceFile, failedToOpen);
    if (failedToOpen)
      return finish(report, BadUsage, "cannot write " + traceFile + ": " + failedToOpen.message());
    ctran::machine::writeTrace(os, events);
  }
  watch.lap();
  if (!compareWithReference(compilation, execution, options, report, error))
    return finish(report, BadInput, error);
  report.interpretSeconds = watch.lap();
  report.print(llvm::outs());
  if (!report.outputsAgree())
    return finish(report, Wrong, "outputs differ from the reference interpreter");
  return finish(report, Good, whatHolds(report, cuda));
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  bool understood = cl::ParseCommandLineOptions(
      argc, argv,
      "Compiles a graph of collectives and computation for a topology, proves the schedule, runs "
      "it\n"
      "on processes of this machine, and compares every output with the reference interpreter.\n\n"
      "  ncclx-run graph.mlir --topology=h200x8.xml --ranks=8 --trace=run.json\n\n"
      "Exit codes: 0 ok; 1 bad usage; 2 the graph or topology cannot be read or compiled; 3 the\n"
      "schedule is not proved; 4 a rank failed; 5 an output differs from the reference.\n",
      &llvm::errs());
  Report report;
  if (!understood)
    return finish(report, BadUsage, "the command line is not understood (see ncclx-run --help)");
  report.graphFile = graphFile;
  report.transport = transport;
  if (transport != "shm" && transport != "tcp")
    return finish(report, BadUsage, "--transport is '" + transport + "', expected shm or tcp");
  if (repeat < 1 || repeat > 255)
    return finish(report, BadUsage,
                  "--repeat is " + std::to_string(repeat) + ", expected 1 to 255");
  if (timeoutMs < 1)
    return finish(report, BadUsage,
                  "--timeout-ms is " + std::to_string(timeoutMs) +
                      ", expected a positive number of milliseconds");

  bool cuda = backend == "cuda";
  if (!cuda && backend != "host")
    return finish(report, BadUsage, "--backend is '" + backend + "', expected host or cuda");
  if (cuda && transport != "shm")
    return finish(report, BadUsage,
                  "--backend=cuda takes no --transport: GPUs reach each other by load and store");
  if (processes && !cuda)
    return finish(report, BadUsage,
                  "--processes is for --backend=cuda: ranks on hosts always are processes");
  if (cuda && burst > 0 && !traceFile.empty())
    return finish(report, BadUsage,
                  "--burst takes no --trace: the marks of a timeline would be timed, too");
  if ((!against.empty() && (against != "nccl" || burst < 1)) || (burst != 0 && !cuda))
    return finish(report, BadUsage,
                  "--burst is for --backend=cuda, and --against=nccl comes with --burst");
  if (graphRuns < 0 || (graphRuns && (!cuda || replays < 1)))
    return finish(
        report, BadUsage,
        "--graph is for --backend=cuda, and takes a number of runs; --replays is at least 1");
  int64_t kernelBlocks = 0;
  bool oneKernel = !cudaKernel.empty(), byModel = cudaKernel == "model";
  if (byModel != !cudaMachine.empty() || (byModel && !cuda))
    return finish(report, BadUsage,
                  "--cuda-kernel=model is for --backend=cuda and takes --cuda-machine");
  if (oneKernel && !byModel &&
      (!cuda || (cudaKernel != "auto" &&
                 (StringRef(cudaKernel).getAsInteger(10, kernelBlocks) || kernelBlocks < 1))))
    return finish(report, BadUsage,
                  "--cuda-kernel is '" + cudaKernel +
                      "', expected a number of blocks, auto or model, with --backend=cuda");
  if (gemmOption != "generated" && (gemmOption != "cublaslt" || !cuda || oneKernel))
    return finish(report, BadUsage,
                  "--gemm is '" + gemmOption +
                      "', expected generated, or cublaslt with --backend=cuda and without "
                      "--cuda-kernel");
  if (inputsOption != "random" && inputsOption != "whole")
    return finish(report, BadUsage, "--inputs is '" + inputsOption + "', expected random or whole");
  if (carrier != "jit" && carrier != "cpp")
    return finish(report, BadUsage, "--carrier is '" + carrier + "', expected jit or cpp");
  if (proofBudget < 1)
    return finish(report, BadUsage,
                  "--proof-budget is " + std::to_string(proofBudget) +
                      ", expected a positive number of ops");

  topology::ReadResult read = topology::readTopologyFile(topologyFile);
  for (const topology::Diagnostic &d : read.diagnostics)
    if (d.severity != topology::Severity::note)
      llvm::errs() << topology::toString(d, topologyFile) << "\n";
  if (!read.topology)
    return finish(report, BadInput, "the topology " + topologyFile + " cannot be used");
  report.topology = read.topology->name;

  DialectRegistry registry;
  registerDriverDialects(registry);
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context, llvm::errs());

  SelectionTarget target{&*read.topology, topology::Rate::payload, transport == "shm"};
  target.scratchLimit = scratchLimit;
  std::optional<RuleTable> rules;
  if (!ruleFile.empty()) {
    std::string error;
    if (!(rules = RuleTable::readFile(ruleFile, error))) {
      llvm::errs() << error;
      return finish(report, BadInput, "the rule file " + ruleFile + " cannot be used");
    }
    target.rules = &*rules;
  }
  report.rate = target.rate;
  Compilation compilation(context, target);
  if (oneKernel && !byModel)
    compilation.asOneKernel(kernelBlocks);
  if (gemmOption == "cublaslt")
    compilation.groupProducts();
  if (failed(compilation.parse(graphFile, functionOption)))
    return finish(report, BadInput, "the graph " + graphFile + " cannot be used");
  if (cuda)
    compilation.graph()->setAttr(kDeviceSizesAttrName, UnitAttr::get(&context));
  report.function = compilation.function().str();
  report.ranks = compilation.ranks();
  if (ranksOption && ranksOption != compilation.ranks())
    return finish(report, BadInput,
                  "--ranks is " + std::to_string(ranksOption) + ", but the graph's grid has " +
                      std::to_string(compilation.ranks()) + " ranks");
  if (byModel) {
    overlap::CostModelResult machine = overlap::readCostModelFile(cudaMachine);
    if (!machine.model)
      return finish(report, BadUsage, machine.error);
    if (!compilation.openSizes().empty())
      return finish(report, BadUsage, "--cuda-kernel=model takes graphs of known sizes");
    FailureOr<GpuForm> form = fasterForm(compilation, *machine.model);
    if (failed(form))
      return finish(report, BadInput, "no form can be chosen for the graph " + graphFile);
    oneKernel = *form == GpuForm::Kernel;
    if (oneKernel)
      compilation.asOneKernel(0);
  }
  Setting setting{*read.topology, context, target.rate, cuda, oneKernel, kernelBlocks};
  ArrayRef<OpenSize> open = compilation.openSizes();
  std::string error;
  std::vector<SmallVector<int64_t>> sizes = readSizeOptions(sizeOptions, open, error);
  if (!error.empty())
    return finish(report, BadUsage, error);
  if (open.empty())
    return runGraph(compilation, setting, report);
  const std::string *files[] = {&jsonFile, &traceFile, &emitSchedule, &emitHost, &emitPtx};
  if (sizes.size() > 1 &&
      llvm::any_of(files, [](const std::string *file) { return !file->empty(); }))
    return finish(report, BadUsage,
                  "files are written of one size: the graph is for several, name one of each by "
                  "--size=NAME=VALUE");
  std::string all;
  const Report empty = report;
  for (const SmallVector<int64_t> &values : sizes) {
    report = empty;
    report.sizes = sizesText(open, values);
    all += (all.empty() ? "" : "; ") + report.sizes;
    std::unique_ptr<Compilation> made = compilation.at(values);
    if (!made)
      return finish(report, BadInput, "the graph " + graphFile + " cannot be made for these sizes");
    if (int code = runGraph(*made, setting, report); code != Good || sizes.size() == 1)
      return code;
    llvm::outs() << "\n";
  }
  report.sizes = all;
  return finish(report, Good, "each " + whatHolds(report, cuda));
}

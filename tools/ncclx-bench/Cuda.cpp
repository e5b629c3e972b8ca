//===- Cuda.cpp - Collectives of the GPUs of this machine, measured --------===//
//
// Each cell is compiled as one kernel, and where messages are long for streams and copy engines,
// too. Ours and NCCL's modes take turns round by round in one process, launched singly and replayed
// from a graph.
//
//===----------------------------------------------------------------------===//
#include "Bench.h"

#include "Calibrate.h"
#include "Ceiling.h"
#include "Compare.h"
#include "CudaProgram.h"
#include "GpuForm.h"
#include "Nccl.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <limits>

using namespace ncclx_bench;
using namespace mlir::ncclx;

namespace {

constexpr int64_t leastOfStreams = 4 << 20; // bytes of a cell
constexpr int64_t mostChecked = 16 << 20;   // by the reference interpreter
constexpr int64_t leastLimited = 1 << 20;   // of cells that are held against the ceiling

struct Row {
  GpuForm form;
  std::string shape;
  std::optional<double> predicted;              ///< seconds
  int64_t burst = 0, graphRuns = 0, wrong = -1; ///< -1: not checked
  std::vector<double> seconds;                  ///< as Execution has them
  int modes = 0;                                ///< of NCCL

  size_t kinds() const { return size_t(1 + modes); }
  /// Of a run in a graph, where there is one.
  double best() const { return graphRuns ? graph() : single(); }
  double single() const { return seconds[0]; }
  double graph() const { return graphRuns ? seconds[kinds()] : 0; }
  /// NCCL's fastest mode, singly or in a graph; -1: none.
  int bestMode(bool graph) const {
    size_t first = graph ? kinds() : 0;
    int best = -1;
    for (size_t m = 1; m < kinds() && first + m < seconds.size(); ++m)
      if (best < 0 || seconds[first + m] < seconds[first + best + 1])
        best = int(m) - 1;
    return best;
  }
  double ofMode(int mode, bool graph) const { return seconds[(graph ? kinds() : 0) + mode + 1]; }
};

class CudaBench {
public:
  CudaBench(mlir::MLIRContext &context, const topology::Topology &machine, const Options &options,
            const CudaDevices &gpus, int nranks, const overlap::CostModel *model)
      : context(context), machine(machine), options(options), gpus(gpus), nranks(nranks),
        model(model) {}
  /// False: an error has been printed.
  bool run(const Cell &cell, bool oneKernel);
  /// Before any cell; false: an error has been printed.
  bool findCeiling();
  void head();
  std::string lines;
  std::vector<Sample> samples;
  int64_t wrong = 0;

private:
  mlir::MLIRContext &context;
  const topology::Topology &machine;
  const Options &options;
  const CudaDevices &gpus;
  int nranks;
  const overlap::CostModel *model; ///< null: nothing is predicted
  std::optional<Ceiling> ceiling;  ///< where each rank has a GPU and cells are long
  /// What a cell is to take at most: 1.05 of its wire's time at the ceiling, and 6 us; in seconds.
  std::optional<double> limitOf(const Cell &cell) const {
    if (!ceiling || cell.bytes < leastLimited)
      return std::nullopt;
    return 1.05 * wireSeconds(*ceiling, cell.collective, nranks, double(cell.bytes)) + 6e-6;
  }
  void print(const Cell &cell, const Row &row);
};

bool CudaBench::findCeiling() {
  if (nranks < 2 || nranks > gpus.count || options.maxBytes < leastLimited)
    return true;
  std::string why;
  ceiling = measureCeiling(options.cudaDriver, nranks,
                           std::min<int64_t>(options.maxBytes, 256 << 20), why);
  if (!ceiling)
    llvm::outs() << "error: copies between GPUs: " << why << "\n";
  return ceiling.has_value();
}

void CudaBench::head() {
  llvm::outs() << llvm::formatv("\n{0} ranks on {1} x {2}, {3}; us a call, singly and in a graph\n",
                                nranks, gpus.count, gpus.name, options.dtype);
  if (ceiling)
    llvm::outs() << llvm::formatv("copy engines: {0:F1} GB/s from each GPU while all send, {1:F1} "
                                  "from one; limit: 1.05 of the wire's time and 6 us\n",
                                  ceiling->all / 1e9, ceiling->one / 1e9);
  llvm::outs() << llvm::formatv("{0,-15}{1,11}{2,9}{3,11}{4,9}{5,9}{6,9}{7,9}", "collective",
                                "bytes", "program", "shape", "us", "graph us", "algbw", "busbw");
  if (model)
    llvm::outs() << llvm::formatv("{0,10}", "predicted");
  if (ceiling)
    llvm::outs() << llvm::formatv("{0,10}", "limit");
  if (!options.against.empty())
    llvm::outs() << llvm::formatv("{0,10}{1,7}{2,10}{3,7}  {4}", "NCCL us", "ratio", "graph us",
                                  "ratio", "modes");
  llvm::outs() << llvm::formatv("{0,8}\n", "#wrong");
}

void CudaBench::print(const Cell &cell, const Row &row) {
  const char *name = collectiveNames[cell.collective];
  double best = row.graphRuns ? std::min(row.single(), row.graph()) : row.single();
  double algbw = double(cell.bytes) / best / 1e9;
  double busbw = algbw * busFactor(cell.collective, nranks);
  llvm::raw_ostream &os = llvm::outs();
  os << llvm::formatv("{0,-15}{1,11}{2,9}{3,11}{4,9:F2}{5,9:F2}{6,9:F2}{7,9:F2}", name, cell.bytes,
                      nameOf(row.form), row.shape, row.single() * 1e6, row.graph() * 1e6, algbw,
                      busbw);
  if (model)
    os << (row.predicted ? llvm::formatv("{0,10:F2}", *row.predicted * 1e6).str() : "       n/a");
  std::optional<double> limit = limitOf(cell);
  if (ceiling)
    os << (limit ? llvm::formatv("{0,10:F2}", *limit * 1e6).str() : "       n/a");
  int single = row.bestMode(false), graph = row.graphRuns ? row.bestMode(true) : -1;
  if (single >= 0)
    os << llvm::formatv("{0,10:F2}{1,7:F2}", row.ofMode(single, false) * 1e6,
                        row.single() / row.ofMode(single, false));
  if (graph >= 0)
    os << llvm::formatv("{0,10:F2}{1,7:F2}  {2}, {3}", row.ofMode(graph, true) * 1e6,
                        row.graph() / row.ofMode(graph, true), Nccl::modeName(single),
                        Nccl::modeName(graph));
  os << llvm::formatv("{0,8}\n", row.wrong < 0 ? "n/a" : std::to_string(row.wrong));
  os.flush();
  llvm::raw_string_ostream line(lines);
  llvm::json::OStream json(line);
  json.object([&] {
    json.attribute("bench", "ncclx-bench");
    json.attribute("transport", "cuda");
    json.attribute("card", gpus.name);
    json.attribute("gpus", gpus.count);
    json.attribute("ranks", nranks);
    json.attribute("collective", name);
    json.attribute("in_place", false);
    json.attribute("dtype", options.dtype);
    json.attribute("bytes", cell.bytes);
    json.attribute("program", nameOf(row.form));
    json.attribute("shape", row.shape);
    json.attribute("rounds", options.rounds);
    json.attribute("iterations", row.burst);
    json.attribute("us", row.single() * 1e6);
    if (row.graphRuns) {
      json.attribute("graph_runs", row.graphRuns);
      json.attribute("graph_us", row.graph() * 1e6);
    }
    if (row.predicted)
      json.attribute("predicted_us", *row.predicted * 1e6);
    if (limit) {
      json.attribute("wire_us", (*limit - 6e-6) / 1.05 * 1e6);
      json.attribute("limit_us", *limit * 1e6);
    }
    json.attribute("algbw_GBps", algbw);
    json.attribute("busbw_GBps", busbw);
    for (bool inGraph : {false, true})
      if (row.modes && (row.graphRuns || !inGraph))
        json.attributeObject(inGraph ? "nccl_graph_us" : "nccl_us", [&] {
          for (int mode = 0; mode < row.modes; ++mode)
            json.attribute(Nccl::modeName(mode), row.ofMode(mode, inGraph) * 1e6);
        });
    if (row.wrong >= 0)
      json.attribute("wrong", row.wrong);
  });
  line << "\n";
}

bool CudaBench::run(const Cell &cell, bool oneKernel) {
  Compilation compilation(context, SelectionTarget{&machine, topology::Rate::payload, true});
  if (oneKernel)
    compilation.asOneKernel(0);
  if (failed(compilation.parseText(graphOf(cell, nranks, options.algorithm, options.dtype), "")) ||
      failed(compilation.choose()) || failed(compilation.lower()))
    return false;
  compilation.prove();
  if (!compilation.proof()) {
    llvm::outs() << "error: not proved: " << compilation.proof().str() << "\n";
    return false;
  }
  CudaProgram program;
  if (oneKernel ? failed(program.makeKernel(compilation, 0))
                : failed(program.make(compilation, gpus.architecture)))
    return false;
  Row row;
  row.form = oneKernel ? GpuForm::Kernel : GpuForm::Streams;
  const char *kind = collectiveNames[cell.collective];
  if (model)
    row.predicted = predict(*model, row.form, kind, nranks, cell.bytes);
  row.shape = oneKernel
                  ? llvm::formatv("{0}x{1}", program.whole->blocks, program.whole->threads).str()
                  : compilation.collectives().front().algorithm;
  ExecuteOptions execute;
  double guess = (oneKernel ? 3 : 25) + double(cell.bytes) / 350e3; // us
  row.graphRuns = options.graphRuns == 0 ? 0
                  : guess < 100          ? options.graphRuns
                  : guess < 1000         ? 4
                                         : 1;
  row.burst = std::clamp<int64_t>(int64_t(double(options.batchMs) * 1000 / guess), 4, 20'000);
  if (row.graphRuns)
    row.burst = (row.burst + row.graphRuns - 1) / row.graphRuns * row.graphRuns;
  execute.repeat = 1;
  execute.burst = row.burst;
  execute.rounds = options.rounds;
  execute.graphRuns = row.graphRuns;
  execute.replays = options.check ? 6 : 1;
  execute.timeoutMs = 60'000;
  execute.repeatInputs = cell.bytes > mostChecked;
  NcclCall call{kind, cell.bytes, options.dtype == "bf16"};
  if (!options.against.empty()) {
    execute.nccl = &call;
    row.modes = call.modes();
  }
  Execution execution;
  CudaPaths paths{options.cudaDriver, options.cudaNvrtc, options.cudaHeaders, options.cudaCache,
                  ""};
  if (!execution.runCuda(compilation.plan(), oneKernel ? nullptr : compilation.entry(), program,
                         paths, gpus, execute)) {
    llvm::outs() << "error: " << collectiveNames[cell.collective] << " of " << cell.bytes
                 << " bytes: " << execution.error << "\n";
    return false;
  }
  row.seconds = execution.burstSeconds;
  if (options.check && cell.bytes <= mostChecked) {
    Report report;
    std::string error;
    if (!compareWithReference(compilation, execution, execute, report, error)) {
      llvm::outs() << "error: " << error << "\n";
      return false;
    }
    row.wrong = 0;
    for (const Report::Output &output : report.outputs)
      row.wrong += output.different;
    wrong += row.wrong;
  }
  print(cell, row);
  // A kernel takes what SMs there are.
  double sms = model && oneKernel ? std::max(0.0, model->sms - 1) : 0;
  samples.push_back({engineOf(row.form, kind), kind,
                     overlap::wireBytes(kind, nranks, double(cell.bytes)), row.best(), sms});
  return true;
}

} // namespace

int ncclx_bench::runOnGpus(mlir::MLIRContext &context, const topology::Topology *given,
                           const Options &options) {
  CudaDevices gpus;
  std::string why;
  if (!gpus.find(options.cudaDriver, /*apart=*/false, why) ||
      (!options.against.empty() && !Nccl::available(why))) {
    llvm::outs() << "error: " << why << "\n";
    return 2;
  }
  overlap::CostModelResult model;
  if (!options.machine.empty()) {
    model = overlap::readCostModelFile(options.machine);
    if (!model.model) {
      llvm::outs() << "error: " << model.error << "\n";
      return 1;
    }
  }
  std::string lines;
  std::vector<Sample> samples;
  int64_t wrong = 0;
  int code = 0;
  for (int nranks : options.ranks) {
    if (!options.against.empty() && nranks > gpus.count) {
      llvm::outs() << "error: --against=nccl needs a GPU for each of " << nranks << " ranks, found "
                   << gpus.count << "\n";
      code = 2;
      break;
    }
    topology::DiscoverOptions discover;
    discover.ranks = unsigned(nranks);
    std::optional<topology::Topology> machine;
    if (given)
      machine = *given;
    else
      machine = topology::discoverThisMachine(discover).topology;
    if (!machine) {
      llvm::outs() << "error: this machine cannot be described\n";
      return 2;
    }
    CudaBench bench(context, *machine, options, gpus, nranks,
                    model.model ? &*model.model : nullptr);
    if (!bench.findCeiling()) {
      code = 2;
      break;
    }
    bench.head();
    for (const Cell &cell : makeCells(options, nranks)) {
      bool kernel = options.algorithm.empty() || options.algorithm == "eager";
      bool streams = cell.bytes >= leastOfStreams || !kernel;
      bool good = (!kernel || bench.run(cell, true)) && (!streams || bench.run(cell, false));
      writeFile(options.json, lines + bench.lines); // a cell that hangs loses no other
      if (!good) {
        code = 2;
        break;
      }
    }
    lines += bench.lines;
    samples.insert(samples.end(), bench.samples.begin(), bench.samples.end());
    wrong += bench.wrong;
    if (code)
      break;
  }
  writeFile(options.json, lines);
  if (!code && wrong) {
    llvm::outs() << "error: " << wrong << " elements are wrong\n";
    code = 3;
  }
  if (!code && !options.calibrate.empty()) {
    Measurement measured;
    measured.machine = llvm::formatv("{0} x {1}", gpus.count, gpus.name);
    measured.collectives = std::move(samples);
    if (std::string what = calibrate(options.machine, options.calibrate, measured); !what.empty()) {
      llvm::outs() << "error: " << what << "\n";
      code = 2;
    }
  }
  return code;
}

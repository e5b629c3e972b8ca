//===- CalibrateHost.cpp - A machine file of this machine's processors -----===//
//
// Products are graphs like any other: compiled, proved and run by ranks that are processes, all of
// them at once, since that is what a layer's ranks do. Energy is that of whole packages, of which
// each rank has its share.
//
//===----------------------------------------------------------------------===//
#include "Calibrate.h"
#include "Energy.h"

#include "ncclxrt/launch.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"

#include <fstream>
#include <sys/mman.h>
#include <thread>

using namespace ncclx_bench;
using namespace mlir::ncclx;

namespace {

constexpr int64_t productSizes[] = {48, 96, 192, 384};
constexpr int rounds = 5;

/// What the ranks tell: of each size, rank by rank, seconds of one product, and how many it made.
struct Told {
  double seconds[std::size(productSizes)][Stage::maxRanks];
  int64_t products[std::size(productSizes)][Stage::maxRanks];
};

/// A graph has a collective: this one's ranks meet nobody, and each goes on by itself.
std::string productOf(int64_t size, int nranks) {
  return llvm::formatv(
      "ncclx.grid @g [\"r\" = {0}, \"self\" = 1]\n"
      "func.func @f(%a: tensor<{1}x{1}xf32>, %b: tensor<{1}x{1}xf32>) -> tensor<{1}x{1}xf32> {{\n"
      "  %zero = arith.constant 0.0 : f32\n"
      "  %e = tensor.empty() : tensor<{1}x{1}xf32>\n"
      "  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<{1}x{1}xf32>) -> tensor<{1}x{1}xf32>\n"
      "  %c = linalg.matmul ins(%a, %b : tensor<{1}x{1}xf32>, tensor<{1}x{1}xf32>)\n"
      "         outs(%z : tensor<{1}x{1}xf32>) -> tensor<{1}x{1}xf32>\n"
      "  ncclx.barrier over @g[\"self\"]\n"
      "  return %c : tensor<{1}x{1}xf32>\n}\n",
      nranks, size);
}

/// One rank's products of one size; false after a failure.
bool multiply(ncclxrtComm_t comm, const Compilation &compilation, int64_t batchNs, double &seconds,
              int64_t &products) {
  PlanDescription description(compilation.plan(), 0);
  ncclxrtPlan_t plan = nullptr;
  if (ncclxrtPlanPrepare(comm, description.get(), &plan))
    return false;
  for (auto [w, window] : llvm::enumerate(compilation.plan().windows)) {
    void *data;
    size_t bytes;
    if (window.role != mlir::ctran::WindowRole::Input)
      continue;
    if (ncclxrtPlanBuffer(plan, w, 0, &data, &bytes))
      return false;
    for (size_t i = 0; i < bytes / sizeof(float); ++i)
      static_cast<float *>(data)[i] = given(0, int64_t(i));
  }
  std::vector<double> each;
  for (int round = 0; round <= rounds; ++round) { // the first warms up
    int64_t count = 0, start = nowNs(), now = start;
    for (; now - start < batchNs; now = nowNs(), ++count)
      if (ncclxrtPlanRun(plan, compilation.entry()))
        return false;
    products += count;
    if (round > 0)
      each.push_back(double(now - start) * 1e-9 / double(count));
  }
  std::nth_element(each.begin(), each.begin() + rounds / 2, each.end());
  seconds = each[rounds / 2];
  return !ncclxrtPlanDestroy(plan);
}

bool runProducts(const std::vector<std::unique_ptr<Compilation>> &programs, const Options &options,
                 int nranks, Told &told) {
  ncclxrt::LaunchOptions launch;
  launch.nranks = nranks;
  launch.transport = options.transport;
  launch.job = "ncclx-bench-products";
  launch.timeoutMs = 300'000;
  launch.graceMs = 5'000;
  bool ok = true;
  for (const ncclxrt::RankExit &exit :
       ncclxrt::launch(launch, [&](const ncclxrt::LaunchedRank &launched) {
         ncclxrtCommConfig_t config = launched.config();
         ncclxrtComm_t comm = nullptr;
         bool good = !ncclxrtCommInit(&config, &comm);
         for (size_t i = 0; i < programs.size() && good; ++i)
           good = multiply(comm, *programs[i], options.batchMs * 1'000'000,
                           told.seconds[i][launched.rank], told.products[i][launched.rank]);
         if (good)
           return int(ncclxrtCommDestroy(comm));
         llvm::errs() << "rank " << launched.rank << ": " << ncclxrtGetLastError(comm) << "\n";
         return 1;
       }))
    ok &= exit.ok();
  return ok;
}

double flopsOf(int64_t size) { return 2.0 * double(size) * double(size) * double(size); }

std::string nameOfProcessor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "processor";
}

} // namespace

std::string ncclx_bench::calibrateHost(mlir::MLIRContext &context, const Options &options,
                                       int nranks, std::vector<Sample> collectives) {
  topology::DiscoverOptions discover;
  discover.ranks = unsigned(nranks);
  topology::ReadResult machine = topology::discoverThisMachine(discover);
  if (!machine.topology)
    return "this machine cannot be described";
  std::vector<std::unique_ptr<Compilation>> programs;
  for (int64_t size : productSizes) {
    auto made = std::make_unique<Compilation>(
        context,
        SelectionTarget{&*machine.topology, topology::Rate::payload, options.transport == "shm"});
    if (failed(made->parseText(productOf(size, nranks), "f")) || failed(made->choose()) ||
        failed(made->lower()))
      return "a product cannot be compiled";
    made->prove();
    if (!made->proof())
      return "a product is not proved: " + made->proof().str();
    if (failed(made->generate()))
      return "a product cannot be compiled";
    programs.push_back(std::move(made));
  }
  void *memory =
      mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return "no shared memory";
  llvm::scope_exit unmap([&] { munmap(memory, sizeof(Told)); });
  Told &told = *static_cast<Told *>(memory);

  std::string why;
  std::optional<EnergyCounter> energy = EnergyCounter::find(options.powercap, why);
  double idle = 0; // watts of all packages
  if (energy) {
    energy->joules(); // from here
    double before = energy->joules().value_or(0);
    int64_t from = nowNs();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    if (std::optional<double> now = energy->joules(); now && *now > before) {
      idle = (*now - before) / (double(nowNs() - from) * 1e-9);
    } else {
      why = "the energy counters below " + options.powercap + " stand still";
      energy.reset();
    }
  }
  double before = energy ? energy->joules().value_or(0) : 0;
  int64_t from = nowNs();
  if (!runProducts(programs, options, nranks, told))
    return "a rank failed";
  double seconds = double(nowNs() - from) * 1e-9;

  Measurement measured;
  measured.machine =
      llvm::formatv("{0}, {1} cores", nameOfProcessor(), int(sysconf(_SC_NPROCESSORS_ONLN)));
  measured.collectives = std::move(collectives);
  measured.enginesFirst = true;
  measured.productsOf =
      llvm::formatv("products of f32, {0} to {1} a side, {2} ranks at once, the slowest rank's",
                    productSizes[0], productSizes[std::size(productSizes) - 1], nranks);
  double flops = 0;
  for (auto [i, size] : llvm::enumerate(productSizes)) {
    double slowest = *std::max_element(told.seconds[i], told.seconds[i] + nranks);
    measured.products.push_back({"", "product", flopsOf(size), slowest, 0});
    for (int r = 0; r < nranks; ++r)
      flops += flopsOf(size) * double(told.products[i][r]);
    llvm::outs() << llvm::formatv("product {0} x {0} x {0}: {1:F1} us, {2:F2} GFLOP/s a rank\n",
                                  size, slowest * 1e6, flopsOf(size) / slowest * 1e-9);
  }
  if (energy) {
    std::optional<double> after = energy->joules();
    if (!after)
      return "an energy counter below " + options.powercap + " cannot be read any more";
    measured.power = Drawn{idle / nranks, energy->capWatts() / nranks,
                           std::max(0.0, (*after - before) - idle * seconds) / flops};
    llvm::outs() << llvm::formatv("power: {0:F1} W idle, {1:F1} pJ a flop above it\n", idle,
                                  measured.power->joulesPerFlop * 1e12);
  } else {
    llvm::outs() << "power is not measured: " << why << "; power and energies stay as "
                 << options.machine << " has them\n";
  }
  return calibrate(options.machine, options.calibrate, measured);
}

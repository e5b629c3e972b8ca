//===- CudaProgram.cpp - A compiled program on the GPUs of this machine -----------------===//
#include "CudaProgram.h"

#include "ncclx/CTran/Access.h"
#include "ncclxrt/cuda.h"
#include "ncclxrt/launch.h"

#include "llvm/Support/xxhash.h"

#include <stdexcept>
#include <sys/mman.h>

using namespace mlir;
using namespace mlir::ncclx;

namespace {
/// What is found out about them.
struct Found {
  int32_t count = 0, architecture = 0;
  char name[256] = "", error[1000] = "the process that asked the driver died";

  void ask(const std::string &driver) {
    bool good = ncclxrtCudaDevices(driver.empty() ? nullptr : driver.c_str(), &count, &architecture,
                                   name, sizeof name) == ncclxrtSuccess;
    snprintf(error, sizeof error, "%s", good ? "" : ncclxrtCudaLastError(nullptr));
  }
};
} // namespace

static Found askApart(const std::string &driver) {
  Found found;
  void *memory =
      mmap(nullptr, sizeof found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return found;
  auto *shared = new (memory) Found;
  try {
    ncclxrt::launch({}, [&](const ncclxrt::LaunchedRank &) {
      shared->ask(driver);
      return 0;
    });
  } catch (const std::exception &e) {
    snprintf(shared->error, sizeof shared->error, "%s", e.what());
  }
  found = *shared;
  munmap(memory, sizeof found);
  return found;
}

bool CudaDevices::find(const std::string &driver, bool apart, std::string &error) {
  // Before the driver starts: a module that is loaded late can wait for streams that wait for it,
  // and streams that wait must not share a queue of the hardware with those they wait for.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  Found found;
  apart ? void(found = askApart(driver)) : found.ask(driver);
  count = found.count, architecture = found.architecture, name = found.name, error = found.error;
  if (error.empty() && count < 1)
    error = "this machine has no GPU";
  return error.empty();
}

LogicalResult CudaProgram::lower(Compilation &compilation, int32_t architecture) {
  if (failed(compilation.lowerForCuda()))
    return failure();
  std::vector<std::string> names(compilation.plan().kernels.begin(),
                                 compilation.plan().kernels.end());
  if (names.empty())
    return success();
  if (failed(computeToPtx(compilation.kernelModule(), names, architecture, cublasLt, ptx, kernels)))
    return failure();
  for (auto [kernel, sms] : llvm::zip(kernels, compilation.plan().kernelSms))
    if (kernel.gemm)
      kernel.gemm->sms = sms;
  return success();
}

LogicalResult CudaProgram::make(Compilation &compilation, int32_t architecture) {
  if (failed(lower(compilation, architecture)))
    return failure();
  std::vector<JitSymbol> symbols;
#define NCCLX_SYMBOL(name)                                                                         \
  symbols.push_back({"ncclxrtCuda_" #name, reinterpret_cast<void *>(&ncclxrtCuda_##name)})
  NCCLX_SYMBOL(rank);
  NCCLX_SYMBOL(run);
  NCCLX_SYMBOL(copy);
  NCCLX_SYMBOL(copy_sized);
  NCCLX_SYMBOL(count);
  NCCLX_SYMBOL(size);
  NCCLX_SYMBOL(reduce);
  NCCLX_SYMBOL(signal);
  NCCLX_SYMBOL(wait);
  NCCLX_SYMBOL(flush);
  NCCLX_SYMBOL(order);
  NCCLX_SYMBOL(argument);
  NCCLX_SYMBOL(launch);
#undef NCCLX_SYMBOL
  return compilation.compileProgram(symbols);
}

LogicalResult CudaProgram::makeKernel(Compilation &compilation, int64_t blocks, bool timeline) {
  auto program =
      compilation.scheduleModule().lookupSymbol<ctran::ProgramOp>(compilation.function());
  CudaOptions options;
  options.blocks = blocks;
  options.mostBlocks = compilation.multiprocessors();
  options.timeline = timeline;
  FailureOr<CudaKernel> kernel = emitCudaKernel(program, options);
  if (failed(kernel))
    return failure();
  HostPlan &plan = compilation.plan();
  plan.name = compilation.function().str();
  plan.ranks = kernel->ranks;
  plan.hash = llvm::xxh3_64bits(kernel->source);
  for (CudaKernel::Window &window : kernel->windows) {
    auto type = cast<MemRefType>(window.op.getType());
    plan.windows.push_back({window.op.getSym().str(),
                            uint64_t(type.getNumElements() * ctran::elementBytes(window.op)),
                            int32_t(window.generations), window.op.getRole(),
                            window.op.getIndex() ? int64_t(*window.op.getIndex()) : -1, type});
  }
  for (const CudaKernel::Step &step : kernel->steps)
    plan.ops.push_back(planOpOf(step.op));
  // One row of a timeline, or one a block.
  for (int64_t block = 0; timeline && block < (kernel->together ? 1 : kernel->blocks); ++block)
    plan.lanes.push_back({"sm" + std::to_string(block), ctran::LaneKind::SM, int32_t(block)});
  whole = std::move(*kernel);
  return success();
}

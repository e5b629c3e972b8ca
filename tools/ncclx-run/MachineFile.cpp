//===- MachineFile.cpp - What this machine can do, measured once ------------===//
#include "MachineFile.h"

#include "ncclx/Reference/HostCompute.h"
#include "ncclx/Reference/JitModule.h"
#include "ncclx/Topology/IO.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>

using namespace mlir;
using namespace mlir::ncclx;

// A product of the size that a layer's gradient has on one rank, bf16 with f32 sums.
static constexpr int64_t kM = 256, kK = 512, kN = 224;

/// FLOP/s of one core in code that this project compiles: what a kernel of a graph will run at.
static std::optional<double> measureMatmul(MLIRContext &context) {
  std::string text = R"(
    func.func @gemm(%a: memref<256x512xbf16>, %b: memref<512x224xbf16>, %c: memref<256x224xf32>) {
      linalg.matmul ins(%a, %b : memref<256x512xbf16>, memref<512x224xbf16>)
                    outs(%c : memref<256x224xf32>)
      return
    })";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module || failed(lowerComputeToLLVM(*module)))
    return std::nullopt;
  auto code = JitModule::create(*module);
  if (!code) {
    llvm::consumeError(code.takeError());
    return std::nullopt;
  }
  auto gemm = (*code)->lookupAs<void(void *, void *, void *)>("gemm");
  if (!gemm) {
    llvm::consumeError(gemm.takeError());
    return std::nullopt;
  }
  std::vector<uint16_t> a(kM * kK, 0x3f80), b(kK * kN, 0x3f80); // ones
  std::vector<float> c(kM * kN, 0.0f);
  std::vector<double> seconds;
  for (int round = 0; round < 7; ++round) {
    auto start = std::chrono::steady_clock::now();
    (*gemm)(a.data(), b.data(), c.data());
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + 3, seconds.end());
  return 2.0 * kM * kK * kN / seconds[3];
}

static std::string defaultPath(unsigned ranks, bool sockets) {
  llvm::SmallString<128> path;
  if (!llvm::sys::path::cache_directory(path))
    llvm::sys::path::system_temp_directory(true, path);
  llvm::sys::path::append(path, "ncclx",
                          "machine-" + std::to_string(ranks) + (sockets ? "-tcp.json" : ".json"));
  return path.str().str();
}

static std::string firstError(const topology::ReadResult &read, const std::string &path) {
  for (const topology::Diagnostic &diagnostic : read.diagnostics)
    if (diagnostic.severity == topology::Severity::error)
      return topology::toString(diagnostic, path);
  return path + ": not a topology";
}

std::optional<topology::Topology> mlir::ncclx::machineTopology(MLIRContext &context,
                                                               std::string path, unsigned ranks,
                                                               bool sockets, bool &measured,
                                                               std::string &error) {
  measured = false;
  if (path.empty())
    path = defaultPath(ranks, sockets);
  if (llvm::sys::fs::exists(path)) {
    topology::ReadResult read = topology::readTopologyFile(path);
    if (!read.topology) {
      error = firstError(read, path);
      return std::nullopt;
    }
    if (read.topology->numRanks() < ranks) {
      error = path + ": describes " + std::to_string(read.topology->numRanks()) +
              " ranks, expected at least " + std::to_string(ranks);
      return std::nullopt;
    }
    return read.topology;
  }
  measured = true;
  topology::DiscoverOptions options;
  options.ranks = ranks;
  options.sockets = sockets;
  topology::ReadResult found = topology::discoverThisMachine(options);
  if (!found.topology) {
    error = firstError(found, "this machine");
    return std::nullopt;
  }
  if (std::optional<double> flops = measureMatmul(context)) {
    for (topology::Host &host : found.topology->hosts)
      host.coreF32Flops = host.coreBf16Flops = topology::Rational(int64_t(*flops));
  }
  llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path));
  std::error_code failed;
  llvm::raw_fd_ostream out(path, failed);
  if (!failed)
    out << topology::writeJson(*found.topology);
  return found.topology;
}

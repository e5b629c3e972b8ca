//===- CostModel.h - What an op costs on one kind of device ---------------*- C++ -*-===//
//
// One JSON file describes a device (schema: passes/lib/Overlap/README.md); every section of it
// names the source of its constants.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_OVERLAP_COSTMODEL_H
#define NCCLX_OVERLAP_COSTMODEL_H

#include "ncclx/Overlap/Problem.h"

#include "llvm/ADT/StringRef.h"

#include <utility>

namespace mlir::ncclx::overlap {

/// What carries a collective: copy engines, NCCL's kernels, a NIC.
struct Engine {
  std::string name;
  std::vector<std::string> collectives; ///< kinds that it can carry, in the dialect's words
  double bytesPerSecond = 0;            ///< of what crosses the wire, one direction
  double base = 0, perMember = 0;       ///< seconds: once, and for each peer
  double sms = 0;
  unsigned queue = 0;
  double hbmPerByte = 0;    ///< accesses of HBM for each byte on the wire
  double joulesPerByte = 0; ///< above idle, for each byte sent
  std::vector<Use> uses;    ///< at full bandwidth
  bool carries(llvm::StringRef kind) const;
};

/// The constants of one device.
struct CostModel {
  std::string name;
  double sms = 132;
  Sharing sharing = Sharing::dynamic;
  double gemmFlops = 0; ///< a second, at the highest clock
  int64_t tileM = 128, tileN = 256;
  bool waves = false; ///< a GEMM takes whole waves; else its tiles are shared out without loss
  double gemmJoulesPerFlop = 0;                       ///< above idle, at the highest clock
  double attentionForward = 0, attentionBackward = 0; ///< flops a second
  double attentionJoulesPerFlop = 0;
  double hbm = 0;            ///< bytes a second
  double hbmEfficiency = 1;  ///< of a kernel that only moves memory
  bool hbmContention = true; ///< what runs at once shares HBM
  double hbmJoulesPerByte = 0;
  double launch = 0; ///< seconds from one kernel to the next
  Power power;
  std::vector<std::string> resources; ///< 0 is HBM
  std::vector<Engine> engines;

  /// A problem with no ops on this device.
  Problem problem() const;
  /// A product of m x k and k x n; or of `groups` of them in one kernel, which have m rows in all.
  Op gemm(std::string name, double m, double n, double k, double groups = 1) const;
  Op attention(std::string name, double flops, double bytes, bool backward) const;
  /// A kernel that is bound by memory.
  Op memory(std::string name, double bytes) const;
  /// `bytes`: what crosses the wire to and from one rank (wireBytes).
  Op collective(std::string name, const Engine &engine, int64_t members, double bytes) const;
  /// The engine of this name, or the first that carries the kind; null if there is none.
  const Engine *engine(llvm::StringRef kind, llvm::StringRef name = "") const;
};

/// Bytes that one rank receives in a collective whose larger side has `payload` bytes: (n-1)/n of
/// them, and twice as many in an all_reduce.
double wireBytes(llvm::StringRef kind, int64_t members, double payload);

/// Reads a machine file. Exactly one of the two is set; the error names the place.
struct CostModelResult {
  std::optional<CostModel> model;
  std::string error;
};
CostModelResult readCostModel(llvm::StringRef text, llvm::StringRef fileName);
CostModelResult readCostModelFile(llvm::StringRef path);

} // namespace mlir::ncclx::overlap
#endif // NCCLX_OVERLAP_COSTMODEL_H

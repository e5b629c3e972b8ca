//===- Diagnose.h - A measured timeline against what was promised ---------------*- C++ -*-===//
#ifndef NCCLX_OVERLAP_DIAGNOSE_H
#define NCCLX_OVERLAP_DIAGNOSE_H

#include "ncclx/Overlap/Timeline.h"

#include "llvm/ADT/StringRef.h"

#include <map>

namespace mlir::ncclx::overlap {

/// What a schedule promises of one op. Ops stand in the order in which they are issued.
struct Promise {
  std::string name; ///< of a collective "all_gather.0", of a kernel its op: "matmul"
  bool collective = false;
  bool product = false;         ///< a GEMM
  double seconds = 0;           ///< alone
  double hidden = 0;            ///< of a collective: seconds of it that kernels run beside
  std::vector<unsigned> beside; ///< those kernels, in order
};
using Contract = std::vector<Promise>;

/// The contract of a schedule that check() accepts. Collectives are numbered by kind in the order
/// of their starts; names of ops are up to the first space.
Contract contractOf(const Problem &problem, const Schedule &schedule, const Timeline &line);

/// Something that a device did.
struct TraceSpan {
  std::string name, category;
  double start = 0, seconds = 0;
  double end() const { return start + seconds; }
};

/// The spans of one rank, by start: of `ncclx-run --trace` ("rank N (measured here)"), or the
/// kernels of PyTorch's profiler (Kineto). Exactly one of the two is set.
struct TraceResult {
  std::optional<std::vector<TraceSpan>> spans;
  std::string error;
};
TraceResult readTrace(llvm::StringRef text, llvm::StringRef fileName, int64_t rank);

/// What did not come as promised.
struct Finding {
  enum Kind {
    lost,    ///< a collective ran beside less than was promised
    harmful, ///< ran together, took longer than apart
    missing  ///< the trace has other ops than the contract
  } kind = lost;
  unsigned op = 0;  ///< of the contract
  std::string text; ///< with the cause, and figures
};
/// Measured seconds for one that was promised: the median of the ops that ran alone.
struct Rates {
  std::optional<double> products;
  std::map<std::string, double> collectives; ///< by kind
};
struct Diagnosis {
  std::vector<Finding> findings;
  Rates rates;
  unsigned promised = 0; ///< overlaps in the contract
  unsigned kept = 0;     ///< of them, as promised
};
/// `tolerance`: part of a collective's time, and of a pair's, that is no finding.
Diagnosis diagnose(const Contract &contract, const std::vector<TraceSpan> &spans, double tolerance);

/// A machine file whose coefficients give what was measured: flops of products, and bandwidth and
/// latencies of each engine by the kinds that it is used for (the median, if they are several).
/// `text` is a machine file that reads, called `fileName`; `source` goes into the file behind the
/// sources of what changed. Exactly one of the two is set.
struct Corrected {
  std::optional<std::string> text;
  std::string error;
};
Corrected correctMachine(llvm::StringRef text, llvm::StringRef fileName, const Rates &rates,
                         llvm::StringRef source);

} // namespace mlir::ncclx::overlap
#endif // NCCLX_OVERLAP_DIAGNOSE_H

//===- Calibrate.h - What was measured, as engines of a machine file --------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_BENCH_CALIBRATE_H
#define NCCLX_TOOLS_NCCLX_BENCH_CALIBRATE_H

#include "Bench.h"

#include <optional>
#include <string>
#include <vector>

namespace ncclx_bench {

/// One cell of a table.
struct Sample {
  std::string engine, kind;
  double amount = 0; ///< bytes that a rank receives; of a product, its flops
  double seconds = 0;
  double sms = 0; ///< that its engine takes
};

/// Seconds once, and for each byte or flop.
struct Line {
  double base = 0, each = 0;
};
/// The line that is nearest to the samples, relative to their times; neither number is negative.
Line fit(const std::vector<Sample> &samples);

/// Watts of one rank's device, above idle for each flop.
struct Drawn {
  double idleWatts = 0, capWatts = 0; ///< 0: no cap is known
  double joulesPerFlop = 0;
};

/// What is written into a machine file, of what was measured.
struct Measurement {
  std::string machine;             ///< what it was measured on
  std::vector<Sample> collectives; ///< of each engine two at least
  bool enginesFirst = false;       ///< they carry their kinds; else they are asked for by name
  std::vector<Sample> products;    ///< none, or two at least
  std::string productsOf;          ///< how they were measured
  std::optional<Drawn> power;
};

/// Writes `path`: the machine file `base` with an engine for each name among the collectives, and
/// with what else was measured in place of what it says. "" or what is wrong.
std::string calibrate(const std::string &base, const std::string &path,
                      const Measurement &measured);

/// Measures products and, where the machine counts it, energy on `nranks` ranks at once, and writes
/// the machine file that the options name; `collectives` are there already. Says what it cannot
/// measure. "" or what is wrong.
std::string calibrateHost(mlir::MLIRContext &context, const Options &options, int nranks,
                          std::vector<Sample> collectives);

} // namespace ncclx_bench
#endif // NCCLX_TOOLS_NCCLX_BENCH_CALIBRATE_H

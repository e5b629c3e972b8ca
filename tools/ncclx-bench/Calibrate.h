//===- Calibrate.h - What was measured, as engines of a machine file --------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_BENCH_CALIBRATE_H
#define NCCLX_TOOLS_NCCLX_BENCH_CALIBRATE_H

#include "GpuForm.h"

namespace ncclx_bench {

/// One cell of a table.
struct Sample {
  mlir::ncclx::GpuForm form;
  std::string kind;
  double wire = 0; ///< bytes that a rank receives
  double seconds = 0;
};

/// Seconds once, and for each byte.
struct Line {
  double base = 0, perByte = 0;
};
/// The line that is nearest to the samples, relative to their times; neither number is negative.
Line fit(const std::vector<Sample> &samples);

/// Writes `path`: the machine file `base` with an engine for each form and kind of the samples, of
/// which there are at least two. "" or what is wrong.
std::string calibrate(const std::string &base, const std::string &path, const std::string &machine,
                      const std::vector<Sample> &samples);

} // namespace ncclx_bench
#endif // NCCLX_TOOLS_NCCLX_BENCH_CALIBRATE_H

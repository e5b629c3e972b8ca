//===- Trace.h - Timelines for Perfetto and chrome://tracing -------*- C++ -*-===//
#ifndef NCCLX_MACHINE_TRACE_H
#define NCCLX_MACHINE_TRACE_H

#include "ncclx/Machine/Time.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace mlir::ctran::machine {

/// A stretch of time on one lane of one rank: predicted or measured.
struct TraceEvent {
  std::string process;  ///< e.g. "rank 3", "rank 3 (predicted)"
  int64_t rank = 0;     ///< orders the processes
  std::string lane;     ///< e.g. "sm0": one thread of the process
  std::string name;     ///< e.g. "all_gather c0: put"
  std::string category; ///< e.g. the collective, or "compute"
  double startSeconds = 0, durationSeconds = 0;
  std::vector<std::pair<std::string, std::string>> args;
};

/// "ce0", "compute", "sm3", "host", "nic1", "user".
std::string toString(Lane lane);
/// "copy", "reduce", ...
const char *toString(OpKind kind);

/// The events of a simulation. `suffix` follows "rank N" in the process name.
std::vector<TraceEvent> traceEvents(const Schedule &schedule, const TimeResult &result,
                                    const std::string &suffix = "");

/// Writes the JSON array format: one process per `process`, one thread per lane.
void writeTrace(llvm::raw_ostream &os, const std::vector<TraceEvent> &events);

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_TRACE_H

//===- GpuForm.h - A graph's collectives on streams, or as one kernel -----*- C++ -*-===//
#ifndef NCCLX_TOOLS_DRIVER_GPUFORM_H
#define NCCLX_TOOLS_DRIVER_GPUFORM_H

#include "Driver.h"
#include "ncclx/Overlap/CostModel.h"

namespace mlir::ncclx {

/// What carries a graph of collectives on GPUs.
enum class GpuForm { Streams, Kernel };

/// "streams" or "kernel".
StringRef nameOf(GpuForm form);
/// The engine of a machine file that tells how long a collective takes in that form:
/// "kernel all_gather". `ncclx-bench --calibrate` writes them.
std::string engineOf(GpuForm form, StringRef kind);
/// Seconds that a collective takes, whose larger buffer has so many bytes; none: the file does not
/// say.
std::optional<double> predict(const overlap::CostModel &machine, GpuForm form, StringRef kind,
                              int64_t members, int64_t bytes);

/// The form in which all collectives of a parsed graph take less time by the machine file: that of
/// streams where the graph computes, too, or was written as a schedule. Fails, with an error at the
/// collective, where the file has no engine for it.
FailureOr<GpuForm> fasterForm(Compilation &compilation, const overlap::CostModel &machine);

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_DRIVER_GPUFORM_H

//===- SizeOption.h - Values for the sizes that a graph leaves open --------*- C++ -*-===//
#ifndef NCCLX_TOOLS_DRIVER_SIZEOPTION_H
#define NCCLX_TOOLS_DRIVER_SIZEOPTION_H

#include "ncclx/NCCLX/Sizes.h"

namespace mlir::ncclx {

/// What `--size=NAME=VALUE[,VALUE...]` options ask for: a value of each open size, in order, for
/// every combination of the values given. A size that no option names has its samples; without any
/// option the sizes are sampleSizes. Where that is nothing, `error` says why; it is for a graph
/// without open sizes, too.
std::vector<SmallVector<int64_t>> readSizeOptions(ArrayRef<std::string> options,
                                                  ArrayRef<OpenSize> open, std::string &error);

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_DRIVER_SIZEOPTION_H

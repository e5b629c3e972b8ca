//===- MachineFile.h - What this machine can do, measured once ----------------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_RUN_MACHINEFILE_H
#define NCCLX_TOOLS_NCCLX_RUN_MACHINEFILE_H

#include "ncclx/Topology/Topology.h"

#include "mlir/IR/MLIRContext.h"

#include <optional>
#include <string>

namespace mlir::ncclx {

/// The description of this machine with `ranks` processes that share memory or have `sockets`:
/// read from `path`, or, where that file is not there, measured and written to it. An empty path
/// means ncclx/machine-<ranks>.json or machine-<ranks>-tcp.json in the user's cache directory.
/// `measured` tells whether it was made now. On failure `error` says why.
std::optional<topology::Topology> machineTopology(MLIRContext &context, std::string path,
                                                  unsigned ranks, bool sockets, bool &measured,
                                                  std::string &error);

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_NCCLX_RUN_MACHINEFILE_H

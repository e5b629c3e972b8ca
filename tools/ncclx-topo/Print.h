//===- Print.h - What ncclx-topo prints -----------------------------------===//
#ifndef NCCLX_TOOLS_NCCLX_TOPO_PRINT_H
#define NCCLX_TOOLS_NCCLX_TOPO_PRINT_H

#include "ncclx/Topology/Bounds.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::ncclx::topology {

void printTopology(llvm::raw_ostream &out, const Topology &topology, llvm::StringRef format);
/// One block a collective and rate: every argument, largest first.
void printBounds(llvm::raw_ostream &out, const Topology &topology, const BoundQuery &query);
/// "-" lines of what only `a` has, "+" lines of what only `b` has. False if there are none.
bool printDifference(llvm::raw_ostream &out, const Topology &a, const Topology &b);

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOOLS_NCCLX_TOPO_PRINT_H

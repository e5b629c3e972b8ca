//===- Print.h - What ncclx-topo prints -----------------------------------===//
#ifndef NCCLX_TOOLS_NCCLX_TOPO_PRINT_H
#define NCCLX_TOOLS_NCCLX_TOPO_PRINT_H

#include "ncclx/Topology/Bounds.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace mlir::ncclx::topology {

/// Pairs of ranks whose routes give the same.
struct PairClass {
  Reach reach = Reach::none;
  Rational raw, payload, latencyNs;
  bool oneRail = false; ///< puts only: between ports of one number on their hosts
  unsigned count = 0;
};
/// Best first. Requires at most `mostPairRanks` ranks.
std::vector<PairClass> pairClasses(const Topology &topology);
inline constexpr unsigned mostPairRanks = 256;

void printTopology(llvm::raw_ostream &out, const Topology &topology, llvm::StringRef format);
/// One block a collective and rate: every argument, largest first.
void printBounds(llvm::raw_ostream &out, BoundSolver &solver, const BoundQuery &query);
/// "-" lines of what only `a` has, "+" lines of what only `b` has. False if there are none.
bool printDifference(llvm::raw_ostream &out, const Topology &a, const Topology &b);

/// What only `a` and what only `b` has, one line each, sorted.
struct Difference {
  std::vector<std::string> onlyFirst, onlySecond;
};
Difference difference(const Topology &a, const Topology &b);

/// The same as one JSON document each; keys are in tools/ncclx-topo/README.md.
void printTopologyJson(llvm::raw_ostream &out, const Topology &topology, llvm::StringRef format,
                       const Diagnostics &findings);
/// An #ncclx.topology of what writeJson() says.
void printAttribute(llvm::raw_ostream &out, const Topology &topology);
void printBoundsJson(llvm::raw_ostream &out, const Topology &topology,
                     llvm::ArrayRef<BoundQuery> queries);
bool printDifferenceJson(llvm::raw_ostream &out, const Topology &a, const Topology &b);

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOOLS_NCCLX_TOPO_PRINT_H

//===- Selection.h - Which algorithm carries a collective -----------------*- C++ -*-===//
#ifndef NCCLX_SELECTION_SELECTION_H
#define NCCLX_SELECTION_SELECTION_H

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Topology/Topology.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <optional>
#include <string>

namespace mlir::ncclx {

/// The machine that a choice is made for.
struct SelectionTarget {
  const topology::Topology *topology = nullptr;
  topology::Rate rate = topology::Rate::payload;
  bool loadStore = true; ///< peers' memory is reached by load and store
};

/// Seconds that `op`, carried by `algorithm` or by the schedule that it names, takes alone on
/// `target`, all groups of its grid at once: the simulated time of the schedule that the algorithm
/// writes. Fails, with an error at the op, where the schedule cannot be built or simulated. The op
/// has static shapes; its algorithm attribute is not read.
FailureOr<double> timeAlone(CollectiveOpInterface op, std::optional<Algorithm> algorithm,
                            const SelectionTarget &target);

/// What decides the time of a collective on one target: equal keys, equal times.
std::string timingKey(CollectiveOpInterface op);

/// Gives every collective that names no algorithm the one that is fastest alone, and every
/// reduction whose order is `any` the order in which its algorithm reduces, so that the meaning of
/// the graph is one value. A collective that names a schedule keeps it; where its result depends on
/// the order, it must say which the schedule has. Each choice is a remark of category
/// `ncclx-choose-algorithm`.
LogicalResult chooseAlgorithms(ModuleOp module, const SelectionTarget &target);

#define GEN_PASS_DECL
#include "ncclx/Selection/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "ncclx/Selection/Passes.h.inc"

} // namespace mlir::ncclx
#endif // NCCLX_SELECTION_SELECTION_H

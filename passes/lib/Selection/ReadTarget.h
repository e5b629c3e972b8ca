//===- ReadTarget.h - The machine that a pass's options name ----------------*- C++ -*-===//
#ifndef NCCLX_LIB_SELECTION_READTARGET_H
#define NCCLX_LIB_SELECTION_READTARGET_H

#include "ncclx/Selection/Selection.h"
#include "ncclx/Topology/IO.h"

#include <memory>

namespace mlir::ncclx {

/// A target with what it points to.
struct OwnedTarget {
  std::unique_ptr<topology::ReadResult> read; ///< the packer points into it
  std::optional<RuleTable> rules;
  bool loadStore = true, inNetwork = false;
  int64_t scratchLimit = -1;
  std::unique_ptr<topology::TreePacker> trees = nullptr;
  SelectionTarget get() const {
    SelectionTarget target{&*read->topology, topology::Rate::payload, loadStore,
                           rules ? &*rules : nullptr, trees.get()};
    target.scratchLimit = scratchLimit;
    target.inNetwork = inNetwork;
    return target;
  }
};

/// Of the topology file, or where there is none the module's `ncclx.topology`, and of the rule
/// file, if any. What is wrong is an error that names the pass.
FailureOr<OwnedTarget> readTarget(ModuleOp module, StringRef pass, StringRef topologyFile,
                                  bool loadStore, StringRef ruleFile);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_SELECTION_READTARGET_H

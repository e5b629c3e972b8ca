//===- Branches.h - A graph as several straight functions ----------*- C++ -*-===//
#ifndef NCCLX_NCCLX_BRANCHES_H
#define NCCLX_NCCLX_BRANCHES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::ncclx {

/// Attribute of a function, and after bufferization of a kernel, that chooses: the names of the
/// functions, or programs, of which its result is a number (SPEC.md, branches).
constexpr llvm::StringLiteral branchesAttrName = "ncclx.branches";

/// Attribute beside it where the branches are stages: a dictionary for each (SPEC.md, stages).
constexpr llvm::StringLiteral stagesAttrName = "ncclx.stages";

/// The name of the function that chooses for `function`.
inline std::string getChooserName(StringRef function) { return (function + ".choose").str(); }

/// What follows a stage: another one, when values have been moved from state to state.
struct StageEdge {
  int64_t target;
  SmallVector<std::pair<int64_t, int64_t>> moves; ///< from, to
};

/// One of the stages of a graph. A state is memory of a rank that lives through a run; the first
/// ones are the graph's arguments.
struct Stage {
  SmallVector<int64_t> reads;  ///< a state for each argument
  SmallVector<int64_t> writes; ///< a state for each result, but the number of the next; of a stage
                               ///< without edges none: its results are the graph's
  SmallVector<StageEdge> edges;
  std::optional<int64_t> agree; ///< a state that must be the same on all ranks behind this stage
  std::string agreeAt;          ///< where that is said

  static Stage from(DictionaryAttr attr); ///< of a verified attribute
  DictionaryAttr toAttr(MLIRContext *context) const;
};

/// The stages of a graph in stages, else none.
std::vector<Stage> getStages(Operation *chooser);

/// stages G1 to G5.
LogicalResult verifyStagesAttr(Operation *op, Attribute value);

} // namespace mlir::ncclx

#endif // NCCLX_NCCLX_BRANCHES_H

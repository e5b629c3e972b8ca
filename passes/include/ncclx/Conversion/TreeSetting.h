//===- TreeSetting.h - In which pieces and lanes data moves along trees -----*- C++ -*-===//
#ifndef NCCLX_CONVERSION_TREESETTING_H
#define NCCLX_CONVERSION_TREESETTING_H

#include "mlir/IR/BuiltinAttributes.h"

namespace mlir::ncclx {
namespace topology {
struct TreePacking;
} // namespace topology

/// What no packing decides of a collective that trees carry: the hint `ncclx.trees` (SPEC.md,
/// trees).
struct TreeSetting {
  int64_t lanes = 6;  ///< that puts from one member to another take in turn
  int64_t rounds = 0; ///< in each of which every tree moves a piece; 0: as usualTreeRounds has it
  /// Each tree comes so often in a round; 0: so often that busy ways have a put for each lane.
  int64_t copies = 0;
  /// Times that the lanes of a way take a put before a root's next one waits for the earliest.
  int64_t turns = 4;
  int64_t slack = 75; ///< between a put and what waits for it, in hundredths of a put's time

  friend bool operator==(const TreeSetting &, const TreeSetting &) = default;
  /// What is left out is as above.
  static TreeSetting of(DictionaryAttr hint);
  DictionaryAttr hint(MLIRContext *context) const;
};

/// TreeSetting::copies, or those that 0 stands for.
int64_t treeCopies(const topology::TreePacking &packing, const TreeSetting &setting);

/// Rounds that move `bytes` of each root (of an all_reduce of all of them together) well.
int64_t usualTreeRounds(const topology::TreePacking &packing, const TreeSetting &setting,
                        double bytes);

} // namespace mlir::ncclx
#endif // NCCLX_CONVERSION_TREESETTING_H

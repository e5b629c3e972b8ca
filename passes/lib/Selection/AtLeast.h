//===- AtLeast.h - What an algorithm cannot be faster than ------------------*- C++ -*-===//
#ifndef NCCLX_LIB_SELECTION_ATLEAST_H
#define NCCLX_LIB_SELECTION_ATLEAST_H

#include "ncclx/Selection/Selection.h"
#include "ncclx/Topology/Resources.h"

namespace mlir::ncclx {

/// Seconds that `op` of `bytes` takes at least, all groups at once: what each link and memory has
/// to carry, or the rounds one after the other. 0 where nothing is known without building the
/// schedule.
class AtLeast {
public:
  AtLeast(CollectiveOpInterface op, const SelectionTarget &target, int64_t bytes);
  double seconds(Algorithm algorithm);

private:
  CollectiveOpInterface op;
  const SelectionTarget &target;
  int64_t bytes;
  std::optional<topology::ResourceModel> model; ///< none where there are too many ranks
};

} // namespace mlir::ncclx
#endif // NCCLX_LIB_SELECTION_ATLEAST_H

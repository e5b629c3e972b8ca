//===- HloGroups.h - Replica groups as axes of one grid -----------------*- C++ -*-===//
//
// A graph has one grid, whose axes all its collectives share. Devices are numbered row-major over
// axes; a group's members run over some of these. So lists and iota forms are taken apart into
// digits (stride, size), and the grid's axes are cut wherever some digit begins or ends.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_IMPORT_HLOGROUPS_H
#define NCCLX_LIB_IMPORT_HLOGROUPS_H

#include "HloModule.h"

namespace mlir::ncclx::hlo {

/// Numbers `stride` apart, `size` of them.
struct Digit {
  int64_t stride = 1, size = 1;
};

/// The members of a group, from its first device on; the slowest digit first.
using Digits = SmallVector<Digit, 4>;

/// Groups as the ids of their members, in member order.
using GroupLists = std::vector<SmallVector<int64_t>>;

/// What `replica_groups` says about `ids` ids: the digits of every group. Else why not; a text that
/// is no such list is a fault of its own.
struct Groups {
  std::optional<Digits> digits;
  std::string why;    ///< no digits: what does not fit
  bool wrong = false; ///< the text itself is not right
  GroupLists lists;   ///< no digits: the groups, where every id is in one
};
Groups readGroups(StringRef text, int64_t ids);

/// The groups that digits mean, by their first members.
GroupLists listGroups(llvm::ArrayRef<Digit> digits, int64_t ids);

/// The largest id that the text names, plus one; 0 where it names none.
int64_t idsNamed(StringRef text);

/// The axes of a grid, by where they begin: an axis is from one cut to the next.
class Axes {
public:
  explicit Axes(int64_t devices);
  /// Cuts at the ends of the digits; false where that cannot be together with the cuts so far.
  bool add(llvm::ArrayRef<Digit> digits);
  /// Sizes of the axes, the slowest first.
  SmallVector<int64_t> sizes() const;
  /// Which axes (of sizes()) the digits span, in member order. They were added before.
  SmallVector<unsigned> spanned(llvm::ArrayRef<Digit> digits) const;

private:
  SmallVector<int64_t> cuts; ///< ascending; each divides the next
};

} // namespace mlir::ncclx::hlo
#endif // NCCLX_LIB_IMPORT_HLOGROUPS_H

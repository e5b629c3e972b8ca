//===- Counts.h - Blocks of as many rows as a matrix says -----------------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_COUNTS_H
#define NCCLX_LIB_CONVERSION_COUNTS_H

#include "Places.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace mlir::ctran {

/// The matrix of an all_to_all_v, in units of rows that divide all of it, and what its algorithms
/// have in common. How many rows go from each to each, and where they stand, are tables by the own
/// rank, one for each distance: the counts are data, and the text grows with them.
/// Ranks differ, so the proof is of all ranks, unit by unit.
class CountedBlocks {
public:
  /// The largest unit that there is, or where blocks are cut further one that leaves as many units
  /// as a proof takes in its stride.
  CountedBlocks(ScheduleBuilder &s, const CollectiveSpec &c, bool cutFurther);

  int64_t size() const { return n; } ///< of the group
  /// All in units.
  int64_t rows(int64_t from, int64_t to) const { return counts[from * n + to] / unit; }
  /// Where the rows stand in the sender's input and in the receiver's output.
  int64_t sentFrom(int64_t from, int64_t to) const;
  int64_t landsAt(int64_t from, int64_t to) const;
  int64_t unitElements() const;
  /// Of the largest block.
  int64_t mostRows() const { return *std::max_element(counts.begin(), counts.end()) / unit; }

  /// Says what the input holds, and fills the output with zeros where not all of it is written.
  void start();
  /// Writes the copy of the own rows; gives its token.
  Value keepOwn(ScheduleBuilder &keeper);
  /// Demands what the output holds; gives the token.
  Value demand(ValueRange ready);

  /// A number that depends on the own member x and, through it, on the one that is `by` further on.
  Value table(int64_t by, llvm::function_ref<int64_t(int64_t x, int64_t other)> f);
  /// The rank of the member that is `by` further on, and the views of memories there: along one
  /// axis, by a shift.
  Value rankOf(int64_t by);
  std::function<Value(Value memory)> viewsAt(int64_t by);
  Value sent(int64_t by);
  Value landing(Value memory, int64_t by);

  int64_t unit = 0; ///< rows
  Value in, out;    ///< views by unit
  Value given;      ///< the input is there
  SmallVector<Value> outFree;

private:
  ScheduleBuilder s;
  CollectiveSpec c;
  SmallVector<SmallVector<int64_t>> groups;
  Places places;
  int64_t n, dim;
  SmallVector<int64_t> counts;
  bool full = true; ///< every output is written to its end

  int64_t unitsOf(MemRefType type) const { return llvm::divideCeil(type.getDimSize(dim), unit); }
};

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_COUNTS_H

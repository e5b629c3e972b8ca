//===- Places.h - Where each rank stands ----------------------------------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_PLACES_H
#define NCCLX_LIB_CONVERSION_PLACES_H

#include "Algorithms.h"

#include "llvm/ADT/Sequence.h"

namespace mlir::ctran {

/// The groups along `axes`, by rank.
SmallVector<SmallVector<int64_t>> groupsAlong(ScheduleBuilder &s, ArrayRef<unsigned> axes);

/// Groups of any ranks, each rank in one, and numbers that depend on the own rank: ranks differ
/// then.
class Places {
public:
  Places(ScheduleBuilder &s, ArrayRef<SmallVector<int64_t>> groups) : s(s), groups(groups) {
    for (unsigned axis = 0, e = s.program.getGrid().size(); axis != e; ++axis)
      axes.push_back(axis);
    group.resize(s.program.getNumRanks());
    place.resize(group.size());
    for (auto [g, members] : llvm::enumerate(groups)) {
      largest = std::max<int64_t>(largest, members.size());
      for (auto [i, rank] : llvm::enumerate(members)) {
        group[rank] = g;
        place[rank] = i;
      }
    }
  }
  ScheduleBuilder &s;
  ArrayRef<SmallVector<int64_t>> groups;
  SmallVector<unsigned> axes; ///< all of the program
  SmallVector<int64_t> group, place;
  int64_t largest = 1;

  int64_t size(int64_t rank) const { return groups[group[rank]].size(); }
  /// The rank of the member `by` further on in the group of `rank`, which has more than that.
  int64_t further(int64_t rank, int64_t by) const {
    int64_t n = size(rank);
    return groups[group[rank]][(place[rank] + by + n) % n];
  }
  /// A number that depends on the own rank.
  Value number(llvm::function_ref<int64_t(int64_t rank)> f) const {
    SmallVector<int64_t> all;
    for (size_t rank = 0; rank < group.size(); ++rank)
      all.push_back(f(rank));
    if (llvm::all_equal(all))
      return s.constant(all.front());
    auto tableOf = [&](unsigned axis, ArrayRef<int64_t> values) -> Value {
      return TableOp::create(s.builder, s.loc, s.builder.getIndexType(), s.own(axis),
                             s.builder.getDenseI64ArrayAttr(values));
    };
    // One table where it depends on one axis alone.
    int64_t stride = all.size();
    for (unsigned axis : axes) {
      int64_t size = s.size(axis);
      stride /= size;
      SmallVector<int64_t> values;
      for (int64_t at = 0; at < size; ++at)
        values.push_back(all[at * stride]);
      auto isSo = [&](size_t rank) { return all[rank] == values[int64_t(rank) / stride % size]; };
      if (llvm::all_of(llvm::seq(all.size()), isSo))
        return tableOf(axis, values);
    }
    // A table of the innermost axis for each place on the others.
    int64_t inner = s.size(axes.back());
    auto table = [&](int64_t outer) {
      return tableOf(axes.back(), ArrayRef(all).slice(outer * inner, inner));
    };
    Value result = table(0);
    Value at = memberNumber(s, ArrayRef(axes).drop_back());
    for (int64_t outer = 1; outer * inner < int64_t(all.size()); ++outer)
      result = arith::SelectOp::create(s.builder, s.loc, s.equal(at, s.constant(outer)),
                                       table(outer), result);
    return result;
  }
  /// The rank of the member `by` further on in the own group; all have more than that.
  Value ahead(int64_t by) const {
    return number([&](int64_t rank) { return further(rank, by); });
  }
  Value at(Value memory, Value rank) const {
    return PeerViewOp::create(s.builder, s.loc, memory.getType(), memory, ValueRange(), rank);
  }
  /// A token made by `then` where `rank` is one, and not -1.
  Value ifAny(Value rank, llvm::function_ref<Value()> then,
              llvm::function_ref<Value()> otherwise) const {
    return s.branch(s.less(s.constant(-1), rank), then, otherwise);
  }
};

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_PLACES_H

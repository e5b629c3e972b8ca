//===- ListedEnds.h - Where collectives of listed groups begin and end ----*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_LISTEDENDS_H
#define NCCLX_LIB_CONVERSION_LISTEDENDS_H

#include "Places.h"

namespace mlir::ctran {

/// A collective of groups that no axes span: who has which shard, what the inputs hold, and what is
/// demanded of the outputs. Where a cut is uneven, one member's shard is short, and the members
/// behind it have none.
class ListedEnds {
public:
  ListedEnds(ScheduleBuilder &s, const CollectiveSpec &c);
  ListedEnds(const ListedEnds &) = delete;

  ScheduleBuilder &s;
  const CollectiveSpec c;
  Places p;

  /// Shards are cut of one of input and output; the other one holds a shard.
  bool hasShards() const { return c.flow.inCut.has_value() != c.flow.outCut.has_value(); }
  Value ownPlace() {
    return p.number([&](int64_t rank) { return p.place[rank]; });
  }
  /// The rank that `rank` sends to over this distance, or that it gets from; -1: none.
  int64_t target(int64_t rank, int64_t by) const;
  int64_t origin(int64_t rank, int64_t by) const;
  /// Does some rank send over it?
  bool isUsed(int64_t by) const;
  Value box(Value view, std::optional<int64_t> cut, Value place, Value size = {}) {
    return cut ? s.range(view, place, size) : s.range(view);
  }

  /// `write`, given the box of the shard of the member at `place` in `memory`, which holds it.
  Value withShard(Value place, Value memory, llvm::function_ref<Value(Value box)> write);
  /// The same of the own shard in own memory; `otherwise` where there is none.
  Value withOwnShard(Value memory, llvm::function_ref<Value(Value box)> write,
                     llvm::function_ref<Value()> otherwise);
  /// Who reads an output as a whole finds all of it written: zeros, where this rank's shard is not
  /// full, or `ofShort` alone, or where it has none to bring. Gives the tokens after which the
  /// output may be written.
  SmallVector<Value> fillPadding(ValueRange outFree, bool ofShort = false);

  /// Says what the input `in` holds.
  Value say(Value in, ValueRange after);
  /// Demands what the collective leaves in `out`; gives the token.
  Value demand(Value out, ValueRange ready);

private:
  int64_t rows() const {
    return c.flow.inCut ? c.inType.getDimSize(*c.flow.inCut) : c.outType.getDimSize(*c.flow.outCut);
  }
  int64_t each() const { return std::max<int64_t>(1, llvm::divideCeil(rows(), p.largest)); }
  /// How many shards have rows; of no rows, the first one.
  int64_t shards() const { return std::max<int64_t>(1, llvm::divideCeil(rows(), each())); }
  bool hasShard(int64_t place) const { return !hasShards() || place < shards(); }
  bool sends(int64_t from, int64_t to, int64_t members) const;
  /// Of a window that holds a shard: the view whose first box is the short one.
  Value shortView(Value memory);
  Value demandFrom(int64_t by, Value out, ValueRange after);
  Value demandSum(Value out, ValueRange after);

  int64_t shortRows = 0; ///< of the last shard, if it is not full
};

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_LISTEDENDS_H

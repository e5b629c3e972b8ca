//===- PermutePairs.cpp - A permute whose sends are listed ------------------------------------===//
//
// Who sends to whom is a table, so ranks differ: the program is asymmetric and is proved on all
// ranks.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {

/// Numbers that depend on the own place in the group.
class Members {
public:
  Members(ScheduleBuilder &s, ArrayRef<unsigned> axes) : s(s), axes(axes) {
    me = memberNumber(s, axes);
  }
  Value own() { return me; }
  /// The second of the pair whose first is this member, or -1.
  Value partner(ArrayRef<std::pair<int64_t, int64_t>> pairs) {
    Value result = s.constant(-1);
    for (auto [first, second] : pairs) {
      Value is =
          arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::eq, me, s.constant(first));
      result = arith::SelectOp::create(s.builder, s.loc, is, s.constant(second), result);
    }
    return result;
  }
  /// Coordinates of a member on the group's axes.
  SmallVector<Value> point(Value member) {
    SmallVector<Value> at(axes.size());
    for (size_t i = axes.size(); i-- > 0;) {
      at[i] = s.rem(member, s.size(axes[i]));
      member = arith::DivSIOp::create(s.builder, s.loc, member, s.constant(s.size(axes[i])));
    }
    return at;
  }
  /// A view of `memory` at the member of the own group.
  Value at(Value memory, Value member) {
    SmallVector<Value> coordinates = point(member);
    Value rank = s.constant(0);
    for (unsigned axis = 0, e = s.program.getGrid().size(); axis != e; ++axis) {
      auto listed = llvm::find(axes, axis);
      Value c = listed == axes.end() ? value(axis) : coordinates[listed - axes.begin()];
      rank = s.add(mul(rank, s.size(axis)), c);
    }
    return PeerViewOp::create(s.builder, s.loc, memory.getType(), memory, ValueRange(), rank);
  }
  /// A token made by `then` where `member` is not -1, else by `otherwise`.
  Value ifAny(Value member, llvm::function_ref<Value()> then,
              llvm::function_ref<Value()> otherwise) {
    Value is =
        arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::sge, member, s.constant(0));
    auto branch = scf::IfOp::create(s.builder, s.loc, TokenType::get(s.builder.getContext()), is,
                                    /*withElseRegion=*/true);
    auto fill = [&](Region &region, llvm::function_ref<Value()> body) {
      OpBuilder::InsertionGuard guard(s.builder);
      s.builder.setInsertionPointToStart(&region.front());
      Value token = body();
      scf::YieldOp::create(s.builder, s.loc, token);
    };
    fill(branch.getThenRegion(), then);
    fill(branch.getElseRegion(), otherwise);
    return branch.getResult(0);
  }

private:
  ScheduleBuilder &s;
  SmallVector<unsigned> axes;
  Value me;

  Value value(unsigned axis) {
    return CoordValueOp::create(s.builder, s.loc, s.builder.getIndexType(), s.own(axis));
  }
  Value mul(Value a, int64_t b) {
    return arith::MulIOp::create(s.builder, s.loc, a, s.constant(b));
  }
};

} // namespace

InFlight ctran::permutePairs(ScheduleBuilder &s, const CollectiveSpec &c) {
  InFlight flight;
  Members members(s, c.axes);
  SmallVector<std::pair<int64_t, int64_t>> back;
  for (auto [source, target] : c.pairs)
    back.push_back({target, source});
  Value target = members.partner(c.pairs), source = members.partner(back);
  Value rtr = s.slots(c.name + ".ready", {}, 1), data = s.slots(c.name + ".data", {}, 1);
  // Members are numbers here, so the value is named by numbers, the same ones on every rank.
  Value start =
      s.source(s.range(c.in), c.name, members.point(members.own()), {}, c.inReady, c.axes);
  flight.others.push_back(members.ifAny(
      source, [&] { return s.ready(s.slot(members.at(rtr, source)), c.outFree, "ready"); },
      [&] { return c.outFree.front(); }));
  flight.inFree = {members.ifAny(
      target,
      [&] {
        Value granted = s.awaitReady(s.slot(rtr), s.constant(1), {}, "await ready");
        return s.put(s.range(c.in), s.range(members.at(c.out, target)),
                     s.slot(members.at(data, target)), {start, granted}, "put");
      },
      [&] { return start; })};
  flight.finish = [s, c, source, data]() mutable -> SmallVector<Value> {
    Members members(s, c.axes);
    Value ready = members.ifAny(
        source,
        [&] {
          Value here = s.arrive(s.slot(data), s.constant(1), {}, "await data");
          return s.sink(s.range(c.out), c.name, members.point(source), {}, here, c.axes);
        },
        [&] { return c.zero(s, c.outFree); });
    return {ready};
  };
  return flight;
}

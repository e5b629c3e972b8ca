//===- BySize.cpp - Listed groups of several sizes ----------------------------------===//
//
// What an algorithm does depends on how many members there are: its rounds, its cuts, its places.
// So groups of one size have a branch of their own, with memory and slots of their own, and a rank
// takes the one of its group. Ranks differ, as in all listed groups.
//
//===----------------------------------------------------------------------===//
#include "Places.h"

#include "llvm/ADT/MapVector.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::ctran;

bool CollectiveSpec::haveOneSize() const {
  return llvm::all_equal(
      llvm::map_range(groups, [](ArrayRef<int64_t> group) { return group.size(); }));
}

namespace {

/// Tokens that `then` makes where the condition holds, and elsewhere `before` in their place. Those
/// that nothing there uses are further ones.
SmallVector<Value> branchOfMany(ScheduleBuilder &s, Value condition, Value before,
                                llvm::function_ref<SmallVector<Value>()> then) {
  // How many there are is known when they have been written.
  auto first = scf::IfOp::create(s.builder, s.loc, condition, /*withElseRegion=*/false);
  SmallVector<Value> made;
  {
    OpBuilder::InsertionGuard guard(s.builder);
    s.builder.setInsertionPointToStart(first.thenBlock());
    made = then();
    first.thenYield().erase();
    for (Operation &op : *first.thenBlock())
      for (Value result : op.getResults())
        if (isa<TokenType>(result.getType()) && result.use_empty() &&
            !llvm::is_contained(made, result))
          made.push_back(result);
    s.builder.setInsertionPointToEnd(first.thenBlock());
    scf::YieldOp::create(s.builder, s.loc, made);
  }
  auto branch = scf::IfOp::create(s.builder, s.loc, ValueRange(made).getTypes(), condition,
                                  /*addThenBlock=*/false, /*addElseBlock=*/true);
  branch.getThenRegion().takeBody(first.getThenRegion());
  first.erase();
  OpBuilder::InsertionGuard guard(s.builder);
  s.builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(s.builder, s.loc, SmallVector<Value>(made.size(), before));
  return SmallVector<Value>(branch.getResults());
}

} // namespace

InFlight
ctran::emitBySize(ScheduleBuilder &s, const CollectiveSpec &c,
                  llvm::function_ref<InFlight(ScheduleBuilder &, const CollectiveSpec &)> emit) {
  llvm::MapVector<int64_t, SmallVector<SmallVector<int64_t>>> bySize;
  for (ArrayRef<int64_t> group : c.groups)
    bySize[int64_t(group.size())].emplace_back(group);
  Places places(s, c.groups);
  Value size = places.number([&](int64_t rank) { return places.size(rank); });
  InFlight flight;
  SmallVector<Value> ready;
  int64_t number = 0; // of groups so far
  for (auto &[n, groups] : bySize) {
    CollectiveSpec own = c;
    own.groups = groups;
    own.name = c.name + ".of" + std::to_string(n);
    own.whole = c.name;
    own.firstGroup = number;
    number += int64_t(groups.size());
    if (own.combination.divide)
      own.combination.divide = n;
    // The tokens of a flight, one list behind the other. It ends where it starts: what is in a
    // branch is not there behind it.
    size_t free = 0, whole = 0;
    SmallVector<Value> tokens =
        branchOfMany(s, s.equal(size, s.constant(n)), c.outFree.front(), [&] {
          InFlight one = emit(s, own);
          SmallVector<Value> all = one.inFree;
          free = all.size();
          llvm::append_range(all, one.finish());
          whole = all.size();
          llvm::append_range(all, one.others);
          return all;
        });
    ArrayRef<Value> all = tokens;
    llvm::append_range(flight.inFree, all.take_front(free));
    llvm::append_range(ready, all.slice(free, whole - free));
    llvm::append_range(flight.others, all.drop_front(whole));
  }
  flight.finishWith(ready);
  return flight;
}

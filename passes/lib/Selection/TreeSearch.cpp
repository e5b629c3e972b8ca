//===- TreeSearch.cpp - Pieces and lanes with which trees are fastest ---------------------===//
#include "TreeSearch.h"

#include "ncclx/Conversion/Passes.h"
#include "ncclx/Conversion/TreeSetting.h"
#include "ncclx/NCCLX/Hints.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// Changes one thing after the other, each of the best setting so far.
class TreeSearch {
public:
  TreeSearch(CollectiveOpInterface op, const SelectionTarget &target, std::optional<int64_t> bytes,
             int64_t payload, double bound, Candidate &candidate, int64_t events)
      : op(op), target(target), bytes(bytes), bound(bound),
        mostEvents(payload < manyBytes ? fewEvents : manyEvents), candidate(candidate),
        last(events), spent(events) {}
  LogicalResult run(const topology::TreePacking &packing, double payload);

private:
  /// About a microsecond each. Of few bytes there are few pieces, and building them is what costs.
  static constexpr double manyEvents = 2.1e6, fewEvents = 1e5;
  static constexpr int64_t manyBytes = 1 << 20;

  CollectiveOpInterface op;
  const SelectionTarget &target;
  std::optional<int64_t> bytes;
  double bound, mostEvents;
  Candidate &candidate;
  int64_t last, spent; ///< events: of the best setting, and of all that were tried
  TreeSetting best;

  /// The more, the more there is to win.
  int64_t allowed() const;
  /// Is `next` better? Then it is the best.
  FailureOr<bool> attempt(TreeSetting next);
};

int64_t TreeSearch::allowed() const {
  // What is so near its bound that nothing is looked for.
  constexpr double near = 0.015, far = 0.03;
  if (bound <= 0)
    return int64_t(mostEvents);
  double beyond = *candidate.seconds / bound - 1;
  return int64_t(mostEvents * std::clamp((beyond - near) / (far - near), 0.0, 1.0));
}

FailureOr<bool> TreeSearch::attempt(TreeSetting next) {
  double factor = double(next.rounds * std::max<int64_t>(1, next.copies)) /
                  double(best.rounds * std::max<int64_t>(1, best.copies));
  if (next == best || double(spent) + factor * double(last) > double(allowed()))
    return false;
  NamedAttribute hint(StringAttr::get(op->getContext(), treesAttrName),
                      next.hint(op->getContext()));
  int64_t taken = 0;
  FailureOr<bool> better = tryHint(op, target, bytes, candidate, hint, taken);
  if (failed(better))
    return failure();
  spent += taken;
  if (*better) {
    best = next;
    last = taken;
  }
  return better;
}

LogicalResult TreeSearch::run(const topology::TreePacking &packing, double payload) {
  best.copies = treeCopies(packing, best);
  best.rounds = usualTreeRounds(packing, best, payload);
  using Change = llvm::function_ref<bool(TreeSetting &)>;
  /// As often as it makes things better.
  auto change = [&](Change by) -> LogicalResult {
    for (FailureOr<bool> better = true; succeeded(better) && *better;) {
      TreeSetting next = best;
      bool again = by(next);
      better = attempt(next);
      if (failed(better))
        return failure();
      if (!again)
        break;
    }
    return success();
  };
  auto lanes = [&](int64_t number) {
    return change([&](TreeSetting &next) {
      next.lanes = number;
      return false;
    });
  };
  auto rounds = [&](double factor) {
    return change([&](TreeSetting &next) {
      next.rounds = std::max<int64_t>(1, int64_t(factor * double(next.rounds)));
      return true;
    });
  };
  auto slack = [&](int64_t hundredths) {
    return change([&](TreeSetting &next) {
      next.slack = hundredths;
      return false;
    });
  };
  // A put of each tree on a lane of its own waits for no other's data.
  auto apart = [&] {
    return change([](TreeSetting &next) {
      next.lanes = 16;
      next.turns = 64;
      return false;
    });
  };
  auto twice = [&] {
    return change([](TreeSetting &next) {
      next.copies *= 2;
      next.rounds = std::max<int64_t>(1, next.rounds / 2);
      return true;
    });
  };
  if (mostEvents == fewEvents)
    return failure(failed(apart()) || failed(lanes(8)) || failed(lanes(4)) || failed(slack(200)) ||
                   failed(rounds(2)));
  // Where members only sum, fewer lanes go with fewer and larger puts, which cost less to time.
  if (packing.trees.front().out.empty() && (failed(lanes(4)) || failed(lanes(3))))
    return failure();
  return failure(failed(rounds(2)) || failed(apart()) || failed(rounds(1.4)) || failed(lanes(4)) ||
                 failed(lanes(8)) || failed(lanes(3)) || failed(slack(200)) || failed(slack(0)) ||
                 failed(rounds(1.1)) || failed(rounds(0.7)) || failed(twice()));
}

} // namespace

LogicalResult mlir::ncclx::searchTrees(CollectiveOpInterface op, const SelectionTarget &target,
                                       std::optional<int64_t> bytes, int64_t payload, double bound,
                                       Candidate &candidate, int64_t events) {
  SmallVector<int64_t> first = lookupGrid(op).getGroups(op.getAxes(), op.getGroupsAttr()).front();
  std::vector<unsigned> group(first.begin(), first.end());
  topology::TreeFlow flow = treeFlowOf(op);
  const topology::TreePacking *packing = target.trees->pack(group, flow);
  bool ofEach = flow != topology::TreeFlow::sumAndSpread;
  double moved = double(payload) / (ofEach ? double(group.size()) : 1);
  // No trees are faster than these prices say.
  bound = std::max(bound, moved * packing->leastSecondsPerByte);
  return TreeSearch(op, target, bytes, payload, bound, candidate, events).run(*packing, moved);
}

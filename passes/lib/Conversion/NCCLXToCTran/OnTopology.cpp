//===- OnTopology.cpp - What a collective is told of the machine ---------------------------===//
#include "Converter.h"

#include "ncclx/Conversion/Passes.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::ncclx;

FailureOr<std::vector<unsigned>> Converter::groupOnTopology(CollectiveOpInterface op,
                                                            const ctran::CollectiveSpec &spec) {
  Algorithm algorithm = *op.getAlgorithm();
  if (!trees)
    return op->emitOpError("asks for ")
           << stringifyAlgorithm(algorithm)
           << (algorithm == Algorithm::Trees ? ", which are packed into a topology: "
                                             : ", which is for a topology: ")
           << "there is neither the pass's topology=FILE nor the module's ncclx.topology";
  std::vector<unsigned> group;
  int64_t members = 1;
  for (unsigned axis : spec.axes)
    members *= grid->axes()[axis].size;
  for (int64_t member = 0; member < members; ++member) {
    int64_t rank = 0, rest = member;
    for (unsigned axis : llvm::reverse(spec.axes)) {
      rank += rest % grid->axes()[axis].size * grid->axes()[axis].stride;
      rest /= grid->axes()[axis].size;
    }
    group.push_back(unsigned(rank));
  }
  if (group.size() > trees->numRanks())
    return op->emitOpError("runs on ")
           << group.size() << " ranks, but the topology has " << trees->numRanks();
  return group;
}

LogicalResult Converter::route(CollectiveOpInterface op, ctran::CollectiveSpec &spec) {
  FailureOr<std::vector<unsigned>> group = groupOnTopology(op, spec);
  if (failed(group))
    return failure();
  spec.routing =
      trees->route(*group, ctran::routedAmounts(spec, group->size()), ctran::routedShares(spec));
  if (!spec.routing)
    return op->emitOpError("asks for routed, but on this topology some member has no way to "
                           "another");
  const topology::Routing &routing = *spec.routing;
  remark::analysis(op->getLoc(),
                   remark::RemarkOpts::name("Routed").category("convert-ncclx-to-ctran"))
      << remark::add("{0} paths between {1} members, up to {2} hops, in {3} shares: the busiest "
                     "resource takes {4:F3} of the least that is known of any routing",
                     routing.paths.size(), group->size(), routing.depth, routing.shares,
                     routing.leastSeconds > 0 ? routing.seconds / routing.leastSeconds : 0.0);
  return success();
}

LogicalResult Converter::packTrees(CollectiveOpInterface op, ctran::CollectiveSpec &spec) {
  FailureOr<std::vector<unsigned>> found = groupOnTopology(op, spec);
  if (failed(found))
    return failure();
  const std::vector<unsigned> &group = *found;
  spec.trees = trees->pack(group, treeFlowOf(op));
  if (!spec.trees)
    return op->emitOpError("asks for trees, but on this topology none reach every member");
  remark::analysis(op->getLoc(),
                   remark::RemarkOpts::name("TreesPacked").category("convert-ncclx-to-ctran"))
      << remark::add(
             "{0} trees of {1} members, {2} edges deep, in {3} shares: the busiest resource "
             "takes {4:F3} of the least that any trees can",
             spec.trees->trees.size(), group.size(), spec.trees->depth, spec.trees->shares,
             spec.trees->leastSecondsPerByte > 0
                 ? spec.trees->secondsPerByte / spec.trees->leastSecondsPerByte
                 : 0.0);
  return success();
}

/// Each group hangs off one switch.
LogicalResult Converter::findSwitch(CollectiveOpInterface op, ctran::CollectiveSpec &spec) {
  if (oneKernel)
    return op->emitOpError("asks for switch, which no kernel of one GPU's ops is made for yet");
  if (!loadStore)
    return op->emitOpError("asks for switch, but ") << whyNoSwitch(op, nullptr);
  if (!trees)
    return op->emitOpError("asks for switch, which is for a topology: there is neither the pass's "
                           "topology=FILE nor the module's ncclx.topology");
  double bytesPerSecond = 0;
  if (std::string why = whyNoSwitch(op, trees, &bytesPerSecond); !why.empty())
    return op->emitOpError("asks for switch, but ") << why;
  spec.tiers.push_back({spec.axes, bytesPerSecond});
  return success();
}

std::optional<ctran::LinkOfGroup> Converter::slowestLink(CollectiveOpInterface op) {
  constexpr int64_t mostRanks = 4096; // that are looked at for it
  if (!trees || trees->numRanks() > mostRanks || grid->numRanks() > int64_t(trees->numRanks()))
    return std::nullopt;
  SmallVector<int64_t> group = lookupGrid(op).getGroups(op.getAxes(), op.getGroupsAttr()).front();
  double slowest = 0;
  for (size_t d = 1; d < group.size(); d *= 2) {
    std::optional<topology::Route> route =
        trees->way(unsigned(group.front()), unsigned(group[group.size() - d]));
    if (!route)
      return std::nullopt;
    double cap = route->cap.toDouble();
    slowest = slowest > 0 ? std::min(slowest, cap) : cap;
  }
  if (slowest <= 0)
    return std::nullopt;
  ctran::LinkOfGroup link{slowest};
  if (auto own = trees->way(unsigned(group.front()), unsigned(group.front())))
    if (double cap = own->cap.toDouble(); cap > 0)
      link.copySecondsPerByte = 1 / cap;
  return link;
}

/// Of a group that whyNotByUnequalTiers has nothing against.
LogicalResult Converter::layUnequalTiers(CollectiveOpInterface op, ctran::CollectiveSpec &spec) {
  FailureOr<std::vector<unsigned>> group = groupOnTopology(op, spec);
  if (failed(group))
    return failure();
  std::string why;
  if (spec.flow.inCut && spec.flow.outCut)
    spec.routing = trees->routeByTiers(*group, ctran::routedAmounts(spec, group->size()),
                                       ctran::routedShares(spec), &why);
  else
    spec.trees = trees->packByTiers(*group, treeFlowOf(op), &why);
  if (!spec.routing && !spec.trees)
    return op->emitOpError("asks for hierarchical, but ") << why;
  spec.tiers.push_back({spec.axes});
  spec.treeSetting = {};
  spec.treeSetting.rounds = spec.pipeline.chunks.value_or(0);
  remark::analysis(op->getLoc(),
                   remark::RemarkOpts::name("UnequalTiers").category("convert-ncclx-to-ctran"))
      << remark::add("hosts are not alike: {0} {1} between {2} members, {3} steps deep, in {4} "
                     "shares",
                     spec.trees ? spec.trees->trees.size() : spec.routing->paths.size(),
                     spec.trees ? "trees" : "paths", group->size(),
                     spec.trees ? spec.trees->depth : spec.routing->depth,
                     spec.trees ? spec.trees->shares : spec.routing->shares);
  return success();
}

LogicalResult Converter::layTiers(CollectiveOpInterface op, ctran::CollectiveSpec &spec) {
  if (!trees)
    return op->emitOpError("asks for hierarchical, which follows a topology's tiers: there is "
                           "neither the pass's topology=FILE nor the module's ncclx.topology");
  if (grid->numRanks() > int64_t(trees->numRanks()))
    return op->emitOpError("runs on ")
           << grid->numRanks() << " ranks, but the topology has " << trees->numRanks();
  SmallVector<ProgramGrid::OfTier> found;
  if (std::optional<std::string> why = grid->axesByTier(op, trees->tiers(), found)) {
    if (trees->tiers().list.size() < 2)
      why = whyNotByUnequalTiers(op, *trees);
    if (why)
      return op->emitOpError("asks for hierarchical, but ") << *why;
    return layUnequalTiers(op, spec);
  }
  for (const ProgramGrid::OfTier &of : found)
    spec.tiers.push_back({of.axes, of.tier->bytesPerSecond, of.tier->latency});
  return success();
}

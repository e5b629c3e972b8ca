//===- Choose.cpp - What carries one collective, and what else could --------------------===//
#include "ByTiers.h"

#include "ncclx/Conversion/Passes.h"
#include "ncclx/Selection/Selection.h"

#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace mlir::ncclx;

static SmallVector<int64_t> firstGroup(CollectiveOpInterface op) {
  return lookupGrid(op).getGroups(op.getAxes(), op.getGroupsAttr()).front();
}

/// The bound of `op`, of `bytes`, for its first group, also where switches multicast and reduce.
static std::optional<topology::LowerBound> boundOf(CollectiveOpInterface op, int64_t bytes,
                                                   const SelectionTarget &target,
                                                   bool inNetwork = false) {
  auto kind = topology::parseCollective(op->getName().stripDialect());
  if (!kind || op.getDataflow().isCounted())
    return std::nullopt;
  std::vector<unsigned> group;
  for (int64_t rank : firstGroup(op))
    group.push_back(unsigned(rank));
  topology::BoundQuery query;
  query.collective = *kind;
  query.group = group;
  query.bytes = uint64_t(bytes);
  query.root = unsigned(getRoot(op).value_or(0));
  query.rate = target.rate;
  if (!topology::checkQuery(*target.topology, query).empty())
    return std::nullopt;
  query.inNetwork = inNetwork;
  if (!inNetwork)
    return topology::bound(*target.topology, query);
  // What is reduced on its way has a bound of its own, which speaks of that form of schedule alone.
  std::vector<topology::LowerBound> bounds = topology::bounds(*target.topology, query);
  auto own = llvm::find_if(bounds, [](const topology::LowerBound &bound) {
    return bound.universal || bound.argument == "in-network reduction";
  });
  return own == bounds.end() ? bounds.front() : *own; // largest first
}

/// Whether it tells ranks one by one what to do, as is made for one topology.
static bool isPacked(Algorithm algorithm) {
  return algorithm == Algorithm::Trees || algorithm == Algorithm::Routed;
}

/// Why what is made for a topology cannot be made for this one.
static std::string whyNotPacked(CollectiveOpInterface op, Algorithm algorithm,
                                const SelectionTarget &target) {
  bool trees = algorithm == Algorithm::Trees;
  if (!target.trees)
    return trees ? "trees are not considered" : "routes are not considered";
  std::vector<unsigned> group;
  for (int64_t rank : firstGroup(op))
    group.push_back(unsigned(rank));
  if (llvm::any_of(group, [&](unsigned r) {
        return r < target.topology->numRanks() &&
               target.topology->rankNode(r).kind != topology::NodeKind::gpu;
      }))
    return "its ranks are processes, which share a memory, and no GPUs with links";
  if (llvm::all_of(group, [&](unsigned r) { return r < target.trees->numRanks(); })) {
    std::vector<uint64_t> alike(group.size() * group.size(), 1);
    if (trees ? target.trees->pack(group, treeFlowOf(op)) != nullptr
              : target.trees->route(group, alike) != nullptr)
      return "";
  }
  return trees ? "no trees reach every member" : "some member has no way to another";
}

/// Bytes from which ranks that are to be compared are told one by one what to do.
static constexpr int64_t leastTold = 1 << 20;

/// Is next to nothing to be won over `algorithm`, which has been timed?
static bool isAtBound(const Choice &choice, Algorithm algorithm) {
  const Candidate &candidate = choice.candidates[unsigned(algorithm)];
  return candidate.seconds && choice.bound && !choice.bound->unreachable &&
         *candidate.seconds <= 1.02 * choice.bound->seconds.toDouble();
}

/// Why `algorithm`, which can carry `op`, is not tried on `target`; `byTiers`: why there are none.
static std::string whyNotTried(CollectiveOpInterface op, Algorithm algorithm,
                               const SelectionTarget &target,
                               const std::optional<std::string> &byTiers) {
  int64_t ranks = lookupGrid(op).getNumRanks();
  constexpr int64_t mostPeers = 4096; // some seconds
  if (!byTiers && algorithm != Algorithm::Hierarchical && getGroupSize(op) > mostPeers)
    return llvm::formatv("its groups of {0} are too large to simulate", getGroupSize(op));
  switch (algorithm) {
  case Algorithm::Hierarchical:
    return byTiers.value_or("");
  case Algorithm::Trees:
  case Algorithm::Routed:
    return byTiers ? whyNotPacked(op, algorithm, target)
                   : "the machine has tiers that are all alike";
  case Algorithm::Switch:
    if (!op.getAlgorithm() && !target.inNetwork && !target.rules)
      return "what switches do is not asked for (in-network)";
    if (ranks > mostOneByOne && !byTiers)
      return llvm::formatv("its {0} ranks are too many to simulate one by one", ranks);
    if (!target.trees && target.loadStore)
      return "switches are not considered";
    return whyNoSwitch(op, target.loadStore ? target.trees : nullptr);
  case Algorithm::Ring:
  case Algorithm::Bruck:
    if (!byTiers && ranks > mostOneByOne)
      return llvm::formatv("its {0} ranks, which are not alike, are too many to simulate", ranks);
    return "";
  default:
    return "";
  }
}

/// Hosts of its first group.
static int64_t hostsOf(CollectiveOpInterface op, const SelectionTarget &target) {
  std::set<int> hosts;
  for (int64_t rank : firstGroup(op))
    hosts.insert(target.topology->rankNode(unsigned(rank)).host);
  return int64_t(hosts.size());
}

/// Whether the reference interpreter makes the bits that `algorithm` makes.
static bool isRepeated(CollectiveOpInterface op, Algorithm algorithm) {
  auto kind = op->getAttrOfType<ReductionKindAttr>("kind");
  bool rounds = kind && isa<FloatType>(op.getElementType()) &&
                kind.getValue() != ReductionKind::Min && kind.getValue() != ReductionKind::Max;
  return !rounds || orderOf(algorithm) != ReductionOrder::Any;
}

FailureOr<Choice> mlir::ncclx::choose(CollectiveOpInterface op, size_t axes,
                                      const SelectionTarget &target, std::optional<int64_t> bytes) {
  Choice choice;
  choice.bytes = bytes.value_or(op.getPayloadBytes());
  choice.bound = boundOf(op, choice.bytes, target);
  std::optional<Algorithm> fastest;
  double best = 0;
  bool repeated = false; ///< is the fastest so
  if (target.inNetwork || target.rules || op.getAlgorithm() == Algorithm::Switch)
    choice.inNetwork = boundOf(op, choice.bytes, target, /*inNetwork=*/true);
  std::optional<std::string> byTiers = whyNot(op, Algorithm::Hierarchical, axes);
  if (!byTiers)
    byTiers = whyNotByTiers(op, target);
  for (unsigned number = 0; number <= getMaxEnumValForAlgorithm(); ++number) {
    Candidate candidate{*symbolizeAlgorithm(number), std::nullopt, ""};
    if (std::optional<std::string> why = whyNot(op, candidate.algorithm, axes)) {
      candidate.refused = *why;
    } else if (candidate.algorithm == Algorithm::Routed && !op.getAlgorithm() && !target.rules &&
               isAtBound(choice, Algorithm::Direct)) {
      candidate.refused = "direct is within 2 % of the bound";
    } else if (isPacked(candidate.algorithm) && target.repeatable && fastest &&
               !op.getAlgorithm() && !target.rules &&
               (choice.bytes < leastTold || isAtBound(choice, Algorithm::Direct))) {
      candidate.refused = "what all ranks do alike carries it";
    } else {
      candidate.refused = whyNotTried(op, candidate.algorithm, target, byTiers);
    }
    if (candidate.refused.empty()) {
      FailureOr<AloneTime> time = timeAlone(op, candidate.algorithm, target, bytes);
      if (failed(time))
        return failure();
      if (!time->cannot.empty()) {
        candidate.refused = time->cannot;
      } else {
        candidate.seconds = time->seconds;
        bool better = !fastest || time->seconds < best;
        if (fastest && target.repeatable && isRepeated(op, candidate.algorithm) != repeated)
          better = !repeated;
        if (candidate.algorithm == Algorithm::Switch && !target.inNetwork)
          better = false; // a rule, or the op itself, must ask for it
        if (better) {
          fastest = candidate.algorithm;
          best = time->seconds;
          repeated = isRepeated(op, candidate.algorithm);
        }
      }
    }
    choice.candidates.push_back(std::move(candidate));
  }
  if (std::optional<Algorithm> asked = op.getAlgorithm()) {
    const Candidate &candidate = choice.candidates[unsigned(*asked)];
    if (!candidate.seconds)
      return op->emitOpError("asks for ")
             << stringifyAlgorithm(*asked) << ", but " << candidate.refused;
    choice.algorithm = asked;
    choice.reason = "the op names it";
    return choice;
  }
  if (target.rules)
    for (const Rule *rule : target.rules->matches(op->getName().stripDialect(), choice.bytes,
                                                  getGroupSize(op), hostsOf(op, target))) {
      const Candidate &candidate = choice.candidates[unsigned(rule->algorithm)];
      if (candidate.seconds) {
        choice.algorithm = rule->algorithm;
        choice.reason = "rule " + target.rules->place(*rule);
        return choice;
      }
      choice.overruled.push_back(
          llvm::formatv("rule {0} asks for {1}, refused: {2}", target.rules->place(*rule),
                        stringifyAlgorithm(rule->algorithm), candidate.refused));
    }
  choice.algorithm = fastest;
  choice.reason = "fastest by prediction";
  return choice;
}

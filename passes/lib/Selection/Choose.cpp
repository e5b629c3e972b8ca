//===- Choose.cpp - What carries one collective, and what else could --------------------===//
#include "AtLeast.h"
#include "ByTiers.h"
#include "TreeSearch.h"

#include "ncclx/Conversion/Passes.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/Selection/Selection.h"

#include "llvm/Support/FormatVariadic.h"

#include <limits>
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

/// Why `algorithm`, which can carry `op`, is not tried on `target`; `byTiers`: why there are none.
static std::string whyNotTried(CollectiveOpInterface op, Algorithm algorithm, size_t axes,
                               const SelectionTarget &target,
                               const std::optional<std::string> &byTiers) {
  int64_t ranks = lookupGrid(op).getNumRanks();
  constexpr int64_t mostPeers = 4096; // some seconds
  if (!byTiers && algorithm != Algorithm::Hierarchical && getGroupSize(op) > mostPeers)
    return llvm::formatv("its groups of {0} are too large to simulate", getGroupSize(op));
  switch (algorithm) {
  case Algorithm::Hierarchical:
    if (!byTiers && op.getDataflow().route != Dataflow::Route::All && ranks > mostOneByOne)
      return llvm::formatv("its {0} ranks are too many to simulate one by one", ranks);
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
    // Shards on their way to or from a root, and counted blocks, pass as many members.
    if (Dataflow flow = op.getDataflow();
        (flow.route != Dataflow::Route::All && (flow.inCut || flow.outCut)) || flow.isCounted()) {
      constexpr int64_t mostMembers = 512; // some 100,000 messages
      if (getGroupSize(op) > mostMembers)
        return llvm::formatv("its {0} members pass on too much to simulate", getGroupSize(op));
    }
    [[fallthrough]];
  case Algorithm::Bruck:
    if ((!byTiers || axes != 1) && ranks > mostOneByOne)
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

namespace {

/// Times candidates one after the other, and keeps the best.
class Chooser {
public:
  Chooser(CollectiveOpInterface op, size_t axes, const SelectionTarget &target,
          std::optional<int64_t> bytes);
  FailureOr<Choice> run(bool alternatives);

private:
  Candidate &candidate(Algorithm algorithm) { return choice.candidates[unsigned(algorithm)]; }
  LogicalResult time(Candidate &candidate,
                     double horizon = std::numeric_limits<double>::infinity());
  LogicalResult byTime(bool alternatives);
  LogicalResult searchChunks(Candidate &candidate, int64_t events);
  /// Does nothing say how pieces follow each other along trees, and does it matter?
  bool searchesTrees() {
    return !op.getAlgorithm() && !op->hasAttr(treesAttrName) && choice.bytes >= leastTold;
  }
  double boundSeconds() const {
    return choice.bound && !choice.bound->unreachable ? choice.bound->seconds.toDouble() : 0;
  }
  std::string whyNotWorthIt(const Candidate &candidate);
  void keepIfBetter(const Candidate &candidate);
  /// Would `candidate`, however fast, not be taken for its bits alone?
  bool isAsGood(Algorithm algorithm) const {
    return !target.repeatable || repeated || !isRepeated(op, algorithm);
  }

  CollectiveOpInterface op;
  size_t axes;
  const SelectionTarget &target;
  std::optional<int64_t> bytes;
  std::optional<std::string> byTiers; ///< why not
  AtLeast least;
  Choice choice;
  std::optional<Algorithm> fastest;
  double best = 0;
  bool repeated = false; ///< is the fastest so
};

Chooser::Chooser(CollectiveOpInterface op, size_t axes, const SelectionTarget &target,
                 std::optional<int64_t> bytes)
    : op(op), axes(axes), target(target), bytes(bytes),
      byTiers(whyNot(op, Algorithm::Hierarchical, axes)),
      least(op, target, bytes.value_or(op.getPayloadBytes())) {
  choice.bytes = bytes.value_or(op.getPayloadBytes());
  choice.bound = boundOf(op, choice.bytes, target);
  if (target.inNetwork || target.rules || op.getAlgorithm() == Algorithm::Switch)
    choice.inNetwork = boundOf(op, choice.bytes, target, /*inNetwork=*/true);
  if (!byTiers)
    byTiers = whyNotByTiers(op, target);
  for (unsigned number = 0; number <= getMaxEnumValForAlgorithm(); ++number) {
    Algorithm algorithm = *symbolizeAlgorithm(number);
    Candidate &candidate = choice.candidates.emplace_back();
    candidate.algorithm = algorithm;
    candidate.refused = whyNot(op, algorithm, axes).value_or("");
  }
}

/// Of a candidate that is not refused: its time, or why it has none.
LogicalResult Chooser::time(Candidate &candidate, double horizon) {
  if (candidate.seconds || !candidate.refused.empty())
    return success();
  candidate.refused = whyNotTried(op, candidate.algorithm, axes, target, byTiers);
  if (!candidate.refused.empty())
    return success();
  bool searches = candidate.algorithm == Algorithm::Trees && searchesTrees();
  // What is looked for may be faster than what comes first by this much.
  constexpr double mayWin = 1.1;
  FailureOr<AloneTime> time =
      timeAlone(op, candidate.algorithm, target, bytes, searches ? mayWin * horizon : horizon);
  if (failed(time))
    return failure();
  candidate.refused = time->cannot;
  candidate.scratch = time->scratch;
  candidate.hops = time->hops;
  if (!time->cannot.empty())
    return success();
  candidate.take(*time);
  if (searches)
    return searchTrees(op, target, bytes, choice.bytes, boundSeconds(), candidate, time->events);
  return searchChunks(candidate, time->events);
}

/// Of an algorithm that goes in chunks, where nothing says in how many: tries numbers that are some
/// way apart, as long as little is simulated. What of the chunks goes which way is a whole number,
/// so that the time jumps up and down with theirs.
LogicalResult Chooser::searchChunks(Candidate &candidate, int64_t events) {
  constexpr int64_t mostEvents = 400'000, most = 128, mostRanks = 1024;
  constexpr double goodEnough = 1.005;
  Dataflow flow = op.getDataflow();
  if (candidate.algorithm != Algorithm::Hierarchical || op.getAlgorithm() ||
      op->hasAttr(pipelineAttrName) || (flow.inCut && flow.outCut) || choice.bytes < leastTold ||
      lookupGrid(op).getNumRanks() > mostRanks)
    return success();
  double bound = boundSeconds();
  int64_t last = 0;
  for (int64_t below = most; below > 0; below /= 2)
    for (int64_t eighths : {8, 7, 6, 5}) {
      int64_t chunks = below * eighths / 8;
      if (chunks == 0 || chunks == last)
        continue;
      last = chunks;
      if (events > mostEvents || *candidate.seconds <= goodEnough * bound)
        return success();
      NamedAttribute hint = Pipeline{chunks}.hint(op->getContext());
      int64_t taken = 0;
      if (failed(tryHint(op, target, bytes, candidate, hint, taken)))
        return failure();
      events += taken;
    }
  return success();
}

void Chooser::keepIfBetter(const Candidate &candidate) {
  // What a switch does a rule, or the op itself, must ask for, or the target.
  if (!candidate.seconds || (candidate.algorithm == Algorithm::Switch && !target.inNetwork))
    return;
  bool is = isRepeated(op, candidate.algorithm);
  bool better = !fastest || *candidate.seconds < best ||
                (*candidate.seconds == best && candidate.algorithm < *fastest);
  if (fastest && target.repeatable && is != repeated)
    better = is;
  if (!better)
    return;
  fastest = candidate.algorithm;
  best = *candidate.seconds;
  repeated = is;
}

/// Why a candidate that could carry `op` cannot be chosen, or nothing.
std::string Chooser::whyNotWorthIt(const Candidate &candidate) {
  if (!fastest || !isAsGood(candidate.algorithm))
    return "";
  StringRef name = stringifyAlgorithm(*fastest);
  if (isPacked(candidate.algorithm)) {
    if (best <= 1.02 * boundSeconds())
      return llvm::formatv("{0} is within 2 % of the bound", name);
    return target.repeatable && choice.bytes < leastTold ? "what all ranks do alike carries it"
                                                         : "";
  }
  double seconds = least.seconds(candidate.algorithm);
  if (seconds < best)
    return "";
  return llvm::formatv("it takes at least {0:F2} us, {1} {2:F2} us", seconds * 1e6, name,
                       best * 1e6);
}

/// What is alike on all ranks comes first, and of it what has the least to move.
LogicalResult Chooser::byTime(bool alternatives) {
  SmallVector<std::pair<double, Algorithm>> order;
  for (const Candidate &candidate : choice.candidates) {
    Algorithm algorithm = candidate.algorithm;
    double first = algorithm == Algorithm::Hierarchical ? -1
                   : isPacked(algorithm)                ? std::numeric_limits<double>::infinity()
                   : candidate.refused.empty() && !alternatives ? least.seconds(algorithm)
                                                                : 0;
    order.push_back({first, algorithm});
  }
  llvm::sort(order);
  for (auto [first, algorithm] : order) {
    Candidate &mine = candidate(algorithm);
    if (!mine.refused.empty())
      continue;
    double horizon = std::numeric_limits<double>::infinity();
    if (std::string why = whyNotWorthIt(mine);
        !why.empty() && (!alternatives || algorithm == Algorithm::Routed)) {
      mine.refused = why;
      continue;
    }
    if (!alternatives && fastest && isAsGood(algorithm))
      horizon = best;
    if (failed(time(mine, horizon)))
      return failure();
    keepIfBetter(mine);
  }
  return success();
}

FailureOr<Choice> Chooser::run(bool alternatives) {
  auto timeAll = [&] {
    for (Candidate &other : choice.candidates) {
      if (!alternatives && !other.seconds && other.refused.empty())
        other.refused = "another is asked for";
      if (failed(time(other)))
        return failure();
    }
    return success();
  };
  if (std::optional<Algorithm> asked = op.getAlgorithm()) {
    Candidate &named = candidate(*asked);
    if (failed(time(named)))
      return failure();
    if (!named.seconds)
      return op->emitOpError("asks for ")
             << stringifyAlgorithm(*asked) << ", but " << named.refused;
    choice.algorithm = asked;
    choice.reason = "the op names it";
  } else if (target.rules) {
    for (const Rule *rule : target.rules->matches(op->getName().stripDialect(), choice.bytes,
                                                  getGroupSize(op), hostsOf(op, target))) {
      Candidate &named = candidate(rule->algorithm);
      if (failed(time(named)))
        return failure();
      if (named.seconds) {
        choice.algorithm = rule->algorithm;
        choice.reason = "rule " + target.rules->place(*rule);
        break;
      }
      choice.overruled.push_back(llvm::formatv("rule {0} asks for {1}, refused: {2}",
                                               target.rules->place(*rule),
                                               stringifyAlgorithm(rule->algorithm), named.refused));
    }
  }
  if (choice.algorithm) {
    if (failed(timeAll()))
      return failure();
    return std::move(choice);
  }
  if (failed(byTime(alternatives)))
    return failure();
  choice.algorithm = fastest;
  choice.reason = "fastest by prediction";
  return std::move(choice);
}

} // namespace

FailureOr<Choice> mlir::ncclx::choose(CollectiveOpInterface op, size_t axes,
                                      const SelectionTarget &target, std::optional<int64_t> bytes,
                                      bool alternatives) {
  return Chooser(op, axes, target, bytes).run(alternatives);
}

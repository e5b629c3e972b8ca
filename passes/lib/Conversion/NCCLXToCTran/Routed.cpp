//===- Routed.cpp - PairBlocks that go from hand to hand -------------------------------------===//
//
// What a member sends to another goes along the paths of a routing (topology::routeFlows), cut by
// their shares. A path of one hop is one put, straight into the output. On a longer one a block
// follows its way in steps, through two scratch places of each member in between, with a credit
// for each. Who passes on what is told rank by rank:
// the program is asymmetric.
//
//===----------------------------------------------------------------------===//
#include "PairBlocks.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::ctran;
using topology::RoutedPath;
using topology::Routing;

namespace {

/// Places of a step's scratch memory: one is filled while the other is sent on.
constexpr int64_t kPlaces = 2;
/// Steps that a stream's last piece takes, where the pieces are larger than would be best: so long
/// paths are over sooner behind the last.
constexpr int64_t kParts = 4;
/// Puts of all ranks together: what is simulated and proved in about a second.
constexpr int64_t kMostPuts = 18432;

class Routed {
public:
  Routed(ScheduleBuilder &s, const CollectiveSpec &c)
      : s(s), c(c), routing(*c.routing), members(s, c.axes), n(unsigned(members.size())),
        blocks(s, c, members) {}
  InFlight emit();

private:
  using Tokens = SmallVector<Value>;
  /// A path of several hops.
  struct Stream {
    const RoutedPath *path;
    int64_t number;             ///< among those of as many steps
    int64_t lane;               ///< of each of its members
    std::vector<int64_t> place; ///< first in the scratch memory of each member in between
  };
  /// Streams of as many steps, and their slots.
  struct Class {
    int64_t whole = 0, steps = 0; ///< of a piece, or at the end of a part, each
    std::vector<Stream> streams;
    Value data, credit;
  };
  /// Where a stream passes a member.
  struct Passing {
    size_t hop; ///< that the member sends; behind the last, it receives
    const Stream *stream;
    const Class *all;
  };

  ScheduleBuilder &s;
  const CollectiveSpec &c;
  const Routing &routing;
  Members members;
  unsigned n;
  PairBlocks blocks;
  int64_t piecesPerShare = 1, parts = 1;
  std::vector<Class> classes;
  std::vector<const RoutedPath *> straight;
  Value scratch, ready, arrived;

  void chooseSteps();
  void sortPaths();
  Value at(Value memory, unsigned member) {
    return members.atRank(memory, s.constant(c.rankOf(s, member)));
  }
  ScheduleBuilder on(int64_t number) {
    ScheduleBuilder other = s;
    other.carrier.index = s.carrier.lane(number);
    return other;
  }
  std::vector<Passing> passings(const Class &all, unsigned m) const;
  /// The ops of member `m`; one token for all.
  Value emitMember(unsigned m);
  Tokens emitClass(unsigned m, const Class &all, ArrayRef<Value> granted);
  Value emitStep(const Passing &p, Value step, PairBlocks::Index index, ArrayRef<Value> granted);
  Value emitStraight(const RoutedPath &path, Value granted);
};

} // namespace

/// More steps let long paths overlap, and cost their starts.
void Routed::chooseSteps() {
  int64_t hops = 0;
  for (const RoutedPath &path : routing.paths)
    if (path.hops() > 1)
      hops += int64_t(path.hops()) * path.share;
  if (hops == 0)
    return;
  double busy = routing.seconds * blocks.bytesOfAmount();
  double best = std::sqrt(busy * routing.depth / stepSeconds) / routing.shares;
  int64_t most = std::min<int64_t>({256, kMostPuts / hops, blocks.mostUnits() / routing.shares});
  piecesPerShare = std::clamp<int64_t>(int64_t(best), 1, std::max<int64_t>(1, most));
  if (int64_t(best) > piecesPerShare)
    parts = std::clamp<int64_t>(blocks.mostUnits() / (routing.shares * piecesPerShare), 1, kParts);
}

void Routed::sortPaths() {
  std::map<unsigned, Class> byShare;
  std::vector<int64_t> places(n, 0);
  int64_t lane = 2 * n;
  for (const RoutedPath &path : routing.paths) {
    if (path.hops() == 1) {
      straight.push_back(&path);
      continue;
    }
    Class &all = byShare[path.share];
    Stream stream{&path, int64_t(all.streams.size()), lane++, {}};
    for (unsigned member : ArrayRef(path.members).drop_front().drop_back()) {
      stream.place.push_back(places[member]);
      places[member] += kPlaces;
    }
    all.streams.push_back(std::move(stream));
  }
  for (auto &[share, all] : byShare) {
    all.whole = share * piecesPerShare - (parts > 1);
    all.steps = all.whole + (parts > 1 ? parts : 0);
    std::string name = c.name + "." + std::to_string(share);
    DimAttr dim = s.freeDim(int64_t(all.streams.size()));
    all.data = s.slots(name + ".data", dim, all.steps);
    all.credit = s.slots(name + ".credit", dim, all.steps);
    all.credit.getDefiningOp<SlotsOp>().setCredits(kPlaces);
    classes.push_back(std::move(all));
  }
  if (int64_t most = *llvm::max_element(places))
    scratch = blocks.scratch("passing", most);
}

std::vector<Routed::Passing> Routed::passings(const Class &all, unsigned m) const {
  std::vector<Passing> found;
  for (const Stream &stream : all.streams)
    for (auto [hop, member] : llvm::enumerate(stream.path->members))
      if (member == m)
        found.push_back({hop, &stream, &all});
  return found;
}

Routed::Tokens Routed::emitClass(unsigned m, const Class &all, ArrayRef<Value> granted) {
  // By hop, so that what a step waits for stands before it, whatever the order of the lanes.
  std::vector<Passing> mine = passings(all, m);
  if (mine.empty())
    return {};
  llvm::sort(mine, [](const Passing &a, const Passing &b) {
    return std::pair(a.hop, a.stream->number) < std::pair(b.hop, b.stream->number);
  });
  Tokens tokens(mine.size(), blocks.given);
  auto loop = [&](int64_t begin, int64_t end, bool byPart) {
    if (begin == end)
      return;
    auto loop = scf::ForOp::create(s.builder, s.loc, s.constant(begin), s.constant(end),
                                   s.constant(1), tokens);
    OpBuilder::InsertionGuard guard(s.builder);
    s.builder.setInsertionPointToStart(loop.getBody());
    Value step = loop.getInductionVar();
    Tokens next;
    for (const Passing &p : mine) {
      int64_t first = int64_t(p.stream->path->first) * piecesPerShare;
      next.push_back(emitStep(p, step,
                              byPart
                                  ? PairBlocks::Index{s.constant(first + begin), s.sub(step, begin)}
                                  : PairBlocks::Index{s.add(step, first)},
                              granted));
    }
    scf::YieldOp::create(s.builder, s.loc, next);
    tokens = Tokens(loop.getResults());
  };
  loop(0, all.whole, false);
  loop(all.whole, all.steps, true);
  return tokens;
}

Value Routed::emitStep(const Passing &p, Value step, PairBlocks::Index index,
                       ArrayRef<Value> granted) {
  const RoutedPath &path = *p.stream->path;
  ScheduleBuilder here = on(p.stream->lane);
  Value number = s.constant(p.stream->number), next = s.add(step, 1);
  Value have =
      p.hop == 0 ? blocks.given : here.arrive(s.slot(p.all->data, number), next, {}, "await piece");
  if (p.hop == path.hops())
    return have;
  bool last = p.hop + 1 == path.hops();
  unsigned to = path.members[p.hop + 1];
  Value free =
      last ? granted[to] : here.awaitReady(s.slot(p.all->credit, number), next, {}, "await credit");
  // Where the step stands in the scratch memory of the member that `hop` leads to.
  auto passed = [&](Value memory, size_t hop) {
    return blocks.place(memory, path.from(), path.to(),
                        s.add(s.rem(step, kPlaces), p.stream->place[hop]), index);
  };
  Value from = p.hop == 0 ? blocks.box(blocks.in, path.from(), path.to(), true, index)
                          : passed(scratch, p.hop - 1);
  Value dest = last ? blocks.box(at(blocks.out, to), path.from(), to, false, index)
                    : passed(at(scratch, to), p.hop);
  Value put = here.put(from, dest, s.slot(at(p.all->data, to), number), {have, free},
                       p.hop == 0 ? "put piece" : "pass on");
  if (p.hop == 0)
    return put;
  return s.signal(s.slot(at(p.all->credit, path.members[p.hop - 1]), number), put,
                  here.controlLane(), "credit");
}

Value Routed::emitStraight(const RoutedPath &path, Value granted) {
  ScheduleBuilder here = on(path.to());
  int64_t first = int64_t(path.first) * piecesPerShare;
  int64_t count = int64_t(path.share) * piecesPerShare;
  return here.put(
      blocks.box(blocks.in, path.from(), path.to(), true, first, count),
      blocks.box(at(blocks.out, path.to()), path.from(), path.to(), false, first, count),
      s.slot(at(arrived, path.to()), s.constant(path.from())), {blocks.given, granted},
      "put block");
}

Value Routed::emitMember(unsigned m) {
  std::set<unsigned> senders, receivers;
  for (const RoutedPath &path : routing.paths) {
    unsigned last = path.members[path.hops() - 1];
    if (path.to() == m)
      senders.insert(last);
    if (last == m)
      receivers.insert(path.to());
  }
  Tokens all{blocks.given};
  for (unsigned sender : senders)
    all.push_back(s.ready(s.slot(at(ready, sender), s.constant(m)), blocks.outFree, "ready"));
  Tokens granted(n);
  for (unsigned receiver : receivers)
    granted[receiver] =
        s.awaitReady(s.slot(ready, s.constant(receiver)), s.constant(1), {}, "await ready");
  for (const Class &one : classes)
    llvm::append_range(all, emitClass(m, one, granted));
  for (const RoutedPath *path : straight)
    if (path->from() == m)
      all.push_back(emitStraight(*path, granted[path->to()]));
  for (const RoutedPath *path : straight)
    if (path->to() == m)
      all.push_back(
          on(n + path->from())
              .arrive(s.slot(arrived, s.constant(path->from())), s.constant(1), {}, "await block"));
  all = joined({}, all);
  if (all.size() == 1)
    return all.front();
  return FlushOp::create(s.builder, s.loc, all.front().getType(), all, LaneKind::Host, Value(),
                         s.of, s.builder.getStringAttr("joined"));
}

InFlight Routed::emit() {
  chooseSteps();
  blocks.cut(routing.shares * piecesPerShare, parts);
  ready = s.slots(c.name + ".ready", s.freeDim(n), 1);
  arrived = s.slots(c.name + ".data", s.freeDim(n), 1);
  sortPaths();
  blocks.start();
  Tokens done;
  // Not on the lane whose signals peers wait for.
  ScheduleBuilder keeper = on(lanesOfOne - 1);
  if (Value kept = blocks.keepOwn(keeper))
    done.push_back(kept);
  for (unsigned m = 0; m < n; ++m)
    done.push_back(s.branch(
        s.equal(members.own(), s.constant(m)), [&] { return emitMember(m); },
        [&] { return blocks.given; }));
  InFlight flight;
  flight.inFree = done;
  llvm::append_range(done, blocks.demand(done));
  flight.finishWith(done);
  return flight;
}

InFlight ctran::emitRouted(ScheduleBuilder &s, const CollectiveSpec &c) {
  return Routed(s, c).emit();
}

//===- Algorithms.h - The built-in algorithms -----------------------------*- C++ -*-===//
//
// Each algorithm is one function that writes a collective as `ctran` ops, for any group, any size
// and either carrier. What they share is the description of the collective and of what they leave
// behind.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_CONVERSION_ALGORITHMS_H
#define NCCLX_LIB_CONVERSION_ALGORITHMS_H

#include "ncclx/Conversion/ScheduleBuilder.h"
#include "ncclx/Conversion/TreeSetting.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Topology/TreePacking.h"

#include <functional>
#include <memory>
#include <string>

namespace mlir::ctran {
namespace topology = ncclx::topology;

/// The axes of a group along one tier of the machine.
struct TierOfGroup {
  SmallVector<unsigned> axes;
  double bytesPerSecond = 1; ///< of one rank, while all send and receive
  double latency = 0;        ///< seconds
};

/// The slowest way between members.
struct LinkOfGroup {
  double bytesPerSecond = 1;     ///< of one rank, while all send and receive
  double copySecondsPerByte = 0; ///< of a copy in own memory
};

struct CollectiveSpec {
  ncclx::Dataflow flow;       ///< who sends which box to whom
  std::string name;           ///< "c0": prefix of windows, slots and of the value's name
  SmallVector<unsigned> axes; ///< the group: ranks that agree on all other axes, row-major
  SmallVector<SmallVector<int64_t>> groups; ///< or all groups, by rank, where no axes span them
  /// Of groups that are some of a collective's: its name, which is the value's, and the number of
  /// the first of them.
  std::string whole;
  int64_t firstGroup = 0;
  StringRef valueName() const { return whole.empty() ? name : whole; }
  Value in, out; ///< whole windows; the same value when in place
  Value sizes;   ///< where the flow is sized: the window of as many numbers as there are members
  MemRefType inType, outType;
  int64_t root = 0;  ///< the root's number in the group
  int64_t shift = 0; ///< permute: data moves from member x to x + shift
  /// permute: (source, target), listed or, along several axes, what a shift comes to.
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  /// Where a member may get nothing, or not all of its output: writes a kernel that fills it with
  /// zeros; gives its token. Null for a permute by a shift.
  std::function<Value(ScheduleBuilder &, ValueRange after)> zero;
  /// The whole reduction, in one step over all members' elements.
  Combination combination;
  SmallVector<Value> inReady; ///< the input holds its value after these
  SmallVector<Value> outFree; ///< the output may be overwritten after these
  /// What goes to peers goes after these: until then the links are another collective's, which is
  /// awaited earlier. Of a direct algorithm.
  SmallVector<Value> turn;

  ncclx::Pipeline pipeline;                     ///< what the op asks for
  std::optional<LinkOfGroup> link;              ///< if it is known
  const topology::TreePacking *trees = nullptr; ///< for Algorithm::Trees
  ncclx::TreeSetting treeSetting;               ///< as the op asks for it (ncclx.trees)
  /// Routed: the ways between members.
  const topology::Routing *routing = nullptr;
  /// Hierarchical: the tiers that its groups reach over, outermost first; `axes` are theirs, in
  /// this order. Switch: the one behind which each group is.
  SmallVector<TierOfGroup> tiers;
  /// Bytes of scratch memory that are left on a rank: what goes in chunks is cut to fit. -1: no
  /// limit.
  int64_t scratchLeft = -1;

  int64_t groupSize(ScheduleBuilder &s) const;
  /// Are all listed groups of one size?
  bool haveOneSize() const;
  /// The rank number of a member of a group of all ranks.
  int64_t rankOf(ScheduleBuilder &s, int64_t member) const;
  /// Of one of several steps that combine partial results: neither scales nor divides.
  Combination step() const { return {combination.kind, combination.accumulate}; }
  /// Of the last of them.
  Combination lastStep() const {
    return {combination.kind, combination.accumulate, std::nullopt, combination.divide};
  }
};

/// A collective whose ops have been written up to the point where only waiting is left.
struct InFlight {
  SmallVector<Value> inFree; ///< the input may be overwritten after these
  /// Copies to peers: the links are free after these. Empty where nobody says.
  SmallVector<Value> sent;
  /// Tokens that only the exit needs, and who overwrites the output: all that the collective has
  /// done or is still doing there, as sending on what it has received.
  SmallVector<Value> others;
  /// Writes the rest. The output holds its value, visibly, after the tokens given.
  std::function<SmallVector<Value>()> finish;
  /// There is no rest: all has been written.
  void finishWith(SmallVector<Value> ready) {
    finish = [ready = std::move(ready)]() { return ready; };
  }
  /// Writes the wait for the chunk that one member contributed, or null: then a chunk is waited for
  /// with the whole. May be called any number of times before `finish`.
  std::function<Value(ArrayRef<int64_t> member)> chunk;
};

/// Direct: every member sends to every other member in one step.
InFlight emitDirect(ScheduleBuilder &s, const CollectiveSpec &c);
/// Direct, in the blocks of one kernel (whyNotInBlocks).
InFlight emitInBlocks(ScheduleBuilder &s, const CollectiveSpec &c);
/// Eager: direct, into scratch memory that is free without asking.
InFlight emitEager(ScheduleBuilder &s, const CollectiveSpec &c);
/// Ring: steps round the group, each to a neighbour alone.
InFlight emitRing(ScheduleBuilder &s, const CollectiveSpec &c);
/// The ring of a broadcast or a reduce.
InFlight emitChain(ScheduleBuilder &s, const CollectiveSpec &c);
/// The ring of a gather or a scatter.
InFlight emitShardChain(ScheduleBuilder &s, const CollectiveSpec &c);
/// The ring of an all_to_all_v by counts.
InFlight ringCounts(ScheduleBuilder &s, const CollectiveSpec &c);
InFlight ringAllToAll(ScheduleBuilder &s, const CollectiveSpec &c);
InFlight ringPermute(ScheduleBuilder &s, const CollectiveSpec &c);
InFlight permutePairs(ScheduleBuilder &s, const CollectiveSpec &c);
/// Direct, between the root and every other member.
InFlight directRooted(ScheduleBuilder &s, const CollectiveSpec &c);
/// Direct, with as many rows from each to each as the counts say, of any groups.
InFlight directCounts(ScheduleBuilder &s, const CollectiveSpec &c);
/// Direct, of groups that no axes span.
InFlight emitListed(ScheduleBuilder &s, const CollectiveSpec &c);
/// Listed groups of several sizes: `emit` for those of each size.
InFlight emitBySize(ScheduleBuilder &s, const CollectiveSpec &c,
                    llvm::function_ref<InFlight(ScheduleBuilder &, const CollectiveSpec &)> emit);
/// How far an eager sender may run ahead: in 64 KiB, but no less than two runs and no more than 64.
int64_t eagerDepth(MemRefType type);
/// Eager, of groups of one size that no axes span.
InFlight eagerListed(ScheduleBuilder &s, const CollectiveSpec &c);
Value emitListedBarrier(ScheduleBuilder &s, StringRef name, ArrayRef<SmallVector<int64_t>> groups,
                        ValueRange before);
/// Bruck: ceil(log2 n) rounds, each over twice the distance of the one before.
InFlight emitBruck(ScheduleBuilder &s, const CollectiveSpec &c);
/// As a program does that a user wrote; `op` is where an error stands that says why it cannot.
FailureOr<InFlight> emitWritten(ScheduleBuilder &s, const CollectiveSpec &c, Operation *op,
                                ProgramOp program);
/// Does a barrier take ceil(log2) rounds along each axis, or one step?
bool barrierGoesInRounds(ScheduleBuilder &s, ArrayRef<unsigned> axes);
/// No rank gets past it before all members have done what is `before` it; gives the token.
Value emitBarrier(ScheduleBuilder &s, StringRef name, ArrayRef<unsigned> axes, ValueRange before);
/// Binomial: a tree from or to the root, ceil(log2 n) deep.
InFlight emitBinomial(ScheduleBuilder &s, const CollectiveSpec &c);

/// Along each tier of the machine in turn, in chunks that overlap.
InFlight emitHierarchical(ScheduleBuilder &s, const CollectiveSpec &c);

/// Through a switch that multicasts and reduces.
InFlight emitSwitch(ScheduleBuilder &s, const CollectiveSpec &c);

/// Trees packed into a topology.
InFlight emitTrees(ScheduleBuilder &s, const CollectiveSpec &c);
/// What each of n members sends to each, in bytes of one unit, for a routing that carries it.
std::vector<uint64_t> routedAmounts(const CollectiveSpec &c, size_t n);
/// Into how many shares its blocks can be cut.
unsigned routedShares(const CollectiveSpec &c);
/// Blocks along a routing, from hand to hand.
InFlight emitRouted(ScheduleBuilder &s, const CollectiveSpec &c);

/// Elements of a scratch slot that holds the largest piece of `type` cut along `dim` (nothing: its
/// elements in row-major order) among `members`.
int64_t pieceCapacity(MemRefType type, std::optional<int64_t> dim, int64_t members,
                      int64_t granule);
/// Granule of the cuts of a flat tensor: 16 bytes, the widest vector access.
int64_t flatGranule(MemRefType type);
/// A dimension of one for each place along each axis.
SmallVector<DimAttr> boundDims(ScheduleBuilder &s, ArrayRef<unsigned> axes);
/// The dimensions that cut `extent` among the members, row-major, as chunks of ceil(extent / n).
SmallVector<DimAttr> chunkDims(ScheduleBuilder &s, ArrayRef<unsigned> axes, int64_t extent);
SmallVector<Value> ownPoint(ScheduleBuilder &s, ArrayRef<unsigned> axes);
SmallVector<Value> pointOf(ScheduleBuilder &s, ArrayRef<unsigned> axes, const Point &point);
/// The own place in the group, as a number.
Value memberNumber(ScheduleBuilder &s, ArrayRef<unsigned> axes);
/// `a` and those of `b` that it lacks.
SmallVector<Value> joined(ValueRange a, ValueRange b);

/// Numbers that depend on the own place in the group: they make a program asymmetric.
class Members {
public:
  Members(ScheduleBuilder &s, ArrayRef<unsigned> axes);
  /// Of listed groups, too.
  Members(ScheduleBuilder &s, const CollectiveSpec &c);
  Value own() { return me; }
  int64_t size() { return n; }
  /// The second of the pair whose first is this member, or -1.
  Value partner(ArrayRef<std::pair<int64_t, int64_t>> pairs);
  /// Coordinates of a member on the group's axes, as numbers; of listed groups its number.
  SmallVector<Value> point(Value member);
  /// The rank number of a member of the own group (of listed ones, a constant), and a view of
  /// `memory` at a rank.
  /// What an op has at one peer takes one number, which shows that the peer is one.
  Value rank(Value member);
  /// The rank number of the member `by` further on, from -n to n; of listed groups a constant.
  Value ahead(Value by);
  Value atRank(Value memory, Value rank);
  Value at(Value memory, Value member) { return atRank(memory, rank(member)); }
  /// member + by and member - by, which may be negative, modulo the group's size.
  Value plus(Value member, Value by);
  Value minus(Value member, Value by);

private:
  ScheduleBuilder &s;
  SmallVector<unsigned> axes;
  ArrayRef<SmallVector<int64_t>> groups; ///< if they are listed
  int64_t n;
  Value me;
};

/// The views of input and output in which the collective's boxes have names.
struct Views {
  Value in, out;
};

/// The members one behind the other, round and round. Along one axis a member is a shifted
/// coordinate, and ranks are alike; along several, and in listed groups, it is a number.
class Cycle {
public:
  struct Member {
    SmallVector<Value> place; ///< in views that are cut among the members
    Value rank;               ///< null along one axis
  };
  Cycle(ScheduleBuilder &s, const CollectiveSpec &c);
  ~Cycle();
  int64_t size() { return n; }
  SmallVector<Value> own();
  /// The member `by` further on, which is from -n to n; in listed groups a constant.
  Member member(Value by);
  Member member(int64_t by) { return member(s.constant(by)); }
  /// Its place alone.
  SmallVector<Value> place(Value by);
  /// A view of `memory` at a member.
  Value at(Value memory, const Member &member);

  /// See makeViews; the own shard of one that is not whole, as ListedEnds has it.
  Views views();
  Value withOwnShard(Value view, llvm::function_ref<Value(Value box)> write,
                     llvm::function_ref<Value()> otherwise);
  /// Copies the own shard of the input to its place in `out`, or to another box.
  Value keepOwn(const Views &v, ValueRange after);
  Value copyOwn(const Views &v, Value to, ValueRange after);
  /// The tokens after which the output may be written; who has no full shard has filled it.
  SmallVector<Value> fillPadding(ValueRange outFree);
  /// See prescale.
  bool prescale(CollectiveSpec &c, Views &views, Value &start);

  /// Says what the input holds, and demands what the collective leaves in the output.
  Value say(Value in, ValueRange after);
  Value demand(Value out, ValueRange ready);

private:
  ScheduleBuilder &s;
  CollectiveSpec c;
  int64_t n = 1;
  std::optional<Members> numbers;
  std::unique_ptr<class ListedEnds> listed;
  bool flat = false; ///< views are cut by number
  /// Where members are numbers a value is named by numbers, the same ones on every rank.
  ArrayRef<unsigned> shared() {
    return numbers ? ArrayRef<unsigned>(c.axes) : ArrayRef<unsigned>();
  }
};

/// `byNumber`: a flat tensor is cut as the language's chunks are, by member number, and not along
/// one axis after the other.
Views makeViews(ScheduleBuilder &s, const CollectiveSpec &c, bool byNumber = false);

/// The boxes of a collective in these views: of the own input the one that `to` gets, and of a
/// member's output the one that this member fills.
/// With a size, only so many rows of them.
Value inputBox(ScheduleBuilder &s, const CollectiveSpec &c, Value view, const Point &to,
               Value size = {});
Value outputBox(ScheduleBuilder &s, const CollectiveSpec &c, Value view, const Point &at,
                Value size = {});

/// Demands what an all_gather or all_to_all leaves in the view `out`; gives the token.
Value demandExchanged(ScheduleBuilder &s, const CollectiveSpec &c, Value out, ValueRange ready);

/// Of a rooted collective: says what the members contribute, and demands what it leaves in `out`,
/// at the root alone where it alone gets something (stands then where only the root comes).
Value sourceRooted(ScheduleBuilder &s, const CollectiveSpec &c, const Views &v, Members &members);
Value demandRooted(ScheduleBuilder &s, const CollectiveSpec &c, const Views &v, Members &members,
                   ValueRange ready);

/// What `atRoot` writes at the root, and elsewhere the zeros of an output that gets nothing, after
/// the tokens given.
Value finishAtRoot(ScheduleBuilder &s, const CollectiveSpec &c, Value isRoot, ValueRange after,
                   llvm::function_ref<Value()> atRoot);

/// A broadcast's root copies what it has to its own output; gives the token, elsewhere `start`.
Value keepAtRoot(ScheduleBuilder &s, const CollectiveSpec &c, const Views &v, Value isRoot,
                 Value start);

/// Scratch of `slots` slots along one free dimension, each with room for `capacity` elements.
Value slotWindow(ScheduleBuilder &s, const CollectiveSpec &c, StringRef name, int64_t slots,
                 int64_t capacity);
/// Scratch with room for `capacity` elements from each member, in member order.
Value memberWindow(ScheduleBuilder &s, const CollectiveSpec &c, int64_t capacity,
                   int64_t generations = 1, StringRef number = "");
/// Seconds that a step takes besides moving bytes: start of a copy, signal, wait (LaneCosts::gpu).
constexpr double stepSeconds = 3e-6;
/// Elements of the largest piece that the group's cut makes of the larger of input and output.
int64_t capacityOf(ScheduleBuilder &s, const CollectiveSpec &c);

/// For algorithms that combine partial results: where operands are scaled, a scaled copy of the
/// input takes its place in `c` and `views`. `start` stands before it and is then its token; gives
/// whether there is one.
bool prescale(ScheduleBuilder &s, CollectiveSpec &c, Views &views, Value &start,
              bool byNumber = false);

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_ALGORITHMS_H

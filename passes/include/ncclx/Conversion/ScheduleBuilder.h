//===- ScheduleBuilder.h - Writing schedules in C++ ---------------------*- C++ -*-===//
//
// What the built-in algorithms are written with, and what a user's own algorithm can be written
// with: a thin layer over the `ctran` ops that keeps the grid, the carrier and the collective's
// name, so that an algorithm reads like the text it makes.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_CONVERSION_SCHEDULEBUILDER_H
#define NCCLX_CONVERSION_SCHEDULEBUILDER_H

#include "mlir/IR/Builders.h"
#include "ncclx/CTran/CTran.h"
#include "ncclx/NCCLX/Hints.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace mlir::ctran {

/// Lanes that one collective may take.
constexpr int64_t lanesOfOne = 1 << 16;

/// How bytes reach a peer, and which lanes carry the ops of one collective.
struct Carrier {
  /// Peers' memory is reached by load and store: copies run on a `ce` lane, which completes in
  /// order. Otherwise they are puts on a `nic` lane, which only issues in order (S9).
  bool loadStore = true;
  /// Index of the lanes; collectives that are in flight together take different ones.
  int64_t index = 0;
  /// All on the sm lane of one kernel; what `arrivals` tell of travels as packets.
  bool oneKernel = false;
  /// Blocks of that kernel; 0: as many as the algorithm likes.
  int64_t blocks = 0;
  /// Lanes that copies to different peers of one collective take in turn.
  int64_t lanes = 1;
  /// Seconds that a sum, while copies go on, takes for each byte that it reads or writes; 0: copies
  /// stand still meanwhile.
  double sumSecondsPerByte = 0;

  /// Index of a further lane of this collective: its own are numbered below lanesOfOne.
  int64_t lane(int64_t number) const { return (index + 1) * lanesOfOne + number; }
};

/// How a `reduce` combines its operands; `scale` and `divide` as the op has them.
struct Combination {
  ReduceKind kind = ReduceKind::Sum;
  Type accumulate;
  std::optional<double> scale = std::nullopt;
  std::optional<int64_t> divide = std::nullopt;
};

/// A coordinate for some of the grid's axes; the others are the own ones.
using Point = llvm::SmallMapVector<unsigned, Value, 4>;

class ScheduleBuilder {
public:
  ScheduleBuilder(OpBuilder &builder, Location loc, ProgramOp program, Carrier carrier = {},
                  StringRef collective = {});

  OpBuilder &builder;
  Location loc;
  ProgramOp program;
  Carrier carrier;
  StringAttr of;
  /// Of a kernel's blocks the one that does what is written now; null: all together.
  Value block;
  /// What a sink along summed axes demands, or nothing: any one way of combining.
  std::optional<Combination> demanded;
  /// In how many chunks what has been written goes, where it can be asked for: at most as many as
  /// were. `depth` where it has one.
  std::optional<ncclx::Pipeline> pipelined;
  /// Why it goes whole where others of its algorithm go in chunks; empty: it does not.
  StringRef whole;
  /// Rounds are written one by one, and not as a loop: their distances are then constants.
  bool unrolled = false;

  // Numbers (index values; constants fold here so that the text stays short).
  Value constant(int64_t value);
  Value add(Value a, Value b);
  Value add(Value a, int64_t b) { return add(a, constant(b)); }
  Value sub(Value a, Value b);
  Value sub(Value a, int64_t b) { return sub(a, constant(b)); }
  Value rem(Value a, int64_t b);
  Value mul(Value a, int64_t b);
  Value div(Value a, int64_t b);
  Value min(Value a, Value b);
  // Conditions.
  Value equal(Value a, Value b);
  Value less(Value a, Value b);
  Value both(Value a, Value b);

  // Ranks.
  Value own(unsigned axis);
  Value shift(Value coord, Value by);
  Value shift(Value coord, int64_t by) { return by == 0 ? coord : shift(coord, constant(by)); }
  int64_t size(unsigned axis) { return program.getAxisSize(axis); }
  StringRef axisName(unsigned axis);
  /// The point `shift`ed along `axis` from the own one.
  Point neighbour(unsigned axis, int64_t by);
  /// The member of the group along `axes` that is `distance` behind the own one, row-major.
  Point memberBy(ArrayRef<unsigned> axes, Value distance);
  Value at(Value memory, const Point &peer);
  /// The window in the memory of all members of the group along `axes` at once, through a switch.
  Value members(Value window, ArrayRef<unsigned> axes);

  // Memory.
  DimAttr boundDim(unsigned axis, Cut cut = Cut::Balanced, int64_t granule = 1);
  DimAttr freeDim(int64_t size, int64_t granule = 1);
  Value scratch(StringRef name, MemRefType type, int64_t generations = 1);
  Value slots(StringRef name, ArrayRef<DimAttr> dims, int64_t perRun, int64_t generations = 1);
  /// Slots of one put each into a window of two generations, which has no other writers.
  Value arrivals(StringRef name, ArrayRef<DimAttr> dims);
  Value reindex(Value window, std::optional<int64_t> along, ArrayRef<DimAttr> dims,
                bool resident = false, std::optional<int64_t> extent = std::nullopt);
  /// `size`, of `count`: only so much of the start of the box.
  Value range(Value window, ValueRange indices = {}, Value size = {});
  /// The boxes [first, first + count) of the first dimension; in a reduce, all the boxes below them
  /// in order.
  Value interval(Value window, Value first, Value count);
  Value interval(Value window, int64_t count) {
    return interval(window, constant(0), constant(count));
  }
  /// The same of the dimension below `indices`.
  Value interval(Value window, ValueRange indices, Value first, Value count);
  Value slot(Value slots, ValueRange indices = {});
  /// The slots [first, first + count) of the first dimension and all below them.
  Value slotInterval(Value slots, Value first, Value count);
  Value slotInterval(Value slots, int64_t count) {
    return slotInterval(slots, constant(0), constant(count));
  }

  // Ops on lanes. Each gives its token.
  struct LaneRef {
    LaneKind kind;
    int64_t index;
  };
  LaneRef copyLane() {
    return carrier.oneKernel
               ? reduceLane()
               : LaneRef{carrier.loadStore ? LaneKind::CE : LaneKind::NIC, carrier.index};
  }
  LaneRef controlLane() {
    return carrier.oneKernel
               ? reduceLane()
               : LaneRef{carrier.loadStore ? LaneKind::CE : LaneKind::Host, carrier.index};
  }
  LaneRef reduceLane() { return {LaneKind::SM, carrier.oneKernel ? 0 : carrier.index}; }
  Value copy(Value source, ValueRange dests, Value notify, ValueRange after, LaneRef lane,
             StringRef note);
  Value reduce(const Combination &how, ValueRange sources, ValueRange dests, ValueRange after,
               StringRef note);
  /// Reads a size of at most `max`; gives it and the token.
  std::pair<Value, Value> count(Value range, int64_t max, ValueRange after, StringRef note);
  Value signal(Value slot, ValueRange after, LaneRef lane, StringRef note);
  Value wait(Value slot, Value value, ValueRange after, LaneRef lane, StringRef note);
  Value source(Value range, StringRef value, ValueRange indices, ArrayRef<unsigned> summed,
               ValueRange after, ArrayRef<unsigned> shared = {});
  Value sink(Value range, StringRef value, ValueRange indices, ArrayRef<unsigned> summed,
             ValueRange after, ArrayRef<unsigned> shared = {}, ArrayRef<int64_t> among = {});

  // The words that hide the carrier.
  /// Copies to a peer and raises `arrived` there when the bytes have landed. Token: local
  /// completion.
  Value put(Value source, Value dest, Value arrived, ValueRange after, StringRef note);
  /// Waits until `slot` says that `value` puts have landed here and are visible.
  Value arrive(Value slot, Value value, ValueRange after, StringRef note);
  /// Tells a peer that it may write here.
  Value ready(Value slot, ValueRange after, StringRef note);
  /// Waits, on the lane that copies, for a peer's `ready`.
  Value awaitReady(Value slot, Value value, ValueRange after, StringRef note);

  // Loops.
  /// for i in [lower, upper): token = body(i, token). Nothing is emitted for an empty range.
  Value loop(int64_t lower, int64_t upper, Value token,
             llvm::function_ref<Value(Value iv, Value token)> body);
  Value loop(Value lower, Value upper, Value token,
             llvm::function_ref<Value(Value iv, Value token)> body);
  /// for d = 1, 2, 4, ... below n, or the other way round: token = body(d, number of the round,
  /// token).
  Value doubling(int64_t n, Value token,
                 llvm::function_ref<Value(Value d, Value round, Value token)> body);
  Value halving(int64_t n, Value token,
                llvm::function_ref<Value(Value d, Value round, Value token)> body);
  /// A token made by `then` where the condition holds, else by `otherwise`.
  Value branch(Value condition, llvm::function_ref<Value()> then,
               llvm::function_ref<Value()> otherwise);
  /// The same for every other member of the group along `axes`: body(its coordinates, token).
  Value forEachPeer(ArrayRef<unsigned> axes, Value token,
                    llvm::function_ref<Value(const Point &peer, Value token)> body);
  /// The same, the peers in turn on each of `carrier.lanes` lanes from `first` on; one token for
  /// each lane.
  SmallVector<Value>
  forEachPeerInTurn(ArrayRef<unsigned> axes, Value token,
                    llvm::function_ref<Value(const Point &peer, Value token)> body,
                    int64_t first = 0);
  /// What `body` writes stands on the lanes of that number.
  Value onLane(int64_t number, llvm::function_ref<Value()> body);

private:
  Value laneIndex(LaneRef lane);
  Value rounds(int64_t first, int64_t count, Value token, llvm::function_ref<Value(Value d)> next,
               llvm::function_ref<Value(Value d, Value round, Value token)> body);
  StringAttr str(StringRef text) {
    return text.empty() ? StringAttr() : builder.getStringAttr(text);
  }
  LaneRef proofLane();
  FloatAttr scaleAttr(const Combination &how);
  IntegerAttr divideAttr(const Combination &how);
};

} // namespace mlir::ctran
#endif // NCCLX_CONVERSION_SCHEDULEBUILDER_H

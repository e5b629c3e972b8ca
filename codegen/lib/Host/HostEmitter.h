//===- HostEmitter.h - Integers for coordinates, boxes and counters -------*- C++ -*-===//
//
// After this level only i64 numbers are left: a box is (window, peer, byte offset, rows, stride,
// bytes of a row), a counter is (slots, peer, index).
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_HOST_HOSTEMITTER_H
#define NCCLX_LIB_HOST_HOSTEMITTER_H

#include "ncclx/CTran/Access.h"
#include "ncclx/Host/HostPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::ncclx {

/// A range of ncclxrt/abi.h. With `count`, so many of them, `step` bytes apart.
struct Box {
  Value window, peer, offset, rows, stride, rowBytes;
  Value count, step;
  Type elementType;
  bool scratch = false; ///< in scratch memory, so perhaps a slot of which a part is used
  /// Of a size known at run time: the size, and bytes of one of what it counts in a row. On
  /// streams, where the size is a device's, a row is that of the whole box.
  Value size, unit;

  void append(SmallVectorImpl<Value> &arguments) const {
    arguments.append({window, peer, offset, rows, stride, rowBytes});
  }
};

struct Counter {
  Value slots, peer, index;
  Value count; ///< null: one slot
  int64_t perRun = 0, generations = 1, credits = 0;
};

class HostEmitter {
public:
  /// `prefix` stands before the names of ops and collectives.
  HostEmitter(OpBuilder &builder, ctran::ProgramOp program, HostPlan &plan, HostTarget target,
              StringRef prefix = "")
      : target(target), b(builder), program(program), plan(plan), loc(program.getLoc()),
        prefix(prefix) {}

  /// Starts the body of `function`: own rank, own coordinates, run number.
  void begin(func::FuncOp function);
  void setLocation(Location location) { loc = location; }

  const HostTarget target;
  Value exec; ///< the handle every call takes
  Value run() { return runNumber; }

  // i64 arithmetic, folded where it can be.
  Value constant(int64_t value);
  Value add(Value x, Value y) { return fold<arith::AddIOp>(x, y); }
  Value sub(Value x, Value y) { return fold<arith::SubIOp>(x, y); }
  Value mul(Value x, Value y) { return fold<arith::MulIOp>(x, y); }
  Value div(Value x, Value y) { return fold<arith::DivSIOp>(x, y); } ///< of numbers >= 0
  Value rem(Value x, Value y) { return fold<arith::RemSIOp>(x, y); }
  Value min(Value x, Value y) { return fold<arith::MinSIOp>(x, y); }
  Value max(Value x, Value y) { return fold<arith::MaxSIOp>(x, y); }

  /// The lowered form of an index or i1 value.
  Value number(Value original) { return values.lookup(original); }
  void map(Value original, Value lowered) { values.map(original, lowered); }
  /// Lowers an op that makes numbers, or that other ops look through.
  LogicalResult lowerScalar(Operation *op);

  Value coord(Value original); ///< in [0, size of its axis)
  /// An interval is one box, or, with `each`, the first of its boxes with the step to the next.
  FailureOr<Box> box(Value range, bool each = false);
  /// The same of several; of all members, one in the memory of each, the own rank's first.
  FailureOr<SmallVector<Box>> boxes(ValueRange ranges, bool each = false);
  FailureOr<Counter> counter(Value slot);
  /// Shrinks scratch slots among the boxes of one op to the smallest of them: a slot may be larger
  /// than what is put into it.
  void fitScratch(ArrayRef<Box *> boxes);

  FailureOr<int64_t> lane(ctran::ScheduleOpInterface op);
  int64_t opIndex(ctran::ScheduleOpInterface op);
  int64_t exitIndex();
  int64_t windowIndex(ctran::WindowOp window);
  /// Has a window of the program be the plan's of this number.
  void bind(ctran::WindowOp window, int64_t number) { windowIds[window] = number; }
  int64_t slotsIndex(ctran::SlotsOp slots);
  FailureOr<int64_t> dtype(Operation *op, Type type);

  /// A call of a runtime function or kernel, declared where it is first met.
  Value call(StringRef name, ArrayRef<Value> arguments, Type result);
  /// A kernel of the host, as op `id` on a lane, behind `status`; gives the status behind it.
  Value callKernel(Value status, StringRef callee, ArrayRef<Value> addresses, int64_t id,
                   int64_t lane);

private:
  OpBuilder &b;
  ctran::ProgramOp program;
  HostPlan &plan;
  Location loc;
  std::string prefix;
  func::FuncOp function;
  Value runNumber;
  SmallVector<Value> own; ///< own coordinate on each axis
  IRMapping values;
  DenseMap<Operation *, int64_t> windowIds, slotsIds, opIds;

  template <typename Op> Value fold(Value x, Value y) { return b.createOrFold<Op>(loc, x, y); }
  Value ceilDiv(Value x, int64_t y) {
    return y == 1 ? x : div(add(x, constant(y - 1)), constant(y));
  }
  Value indexNumber(Value index);
  /// Piece `index` of a cut of [begin, end).
  void cut(const ctran::machine::Dim &dim, Value index, Value &begin, Value &end);
  Value peer(ctran::PeerViewOp view);
  Value total(const Box &box) { return mul(box.rows, box.rowBytes); }
};

} // namespace mlir::ncclx
#endif // NCCLX_LIB_HOST_HOSTEMITTER_H

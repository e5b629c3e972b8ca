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

#include <functional>
#include <string>

namespace mlir::ctran {

struct CollectiveSpec {
  enum class Kind { AllGather, ReduceScatter, AllReduce, AllToAll, Permute };
  Kind kind;
  std::string name;           ///< "c0": prefix of windows, slots and of the value's name
  SmallVector<unsigned> axes; ///< the group: ranks that agree on all other axes, row-major
  Value in, out;              ///< whole windows; the same value when in place
  MemRefType inType, outType;
  int64_t dim = 0;       ///< gathered, scattered or split dimension
  int64_t concatDim = 0; ///< all_to_all
  int64_t shift = 0;     ///< permute: data moves from x to x + shift along axes[0]
  SmallVector<std::pair<int64_t, int64_t>> pairs; ///< permute: (source, target) instead of a shift
  /// permute by pairs: writes a kernel that fills the output with zeros; gives its token.
  std::function<Value(ScheduleBuilder &, ValueRange after)> zero;
  ReduceKind reduce = ReduceKind::Sum;
  Type accumulate;
  SmallVector<Value> inReady; ///< the input holds its value after these
  SmallVector<Value> outFree; ///< the output may be overwritten after these

  int64_t groupSize(ScheduleBuilder &s) const;
};

/// A collective whose ops have been written up to the point where only waiting is left.
struct InFlight {
  SmallVector<Value> inFree; ///< the input may be overwritten after these
  /// Tokens that only the exit needs, and who overwrites the output: all that the collective has
  /// done or is still doing there, as sending on what it has received.
  SmallVector<Value> others;
  /// Writes the rest. The output holds its value, visibly, after the tokens given.
  std::function<SmallVector<Value>()> finish;
  /// Writes the wait for the chunk that one member contributed, or null: then a chunk is waited for
  /// with the whole. May be called any number of times before `finish`.
  std::function<Value(ArrayRef<int64_t> member)> chunk;
};

/// Direct: every member sends to every other member in one step.
InFlight emitDirect(ScheduleBuilder &s, const CollectiveSpec &c);
/// Ring: steps along one axis, each to a neighbour alone.
InFlight emitRing(ScheduleBuilder &s, const CollectiveSpec &c);
InFlight ringAllToAll(ScheduleBuilder &s, const CollectiveSpec &c);
InFlight ringPermute(ScheduleBuilder &s, const CollectiveSpec &c);
InFlight permutePairs(ScheduleBuilder &s, const CollectiveSpec &c);

/// Elements of a scratch slot that holds the largest piece of `type` cut along `dim` (nothing: its
/// elements in row-major order) among `members`.
int64_t pieceCapacity(MemRefType type, std::optional<int64_t> dim, int64_t members,
                      int64_t granule);
/// Granule of the cuts of a flat tensor: 16 bytes, the widest vector access.
int64_t flatGranule(MemRefType type);
/// The dimensions that cut `extent` among the members, row-major, as chunks of ceil(extent / n).
SmallVector<DimAttr> chunkDims(ScheduleBuilder &s, ArrayRef<unsigned> axes, int64_t extent);
SmallVector<Value> ownPoint(ScheduleBuilder &s, ArrayRef<unsigned> axes);
SmallVector<Value> pointOf(ScheduleBuilder &s, ArrayRef<unsigned> axes, const Point &point);
/// The own place in the group, as a number.
Value memberNumber(ScheduleBuilder &s, ArrayRef<unsigned> axes);
/// `a` and those of `b` that it lacks.
SmallVector<Value> joined(ValueRange a, ValueRange b);

/// The views of input and output in which the collective's boxes have names.
struct Views {
  Value in, out;
};
Views makeViews(ScheduleBuilder &s, const CollectiveSpec &c);

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_ALGORITHMS_H

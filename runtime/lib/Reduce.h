//===- Reduce.h - Reductions in a fixed order -------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_REDUCE_H
#define NCCLXRT_LIB_REDUCE_H

#include "Range.h"
#include "ncclxrt/abi.h"

#include <span>

namespace ncclxrt {

/// A range in some rank's memory.
struct Placed {
  std::byte *base = nullptr;
  Range range;
};

/// Bytes of an element; 0 for no dtype.
int64_t sizeOf(int64_t dtype);

/// Whether this is a dtype, and one of floats.
bool isFloat(int64_t dtype);

/// Whether values of `dtype` may be accumulated in `acc`: itself or a wider one of its kind.
bool accumulates(int64_t dtype, int64_t acc);

/// How elements are combined; abi.h says what each part means.
struct Reduction {
  ncclxrtReduceKind_t kind = ncclxrtReduceSum;
  ncclxrtDtype_t dtype = ncclxrtF32, acc = ncclxrtF32;
  double scale = 1;
  int64_t divisor = 1;
};

/// Sources behind those that are a step apart: b, and what ncclxrt_operand has named.
using Further = std::span<const Placed>;

/// dst = a[0] op ... op a[count - 1] op more[0] op ..., as abi.h says. Everything has been checked.
void reduceRanges(const Reduction &reduction, const Placed &dst, const Placed &a, int64_t count,
                  int64_t step, Further more);

} // namespace ncclxrt

#endif // NCCLXRT_LIB_REDUCE_H

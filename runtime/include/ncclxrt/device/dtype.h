//===- dtype.h - Elements and reductions, by number -------------*- C++ -*-===//
#ifndef NCCLXRT_DEVICE_DTYPE_H
#define NCCLXRT_DEVICE_DTYPE_H

#include <cstdint>

namespace ncclxrt::device {

enum class Dtype : int32_t {
  F32,
  F64,
  F16,
  BF16,
  F8E4M3,
  F8E5M2,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64
};

/// Avg divides the sum by the number of ranks, integers towards zero. ScaledSum multiplies every
/// contribution by a number first.
enum class ReduceOp : int32_t { Sum, Prod, Min, Max, Avg, ScaledSum };

inline constexpr int64_t sizeOf(Dtype dtype) {
  switch (dtype) {
  case Dtype::F64:
  case Dtype::I64:
  case Dtype::U64:
    return 8;
  case Dtype::F32:
  case Dtype::I32:
  case Dtype::U32:
    return 4;
  case Dtype::F16:
  case Dtype::BF16:
  case Dtype::I16:
  case Dtype::U16:
    return 2;
  default:
    return 1;
  }
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_DTYPE_H

//===- dtype.cuh - Of a kernel that reduces nothing ----------------*- C++ -*-===//
#ifndef NCCLXRT_DEVICE_DTYPE_CUH
#define NCCLXRT_DEVICE_DTYPE_CUH

#include "ncclxrt/device/dtype.h"
#include "ncclxrt/device/memory.cuh"

namespace ncclxrt::device {
struct ReduceArgs {};
template <class T, ReduceOp Op> class Accumulator;
} // namespace ncclxrt::device
#endif // NCCLXRT_DEVICE_DTYPE_CUH

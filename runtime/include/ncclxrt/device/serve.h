//===- serve.h - What the runtime's own kernels are given ---------*- C++ -*-===//
#ifndef NCCLXRT_DEVICE_SERVE_H
#define NCCLXRT_DEVICE_SERVE_H

#include <cstdint>

namespace ncclxrt::device {

/// `rows` pieces of `rowBytes`, `stride` apart: a range of ncclxrt/abi.h in this GPU's addresses.
struct Pieces {
  char *at;
  int64_t rows, stride, rowBytes;
};

/// One reduction of ncclxrt/abi.h: to = a[0] op ... op a[count - 1] op b, a[i] lying i * step
/// behind a; b.at null: none. All three have `bytes`.
struct ReduceJob {
  Pieces to, a, b;
  int64_t count, step, bytes;
  double scale;
  int64_t divisor;
};

constexpr int reduceThreads = 256;

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_SERVE_H

//===- serve.h - What the runtime's own kernels are given ---------*- C++ -*-===//
#ifndef NCCLXRT_DEVICE_SERVE_H
#define NCCLXRT_DEVICE_SERVE_H

#include "ncclxrt/device/control.h"

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

/// A size known at run time (dialect/SPEC.md, S25), read where it lies for what comes after.
struct SizeJob {
  const char *at; ///< at any byte
  int64_t bytes;  ///< 4 or 8
  int64_t most;
  int64_t *to; ///< 0 for one that is none
  Control *control;
  uint64_t place; ///< the communicator's number of it, for the error
};

/// A copy of the first `size` units of each row; with `clears` the rest of the rows of `to` becomes
/// zeros.
struct SizedCopy {
  Pieces to, from; ///< of the whole box
  int64_t toUnit, fromUnit;
  const int64_t *size;
  int64_t clears;
};

constexpr int sizedThreads = 512;

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_SERVE_H

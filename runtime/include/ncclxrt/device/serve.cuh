//===- serve.cuh - Reductions of schedules that streams run -------*- C++ -*-===//
//
// A schedule whose transfers are copies of streams adds with these: a kernel for each type and
// operation, any number of contributions, pieces of any shape. It waits for nothing.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_DEVICE_SERVE_CUH
#define NCCLXRT_DEVICE_SERVE_CUH

#include "ncclxrt/device/serve.h"
#include "ncclxrt/device/transfer.cuh"

namespace ncclxrt::device {

namespace detail {
__device__ __forceinline__ char *byteOf(const Pieces &pieces, int64_t byte) {
  return pieces.rows == 1
             ? pieces.at + byte
             : pieces.at + byte / pieces.rowBytes * pieces.stride + byte % pieces.rowBytes;
}
} // namespace detail

template <class T, ReduceOp Op> __device__ __forceinline__ void serveReduce(const ReduceJob &job) {
  ReduceArgs args{job.scale, job.divisor};
  auto sources = job.count + (job.b.at ? 1 : 0);
  auto to = [&](int) { return job.to.at; };
  auto from = [&](int s) { return s < job.count ? job.a.at + s * job.step : job.b.at; };
  if (job.to.rows == 1 && (job.count == 0 || job.a.rows == 1) && (!job.b.at || job.b.rows == 1)) {
    switch (sources) {
    case 2:
      return reduceBytes<T, Op, 2>(gridWorkers(), 1, to, from, job.bytes, args);
    case 4:
      return reduceBytes<T, Op, 4>(gridWorkers(), 1, to, from, job.bytes, args);
    case 8:
      return reduceBytes<T, Op, 8>(gridWorkers(), 1, to, from, job.bytes, args);
    default:
      break;
    }
  }
  Workers w = gridWorkers();
  for (int64_t i = w.index; i < job.bytes / int64_t(sizeof(T)); i += w.count) {
    int64_t byte = i * int64_t(sizeof(T));
    Accumulator<T, Op> sum; // of which one element is used
    union Word {
      uint64_t word;
      T element;
      __device__ Word() : word(0) {}
    };
    for (int64_t s = 0; s < sources; ++s) {
      Word v;
      v.element = *reinterpret_cast<const T *>(
          s < job.count ? detail::byteOf(job.a, byte) + s * job.step : detail::byteOf(job.b, byte));
      s == 0 ? sum.begin(v.word, args) : sum.add(v.word, args);
    }
    Word r;
    r.word = sum.end(args);
    *reinterpret_cast<T *>(detail::byteOf(job.to, byte)) = r.element;
  }
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_SERVE_CUH

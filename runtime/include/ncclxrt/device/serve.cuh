//===- serve.cuh - Kernels of schedules that streams run ----------*- C++ -*-===//
//
// A schedule whose transfers are copies of streams adds with these: a kernel for each type and
// operation, any number of contributions, pieces of any shape. And it copies with these where only
// the device knows how much. They wait for nothing.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_DEVICE_SERVE_CUH
#define NCCLXRT_DEVICE_SERVE_CUH

#include "ncclxrt/device/serve.h"
#include "ncclxrt/device/sized.cuh"

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

//===--- sizes known at run time ------------------------------------------------------------===//

__device__ __forceinline__ void serveSize(const SizeJob &job) {
  *job.to = readSize(job.at, job.bytes, job.most, job.control, job.place);
}

namespace detail {
/// Whether pieces can be moved in units of so many bytes.
__device__ __forceinline__ bool inUnits(const Pieces &pieces, int64_t unit) {
  uint64_t bits = reinterpret_cast<uint64_t>(pieces.at) | uint64_t(pieces.rowBytes) |
                  (pieces.rows == 1 ? 0 : uint64_t(pieces.stride));
  return (bits & uint64_t(unit - 1)) == 0;
}

template <class Word>
__device__ __forceinline__ void moveRows(Workers w, const Pieces &to, const Pieces &from) {
  constexpr int64_t size = sizeof(Word);
  for (int64_t i = w.index; i < to.rows * to.rowBytes / size; i += w.count)
    *reinterpret_cast<Word *>(byteOf(to, i * size)) =
        *reinterpret_cast<const Word *>(byteOf(from, i * size));
}
template <class Word> __device__ __forceinline__ void clearRows(Workers w, const Pieces &to) {
  constexpr int64_t size = sizeof(Word);
  for (int64_t i = w.index; i < to.rows * to.rowBytes / size; i += w.count)
    *reinterpret_cast<Word *>(byteOf(to, i * size)) = Word{};
}

__device__ __forceinline__ void clearPieces(Workers w, const Pieces &to) {
  if (to.rows == 1) {
    clearBytes(w, to.at, to.rowBytes);
  } else if (inUnits(to, 16)) {
    clearRows<uint4>(w, to);
  } else {
    clearRows<uint8_t>(w, to);
  }
}
} // namespace detail

__device__ __forceinline__ void serveSizedCopy(const SizedCopy &job) {
  int64_t size = *job.size;
  Pieces to = job.to, from = job.from, rest = job.to;
  to.rowBytes = size * job.toUnit;
  from.rowBytes = size * job.fromUnit;
  rest.at += to.rowBytes;
  rest.rowBytes -= to.rowBytes;
  int64_t clearing = job.clears ? clearingBlocks(gridDim.x) : 0;
  int64_t copying = gridDim.x - clearing;
  if (blockIdx.x < copying) {
    Workers w = workersOfGrid(blockIdx.x, copying, threadIdx.x, blockDim.x);
    if (to.rows == 1 && from.rows == 1)
      copyBytes(w, 1, [&](int) { return to.at; }, from.at, to.rowBytes);
    else if (detail::inUnits(to, 16) && detail::inUnits(from, 16))
      detail::moveRows<uint4>(w, to, from);
    else if (detail::inUnits(to, 4) && detail::inUnits(from, 4))
      detail::moveRows<uint32_t>(w, to, from);
    else
      detail::moveRows<uint8_t>(w, to, from);
  }
  if (job.clears && blockIdx.x >= (clearing ? copying : 0))
    detail::clearPieces(clearing
                            ? workersOfGrid(blockIdx.x - copying, clearing, threadIdx.x, blockDim.x)
                            : gridWorkers(),
                        rest);
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_SERVE_CUH

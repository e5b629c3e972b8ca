//===- transfer.cuh - Workers copy and combine memory -----------*- C++ -*-===//
//
// Zero-copy: sources and destinations may be own or peer memory. Wide accesses in the middle,
// single units at both ends; pointers of different alignment share the widest unit that suits them
// all. Offsets have 64 bits.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_DEVICE_TRANSFER_CUH
#define NCCLXRT_DEVICE_TRANSFER_CUH

#include "ncclxrt/device/dtype.cuh"
#include "ncclxrt/device/memory.cuh"

namespace ncclxrt::device {

/// All threads of the kernel.
__device__ __forceinline__ Workers gridWorkers() {
  return workersOfGrid(blockIdx.x, gridDim.x, threadIdx.x, blockDim.x);
}
/// The threads of this block.
__device__ __forceinline__ Workers blockWorkers() { return {threadIdx.x, blockDim.x}; }

namespace detail {
template <class Wide, int unroll, class ToOf>
__device__ __forceinline__ void copyWide(Workers w, int count, ToOf to, const char *from,
                                         int64_t n) {
  int64_t i = w.index, step = w.count;
  auto *source = reinterpret_cast<const Wide *>(from);
  for (; i + (unroll - 1) * step < n; i += unroll * step) {
    Wide v[unroll];
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      v[k] = source[i + k * step];
    for (int d = 0; d < count; ++d)
      if (char *at = to(d))
#pragma unroll
        for (int k = 0; k < unroll; ++k)
          reinterpret_cast<Wide *>(at)[i + k * step] = v[k];
  }
  // What is left is less than that a thread: under way at once, too.
  if (unroll == 1 || i >= n)
    return;
  Wide v[unroll];
#pragma unroll
  for (int k = 0; k < unroll; ++k)
    if (i + k * step < n)
      v[k] = source[i + k * step];
  for (int d = 0; d < count; ++d)
    if (char *at = to(d))
#pragma unroll
      for (int k = 0; k < unroll; ++k)
        if (i + k * step < n)
          reinterpret_cast<Wide *>(at)[i + k * step] = v[k];
}

template <class Wide, class ToOf>
__device__ __forceinline__ void copyAs(Workers w, int count, ToOf to, const char *from,
                                       int64_t bytes) {
  Split split = splitAt(reinterpret_cast<uint64_t>(from), bytes, sizeof(Wide));
  auto after = [&](int64_t offset) {
    return [&, offset](int d) -> char * {
      char *at = to(d);
      return at ? at + offset : nullptr;
    };
  };
  if (int64_t done = split.head + split.body; done - split.body || bytes - done) {
    copyWide<uint8_t, 1>(w, count, to, from, split.head);
    copyWide<uint8_t, 1>(w, count, after(done), from + done, bytes - done);
  }
  copyWide<Wide, sizeof(Wide) == 16 ? 4 : 2>(w, count, after(split.head), from + split.head,
                                             split.body / int64_t(sizeof(Wide)));
}
} // namespace detail

/// Copies `bytes` at `from` to each of the `count` places to(i) that is not null.
template <class ToOf>
__device__ __forceinline__ void copyBytes(Workers w, int count, ToOf to, const void *from,
                                          int64_t bytes) {
  int64_t align = 16;
  auto at = static_cast<const char *>(from);
  auto place = [&](int d) -> char * { return static_cast<char *>(to(d)); };
  for (int d = 0; d < count; ++d)
    if (char *p = place(d)) {
      int64_t common =
          commonAlignment(reinterpret_cast<uint64_t>(p), reinterpret_cast<uint64_t>(at));
      align = common < align ? common : align;
    }
  if (align == 16)
    detail::copyAs<uint4>(w, count, place, at, bytes);
  else if (align >= 4)
    detail::copyAs<uint32_t>(w, count, place, at, bytes);
  else
    detail::copyAs<uint8_t>(w, count, place, at, bytes);
}

/// Copies the bytes(i) at from(i) to to(i), for each of `count` pieces that do not touch each
/// other, by turns: the ways to all of them are in use at once.
template <int count, class ToOf, class FromOf, class BytesOf>
__device__ __forceinline__ void copyPieces(Workers w, ToOf to, FromOf from, BytesOf bytes) {
  uint64_t bits = 0;
  int64_t least = bytes(0);
  for (int p = 0; p < count; ++p) {
    bits |= reinterpret_cast<uint64_t>(to(p)) | reinterpret_cast<uint64_t>(from(p));
    least = bytes(p) < least ? bytes(p) : least;
  }
  int64_t n = bits & 15 ? 0 : least / 16, step = w.count;
  constexpr int unroll = count < 4 ? 4 / count : 1;
  for (int64_t i = w.index; i < n; i += unroll * step) {
    uint4 v[unroll][count];
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (i + k * step < n)
#pragma unroll
        for (int p = 0; p < count; ++p)
          v[k][p] = reinterpret_cast<const uint4 *>(from(p))[i + k * step];
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (i + k * step < n)
#pragma unroll
        for (int p = 0; p < count; ++p)
          reinterpret_cast<uint4 *>(to(p))[i + k * step] = v[k][p];
  }
#pragma unroll 1
  for (int p = 0; p < count; ++p)
    if (bytes(p) > n * 16)
      copyBytes(w, 1, [&](int) { return to(p) + n * 16; }, from(p) + n * 16, bytes(p) - n * 16);
}

namespace detail {
template <class T, ReduceOp Op, int sources, int unroll, class ToOf, class FromOf>
__device__ __forceinline__ void reduceWide(Workers w, int count, ToOf to, FromOf from,
                                           int64_t offset, int64_t n, const ReduceArgs &args) {
  int64_t step = w.count;
  for (int64_t i = w.index; i < n; i += unroll * step) {
    Unit v[unroll][sources];
    // All loads first: most of the time is the way to the peer and back.
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (i + k * step < n)
#pragma unroll
        for (int s = 0; s < sources; ++s)
          v[k][s] = *reinterpret_cast<const Unit *>(from(s) + offset + (i + k * step) * 16);
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (i + k * step < n) {
        Accumulator<T, Op> low, high;
        low.begin(v[k][0].low, args);
        high.begin(v[k][0].high, args);
#pragma unroll
        for (int s = 1; s < sources; ++s) {
          low.add(v[k][s].low, args);
          high.add(v[k][s].high, args);
        }
        Unit sum{low.end(args), high.end(args)};
        for (int d = 0; d < count; ++d)
          if (char *at = to(d))
            *reinterpret_cast<Unit *>(at + offset + (i + k * step) * 16) = sum;
      }
  }
}

template <class T, ReduceOp Op, int sources, class ToOf, class FromOf>
__device__ __forceinline__ void reduceSingle(Workers w, int count, ToOf to, FromOf from,
                                             int64_t offset, int64_t n, const ReduceArgs &args) {
#pragma unroll 1
  for (int64_t i = w.index; i < n; i += w.count) {
    Accumulator<T, Op> sum; // of which one element is used
    union Word {
      uint64_t word;
      T element;
      __device__ Word() : word(0) {}
    };
    for (int s = 0; s < sources; ++s) {
      Word v;
      v.element = *reinterpret_cast<const T *>(from(s) + offset + i * int64_t(sizeof(T)));
      s == 0 ? sum.begin(v.word, args) : sum.add(v.word, args);
    }
    Word r;
    r.word = sum.end(args);
    for (int d = 0; d < count; ++d)
      if (char *at = to(d))
        *reinterpret_cast<T *>(at + offset + i * int64_t(sizeof(T))) = r.element;
  }
}
} // namespace detail

/// Combines the `sources` contributions from(0), from(1), ... of `bytes`, in this order, into each
/// of the `count` places to(i) that is not null. A place may be a source. Pointers are aligned to
/// the element.
template <class T, ReduceOp Op, int sources, class ToOf, class FromOf>
__device__ __forceinline__ void reduceBytes(Workers w, int count, ToOf to, FromOf from,
                                            int64_t bytes, const ReduceArgs &args) {
  auto source = [&](int s) { return static_cast<const char *>(from(s)); };
  auto place = [&](int d) -> char * { return static_cast<char *>(to(d)); };
  uint64_t first = reinterpret_cast<uint64_t>(source(0));
  uint64_t differ = 0;
  for (int s = 1; s < sources; ++s)
    differ |= first ^ reinterpret_cast<uint64_t>(source(s));
  for (int d = 0; d < count; ++d)
    if (char *p = place(d))
      differ |= first ^ reinterpret_cast<uint64_t>(p);
  Split split = differ & 15 ? Split{bytes, 0} : splitAt(first, bytes, 16);
  constexpr int64_t size = sizeof(T);
  constexpr int unroll = sources <= 2 ? 4 : 2;
  int64_t done = split.head + split.body;
  detail::reduceWide<T, Op, sources, unroll>(w, count, place, source, split.head, split.body / 16,
                                             args);
  if (split.head)
    detail::reduceSingle<T, Op, sources>(w, count, place, source, 0, split.head / size, args);
  if (done < bytes)
    detail::reduceSingle<T, Op, sources>(w, count, place, source, done, (bytes - done) / size,
                                         args);
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_TRANSFER_CUH

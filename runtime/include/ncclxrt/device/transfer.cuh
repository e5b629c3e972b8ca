//===- transfer.cuh - A block copies and combines its share -----*- C++ -*-===//
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

namespace detail {
template <class Wide, int unroll, class ToOf>
__device__ __forceinline__ void copyWide(int count, ToOf to, const char *from, int64_t n) {
  int64_t i = threadIdx.x, step = blockDim.x;
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
  for (; i < n; i += step) {
    Wide v = source[i];
    for (int d = 0; d < count; ++d)
      if (char *at = to(d))
        reinterpret_cast<Wide *>(at)[i] = v;
  }
}

template <class Wide, class ToOf>
__device__ __forceinline__ void copyAs(int count, ToOf to, const char *from, int64_t bytes) {
  Split split = splitAt(reinterpret_cast<uint64_t>(from), bytes, sizeof(Wide));
  auto after = [&](int64_t offset) {
    return [&, offset](int d) -> char * {
      char *at = to(d);
      return at ? at + offset : nullptr;
    };
  };
  if constexpr (sizeof(Wide) > 1) {
    copyWide<uint8_t, 1>(count, to, from, split.head);
    int64_t done = split.head + split.body;
    copyWide<uint8_t, 1>(count, after(done), from + done, bytes - done);
  }
  copyWide<Wide, 8>(count, after(split.head), from + split.head,
                    split.body / int64_t(sizeof(Wide)));
}
} // namespace detail

/// Copies [begin, end) of the bytes at `from` to each of the `count` places to(i) that is not null.
template <class ToOf>
__device__ __forceinline__ void copyShare(int count, ToOf to, const void *from, Share share) {
  int64_t align = 16;
  auto at = static_cast<const char *>(from) + share.begin;
  for (int d = 0; d < count; ++d)
    if (void *p = to(d)) {
      int64_t common = commonAlignment(reinterpret_cast<uint64_t>(p) + share.begin,
                                       reinterpret_cast<uint64_t>(at));
      align = common < align ? common : align;
    }
  auto place = [&](int d) -> char * {
    void *p = to(d);
    return p ? static_cast<char *>(p) + share.begin : nullptr;
  };
  if (align == 16)
    detail::copyAs<uint4>(count, place, at, share.size());
  else if (align == 8)
    detail::copyAs<uint64_t>(count, place, at, share.size());
  else if (align == 4)
    detail::copyAs<uint32_t>(count, place, at, share.size());
  else if (align == 2)
    detail::copyAs<uint16_t>(count, place, at, share.size());
  else
    detail::copyAs<uint8_t>(count, place, at, share.size());
}

namespace detail {
/// `n` pieces of `width` words, or of one element when `width` is 0.
template <class T, ReduceOp Op, int sources, int unroll, class ToOf, class FromOf>
__device__ __forceinline__ void reduceWide(int count, ToOf to, FromOf from, int64_t offset,
                                           int64_t n, const ReduceArgs &args) {
  int64_t step = blockDim.x;
  for (int64_t i = threadIdx.x; i < n; i += unroll * step) {
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
__device__ __forceinline__ void reduceSingle(int count, ToOf to, FromOf from, int64_t offset,
                                             int64_t n, const ReduceArgs &args) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    Accumulator<T, Op> sum; // of which one element is used
    for (int s = 0; s < sources; ++s) {
      union {
        uint64_t word;
        T element;
      } v;
      v.word = 0;
      v.element = *reinterpret_cast<const T *>(from(s) + offset + i * int64_t(sizeof(T)));
      s == 0 ? sum.begin(v.word, args) : sum.add(v.word, args);
    }
    union {
      uint64_t word;
      T element;
    } r;
    r.word = sum.end(args);
    for (int d = 0; d < count; ++d)
      if (char *at = to(d))
        *reinterpret_cast<T *>(at + offset + i * int64_t(sizeof(T))) = r.element;
  }
}
} // namespace detail

/// Combines the `sources` contributions from(0), from(1), ... of the bytes [begin, end), in this
/// order, into each of the `count` places to(i) that is not null. A place may be a source. Pointers
/// are aligned to the element.
template <class T, ReduceOp Op, int sources, class ToOf, class FromOf>
__device__ __forceinline__ void reduceShare(int count, ToOf to, FromOf from, Share share,
                                            const ReduceArgs &args) {
  auto source = [&](int s) { return static_cast<const char *>(from(s)) + share.begin; };
  auto place = [&](int d) -> char * {
    void *p = to(d);
    return p ? static_cast<char *>(p) + share.begin : nullptr;
  };
  uint64_t first = reinterpret_cast<uint64_t>(source(0));
  int64_t align = 16;
  for (int s = 1; s < sources; ++s) {
    int64_t common = commonAlignment(first, reinterpret_cast<uint64_t>(source(s)));
    align = common < align ? common : align;
  }
  for (int d = 0; d < count; ++d)
    if (char *p = place(d)) {
      int64_t common = commonAlignment(first, reinterpret_cast<uint64_t>(p));
      align = common < align ? common : align;
    }
  Split split = align == 16 ? splitAt(first, share.size(), 16) : Split{share.size(), 0};
  constexpr int64_t size = sizeof(T);
  constexpr int unroll = sources <= 2 ? 4 : 2;
  detail::reduceWide<T, Op, sources, unroll>(count, place, source, split.head, split.body / 16,
                                             args);
  detail::reduceSingle<T, Op, sources>(count, place, source, 0, split.head / size, args);
  int64_t done = split.head + split.body;
  detail::reduceSingle<T, Op, sources>(count, place, source, done, (share.size() - done) / size,
                                       args);
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_TRANSFER_CUH

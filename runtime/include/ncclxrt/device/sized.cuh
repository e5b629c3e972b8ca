//===- sized.cuh - Copies of which the device alone knows how much -*- C++ -*-===//
#ifndef NCCLXRT_DEVICE_SIZED_CUH
#define NCCLXRT_DEVICE_SIZED_CUH

#include "ncclxrt/device/signal.cuh"
#include "ncclxrt/device/transfer.cuh"

namespace ncclxrt::device {

/// A size known at run time (dialect/SPEC.md, S25) of 4 or 8 bytes at any byte; 0 for one that is
/// none, which is told by `place`, the communicator's number of it.
__device__ __forceinline__ int64_t readSize(const char *at, int64_t bytes, int64_t most,
                                            Control *control, uint64_t place) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < bytes; ++i)
    bits |= uint64_t(uint8_t(at[i])) << (8 * i);
  int64_t size = bytes == 4 ? int64_t(int32_t(uint32_t(bits))) : int64_t(bits);
  if (size >= 0 && size <= most)
    return size;
  if (threadIdx.x == 0)
    giveUp(control,
           {uint64_t(most), uint64_t(size), uint32_t(place), 0, blockIdx.x, sizeOutOfRange});
  return 0;
}

namespace detail {
template <class Word> __device__ __forceinline__ void clearWords(Workers w, char *to, int64_t n) {
  for (int64_t i = w.index; i < n; i += w.count)
    reinterpret_cast<Word *>(to)[i] = Word{};
}
} // namespace detail

__device__ __forceinline__ void clearBytes(Workers w, char *to, int64_t bytes) {
  Split split = splitAt(reinterpret_cast<uint64_t>(to), bytes, 16);
  int64_t behind = split.head + split.body;
  detail::clearWords<uint8_t>(w, to, split.head);
  detail::clearWords<uint4>(w, to + split.head, split.body / 16);
  detail::clearWords<uint8_t>(w, to + behind, bytes - behind);
}

/// So many of the blocks that share a copy and what is cleared behind it do the latter: what comes
/// from a peer is long under way, so that both go on at once.
__device__ __forceinline__ int64_t clearingBlocks(int64_t blocks) {
  return blocks >= 4 ? blocks / 4 : 0;
}

/// Copies `bytes` and fills with zeros what is behind them, up to `whole`; where this is not more,
/// nothing. Of `blocks` that share it, this is `block`.
__device__ __forceinline__ void copySized(int64_t block, int64_t blocks, char *to, const char *from,
                                          int64_t bytes, int64_t whole) {
  int64_t clearing = bytes > 0 && bytes < whole ? clearingBlocks(blocks) : 0;
  int64_t copying = blocks - clearing;
  if (block < copying)
    copyBytes(
        workersOfGrid(block, copying, threadIdx.x, blockDim.x), 1, [&](int) { return to; }, from,
        bytes);
  if (bytes < whole && block >= (clearing ? copying : 0))
    clearBytes(clearing ? workersOfGrid(block - copying, clearing, threadIdx.x, blockDim.x)
                        : workersOfGrid(block, blocks, threadIdx.x, blockDim.x),
               to + bytes, whole - bytes);
}

/// The same in a kernel that takes from peers and keeps what is its own: one half of the blocks
/// takes, which fills the links (64 blocks of an H200 bring 319 GB/s, 132 bring 320); the other
/// keeps and clears at the same time.
__device__ __forceinline__ void copySizedByHalves(bool keeps, int64_t block, int64_t blocks,
                                                  char *to, const char *from, int64_t bytes,
                                                  int64_t whole) {
  int64_t taking = blocks / 2;
  bool takes = block < taking;
  if (blocks < 4)
    return copySized(block, blocks, to, from, bytes, whole);
  Workers half = takes ? workersOfGrid(block, taking, threadIdx.x, blockDim.x)
                       : workersOfGrid(block - taking, blocks - taking, threadIdx.x, blockDim.x);
  if (takes != keeps)
    copyBytes(half, 1, [&](int) { return to; }, from, bytes);
  if (!takes && bytes < whole)
    clearBytes(half, to + bytes, whole - bytes);
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_SIZED_CUH

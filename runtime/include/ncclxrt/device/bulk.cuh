//===- bulk.cuh - A block copies through its shared memory ------*- C++ -*-===//
//
// The bulk copy engine of an SM (compute capability 9.0 and later): one thread moves whole tiles.
// 16-byte alignment of both ends; what does not fit is copied by copyBytes.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_DEVICE_BULK_CUH
#define NCCLXRT_DEVICE_BULK_CUH

#include "ncclxrt/device/transfer.cuh"

namespace ncclxrt::device {

constexpr int bulkTile = 16384;
constexpr int bulkStages = 8;
/// Dynamic shared memory that a kernel with copyBulk is launched with.
constexpr int bulkShared = bulkTile * bulkStages;

namespace detail {
__device__ __forceinline__ uint32_t sharedAddress(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void loadTile(void *tile, const void *from, uint32_t bytes,
                                         uint64_t *barrier) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(barrier)),
      "r"(bytes)
      : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
               "[%3];" ::"r"(sharedAddress(tile)),
               "l"(from), "r"(bytes), "r"(sharedAddress(barrier))
               : "memory");
}
__device__ __forceinline__ void awaitTile(uint64_t *barrier, uint32_t parity) {
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; "
               "@!p bra again; }" ::"r"(sharedAddress(barrier)),
               "r"(parity)
               : "memory");
}
__device__ __forceinline__ void storeTile(void *to, const void *tile, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(sharedAddress(tile)), "r"(bytes)
               : "memory");
}
} // namespace detail

/// copyBytes by the blocks of the kernel, tile t by block t mod blocks. Every thread calls it, once
/// in a kernel.
template <class ToOf>
__device__ __forceinline__ void copyBulk(int count, ToOf to, const void *from, int64_t bytes) {
  extern __shared__ __align__(128) char bulkTiles[];
  __shared__ uint64_t full[bulkStages];
  uint64_t bits = reinterpret_cast<uint64_t>(from);
  for (int d = 0; d < count; ++d)
    bits |= reinterpret_cast<uint64_t>(to(d));
  if (bits & 15)
    return copyBytes(gridWorkers(), count, to, from, bytes);
  int64_t body = bytes / 16 * 16;
  if (threadIdx.x == 0) {
    for (int s = 0; s < bulkStages; ++s)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(detail::sharedAddress(&full[s]))
                   : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    int64_t all = (body + bulkTile - 1) / bulkTile;
    int64_t tiles = all > blockIdx.x ? (all - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    auto offset = [&](int64_t t) { return (t * gridDim.x + blockIdx.x) * bulkTile; };
    auto size = [&](int64_t t) {
      int64_t left = body - offset(t);
      return uint32_t(left < bulkTile ? left : bulkTile);
    };
    constexpr int ahead = bulkStages / 2; // the other half may still be read by stores
#pragma unroll 1
    for (int64_t t = 0; t < tiles + ahead; ++t) {
      if (t < tiles) {
        if (t >= bulkStages)
          asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(bulkStages - ahead - 1)
                       : "memory");
        detail::loadTile(bulkTiles + t % bulkStages * bulkTile,
                         static_cast<const char *>(from) + offset(t), size(t),
                         &full[t % bulkStages]);
      }
      if (int64_t u = t - ahead; u >= 0 && u < tiles) {
        detail::awaitTile(&full[u % bulkStages], uint32_t(u / bulkStages % 2));
        for (int d = 0; d < count; ++d)
          if (to(d))
            detail::storeTile(static_cast<char *>(to(d)) + offset(u),
                              bulkTiles + u % bulkStages * bulkTile, size(u));
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      }
    }
    // Written, not only read: a signal may follow.
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  if (body < bytes)
    copyBytes(
        gridWorkers(), count,
        [&](int d) -> char * {
          char *p = static_cast<char *>(to(d));
          return p ? p + body : nullptr;
        },
        static_cast<const char *>(from) + body, bytes - body);
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_BULK_CUH

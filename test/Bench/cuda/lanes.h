//===- lanes.h - Collectives on copy engines, written by hand ---*- C++ -*-===//
//
// Streams copy and signal; nothing of the host is on the path, so that all of it can be captured. A
// stream signal is consumed: the waiter puts the 0 back (dialect/SPEC.md, S33).
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TEST_BENCH_CUDA_LANES_H
#define NCCLX_TEST_BENCH_CUDA_LANES_H

#include "ncclxrt/cuda.h"
#include "ncclxrt/device/partition.h"

#include <cuda_runtime_api.h>
#include <functional>
#include <vector>

namespace bench {

void require(cudaError_t result, const char *what);
void require(ncclxrtCudaComm_t comm, ncclxrtResult_t result, const char *what);
#define CUDA(call) ::bench::require(call, #call)

/// A rank's copy-engine lanes beside the caller's stream, and the slots they signal with.
struct Lanes {
  static constexpr int streams = 2, maxChunks = 64, maxRanks = 16;
  ncclxrtCudaComm_t comm;
  int me, ranks;
  cudaStream_t lane[streams];
  cudaEvent_t forked, joined[streams];
  /// When set: all ranks meet in a kernel on the caller's stream, before (0) and after (1).
  std::function<void(int)> meet;
  std::vector<uint32_t *> slots; // at each rank: ready[rank], data[rank], summed[chunk], arrived

  uint32_t *ready(int at, int from) { return slots[at] + from; }
  uint32_t *data(int at, int from) { return slots[at] + maxRanks + from; }
  uint32_t *summed(int chunk) { return slots[me] + 2 * maxRanks + chunk; }
  uint32_t *arrived(int at, int from, int chunks) {
    return slots[at] + 2 * maxRanks + maxChunks + from * chunks;
  }

  void init(ncclxrtCudaComm_t c, int rank, int n) {
    comm = c, me = rank, ranks = n;
    for (int i = 0; i < streams; ++i) {
      CUDA(cudaStreamCreateWithFlags(&lane[i], cudaStreamNonBlocking));
      CUDA(cudaEventCreateWithFlags(&joined[i], cudaEventDisableTiming));
    }
    CUDA(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    slots.resize(n);
    require(comm, ncclxrtCudaSlots(comm, 2 * maxRanks + maxChunks * (1 + maxRanks), slots.data()),
            "ncclxrtCudaSlots");
  }
  void signal(cudaStream_t s, uint32_t *slot) {
    require(comm, ncclxrtCudaSignal(comm, s, slot), "ncclxrtCudaSignal");
  }
  void wait(cudaStream_t s, uint32_t *slot, uint32_t value = 1) {
    require(comm, ncclxrtCudaWait(comm, s, slot, value, 1), "ncclxrtCudaWait");
  }
  void fork(cudaStream_t s) {
    CUDA(cudaEventRecord(forked, s));
    for (cudaStream_t l : lane)
      CUDA(cudaStreamWaitEvent(l, forked, 0));
  }
  void join(cudaStream_t s) {
    for (int i = 0; i < streams; ++i) {
      CUDA(cudaEventRecord(joined[i], lane[i]));
      CUDA(cudaStreamWaitEvent(s, joined[i], 0));
    }
  }
  static void copy(cudaStream_t s, void *to, const void *from, int64_t bytes) {
    if (bytes > 0 && to != from)
      CUDA(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDefault, s));
  }
  int peer(int i) const { return (me + 1 + i) % ranks; }

  /// Every rank's piece goes to `to(p)` at each rank p it sends to, from `from(p)`; `sends(p, q)`:
  /// does p send to q. The own piece is copied, too. Copies are cut over the lanes in `pieces`.
  void exchange(cudaStream_t s, int64_t bytes, int pieces, std::function<bool(int, int)> sends,
                std::function<const char *(int)> from, std::function<char *(int)> to) {
    for (int i = 0; i < ranks - 1; ++i)
      if (int p = peer(i); !meet && sends(p, me))
        signal(s, ready(p, me)); // my memory may be written
    fork(s);
    if (sends(me, me))
      copy(lane[1], to(me), from(me), bytes);
    if (meet)
      meet(0);
    for (int i = 0; i < ranks - 1; ++i)
      if (int p = peer(i); !meet && sends(me, p))
        wait(s, ready(me, p));
    if (pieces > 1)
      fork(s);
    for (int j = 0; j < pieces; ++j) {
      ncclxrt::device::Share share = ncclxrt::device::shareOf(bytes, 4096, pieces, j);
      for (int i = 0; i < ranks - 1; ++i)
        if (int p = peer(i); sends(me, p))
          copy(pieces > 1 ? lane[j % streams] : s, to(p) + share.begin, from(p) + share.begin,
               share.size());
    }
    if (pieces > 1)
      join(s);
    if (meet)
      meet(1);
    for (int i = 0; i < ranks - 1; ++i)
      if (int p = peer(i); !meet && sends(me, p))
        signal(s, data(p, me));
    for (int i = 0; i < ranks - 1; ++i)
      if (int p = peer(i); !meet && sends(p, me))
        wait(s, data(me, p));
    if (pieces <= 1)
      join(s);
  }

  /// Reduce-scatter, or with `gatherTo` all-reduce, of parts: chunk by chunk to the owner's
  /// scratch; few SMs add (`launchAdd`, of `blocks` blocks, on s); with gatherTo the sums go to
  /// all, behind the chunks on the same lanes, so that the wire is never idle between.
  void reduce(cudaStream_t s, int chunks, int blocks,
              std::function<ncclxrt::device::Share(int)> part,
              std::function<ncclxrt::device::Share(int64_t, int)> chunkOf, const char *in,
              std::function<char *(int)> scratch, std::function<char *(int)> gatherTo,
              const std::function<void()> &launchAdd) {
    together(s, 0);
    fork(s);
    for (int c = 0; c < chunks; ++c)
      for (int i = 0; i < ranks - 1; ++i) {
        int p = peer(i);
        ncclxrt::device::Share whole = part(p), chunk = chunkOf(whole.size(), c);
        copy(lane[c % streams], scratch(p) + chunk.begin, in + whole.begin + chunk.begin,
             chunk.size());
        signal(lane[c % streams], arrived(p, me, chunks) + c);
      }
    launchAdd();
    if (gatherTo)
      for (int c = 0; c < chunks; ++c) {
        ncclxrt::device::Share whole = part(me), chunk = chunkOf(whole.size(), c);
        wait(lane[c % streams], summed(c), uint32_t(blocks));
        for (int i = 0; i < ranks - 1; ++i)
          copy(lane[c % streams], gatherTo(peer(i)) + whole.begin + chunk.begin,
               gatherTo(me) + whole.begin + chunk.begin, chunk.size());
      }
    join(s);
    // The chunks' slots: reset before the next ready signal lets anybody raise them again.
    CUDA(cudaMemsetAsync(arrived(me, 0, chunks), 0, size_t(ranks) * chunks * sizeof(uint32_t), s));
    if (gatherTo)
      together(s, 1);
  }

  void together(cudaStream_t s, int kind) {
    if (meet)
      return meet(kind);
    for (int i = 0; i < ranks - 1; ++i)
      signal(s, kind ? data(peer(i), me) : ready(peer(i), me));
    for (int i = 0; i < ranks - 1; ++i)
      wait(s, kind ? data(me, peer(i)) : ready(me, peer(i)));
  }
};

} // namespace bench

#endif // NCCLX_TEST_BENCH_CUDA_LANES_H

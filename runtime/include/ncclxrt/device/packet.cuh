//===- packet.cuh - Data that carries its own flag --------------*- C++ -*-===//
//
// For small messages: a receiver polls the data itself, so there is no signal, no fence and no
// barrier between a store and its use. Scratch memory is double-buffered by the parity of the run;
// that is enough where every rank receives from every rank it sends to, and others need a credit
// (dialect/SPEC.md, S23, S32). Threads of a warp go through the loops together.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_DEVICE_PACKET_CUH
#define NCCLXRT_DEVICE_PACKET_CUH

#include "ncclxrt/device/dtype.cuh"
#include "ncclxrt/device/signal.cuh"
#include "ncclxrt/device/word.cuh"

namespace ncclxrt::device {

/// What the packets of one run have in common.
struct PacketRun {
  uint64_t flag;
  const Guard &guard;
  uint32_t step;
};

/// The words of unit `u` of `from`, with the flag where the format has it.
template <class Packet>
__device__ __forceinline__ Unit packUnit(const Words &from, int64_t u, int64_t words,
                                         uint64_t flag) {
  int64_t w = Packet::firstWord(u);
  Unit unit{w < words ? from.load(w) : 0, flag};
  if (!Packet::hasFlag(u))
    unit.high = w + 1 < words ? from.load(w + 1) : 0;
  return unit;
}

template <class Packet>
__device__ __forceinline__ void unpackUnit(const Words &to, int64_t u, int64_t words, Unit unit) {
  int64_t w = Packet::firstWord(u);
  if (w < words)
    to.store(w, unit.low);
  if (Packet::hasSecond(u) && w + 1 < words)
    to.store(w + 1, unit.high);
}

__device__ __forceinline__ int64_t wordsOf(int64_t bytes) { return (bytes + 7) / 8; }

/// Sends this block's share of `bytes` at `from` to `count` places: scratch(i), or none where that
/// is null.
template <class Packet, class ScratchOf>
__device__ __forceinline__ void sendPackets(int count, ScratchOf scratch, const void *from,
                                            int64_t bytes, const PacketRun &run) {
  Words source(from, bytes);
  int64_t words = wordsOf(bytes);
  Share share = packetShare<Packet>(bytes, gridDim.x, blockIdx.x);
  constexpr int unroll = 4;
  for (int64_t base = share.begin + threadIdx.x; base < share.end; base += unroll * blockDim.x) {
    Unit unit[unroll];
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (int64_t u = base + k * int64_t(blockDim.x); u < share.end)
        unit[k] = packUnit<Packet>(source, u, words, run.flag);
    for (int i = 0; i < count; ++i)
      if (void *place = scratch(i))
#pragma unroll
        for (int k = 0; k < unroll; ++k)
          if (int64_t u = base + k * int64_t(blockDim.x); u < share.end)
            storeUnit(static_cast<Unit *>(place) + u, unit[k]);
  }
}

/// Loads the units that this thread has at `at`, at + blockDim, ... until all of the warp's have
/// come. The lanes of a group are in one warp and load at once, so one flag speaks for all of them.
/// False: given up.
template <class Packet, int unroll>
__device__ __forceinline__ bool pollUnits(Unit (&unit)[unroll], const void *scratch, int64_t at,
                                          int64_t end, const PacketRun &run, uint32_t peer) {
  auto *from = static_cast<const Unit *>(scratch);
  Patience patience(run.guard, run.step, peer);
  for (;;) {
    bool here = true;
    uint64_t found = run.flag;
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (int64_t u = at + k * int64_t(blockDim.x); u < end) {
        unit[k] = loadUnit(from + u);
        if (Packet::hasFlag(u) && unit[k].high != run.flag) {
          here = false;
          found = unit[k].high;
        }
      }
    if (__all_sync(~0u, here))
      return true;
    if (__any_sync(~0u, !patience.again(run.flag, found)))
      return false;
  }
}

/// A loop over a block's units in which whole warps take part: `base` of the warp's first lane.
/// `body(at)` with the lane's own unit; lanes past the end come along.
template <int unroll, class Body> __device__ __forceinline__ void forUnits(Share share, Body body) {
  int64_t lane = threadIdx.x % 32;
  for (int64_t base = share.begin + threadIdx.x - lane; base < share.end;
       base += unroll * blockDim.x)
    if (!body(base + lane))
      return;
}

/// Receives this block's share of `bytes` from packets at `scratch` into `to`.
template <class Packet>
__device__ __forceinline__ void receivePackets(void *to, const void *scratch, int64_t bytes,
                                               const PacketRun &run, uint32_t peer) {
  Words target(to, bytes);
  int64_t words = wordsOf(bytes);
  Share share = packetShare<Packet>(bytes, gridDim.x, blockIdx.x);
  constexpr int unroll = 4;
  forUnits<unroll>(share, [&](int64_t at) {
    Unit unit[unroll];
    if (!pollUnits<Packet>(unit, scratch, at, share.end, run, peer))
      return false;
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (int64_t u = at + k * int64_t(blockDim.x); u < share.end)
        unpackUnit<Packet>(target, u, words, unit[k]);
    return true;
  });
}

/// Combines `ranks` contributions of `bytes`, in the order of the ranks: that of rank `own` lies at
/// `mine`, the others in packets at scratch(r). `store(u, unit)` gets each unit of the result.
template <class Packet, class T, ReduceOp Op, class ScratchOf, class Store>
__device__ __forceinline__ void
reducePackets(int ranks, int own, const void *mine, ScratchOf scratch, int64_t bytes,
              const ReduceArgs &args, const PacketRun &run, Store store) {
  Words source(mine, bytes);
  int64_t words = wordsOf(bytes);
  Share share = packetShare<Packet>(bytes, gridDim.x, blockIdx.x);
  constexpr int unroll = 2;
  forUnits<unroll>(share, [&](int64_t at) {
    Accumulator<T, Op> low[unroll], high[unroll];
    for (int r = 0; r < ranks; ++r) {
      Unit unit[unroll];
      if (r == own) {
#pragma unroll
        for (int k = 0; k < unroll; ++k)
          if (int64_t u = at + k * int64_t(blockDim.x); u < share.end)
            unit[k] = packUnit<Packet>(source, u, words, 0);
      } else if (!pollUnits<Packet>(unit, scratch(r), at, share.end, run, r)) {
        return false;
      }
#pragma unroll
      for (int k = 0; k < unroll; ++k) {
        if (r == 0) {
          low[k].begin(unit[k].low, args);
          high[k].begin(unit[k].high, args);
        } else {
          low[k].add(unit[k].low, args);
          high[k].add(unit[k].high, args);
        }
      }
    }
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (int64_t u = at + k * int64_t(blockDim.x); u < share.end)
        store(u, words, Unit{low[k].end(args), high[k].end(args)});
    return true;
  });
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_PACKET_CUH

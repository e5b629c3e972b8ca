//===- packet.cuh - Data that carries its own flag --------------*- C++ -*-===//
//
// For small messages: a receiver polls the data itself, so there is no signal, no fence and no
// barrier between a store and its use. Scratch memory is double-buffered by the parity of the run;
// that is enough where every rank receives from every rank it sends to, and others need a credit
// (dialect/SPEC.md, S23, S32). A block has whole warps, and they go through the loops together.
//
// `Packet` is Packet16 or Packet128, `aligned` says that all messages start and end on 8 bytes.
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

/// Calls body(u0, stride) with the unit of the warp's first lane, for rounds of `unroll` units a
/// thread; every lane of a warp comes along. Sender and receiver, and two passes over one message,
/// give a unit to the same thread.
template <int unroll, class Body>
__device__ __forceinline__ void forUnits(int64_t units, Body body) {
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  int64_t warp = int64_t(blockIdx.x) * blockDim.x + (threadIdx.x & ~31u);
  for (; warp < units; warp += unroll * stride)
    if (!body(warp + (threadIdx.x & 31), stride))
      return;
}

/// The words of unit `u` of `from`, with the flag where the format has it.
template <class Packet, bool aligned>
__device__ __forceinline__ Unit packUnit(const Words<aligned> &from, int64_t u, int64_t words,
                                         uint64_t flag) {
  int64_t w = Packet::firstWord(u);
  Unit unit{w < words ? from.load(w) : 0, flag};
  if (!Packet::hasFlag(u))
    unit.high = w + 1 < words ? from.load(w + 1) : 0;
  return unit;
}

template <class Packet, bool aligned>
__device__ __forceinline__ void unpackUnit(const Words<aligned> &to, int64_t u, int64_t words,
                                           Unit unit) {
  int64_t w = Packet::firstWord(u);
  if (w < words)
    to.store(w, unit.low);
  if (Packet::hasSecond(u) && w + 1 < words)
    to.store(w + 1, unit.high);
}

/// Sends the message at `from` to `count` places: scratch(i), or none where that is null; and copies
/// it to `keep`, unless that is null.
template <class Packet, bool aligned, class ScratchOf>
__device__ __forceinline__ void sendPackets(int count, ScratchOf scratch, const void *from,
                                            const PacketSpan &span, const PacketRun &run,
                                            void *keep = nullptr) {
  Words<aligned> source(from, span.bytes), kept(keep, span.bytes);
  constexpr int unroll = Packet::unroll;
  forUnits<unroll>(span.units, [&](int64_t at, int64_t stride) {
    Unit unit[unroll];
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (int64_t u = at + k * stride; u < span.units)
        unit[k] = packUnit<Packet>(source, u, span.words, run.flag);
    for (int i = 0; i < count; ++i)
      if (void *place = scratch(i))
#pragma unroll
        for (int k = 0; k < unroll; ++k)
          if (int64_t u = at + k * stride; u < span.units)
            storeUnit(static_cast<Unit *>(place) + u, unit[k]);
    if (keep)
#pragma unroll
      for (int k = 0; k < unroll; ++k)
        if (int64_t u = at + k * stride; u < span.units)
          unpackUnit<Packet>(kept, u, span.words, unit[k]);
    return true;
  });
}

/// Loads the units that this thread has at `at`, at + stride, ... until all of the warp's have come.
/// The lanes of a group are in one warp and load at once, so one flag speaks for all of them. False:
/// given up.
template <class Packet, int unroll>
__device__ __forceinline__ bool pollUnits(Unit (&unit)[unroll], const void *scratch, int64_t at,
                                          int64_t stride, int64_t end, const PacketRun &run,
                                          uint32_t peer) {
  auto *from = static_cast<const Unit *>(scratch);
  Patience patience(run.guard, run.step, peer);
  for (;;) {
    bool here = true;
    uint64_t found = run.flag;
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (int64_t u = at + k * stride; u < end) {
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

/// Receives a message from packets at `scratch` into `to`.
template <class Packet, bool aligned>
__device__ __forceinline__ void receivePackets(void *to, const void *scratch,
                                               const PacketSpan &span, const PacketRun &run,
                                               uint32_t peer) {
  Words<aligned> target(to, span.bytes);
  constexpr int unroll = Packet::unroll;
  forUnits<unroll>(span.units, [&](int64_t at, int64_t stride) {
    Unit unit[unroll];
    if (!pollUnits<Packet>(unit, scratch, at, stride, span.units, run, peer))
      return false;
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (int64_t u = at + k * stride; u < span.units)
        unpackUnit<Packet>(target, u, span.words, unit[k]);
    return true;
  });
}

/// Combines the contributions of `ranks` ranks, in their order: that of rank `own` lies at `mine`,
/// the others in packets at scratch(r). `store(u, unit)` gets each unit of the result.
template <class Packet, bool aligned, class T, ReduceOp Op, class ScratchOf, class Store>
__device__ __forceinline__ void reducePackets(int ranks, int own, const void *mine,
                                              ScratchOf scratch, const PacketSpan &span,
                                              const ReduceArgs &args, const PacketRun &run,
                                              Store store) {
  Words<aligned> source(mine, span.bytes);
  constexpr int unroll = (Packet::unroll + 1) / 2;
  forUnits<unroll>(span.units, [&](int64_t at, int64_t stride) {
    Accumulator<T, Op> low[unroll], high[unroll];
    Unit kept[unroll];
    // Before the polls: it is on its way while they wait.
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (int64_t u = at + k * stride; u < span.units)
        kept[k] = packUnit<Packet>(source, u, span.words, 0);
    for (int r = 0; r < ranks; ++r) {
      Unit unit[unroll];
      if (r != own && !pollUnits<Packet>(unit, scratch(r), at, stride, span.units, run, r))
        return false;
#pragma unroll
      for (int k = 0; k < unroll; ++k) {
        Unit v = r == own ? kept[k] : unit[k];
        if (r == 0) {
          low[k].begin(v.low, args);
          high[k].begin(v.high, args);
        } else {
          low[k].add(v.low, args);
          high[k].add(v.high, args);
        }
      }
    }
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (int64_t u = at + k * stride; u < span.units)
        store(u, Unit{low[k].end(args), high[k].end(args)});
    return true;
  });
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_PACKET_CUH

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

/// One round of a message: the units at, at + stride, ... of this thread, as many as a thread has
/// under way at once. Lanes of a warp go through rounds together. Sender and receiver, and two
/// passes over one message, give a unit to the same thread.
struct Round {
  int64_t at, stride;
};

/// Calls send(round) for every round of `units`, and receive(round) one round behind: what comes in
/// is taken while the next goes out. receive gives false to give up.
template <class Packet, class Send, class Receive>
__device__ __forceinline__ void exchangeRounds(int64_t units, Send send, Receive receive) {
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  int64_t warp = int64_t(blockIdx.x) * blockDim.x + (threadIdx.x & ~31u), lane = threadIdx.x & 31;
  if (warp >= units)
    return;
  send(Round{warp + lane, stride});
  for (;;) {
    int64_t next = warp + Packet::unroll * stride;
    if (next < units)
      send(Round{next + lane, stride});
    if (!receive(Round{warp + lane, stride}) || next >= units)
      return;
    warp = next;
  }
}
/// Only one of the two.
template <class Packet, class Body>
__device__ __forceinline__ void forRounds(int64_t units, Body body) {
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  int64_t warp = int64_t(blockIdx.x) * blockDim.x + (threadIdx.x & ~31u);
  for (; warp < units; warp += Packet::unroll * stride)
    if (!body(Round{warp + (threadIdx.x & 31), stride}))
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

/// Sends a round of the message at `from` to `count` places: scratch(i), or none where that is
/// null; and copies it to `keep`, unless that is null.
template <class Packet, bool aligned, class ScratchOf>
__device__ __forceinline__ void sendRound(Round round, int count, ScratchOf scratch,
                                          const void *from, const PacketSpan &span,
                                          const PacketRun &run, void *keep = nullptr) {
  Words<aligned> source(from, span.bytes), kept(keep, span.bytes);
  Unit unit[Packet::unroll];
#pragma unroll
  for (int k = 0; k < Packet::unroll; ++k)
    if (int64_t u = round.at + k * round.stride; u < span.units)
      unit[k] = packUnit<Packet>(source, u, span.words, run.flag);
  for (int i = 0; i < count; ++i)
    if (void *place = scratch(i))
#pragma unroll
      for (int k = 0; k < Packet::unroll; ++k)
        if (int64_t u = round.at + k * round.stride; u < span.units)
          storeUnit(static_cast<Unit *>(place) + u, unit[k]);
  if (keep)
#pragma unroll
    for (int k = 0; k < Packet::unroll; ++k)
      if (int64_t u = round.at + k * round.stride; u < span.units)
        unpackUnit<Packet>(kept, u, span.words, unit[k]);
}
/// All rounds.
template <class Packet, bool aligned, class ScratchOf>
__device__ __forceinline__ void sendPackets(int count, ScratchOf scratch, const void *from,
                                            const PacketSpan &span, const PacketRun &run,
                                            void *keep = nullptr) {
  forRounds<Packet>(span.units, [&](Round round) {
    sendRound<Packet, aligned>(round, count, scratch, from, span, run, keep);
    return true;
  });
}

/// Loads a round's units until all of the warp's have come. The lanes of a group are in one warp
/// and load at once, so one flag speaks for all of them. False: given up.
template <class Packet>
__device__ __forceinline__ bool pollUnits(Unit (&unit)[Packet::unroll], const void *scratch,
                                          Round round, int64_t end, const PacketRun &run,
                                          uint32_t peer) {
  auto *from = static_cast<const Unit *>(scratch);
  Patience patience(run.guard, run.step, peer);
  for (;;) {
    bool here = true;
    uint64_t found = run.flag;
#pragma unroll
    for (int k = 0; k < Packet::unroll; ++k)
      if (int64_t u = round.at + k * round.stride; u < end) {
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

/// Receives a round of a message from packets at `scratch` into `to`.
template <class Packet, bool aligned>
__device__ __forceinline__ bool receiveRound(Round round, void *to, const void *scratch,
                                             const PacketSpan &span, const PacketRun &run,
                                             uint32_t peer) {
  Words<aligned> target(to, span.bytes);
  Unit unit[Packet::unroll];
  if (!pollUnits<Packet>(unit, scratch, round, span.units, run, peer))
    return false;
#pragma unroll
  for (int k = 0; k < Packet::unroll; ++k)
    if (int64_t u = round.at + k * round.stride; u < span.units)
      unpackUnit<Packet>(target, u, span.words, unit[k]);
  return true;
}
/// All rounds.
template <class Packet, bool aligned>
__device__ __forceinline__ void receivePackets(void *to, const void *scratch,
                                               const PacketSpan &span, const PacketRun &run,
                                               uint32_t peer) {
  forRounds<Packet>(span.units, [&](Round round) {
    return receiveRound<Packet, aligned>(round, to, scratch, span, run, peer);
  });
}

/// Combines a round of the contributions of `ranks` ranks, in their order: that of rank `own` lies
/// at `mine`, the others in packets at scratch(r). `store(u, unit)` gets each unit of the result.
template <class Packet, bool aligned, class T, ReduceOp Op, class ScratchOf, class Store>
__device__ __forceinline__ bool
reduceRound(Round round, int ranks, int own, const void *mine, ScratchOf scratch,
            const PacketSpan &span, const ReduceArgs &args, const PacketRun &run, Store store) {
  Words<aligned> source(mine, span.bytes);
  constexpr int unroll = Packet::unroll;
  Accumulator<T, Op> low[unroll], high[unroll];
  Unit kept[unroll];
  // Before the polls: it is on its way while they wait.
#pragma unroll
  for (int k = 0; k < unroll; ++k)
    if (int64_t u = round.at + k * round.stride; u < span.units)
      kept[k] = packUnit<Packet>(source, u, span.words, 0);
  for (int r = 0; r < ranks; ++r) {
    Unit unit[unroll];
    if (r != own && !pollUnits<Packet>(unit, scratch(r), round, span.units, run, r))
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
    if (int64_t u = round.at + k * round.stride; u < span.units)
      store(u, Unit{low[k].end(args), high[k].end(args)});
  return true;
}
/// All rounds.
template <class Packet, bool aligned, class T, ReduceOp Op, class ScratchOf, class Store>
__device__ __forceinline__ void
reducePackets(int ranks, int own, const void *mine, ScratchOf scratch, const PacketSpan &span,
              const ReduceArgs &args, const PacketRun &run, Store store) {
  forRounds<Packet>(span.units, [&](Round round) {
    return reduceRound<Packet, aligned, T, Op>(round, ranks, own, mine, scratch, span, args, run,
                                               store);
  });
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_PACKET_CUH

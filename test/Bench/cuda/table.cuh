//===- table.cuh - The kernels that there are, by name ----------*- C++ -*-===//
#ifndef NCCLX_TEST_BENCH_CUDA_TABLE_CUH
#define NCCLX_TEST_BENCH_CUDA_TABLE_CUH

#include "kernels.cuh"
#include "rank.h"

namespace bench {

template <int R, class T, ReduceOp Op> const void *reduction(Coll coll, Algo algo, bool aligned) {
  if (coll == Coll::ReduceScatter) {
    switch (algo) {
    case Algo::Packet16:
      return aligned ? (const void *)packetReduceScatter<R, Packet16, true, T, Op>
                     : (const void *)packetReduceScatter<R, Packet16, false, T, Op>;
    case Algo::Packet128:
      return aligned ? (const void *)packetReduceScatter<R, Packet128, true, T, Op>
                     : (const void *)packetReduceScatter<R, Packet128, false, T, Op>;
    case Algo::Direct:
      return (const void *)directReduceScatter<R, T, Op>;
    case Algo::CopyEngine:
    case Algo::MeetEngine:
      return (const void *)addChunks<R, T, Op>;
    default:
      return nullptr;
    }
  }
  switch (algo) {
  case Algo::Packet16:
    return aligned ? (const void *)packetOneShot<R, Packet16, true, T, Op>
                   : (const void *)packetOneShot<R, Packet16, false, T, Op>;
  case Algo::Packet128:
    return aligned ? (const void *)packetOneShot<R, Packet128, true, T, Op>
                   : (const void *)packetOneShot<R, Packet128, false, T, Op>;
  case Algo::Two16:
    return aligned ? (const void *)packetTwoShot<R, Packet16, true, T, Op>
                   : (const void *)packetTwoShot<R, Packet16, false, T, Op>;
  case Algo::Two128:
    return aligned ? (const void *)packetTwoShot<R, Packet128, true, T, Op>
                   : (const void *)packetTwoShot<R, Packet128, false, T, Op>;
  case Algo::Direct:
    return (const void *)directAllReduce<R, T, Op>;
  case Algo::CopyEngine:
  case Algo::MeetEngine:
    return (const void *)addChunks<R, T, Op>;
  default:
    return nullptr;
  }
}

template <int R> const void *movement(Coll coll, Algo algo, bool aligned) {
  if (algo == Algo::MeetEngine)
    return (const void *)meet<R>;
#define NCCLX_MOVES(Name)                                                                          \
  case Coll::Name:                                                                                 \
    switch (algo) {                                                                                \
    case Algo::Packet16:                                                                           \
      return aligned ? (const void *)packet##Name<R, Packet16, true>                               \
                     : (const void *)packet##Name<R, Packet16, false>;                             \
    case Algo::Packet128:                                                                          \
      return aligned ? (const void *)packet##Name<R, Packet128, true>                              \
                     : (const void *)packet##Name<R, Packet128, false>;                            \
    case Algo::Direct:                                                                             \
      return (const void *)direct##Name<R, false>;                                                 \
    case Algo::Bulk:                                                                               \
      return R == 2 ? (const void *)direct##Name<R, R == 2> : nullptr;                             \
    default:                                                                                       \
      return nullptr;                                                                              \
    }
  switch (coll) {
    NCCLX_MOVES(AllGather)
    NCCLX_MOVES(AllToAll)
    NCCLX_MOVES(Broadcast)
    NCCLX_MOVES(Permute)
  default:
    return nullptr;
  }
#undef NCCLX_MOVES
}

inline bool reduces(Coll coll) { return coll == Coll::ReduceScatter || coll == Coll::AllReduce; }

template <int R> Args<R> makeArguments(const Rank &rank, const Call &call, Algo algo) {
  Args<R> a{};
  a.in = rank.input(call, rank.me);
  a.out = rank.output(call, rank.me);
  for (int r = 0; r < R; ++r) {
    a.peerIn[r] = rank.input(call, r);
    a.peerOut[r] = rank.output(call, r);
    a.scratch[r] = static_cast<char *>(rank.scratch[r]);
    a.slots[r] = static_cast<uint64_t *>(rank.slots[r]);
  }
  a.epochs = rank.epochs;
  a.guard = rank.guard;
  bool whole =
      call.coll == Coll::AllReduce || call.coll == Coll::Broadcast || call.coll == Coll::Permute;
  a.bytes = whole ? call.bytes : rank.piece(call);
  bool small = algo == Algo::Packet16 || algo == Algo::Two16;
  auto span = [&](int64_t bytes) {
    return small ? packetSpan<Packet16>(bytes) : packetSpan<Packet128>(bytes);
  };
  a.span = span(a.bytes);
  for (int r = 0; r < R; ++r) {
    a.part[r] = shareOf(call.bytes, ownershipGranule, R, r);
    a.partSpan[r] = span(a.part[r].size());
  }
  a.generationBytes = rank.scratchBytes / 2 / 128 * 128;
  a.slotBytes = a.generationBytes / (2 * R) / 128 * 128;
  a.reduce = {call.scale, R};
  a.me = rank.me;
  a.to = (rank.me + call.shift) % R;
  a.from = call.coll == Coll::Broadcast ? call.root : (rank.me + R - call.shift % R) % R;
  return a;
}

template <int R> void *argumentsOf(const Rank &rank, const Call &call, const Config &config) {
  static thread_local Args<R> a;
  a = makeArguments<R>(rank, call, config.algo);
  return &a;
}

template <int R> void *chunkArgumentsOf(const Rank &rank, const Call &call, const Config &config) {
  static thread_local ChunkArgs<R> a;
  bool all = call.coll == Coll::AllReduce;
  Share part = all ? shareOf(call.bytes, ownershipGranule, R, rank.me)
                   : Share{rank.me * rank.piece(call), (rank.me + 1) * rank.piece(call)};
  a.in = rank.input(call, rank.me) + part.begin;
  a.out = rank.output(call, rank.me) + (all ? part.begin : 0);
  a.scratch = static_cast<char *>(rank.scratch[rank.me]);
  Lanes &lanes = const_cast<Lanes &>(rank.lanes);
  a.arrived = lanes.arrived(rank.me, 0, config.pieces);
  a.summed = all ? lanes.summed(0) : nullptr;
  a.guard = rank.guard;
  a.bytes = part.size();
  a.stride = rank.scratchBytes / R / 128 * 128;
  a.reduce = {call.scale, R};
  a.chunks = config.pieces;
  a.me = rank.me;
  return &a;
}

} // namespace bench

#endif // NCCLX_TEST_BENCH_CUDA_TABLE_CUH

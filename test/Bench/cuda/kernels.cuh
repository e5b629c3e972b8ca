//===- kernels.cuh - Collectives of one host, written by hand ---*- C++ -*-===//
//
// What the code generator is to print, composed of the same functions: each kernel is one program's
// sm lane. `R` ranks; `me` is this one.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TEST_BENCH_CUDA_KERNELS_CUH
#define NCCLX_TEST_BENCH_CUDA_KERNELS_CUH

#include "ncclxrt/device/bulk.cuh"
#include "ncclxrt/device/packet.cuh"
#include "ncclxrt/device/transfer.cuh"

namespace bench {
using namespace ncclxrt::device;

constexpr int maxBlocks = 264;

/// Everything by value: a pointer in a table in memory would cost a trip there.
template <int R> struct Args {
  const char *in; // own input
  char *out;      // own output
  const char *peerIn[R];
  char *peerOut[R];
  char *scratch[R];   // packets: [2 generations][region][sender]
  uint64_t *slots[R]; // [kind][sender][block]
  uint64_t *epochs;   // [block]
  Guard guard;
  int64_t bytes;   // of a piece; of the whole for all_reduce and broadcast
  PacketSpan span; // of `bytes`
  Share part[R];   // all_reduce: who sums what
  PacketSpan partSpan[R];
  int64_t slotBytes; // of one sender's packets
  int64_t generationBytes;
  ReduceArgs reduce;
  int me;
  int to, from; // permute: -1 for none; broadcast: the root in `from`
};

enum Kind { Ready, Done, Credit, Kinds };

template <int R>
__device__ __forceinline__ uint64_t *slotOf(const Args<R> &a, Kind kind, int at, int sender) {
  return a.slots[at] + (int64_t(kind) * R + sender) * maxBlocks + blockIdx.x;
}
template <int R> __device__ __forceinline__ int peerAt(const Args<R> &a, int i) {
  int p = a.me + 1 + i;
  return p < R ? p : p - R;
}
/// Where `sender`'s packets of this run lie at rank `at`.
template <int R>
__device__ __forceinline__ char *packetsAt(const Args<R> &a, uint64_t epoch, int at, int sender,
                                           int region = 0) {
  return a.scratch[at] + (epoch & 1) * a.generationBytes + (region * R + sender) * a.slotBytes;
}
__device__ __forceinline__ void copyOwn(const char *from, char *to, int64_t bytes) {
  if (from != to)
    copyBytes(gridWorkers(), 1, [&](int) { return to; }, from, bytes);
}
template <int R>
__device__ __forceinline__ void signalAll(const Args<R> &a, Kind kind, uint64_t e) {
  signalFromBlock(R, e, [&](int p) { return p == a.me ? nullptr : slotOf(a, kind, p, a.me); });
}
template <int R> __device__ __forceinline__ void waitAll(const Args<R> &a, Kind kind, uint64_t e) {
  waitInBlock(R, e, a.guard, kind,
              [&](int p) { return p == a.me ? nullptr : slotOf(a, kind, a.me, p); });
}

/// Every kernel begins so: what it reads may be the work of the kernel before.
template <int R> __device__ __forceinline__ Epoch enter(const Args<R> &a) {
  awaitEarlierKernels();
  releaseLaterKernels();
  return Epoch(a.epochs);
}

//===--- packets ----------------------------------------------------------------------------===//

template <int R, class P, bool A>
__global__ void packetAllGather(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  PacketRun run{e, a.guard, 0};
  char *own = a.out + a.me * a.bytes;
  exchangeRounds<P>(
      a.span.units,
      [&](Round round) {
        sendRound<P, A>(
            round, R - 1, [&](int i) { return packetsAt(a, e, peerAt(a, i), a.me); }, a.in, a.span,
            run, own == a.in ? nullptr : own);
      },
      [&](Round round) {
        bool good = true;
        for (int i = 0; good && i < R - 1; ++i) {
          int p = peerAt(a, i);
          good = receiveRound<P, A>(round, a.out + p * a.bytes, packetsAt(a, e, a.me, p), a.span,
                                    run, p);
        }
        return good;
      });
  e.end();
}

template <int R, class P, bool A>
__global__ void packetAllToAll(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  PacketRun run{e, a.guard, 0};
  exchangeRounds<P>(
      a.span.units,
      [&](Round round) {
        for (int i = 0; i < R - 1; ++i) {
          int p = peerAt(a, i);
          sendRound<P, A>(
              round, 1, [&](int) { return packetsAt(a, e, p, a.me); }, a.in + p * a.bytes, a.span,
              run);
        }
        sendRound<P, A>(
            round, 0, [](int) { return nullptr; }, a.in + a.me * a.bytes, a.span, run,
            a.out + a.me * a.bytes);
      },
      [&](Round round) {
        bool good = true;
        for (int i = 0; good && i < R - 1; ++i) {
          int p = peerAt(a, i);
          good = receiveRound<P, A>(round, a.out + p * a.bytes, packetsAt(a, e, a.me, p), a.span,
                                    run, p);
        }
        return good;
      });
  e.end();
}

template <int R, class P, bool A, class T, ReduceOp Op>
__global__ void packetReduceScatter(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  PacketRun run{e, a.guard, 0};
  Words<A> to(a.out, a.bytes);
  exchangeRounds<P>(
      a.span.units,
      [&](Round round) {
        for (int i = 0; i < R - 1; ++i) {
          int p = peerAt(a, i);
          sendRound<P, A>(
              round, 1, [&](int) { return packetsAt(a, e, p, a.me); }, a.in + p * a.bytes, a.span,
              run);
        }
      },
      [&](Round round) {
        return reduceRound<P, A, T, Op>(
            round, R, a.me, a.in + a.me * a.bytes, [&](int r) { return packetsAt(a, e, a.me, r); },
            a.span, a.reduce, run,
            [&](int64_t u, Unit unit) { unpackUnit<P>(to, u, a.span.words, unit); });
      });
  e.end();
}

template <int R, class P, bool A, class T, ReduceOp Op>
__global__ void packetOneShot(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  PacketRun run{e, a.guard, 0};
  Words<A> to(a.out, a.bytes);
  exchangeRounds<P>(
      a.span.units,
      [&](Round round) {
        sendRound<P, A>(
            round, R - 1, [&](int i) { return packetsAt(a, e, peerAt(a, i), a.me); }, a.in, a.span,
            run);
      },
      [&](Round round) {
        return reduceRound<P, A, T, Op>(
            round, R, a.me, a.in, [&](int r) { return packetsAt(a, e, a.me, r); }, a.span, a.reduce,
            run, [&](int64_t u, Unit unit) { unpackUnit<P>(to, u, a.span.words, unit); });
      });
  e.end();
}

/// Every rank sums its part, in region 0, and sends the sum as packets again, to region 1.
template <int R, class P, bool A, class T, ReduceOp Op>
__global__ void packetTwoShot(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  PacketRun run{e, a.guard, 0}, again{e, a.guard, 1};
  for (int i = 0; i < R - 1; ++i) {
    int p = peerAt(a, i);
    sendPackets<P, A>(
        1, [&](int) { return packetsAt(a, e, p, a.me); }, a.in + a.part[p].begin, a.partSpan[p],
        run);
  }
  Share mine = a.part[a.me];
  PacketSpan span = a.partSpan[a.me];
  Words<A> to(a.out + mine.begin, mine.size());
  reducePackets<P, A, T, Op>(
      R, a.me, a.in + mine.begin, [&](int r) { return packetsAt(a, e, a.me, r); }, span, a.reduce,
      run,
      [&](int64_t u, Unit unit) {
        unpackUnit<P>(to, u, span.words, unit);
        if (P::hasFlag(u))
          unit.high = again.flag;
        for (int i = 0; i < R - 1; ++i)
          storeUnit(reinterpret_cast<Unit *>(packetsAt(a, e, peerAt(a, i), a.me, 1)) + u, unit);
      });
  for (int i = 0; i < R - 1; ++i) {
    int p = peerAt(a, i);
    receivePackets<P, A>(a.out + a.part[p].begin, packetsAt(a, e, a.me, p, 1), a.partSpan[p], again,
                         p);
  }
  e.end();
}

/// One way: nobody answers, so a sender awaits that its packets of two runs ago have been read.
template <int R, class P, bool A>
__global__ void packetBroadcast(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  PacketRun run{e, a.guard, 0};
  int root = a.from;
  if (a.me == root) {
    waitAll(a, Credit, e > 2 ? e - 2 : 0);
    sendPackets<P, A>(
        R - 1, [&](int i) { return packetsAt(a, e, peerAt(a, i), a.me); }, a.in, a.span, run,
        a.in == a.out ? nullptr : a.out);
  } else {
    receivePackets<P, A>(a.out, packetsAt(a, e, a.me, root), a.span, run, root);
    signalFromBlock(1, e, [&](int) { return slotOf(a, Credit, root, a.me); });
  }
  e.end();
}

template <int R, class P, bool A> __global__ void packetPermute(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  PacketRun run{e, a.guard, 0};
  bool sends = a.to >= 0 && a.to != a.me, receives = a.from >= 0 && a.from != a.me;
  if (sends)
    waitInBlock(1, e > 2 ? e - 2 : 0, a.guard, Credit,
                [&](int) { return slotOf(a, Credit, a.me, a.to); });
  exchangeRounds<P>(
      a.span.units,
      [&](Round round) {
        if (sends)
          sendRound<P, A>(
              round, 1, [&](int) { return packetsAt(a, e, a.to, a.me); }, a.in, a.span, run);
      },
      [&](Round round) {
        return !receives ||
               receiveRound<P, A>(round, a.out, packetsAt(a, e, a.me, a.from), a.span, run, a.from);
      });
  if (a.from == a.me)
    copyOwn(a.in, a.out, a.bytes);
  if (receives)
    signalFromBlock(1, e, [&](int) { return slotOf(a, Credit, a.from, a.me); });
  e.end();
}

//===--- zero-copy
//-----------------------------------------------------------------------------===//

template <bool bulk, class ToOf>
__device__ __forceinline__ void push(ToOf to, int count, const char *from, int64_t bytes) {
  if constexpr (bulk)
    copyBulk(count, to, from, bytes);
  else
    copyBytes(gridWorkers(), count, to, from, bytes);
}

template <int R, bool bulk> __global__ void directAllGather(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  signalAll(a, Ready, e); // my output may be written
  waitAll(a, Ready, e);
  // The own copy goes along: it costs memory bandwidth that the wire leaves.
  char *own = a.out + a.me * a.bytes;
  push<bulk>(
      [&](int i) -> char * {
        return i < R - 1 ? a.peerOut[peerAt(a, i)] + a.me * a.bytes : own == a.in ? nullptr : own;
      },
      R, a.in, a.bytes);
  signalAll(a, Done, e);
  waitAll(a, Done, e);
  e.end();
}

template <int R, bool bulk> __global__ void directAllToAll(const __grid_constant__ Args<R> a) {
  static_assert(!bulk || R == 2, "one bulk copy a kernel");
  Epoch e = enter(a);
  signalAll(a, Ready, e);
  waitAll(a, Ready, e);
  if constexpr (bulk) {
    push<bulk>([&](int) { return a.peerOut[1 - a.me] + a.me * a.bytes; }, 1,
               a.in + (1 - a.me) * a.bytes, a.bytes);
    copyOwn(a.in + a.me * a.bytes, a.out + a.me * a.bytes, a.bytes);
  } else if (unsigned own = gridDim.x / 8; blockIdx.x < own) {
    // One block in eight copies the own piece, beside the wire.
    copyBytes(
        workersOfGrid(blockIdx.x, own, threadIdx.x, blockDim.x), 1,
        [&](int) { return a.out + a.me * a.bytes; }, a.in + a.me * a.bytes, a.bytes);
  } else {
    Workers w = workersOfGrid(blockIdx.x - own, gridDim.x - own, threadIdx.x, blockDim.x);
    for (int i = 0; i < R - 1; ++i) {
      int p = peerAt(a, i);
      copyBytes(
          w, 1, [&](int) { return a.peerOut[p] + a.me * a.bytes; }, a.in + p * a.bytes, a.bytes);
    }
    if (!own)
      copyBytes(w, 1, [&](int) { return a.out + a.me * a.bytes; }, a.in + a.me * a.bytes, a.bytes);
  }
  signalAll(a, Done, e);
  waitAll(a, Done, e);
  e.end();
}

template <int R, bool bulk> __global__ void directBroadcast(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  if (a.me == a.from) {
    waitAll(a, Ready, e);
    push<bulk>(
        [&](int i) -> char * {
          return i < R - 1 ? a.peerOut[peerAt(a, i)] : a.in == a.out ? nullptr : a.out;
        },
        R, a.in, a.bytes);
    signalAll(a, Done, e);
  } else {
    signalFromBlock(1, e, [&](int) { return slotOf(a, Ready, a.from, a.me); });
    waitInBlock(1, e, a.guard, Done, [&](int) { return slotOf(a, Done, a.me, a.from); });
  }
  e.end();
}

template <int R, bool bulk> __global__ void directPermute(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  bool sends = a.to >= 0 && a.to != a.me, receives = a.from >= 0 && a.from != a.me;
  if (receives)
    signalFromBlock(1, e, [&](int) { return slotOf(a, Ready, a.from, a.me); });
  if (a.from == a.me)
    copyOwn(a.in, a.out, a.bytes);
  if (sends) {
    waitInBlock(1, e, a.guard, Ready, [&](int) { return slotOf(a, Ready, a.me, a.to); });
    push<bulk>([&](int) { return a.peerOut[a.to]; }, 1, a.in, a.bytes);
    signalFromBlock(1, e, [&](int) { return slotOf(a, Done, a.to, a.me); });
  }
  if (receives)
    waitInBlock(1, e, a.guard, Done, [&](int) { return slotOf(a, Done, a.me, a.from); });
  e.end();
}

template <int R, class T, ReduceOp Op>
__global__ void directReduceScatter(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  signalAll(a, Ready, e); // my input may be read
  waitAll(a, Ready, e);
  reduceBytes<T, Op, R>(
      gridWorkers(), 1, [&](int) { return a.out; },
      [&](int r) { return a.peerIn[r] + a.me * a.bytes; }, a.bytes, a.reduce);
  signalAll(a, Done, e);
  waitAll(a, Done, e);
  e.end();
}

/// Two-shot: every rank pulls its part from all, sums it, and pushes the sum to all.
template <int R, class T, ReduceOp Op>
__global__ void directAllReduce(const __grid_constant__ Args<R> a) {
  Epoch e = enter(a);
  signalAll(a, Ready, e);
  waitAll(a, Ready, e);
  Share part = a.part[a.me];
  reduceBytes<T, Op, R>(
      gridWorkers(), R, [&](int r) { return a.peerOut[r] + part.begin; },
      [&](int r) { return a.peerIn[r] + part.begin; }, part.size(), a.reduce);
  signalAll(a, Done, e);
  waitAll(a, Done, e);
  e.end();
}

/// One block: every rank has come here, and what each did before is visible to all.
template <int R> __global__ void meet(const __grid_constant__ Args<R> a, int kind) {
  Epoch e(a.epochs + kind);
  signalAll(a, Kind(kind), e);
  waitAll(a, Kind(kind), e);
  e.end();
}

//===--- few SMs beside copy engines
//------------------------------------------------------------===//

/// Adds what copy engines bring, chunk by chunk: chunk c of rank r's part is in scratch, at
/// r * stride + its offset, once arrived[r * chunks + c] is 1. `summed[c]` counts blocks.
template <int R> struct ChunkArgs {
  const char *in; // own input's part
  char *out;      // where the sum goes
  char *scratch;  // [sender][bytes]
  const uint32_t *arrived;
  uint32_t *summed; // null: nobody waits for chunks
  Guard guard;
  int64_t bytes, stride;
  ReduceArgs reduce;
  int chunks, me;
};

/// Chunks are cut alike by the host that copies them.
NCCLXRT_HD Share chunkOf(int64_t bytes, int chunks, int c) {
  return shareOf(bytes, 4096, chunks, c);
}

template <int R, class T, ReduceOp Op>
__global__ void addChunks(const __grid_constant__ ChunkArgs<R> a) {
  for (int c = 0; c < a.chunks; ++c) {
    for (int r = threadIdx.x; r < R; r += blockDim.x)
      if (r != a.me)
        waitStreamSlot(a.arrived + r * a.chunks + c, 1, a.guard, c, r);
    __syncthreads();
    Share chunk = chunkOf(a.bytes, a.chunks, c);
    reduceBytes<T, Op, R>(
        gridWorkers(), 1, [&](int) { return a.out + chunk.begin; },
        [&](int r) {
          return (r == a.me ? a.in : const_cast<const char *>(a.scratch) + r * a.stride) +
                 chunk.begin;
        },
        chunk.size(), a.reduce);
    if (a.summed) {
      __syncthreads();
      if (threadIdx.x == 0)
        addRelease<Scope::System>(a.summed + c, 1);
    }
  }
}

} // namespace bench

#endif // NCCLX_TEST_BENCH_CUDA_KERNELS_CUH

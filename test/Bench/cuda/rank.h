//===- rank.h - A rank of the benchmark: its buffers and launches ---*- C++ -*-===//
#ifndef NCCLX_TEST_BENCH_CUDA_RANK_H
#define NCCLX_TEST_BENCH_CUDA_RANK_H

#include "lanes.h"
#include "ncclxrt/device/control.h"
#include "ncclxrt/device/dtype.h"

#include <string>

namespace bench {
using ncclxrt::device::Dtype;
using ncclxrt::device::ReduceOp;

enum class Coll { AllGather, ReduceScatter, AllReduce, AllToAll, Broadcast, Permute };
constexpr Coll allColls[] = {Coll::AllGather, Coll::ReduceScatter, Coll::AllReduce,
                             Coll::AllToAll,  Coll::Broadcast,     Coll::Permute};
/// MeetEngine: CopyEngine whose ranks meet in kernels of one block, not by signals of streams.
enum class Algo { Packet16, Packet128, Two16, Two128, Direct, Bulk, CopyEngine, MeetEngine };
constexpr Algo allAlgos[] = {Algo::Packet16, Algo::Packet128, Algo::Two16,      Algo::Two128,
                             Algo::Direct,   Algo::Bulk,      Algo::CopyEngine, Algo::MeetEngine};
const char *name(Coll coll);
const char *name(Algo algo);

/// How one collective is done.
struct Config {
  Algo algo = Algo::Packet128;
  int blocks = 1, threads = 512;
  int pieces = 1;    ///< of a copy-engine exchange; chunks of a copy-engine reduction
  bool early = true; ///< launched as a programmatic dependent
};

/// One call. `bytes` is the whole buffer: gathered, before scattering, of all_reduce, of all peers.
struct Call {
  Coll coll;
  Dtype dtype = Dtype::BF16;
  ReduceOp op = ReduceOp::Sum;
  double scale = 1;
  int64_t bytes = 0;
  int64_t inOffset = 0, outOffset = 0;
  bool inPlace = false;
  int root = 0, shift = 1; ///< broadcast; permute sends to rank + shift
};

/// Threads of one process, met at barriers.
struct Team {
  explicit Team(int ranks);
  ~Team();
  int ranks;
  void barrier();
  double maxOf(int rank, double value); ///< collective
  static int32_t allgather(void *member, const void *mine, size_t bytes, void *all);

private:
  struct State;
  State *state;
};
struct Member {
  Team *team;
  int rank;
};

/// A multiple of 256: at offset 0 a buffer is aligned as an allocation is.
constexpr int64_t guardBytes = 8448;

struct Rank {
  Member member;
  int me, ranks, device;
  int sms = 0;
  cudaStream_t stream;
  cudaEvent_t start, stop;
  ncclxrtCudaComm_t comm;
  ncclxrt::device::Guard guard;
  int64_t capacity; ///< of the largest call
  std::vector<void *> in, out, scratch, slots;
  /// Packets and zero-copy kernels of one shape have epochs of their own: another number of blocks
  /// is another program.
  int64_t scratchBytes;
  uint64_t *epochs;
  Lanes lanes;

  void init(Team &team, int rank, int gpus, int64_t maxBytes, int64_t timeoutMs);
  void destroy();
  void barrier() { member.team->barrier(); }
  /// As if never used: another program may follow. Collective.
  void reset();
  char *inAt(const Call &call, int rank) const {
    return static_cast<char *>(in[rank]) + guardBytes + call.inOffset;
  }
  char *outAt(const Call &call, int rank) const {
    return static_cast<char *>(out[rank]) + guardBytes + call.outOffset;
  }
  /// Where this rank's input and output of the call lie (in place: one in the other).
  char *input(const Call &call, int rank) const;
  char *output(const Call &call, int rank) const;
  int64_t inputBytes(const Call &call) const;
  int64_t outputBytes(const Call &call) const;
  int64_t piece(const Call &call) const; ///< bytes of one rank's piece

  /// False when there is no such kernel, or the call does not fit.
  bool can(const Call &call, const Config &config) const;
  void launch(const Call &call, const Config &config);
};

/// Kernels by name, or null; each is compiled in a file of its own (moves.cu, sums.cu, types.cu).
template <int R> const void *movementOf(Coll coll, Algo algo, bool aligned);
template <int R, Dtype T> const void *sumOf(Coll coll, Algo algo, bool aligned);
template <Dtype T> const void *everyOpOf(Algo algo, ReduceOp op);
/// Fills the argument block of kernels of R ranks; returns its address (thread's own).
template <int R> void *argumentsOf(const Rank &rank, const Call &call, const Config &config);
template <int R> void *chunkArgumentsOf(const Rank &rank, const Call &call, const Config &config);

} // namespace bench

#endif // NCCLX_TEST_BENCH_CUDA_RANK_H

//===- check.cpp - Whether every bit is right -----------------------------===//
#include "check.h"
#include "data.h"

#include <cstdio>

namespace bench {

namespace {
class Checker {
public:
  Checker(Rank &rank) : r(rank) {
    CUDA(cudaMalloc(reinterpret_cast<void **>(&run), 8));
    CUDA(cudaMalloc(reinterpret_cast<void **>(&bad), 8));
    CUDA(cudaMemset(run, 0, 8));
    CUDA(cudaMemset(bad, 0, 8));
    CUDA(cudaDeviceSynchronize());
  }
  ~Checker() {
    cudaFree(run);
    cudaFree(bad);
  }

  /// One run with everything around it, on the stream alone.
  void once(const Call &call, const Config &config, unsigned late, bool flags) {
    cudaStream_t s = r.stream;
    char *in = r.input(call, r.me), *out = r.output(call, r.me);
    int64_t inBytes = r.inputBytes(call), outBytes = r.outputBytes(call);
    countRun(s, run);
    // The whole output side is poison, so what was not written shows, and what was beside it.
    char *zone = r.outAt(call, r.me) - guardBytes - call.outOffset;
    int64_t zoneBytes = guardBytes + call.outOffset + call.bytes + guardBytes - call.outOffset;
    CUDA(cudaMemsetAsync(zone, poison, size_t(zoneBytes), s));
    fillInput(s, call.dtype, in, inBytes, r.me, run, call.op, flags);
    if (late)
      delay(s, run, r.me, late);
    r.launch(call, config);
    Expect e;
    e.reduces = call.coll == Coll::ReduceScatter || call.coll == Coll::AllReduce;
    e.ranks = r.ranks, e.op = call.op, e.scale = call.scale, e.run = run, e.flags = flags;
    e.piece = r.piece(call);
    switch (call.coll) {
    case Coll::AllGather:
    case Coll::AllReduce:
      break;
    case Coll::ReduceScatter:
    case Coll::AllToAll:
      e.first = r.me * r.piece(call);
      break;
    case Coll::Broadcast:
      e.source = call.root;
      break;
    case Coll::Permute:
      e.source = (r.me + r.ranks - call.shift % r.ranks) % r.ranks;
      break;
    }
    checkOutput(s, call.dtype, out, outBytes, e, bad);
    if (!(call.inPlace && call.coll == Coll::ReduceScatter)) {
      char *begin = zone, *end = zone + zoneBytes;
      checkUntouched(s, begin, out - begin, bad);
      checkUntouched(s, out + outBytes, end - (out + outBytes), bad);
    }
    // The input is as it was: nobody writes there.
    if (!call.inPlace) {
      Expect same;
      same.run = run, same.source = r.me, same.op = call.op, same.flags = flags;
      checkOutput(s, call.dtype, in, inBytes, same, bad);
    }
  }

  /// Wrong elements over all runs, and whether all waits ended; the same on every rank.
  double many(const Call &call, const Config &config, int runs, unsigned late, bool captured,
              bool flags) {
    r.reset();
    CUDA(cudaMemsetAsync(bad, 0, 8, r.stream));
    CUDA(cudaMemsetAsync(run, 0, 8, r.stream)); // so that payloads look like the flags of packets
    if (captured) {
      cudaGraph_t graph;
      cudaGraphExec_t exec;
      CUDA(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
      once(call, config, late, flags);
      CUDA(cudaStreamEndCapture(r.stream, &graph));
      CUDA(cudaGraphInstantiate(&exec, graph, 0));
      for (int i = 0; i < runs; ++i)
        CUDA(cudaGraphLaunch(exec, r.stream));
      CUDA(cudaStreamSynchronize(r.stream));
      CUDA(cudaGraphExecDestroy(exec));
      CUDA(cudaGraphDestroy(graph));
    } else {
      for (int i = 0; i < runs; ++i)
        once(call, config, late, flags);
      require(r.comm, ncclxrtCudaWatch(r.comm, r.stream), "ncclxrtCudaWatch");
      CUDA(cudaStreamSynchronize(r.stream));
    }
    unsigned long long wrong = 0;
    CUDA(cudaMemcpy(&wrong, bad, 8, cudaMemcpyDeviceToHost));
    if (ncclxrtCudaQuery(r.comm) != ncclxrtSuccess) {
      std::fprintf(stderr, "error: %s\n", ncclxrtCudaLastError(r.comm));
      wrong += 1;
    }
    return r.member.team->maxOf(r.me, double(wrong));
  }

  Rank &r;
  uint64_t *run = nullptr;
  unsigned long long *bad = nullptr;
};
} // namespace

CheckResult checkAll(Rank &r, bool allTypes, bool stress) {
  Checker checker(r);
  CheckResult result;
  auto expect = [&](const Call &call, const Config &config, int runs, unsigned late, bool captured,
                    bool flags = false) {
    if (!r.can(call, config))
      return;
    double wrong = checker.many(call, config, runs, late, captured, flags);
    result.cases++;
    if (wrong == 0)
      return;
    result.failed++;
    if (r.me == 0)
      std::printf("WRONG %s %s type %d op %d bytes %ld blocks %d threads %d pieces %d offsets %ld "
                  "%ld%s%s: %.0f elements in %d runs\n",
                  name(call.coll), name(config.algo), int(call.dtype), int(call.op), call.bytes,
                  config.blocks, config.threads, config.pieces, call.inOffset, call.outOffset,
                  call.inPlace ? " in place" : "", captured ? " captured" : "", wrong, runs);
  };
  auto configs = [&](Algo algo) {
    std::vector<Config> all;
    int most = r.ranks > 2 ? 4 : 32; // several ranks share a GPU and must all be resident
    for (int blocks : {1, most})
      all.push_back({algo, blocks, blocks == 1 ? 64 : 256, algo >= Algo::CopyEngine ? 2 : 1, true});
    if (algo >= Algo::CopyEngine)
      all = {{algo, most / 2, 256, 1, true}, {algo, most / 2, 256, 5, true}};
    return all;
  };
  // Sizes and offsets. Whole elements of every rank; counts of 0, 1, primes, tile +/- 1, and bytes
  // of 128k + {1, 2, 4, 8}.
  const int64_t counts[] = {0,     1,          2,          7,          13,         31,
                            127,   128,        129,        509,        2047,       2049,
                            65537, 131072 + 1, 131072 + 2, 131072 + 4, 131072 + 8, 1000003};
  const int64_t offsets[] = {0, 1, 5, 16, 4112};
  for (Coll coll : allColls)
    for (Algo algo : allAlgos)
      for (const Config &config : configs(algo)) {
        int turn = 0;
        for (int64_t count : counts) {
          Call call{coll};
          bool reduces = coll == Coll::ReduceScatter || coll == Coll::AllReduce;
          bool whole = coll == Coll::AllReduce || coll == Coll::Broadcast || coll == Coll::Permute;
          call.dtype = reduces ? (turn % 2 ? Dtype::F32 : Dtype::BF16) : Dtype::U8;
          if (r.ranks > 2 && reduces)
            call.dtype = Dtype::BF16;
          int64_t size = ncclxrt::device::sizeOf(call.dtype);
          call.bytes = count * size * (whole ? 1 : r.ranks);
          int64_t offset = offsets[turn % 5], other = offsets[turn / 2 % 5];
          call.inOffset = reduces ? offset / size * size : offset;
          call.outOffset = reduces ? other / size * size : other;
          call.inPlace = turn % 3 == 2;
          call.root = turn % r.ranks;
          if (call.inPlace)
            call.inOffset = call.outOffset;
          ++turn;
          expect(call, config, 3, 0, false);
        }
      }
  if (allTypes)
    for (int t = 0; t <= int(Dtype::U64); ++t)
      for (int op = 0; op <= int(ReduceOp::ScaledSum); ++op)
        for (Algo algo : {Algo::Packet128, Algo::Direct}) {
          Call call{Coll::AllReduce, Dtype(t), ReduceOp(op), 2};
          call.bytes = 4099 * ncclxrt::device::sizeOf(call.dtype);
          call.inOffset = ncclxrt::device::sizeOf(call.dtype);
          expect(call, {algo, 8, 256, 1, true}, 3, 0, false);
        }
  if (stress) {
    // Back to back with every rank late at random, singly and as a replayed graph.
    for (Coll coll : allColls)
      for (Algo algo : allAlgos)
        for (bool captured : {false, true})
          for (int64_t bytes : {int64_t(480), int64_t(48) << 10, int64_t(6) << 20}) {
            if (bytes > (1 << 20) && algo < Algo::Direct && algo != Algo::Packet128)
              continue;
            Call call{coll};
            bool reduces = coll == Coll::ReduceScatter || coll == Coll::AllReduce;
            call.dtype = reduces ? Dtype::BF16 : Dtype::U64;
            call.bytes = bytes / (r.ranks * 8) * (r.ranks * 8);
            Config config = configs(algo).back();
            expect(call, config, bytes > (1 << 20) ? 200 : 1000, 20, captured,
                   !reduces); // payload that looks like flags
          }
  }
  return result;
}

} // namespace bench

//===- CudaRanks.h - Ranks as threads on a fake driver -----------*- C++ -*-===//
//
// Each has a communicator, a stream and plans of one small program; what their streams are given is
// done for real on host memory.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TEST_UNIT_RUNTIME_CUDARANKS_H
#define NCCLX_TEST_UNIT_RUNTIME_CUDARANKS_H

#include "cuda/Driver.h"
#include "ncclxrt/cuda.h"

#include <barrier>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

namespace cuda_ranks {

using ncclxrt::cuda::Address;
using ncclxrt::cuda::Driver;
using ncclxrt::cuda::Event;

constexpr int ranks = 3, words = 16; // on two GPUs
constexpr int64_t piece = words * sizeof(int32_t), all = ranks * piece;

/// An all_gather. `inPlace`: a rank's piece lies where it belongs in the output.
template <bool inPlace> int32_t gather(int64_t exec) {
  int64_t rank = ncclxrtCuda_rank(exec), run = ncclxrtCuda_run(exec), own = rank * piece;
  int32_t s = 0;
  for (int64_t peer = 0; peer < ranks; ++peer) // it may write here
    s = ncclxrtCuda_signal(s, exec, 0, 0, 1, peer, rank);
  s = ncclxrtCuda_wait(s, exec, 1, 0, 1, 0, ranks, run + 1);
  for (int64_t i = 0; i < ranks; ++i) {
    int64_t peer = (rank + i) % ranks;
    if (inPlace && peer == rank)
      s = ncclxrtCuda_signal(s, exec, 2, 0, 0, peer, rank);
    else
      s = ncclxrtCuda_copy(s, exec, 2, 0, 1, peer, own, 1, piece, piece, inPlace ? 1 : 0, -1,
                           inPlace ? own : 0, 1, piece, piece, 0, peer, rank);
  }
  return ncclxrtCuda_wait(s, exec, 3, 0, 0, 0, ranks, run + 1);
}

inline const Driver &driver() {
  static std::string why;
  static const Driver *loaded = Driver::load(FAKE_CUDA, why);
  return *loaded;
}

/// What the ranks' threads share: all_gathers of the bootstrap.
struct Hall {
  std::barrier<> meeting{ranks};
  std::vector<std::vector<char>> brought{ranks};
};

/// A plan, its stream and what it is given.
struct Rank {
  Hall &hall;
  int rank;
  ncclxrtCudaComm_t comm = nullptr;
  ncclxrtCudaPlan_t plan = nullptr;
  void *stream = nullptr;
  std::string wrong = {};

  void meet() { hall.meeting.arrive_and_wait(); }
  void expect(bool good, const std::string &what) {
    if (!good && wrong.empty())
      wrong = what + " (" + ncclxrtCudaLastError(comm) + ")";
  }
  static int32_t allgather(void *context, const void *mine, size_t bytes, void *everything) {
    auto &me = *static_cast<Rank *>(context);
    const char *from = static_cast<const char *>(mine);
    me.hall.brought[size_t(me.rank)].assign(from, from + bytes);
    me.meet();
    for (int r = 0; r < ranks; ++r)
      memcpy(static_cast<char *>(everything) + size_t(r) * bytes, me.hall.brought[size_t(r)].data(),
             bytes);
    me.meet();
    return 0;
  }
  ncclxrtCudaComm_t join(int64_t timeoutMs = 20'000) {
    ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
    config.rank = rank, config.nranks = ranks, config.device = rank % 2;
    config.timeout_ms = timeoutMs;
    config.allgather = allgather, config.context = this;
    config.driver = FAKE_CUDA;
    ncclxrtCudaComm_t made = nullptr;
    expect(ncclxrtCudaInit(&config, &made) == ncclxrtSuccess, "init");
    return made;
  }
  ncclxrtResult_t prepare(ncclxrtProgram_t program, void *const *memory = nullptr,
                          std::vector<ncclxrtSizeDesc_t> sizes = {}) {
    ncclxrtWindowDesc_t windows[] = {{"in", piece, 1, 1}, {"out", all, 1, 2}};
    ncclxrtSlotsDesc_t slots[] = {{"landed", ranks, 1, 1}, {"free", ranks, 1, 1}};
    ncclxrtLaneDesc_t lanes[] = {{"ce0", ncclxrtLaneCe, 0}};
    ncclxrtOpDesc_t ops[] = {{"tell", 0}, {"may I", 0}, {"put", 0}, {"await", 0}};
    ncclxrtPlanDesc_t host = NCCLXRT_PLAN_DESC_INIT;
    host.name = "gather", host.hash = 1;
    host.windows = windows, host.num_windows = 2;
    host.slots = slots, host.num_slots = 2;
    host.lanes = lanes, host.num_lanes = 1;
    host.ops = ops, host.num_ops = 4;
    host.sizes = sizes.data(), host.num_sizes = sizes.size();
    int64_t writers[] = {1, 1};
    ncclxrtCudaPlanDesc_t desc = NCCLXRT_CUDA_PLAN_DESC_INIT;
    desc.plan = &host, desc.slot_writers = writers, desc.memory = memory;
    return ncclxrtCudaPlanPrepare(comm, &desc, program, &plan);
  }
  void *buffer(ncclxrtCudaPlan_t of, size_t window) {
    void *at = nullptr;
    size_t bytes;
    expect(ncclxrtCudaPlanBuffer(of, window, 0, &at, &bytes) == ncclxrtSuccess, "buffer");
    return at;
  }
  /// New inputs and poison for outputs, `start`, and a look at what came.
  void round(ncclxrtCudaPlan_t of, bool inPlace, int32_t number,
             const std::function<ncclxrtResult_t()> &start) {
    fill(of, inPlace, number);
    expect(start() == ncclxrtSuccess, "start of round " + std::to_string(number));
    look(of, inPlace, number);
  }
  void fill(ncclxrtCudaPlan_t of, bool inPlace, int32_t number) {
    std::vector<int32_t> poison(size_t(ranks) * words, -1);
    auto *in = &poison[inPlace ? size_t(rank) * words : 0];
    auto *out = static_cast<char *>(buffer(of, 1));
    std::vector<int32_t> mine(words);
    for (int i = 0; i < words; ++i)
      mine[size_t(i)] = valueOf(rank, number, i);
    if (inPlace)
      std::copy(mine.begin(), mine.end(), in);
    (void)ncclxrtCudaCopy(comm, stream, out, poison.data(), all);
    if (!inPlace)
      (void)ncclxrtCudaCopy(comm, stream, buffer(of, 0), mine.data(), piece);
    expect(ncclxrtCudaSynchronize(comm, stream) == ncclxrtSuccess, "fill");
    meet(); // nobody's poison comes after a peer's data
  }
  void look(ncclxrtCudaPlan_t of, bool inPlace, int32_t number) {
    std::vector<int32_t> out(size_t(ranks) * words);
    (void)ncclxrtCudaCopy(comm, stream, out.data(), buffer(of, 1), all);
    expect(ncclxrtCudaSynchronize(comm, stream) == ncclxrtSuccess, "end");
    std::vector<int32_t> in(words); // which nobody has written
    (void)ncclxrtCudaCopy(comm, stream, in.data(),
                          static_cast<char *>(buffer(of, inPlace)) + (inPlace ? rank * piece : 0),
                          piece);
    expect(ncclxrtCudaSynchronize(comm, stream) == ncclxrtSuccess, "end");
    for (int i = 0; i < words; ++i)
      expect(in[size_t(i)] == valueOf(rank, number, i), "the input was written");
    for (int i = 0; i < ranks * words; ++i)
      expect(out[size_t(i)] == valueOf(i / words, number, i % words),
             "round " + std::to_string(number) + " brought " + std::to_string(out[size_t(i)]));
    meet();
  }
  static int32_t valueOf(int rank, int32_t number, int i) { return 1000 * number + 100 * rank + i; }
  ncclxrtCudaGraph_t capture(const std::function<void()> &body) {
    ncclxrtCudaGraph_t graph = nullptr;
    expect(ncclxrtCudaCaptureBegin(comm, stream) == ncclxrtSuccess, "begin");
    body();
    expect(ncclxrtCudaCaptureEnd(comm, stream, &graph) == ncclxrtSuccess, "capture");
    return graph;
  }
  ncclxrtCudaGraph_t captureRuns(ncclxrtCudaPlan_t of, int runs = 1) {
    return capture([&] {
      for (int i = 0; i < runs; ++i)
        expect(ncclxrtCudaPlanRun(of, stream) == ncclxrtSuccess, "captured run");
    });
  }
  void replay(ncclxrtCudaGraph_t graph, ncclxrtCudaPlan_t of, int32_t number,
              bool inPlace = false) {
    round(of, inPlace, number, [&] { return ncclxrtCudaGraphLaunch(graph, stream); });
  }
  void eager(ncclxrtCudaPlan_t of, int32_t number, bool inPlace = false) {
    round(of, inPlace, number, [&] { return ncclxrtCudaPlanRun(of, stream); });
  }
  ncclxrtCudaPlan_t another(bool inPlace = false) {
    expect(prepare(inPlace ? gather<true> : gather<false>) == ncclxrtSuccess, "prepare");
    return plan;
  }
  void destroy(ncclxrtCudaPlan_t of) {
    meet(); // its memory is the communicator's, its streams must be idle on the whole GPU
    expect(ncclxrtCudaPlanDestroy(of) == ncclxrtSuccess, "destroy");
  }
};

/// `body` on each rank's thread, with a communicator, a stream and a plan; it destroys its plan.
/// Streams do each thing late, at random.
inline void play(const std::function<void(Rank &)> &body, int64_t timeoutMs = 20'000) {
  setenv("FAKE_CUDA_DELAY", "20", 1);
  Hall hall;
  std::vector<std::string> wrong(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      Rank me{hall, r};
      me.comm = me.join(timeoutMs);
      me.expect(ncclxrtCudaStream(me.comm, &me.stream) == ncclxrtSuccess, "stream");
      body(me);
      me.meet();
      me.expect(ncclxrtCudaDestroy(me.comm) == ncclxrtSuccess, "leaving");
      wrong[size_t(r)] = me.wrong;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<std::string>(ranks));
}

} // namespace cuda_ranks

#endif // NCCLX_TEST_UNIT_RUNTIME_CUDARANKS_H

//===- CudaProcessTest.cpp - Ranks on GPUs that are processes --------------===//
//
// On a fake driver whose memory processes can open: what each rank's streams do is done for real.
//
//===----------------------------------------------------------------------===//
#include "MappedMemory.h"
#include "ncclxrt/cuda.h"
#include "ncclxrt/launch.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using ncclxrt::LaunchedRank;
using ncclxrt::RankExit;

namespace {

constexpr int words = 16;
constexpr int64_t bytes = words * sizeof(int32_t);

/// A message goes round the ring; the next run's is written when this one's has been read.
int32_t ring(int64_t exec) {
  int64_t rank = ncclxrtCuda_rank(exec), run = ncclxrtCuda_run(exec);
  int64_t n = std::atoi(std::getenv("RING")), next = (rank + 1) % n, last = (rank + n - 1) % n;
  int32_t s = ncclxrtCuda_signal(0, exec, 0, 0, 1, last, 0);
  s = ncclxrtCuda_wait(s, exec, 1, 0, 1, 0, 1, run + 1);
  s = ncclxrtCuda_copy(s, exec, 2, 0, 1, next, 0, 1, bytes, bytes, 0, -1, 0, 1, bytes, bytes, 0,
                       next, 0);
  return ncclxrtCuda_wait(s, exec, 3, 0, 0, 0, 1, run + 1);
}

/// One rank, as a process; what it reports is "" or the sentence of what failed.
class Rank {
public:
  Rank(const LaunchedRank &launched) : rank(launched.rank), nranks(launched.nranks) {
    setenv("RING", std::to_string(nranks).c_str(), 1);
    ncclxrtCommConfig_t config = launched.config();
    if (ncclxrtCommInit(&config, &job) != ncclxrtSuccess)
      said = ncclxrtGetLastError(nullptr);
  }
  bool init() {
    ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
    config.rank = rank, config.nranks = nranks, config.device = rank % 2;
    config.timeout_ms = 20'000;
    config.allgather = ncclxrtCommAllgather;
    config.failure = ncclxrtCommFailure;
    config.context = job;
    config.driver = FAKE_CUDA;
    return good(ncclxrtCudaInit(&config, &comm)) && good(ncclxrtCudaStream(comm, &stream));
  }
  ncclxrtResult_t prepare(uint64_t hash, void *const *memory = nullptr) {
    ncclxrtWindowDesc_t windows[] = {{"in", bytes, 1, 1}, {"out", bytes, 1, 2}};
    ncclxrtSlotsDesc_t slots[] = {{"landed", 1, 1, 1}, {"free", 1, 1, 1}};
    ncclxrtLaneDesc_t lanes[] = {{"ce0", ncclxrtLaneCe, 0}};
    ncclxrtOpDesc_t ops[] = {{"tell", 0}, {"may I", 0}, {"put", 0}, {"await", 0}};
    ncclxrtPlanDesc_t host = NCCLXRT_PLAN_DESC_INIT;
    host.name = "ring", host.hash = hash;
    host.windows = windows, host.num_windows = 2;
    host.slots = slots, host.num_slots = 2;
    host.lanes = lanes, host.num_lanes = 1;
    host.ops = ops, host.num_ops = 4;
    int64_t writers[] = {1, 1};
    ncclxrtCudaPlanDesc_t desc = NCCLXRT_CUDA_PLAN_DESC_INIT;
    desc.plan = &host, desc.slot_writers = writers, desc.memory = memory;
    return ncclxrtCudaPlanPrepare(comm, &desc, ring, &plan);
  }
  /// One run with its inputs and a look at what came.
  bool run(int32_t number) {
    int32_t in[words], out[words];
    void *from, *to;
    size_t size;
    for (int i = 0; i < words; ++i)
      in[i] = 1000 * number + 100 * rank + i;
    if (!good(ncclxrtCudaPlanBuffer(plan, 0, 0, &from, &size)) ||
        !good(ncclxrtCudaPlanBuffer(plan, 1, 0, &to, &size)) ||
        !good(ncclxrtCudaCopy(comm, stream, from, in, bytes)) ||
        !good(ncclxrtCudaPlanRun(plan, stream)) ||
        !good(ncclxrtCudaCopy(comm, stream, out, to, bytes)) ||
        !good(ncclxrtCudaSynchronize(comm, stream)))
      return false;
    for (int i = 0; i < words; ++i)
      if (out[i] != in[i] + 100 * ((rank + nranks - 1) % nranks - rank))
        said = "run " + std::to_string(number) + " brought " + std::to_string(out[i]);
    // What came has been read before the next may come.
    if (said.empty() && ncclxrtCommAllgather(job, nullptr, 0, nullptr) != 0)
      said = ncclxrtGetLastError(job);
    return said.empty();
  }
  bool good(int32_t result) {
    if (result != 0 && said.empty())
      said = ncclxrtCudaLastError(comm);
    return result == 0;
  }
  std::string leave() {
    if (plan)
      (void)ncclxrtCudaPlanWait(plan);
    ncclxrtCudaPlanDestroy(plan);
    ncclxrtCudaDestroy(comm);
    if (ncclxrtCommDestroy(job) != ncclxrtSuccess && said.empty())
      said = ncclxrtGetLastError(nullptr);
    return said;
  }

  int rank, nranks;
  ncclxrtComm_t job = nullptr;
  ncclxrtCudaComm_t comm = nullptr;
  ncclxrtCudaPlan_t plan = nullptr;
  void *stream = nullptr;
  std::string said;
};

/// What each rank reports; "signal N" of one that died.
std::vector<std::string> play(int nranks, const std::function<std::string(Rank &)> &body) {
  constexpr size_t room = 1000;
  auto *texts = static_cast<char *>(
      mmap(nullptr, room * nranks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ncclxrt::LaunchOptions options;
  options.nranks = nranks, options.job = "cuda", options.timeoutMs = 20'000;
  options.limitMs = 60'000;
  std::vector<RankExit> exits = ncclxrt::launch(options, [&](const LaunchedRank &launched) {
    setenv("FAKE_CUDA_IPC", "1", 0);
    Rank rank(launched);
    std::snprintf(texts + room * launched.rank, room, "%s", body(rank).c_str());
    return 0;
  });
  std::vector<std::string> said;
  for (int r = 0; r < nranks; ++r)
    said.push_back(exits[r].ok() ? texts + room * r : exits[r].str());
  munmap(texts, room * nranks);
  return said;
}

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(CudaProcesses, RanksOutnumberGpus) {
  std::vector<std::string> said = play(5, [](Rank &rank) {
    if (rank.init() && rank.good(rank.prepare(1)))
      for (int32_t number = 0; number < 20 && rank.run(number); ++number)
        ;
    return rank.leave();
  });
  EXPECT_EQ(said, std::vector<std::string>(5));
}

TEST(CudaProcesses, TheCallersMemoryIsReachedWhereItLies) {
  std::vector<std::string> said = play(3, [](Rank &rank) {
    void *region[3];
    if (!rank.init() || !rank.good(ncclxrtCudaWindow(rank.comm, nullptr, 8192, region)))
      return rank.leave();
    // Each at another place of its region, and rank 2 brings one alone.
    char *own = static_cast<char *>(region[rank.rank]) + 256 * (rank.rank + 1);
    void *memory[] = {own, rank.rank == 2 ? nullptr : own + 4096};
    if (rank.good(rank.prepare(1, memory)))
      for (int32_t number = 0; number < 5 && rank.run(number); ++number)
        ;
    void *at;
    size_t size;
    if (rank.plan && rank.good(ncclxrtCudaPlanBuffer(rank.plan, 1, 0, &at, &size)) &&
        rank.rank != 2 && at != own + 4096)
      rank.said = "the memory is another";
    return rank.leave();
  });
  EXPECT_EQ(said, std::vector<std::string>(3));
}

// Memory that is made and mapped has no handle of the driver's for processes: it is a file to them,
// and each maps it anew. Some ranks bring such memory, others such of the driver's allocator.
TEST(CudaProcesses, MappedMemoryIsPassedAsAFile) {
  constexpr int nranks = 5;
  std::vector<std::string> said = play(nranks, [](Rank &rank) {
    if (!rank.init())
      return rank.leave();
    for (int32_t round = 0; round < 3; ++round) {
      uint64_t at = makeMapped(rank.rank % 2, 3 * 4096);
      if (!at)
        return std::string("there is no such memory");
      char *own = reinterpret_cast<char *>(at) + 64 * (rank.rank + 1);
      void *memory[] = {rank.rank == 3 ? nullptr : own, rank.rank == 1 ? nullptr : own + 4096};
      if (!rank.good(rank.prepare(1, memory)))
        return rank.leave();
      for (int32_t number = 0; number < 3 && rank.run(10 * round + number); ++number)
        ;
      (void)ncclxrtCudaPlanDestroy(rank.plan);
      rank.plan = nullptr;
    }
    return rank.leave();
  });
  EXPECT_EQ(said, std::vector<std::string>(nranks));
}

// What was not made to be shared is an error of all, and so is a file that one rank cannot map.
TEST(CudaProcesses, MappedMemoryThatCannotBeOpened) {
  auto attempt = [](int handleTypes, const char *failing) {
    return play(3, [=](Rank &rank) {
      if (!rank.init())
        return rank.leave();
      uint64_t at = makeMapped(rank.rank % 2, 8192, rank.rank == 2 ? handleTypes : 1);
      if (rank.rank == 1)
        setenv("FAKE_CUDA_FAIL", failing, 1);
      void *memory[] = {reinterpret_cast<void *>(at), reinterpret_cast<void *>(at + 4096)};
      rank.good(rank.prepare(1, memory));
      return rank.leave();
    });
  };
  std::vector<std::string> said = attempt(0, "");
  for (int r : {0, 1})
    EXPECT_TRUE(has(said[r], "the memory of rank 2 cannot be shared with other processes: "
                             "cuMemExportToShareableHandle failed there"))
        << said[r];
  EXPECT_TRUE(has(said[2], "cannot reach the memory of another")) << said[2];
  for (const char *call :
       {"cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"}) {
    said = attempt(1, call);
    EXPECT_TRUE(has(said[1], "the memory of rank 0 cannot be opened: " + std::string(call) +
                                 " failed: made to fail"))
        << said[1];
    for (int r : {0, 2})
      EXPECT_TRUE(has(said[r], "rank 1 cannot reach the memory of another")) << said[r];
  }
}

// Registered ten thousand times, memory of others is opened once, whichever its kind: nothing runs
// out. Memory that comes and goes is opened anew each time.
TEST(CudaProcesses, RegisteredTenThousandTimes) {
  std::vector<std::string> said = play(2, [](Rank &rank) {
    setenv("FAKE_CUDA_OPEN", "2", 1); // so much of the other rank
    if (!rank.init())
      return rank.leave();
    void *peers[2], *memory[2];
    if (!rank.good(ncclxrtCudaWindow(rank.comm, nullptr, 8192, peers)))
      return rank.leave();
    memory[0] = peers[rank.rank];
    memory[1] = reinterpret_cast<void *>(makeMapped(rank.rank, 8192));
    for (int i = 0; i < 10'000; ++i) {
      char *own = static_cast<char *>(memory[i % 2]) + i % 64 * 64;
      if (!rank.good(ncclxrtCudaWindow(rank.comm, own, 4096, peers)))
        break;
      if (peers[rank.rank] != own || !peers[1 - rank.rank])
        rank.said = "registered elsewhere";
    }
    // A third one is one too many.
    uint64_t more = makeMapped(rank.rank, 8192);
    if (rank.said.empty() && ncclxrtCudaWindow(rank.comm, reinterpret_cast<void *>(more), 8192,
                                               peers) != ncclxrtOutOfMemory)
      rank.said = "the limit is none";
    return rank.leave();
  });
  EXPECT_EQ(said, std::vector<std::string>(2));
}

TEST(CudaProcesses, AnotherPlanIsRefusedByAll) {
  std::vector<std::string> said = play(3, [](Rank &rank) {
    if (!rank.init())
      return rank.leave();
    ncclxrtResult_t result = rank.prepare(rank.rank == 1 ? 2 : 1);
    std::string refused = ncclxrtCudaLastError(rank.comm);
    (void)rank.leave();
    return result == ncclxrtPlanMismatch && !rank.plan ? refused : "not refused";
  });
  for (const std::string &sentence : said)
    EXPECT_EQ(sentence, "rank 1 brings another plan than rank 0");
}

TEST(CudaProcesses, SurvivorsOfADeadRankNameIt) {
  for (bool inTheMiddle : {false, true}) {
    auto start = std::chrono::steady_clock::now();
    std::vector<std::string> said = play(4, [&](Rank &rank) {
      if (rank.init() && rank.good(rank.prepare(1)))
        for (int32_t number = 0; number < 100; ++number) {
          if (rank.rank == 1 && number == 3) {
            if (inTheMiddle) // its peers' streams already wait for what it was given
              (void)ncclxrtCudaPlanRun(rank.plan, rank.stream);
            kill(getpid(), SIGKILL);
          }
          if (!rank.run(number))
            break;
        }
      return rank.leave();
    });
    EXPECT_EQ(said[1], "signal 9");
    for (int r : {0, 2, 3})
      EXPECT_TRUE(has(said[r], "rank 1")) << r << ": " << said[r];
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
  }
}

TEST(CudaProcesses, MemoryThatOthersCannotOpenIsAnErrorOfAll) {
  std::vector<std::string> said = play(3, [](Rank &rank) {
    if (rank.rank == 1)
      unsetenv("FAKE_CUDA_IPC");
    if (rank.init())
      rank.good(rank.prepare(1));
    return rank.leave();
  });
  for (int r : {0, 2})
    EXPECT_TRUE(has(said[r], "the memory of rank 1 cannot be shared with other processes: "
                             "cuIpcGetMemHandle failed there: not supported"))
        << said[r];
  EXPECT_TRUE(has(said[1], "rank 0 cannot reach the memory of another")) << said[1];

  said = play(3, [](Rank &rank) {
    if (rank.rank == 1)
      setenv("FAKE_CUDA_FAIL", "cuIpcOpenMemHandle_v2", 1);
    if (rank.init())
      rank.good(rank.prepare(1));
    return rank.leave();
  });
  EXPECT_TRUE(has(said[1], "the memory of rank 0 cannot be opened: cuIpcOpenMemHandle failed"))
      << said[1];
  for (int r : {0, 2})
    EXPECT_TRUE(has(said[r], "rank 1 cannot reach the memory of another")) << said[r];
}

TEST(CudaProcesses, AnAllgatherOfUnequalSizesIsRefused) {
  std::vector<std::string> said = play(2, [](Rank &rank) {
    int32_t mine[2] = {rank.rank, rank.rank}, all[4] = {};
    if (ncclxrtCommAllgather(rank.job, mine, rank.rank ? 8 : 4, all) == 0)
      return std::string("not refused");
    rank.said = ncclxrtGetLastError(rank.job);
    return rank.leave();
  });
  EXPECT_EQ(said[0], "rank 1 brings 8 bytes to an all-gather, rank 0 4");
  EXPECT_EQ(said[1], "rank 0 brings 4 bytes to an all-gather, rank 1 8");
}

} // namespace

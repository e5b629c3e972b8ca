//===- mapped.cpp - Memory that a caller made and mapped, between processes ---------------===//
//
// Two ranks, processes or threads, each with a GPU and memory of cuMemCreate: each reads what the
// other has written there, some bytes behind its start, over several windows of one allocation.
//
//   c++ -std=c++20 -I runtime/include -I runtime/lib test/Bench/cuda/mapped.cpp \
//     BUILD/runtime/libncclxrt_cuda.a BUILD/runtime/libncclxrt.a -ldl -lpthread -o mapped
//   ./mapped processes && ./mapped threads
//
//===----------------------------------------------------------------------===//
#include "cuda/Driver.h"
#include "ncclxrt/cuda.h"
#include "ncclxrt/launch.h"

#include <barrier>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <vector>

using namespace ncclxrt::cuda;

struct Prop { // CUmemAllocationProp
  int type, handleTypes;
  struct {
    int type, id;
  } location;
  void *metaData;
  unsigned char flags[8];
};

static std::string check(int rank, ncclxrtAllgather_t allgather, void *context) {
  ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
  config.rank = config.device = rank, config.nranks = 2;
  config.allgather = allgather, config.context = context;
  ncclxrtCudaComm_t comm = nullptr;
  if (ncclxrtCudaInit(&config, &comm) != ncclxrtSuccess)
    return ncclxrtCudaLastError(nullptr);
  void *stream = nullptr, *peers[2];
  std::string why;
  const Driver *driver = Driver::load(nullptr, why);
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  auto create = reinterpret_cast<int (*)(MemoryHandle *, size_t, const Prop *, unsigned long long)>(
      dlsym(library, "cuMemCreate"));
  auto granularity = reinterpret_cast<int (*)(size_t *, const Prop *, int)>(
      dlsym(library, "cuMemGetAllocationGranularity"));
  Prop prop{1, posixFile, {onDevice, rank}, nullptr, {}};
  AccessDesc own{{onDevice, rank}, readAndWrite};
  size_t unit = 0;
  MemoryHandle handle = 0;
  Address at = 0;
  if (ncclxrtCudaStream(comm, &stream) || granularity(&unit, &prop, 0) ||
      create(&handle, 2 * unit, &prop, 0) || driver->reserve(&at, 2 * unit, 0, 0, 0) ||
      driver->map(at, 2 * unit, 0, handle, 0) || driver->setAccess(at, 2 * unit, &own, 1) ||
      driver->releaseHandle(handle))
    return "there is no such memory";
  std::vector<int> mine(1000), theirs(1000);
  for (int round = 0; round < 20; ++round) {
    char *place = reinterpret_cast<char *>(at) + 4096 * round + 16;
    for (int i = 0; i < 1000; ++i)
      mine[size_t(i)] = 100000 * rank + 1000 * round + i;
    if (ncclxrtCudaWindow(comm, place, 4000, peers) ||
        ncclxrtCudaCopy(comm, stream, place, mine.data(), 4000) ||
        ncclxrtCudaSynchronize(comm, stream))
      return ncclxrtCudaLastError(comm);
    char one = 0, both[2];
    allgather(context, &one, 1, both);
    if (ncclxrtCudaCopy(comm, stream, theirs.data(), peers[1 - rank], 4000) ||
        ncclxrtCudaSynchronize(comm, stream))
      return ncclxrtCudaLastError(comm);
    for (int i = 0; i < 1000; ++i)
      if (theirs[size_t(i)] != 100000 * (1 - rank) + 1000 * round + i)
        return "round " + std::to_string(round) + " brought " + std::to_string(theirs[size_t(i)]);
    allgather(context, &one, 1, both);
  }
  if (ncclxrtCudaDestroy(comm) != ncclxrtSuccess)
    return ncclxrtCudaLastError(comm);
  return driver->unmap(at, 2 * unit) || driver->freeReserved(at, 2 * unit) ? "not the caller's"
                                                                           : "";
}

static std::barrier<> all{2};
static const void *pieces[2];
static int32_t byThreads(void *rank, const void *mine, size_t bytes, void *to) {
  pieces[*static_cast<int *>(rank)] = mine;
  all.arrive_and_wait();
  for (size_t r = 0; r < 2; ++r)
    std::memcpy(static_cast<char *>(to) + r * bytes, pieces[r], bytes);
  all.arrive_and_wait();
  return 0;
}

int main(int argc, char **argv) {
  bool bad = false;
  auto say = [&](int rank, const std::string &wrong) {
    std::printf("%s rank %d: %s\n", argv[1], rank, wrong.empty() ? "ok" : wrong.c_str());
    std::fflush(stdout);
    bad |= !wrong.empty();
    return wrong.empty() ? 0 : 1;
  };
  if (argc > 1 && !std::strcmp(argv[1], "processes")) {
    ncclxrt::LaunchOptions options;
    options.nranks = 2, options.job = "mapped", options.limitMs = 60'000;
    for (const ncclxrt::RankExit &exit :
         ncclxrt::launch(options, [&](const ncclxrt::LaunchedRank &launched) {
           ncclxrtCommConfig_t config = launched.config();
           ncclxrtComm_t job = nullptr;
           if (ncclxrtCommInit(&config, &job) != ncclxrtSuccess)
             return say(launched.rank, ncclxrtGetLastError(nullptr));
           int code = say(launched.rank, check(launched.rank, ncclxrtCommAllgather, job));
           ncclxrtCommDestroy(job);
           return code;
         }))
      bad |= !exit.ok();
  } else {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        int me = rank;
        say(rank, check(rank, byThreads, &me));
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  return bad;
}

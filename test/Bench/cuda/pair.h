//===- pair.h - Two ranks as threads, each with a GPU, and NCCL beside them -*- C++ -*-===//
//
// What programs that time compiled schedules have in common. Each is one source file: what stands
// here is its own.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TEST_BENCH_CUDA_PAIR_H
#define NCCLX_TEST_BENCH_CUDA_PAIR_H

#include "ncclxrt/cuda.h"

#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <type_traits>

constexpr int ranks = 2;

/// Libraries that the system does not find; empty: it does.
static std::string ncclPath, driver;

static std::barrier<> all{ranks};
static const void *pieces[ranks];
static int32_t allgather(void *rank, const void *mine, size_t bytes, void *to) {
  pieces[*static_cast<int *>(rank)] = mine;
  all.arrive_and_wait();
  for (int r = 0; r < ranks; ++r)
    std::memcpy(static_cast<char *>(to) + size_t(r) * bytes, pieces[r], bytes);
  all.arrive_and_wait();
  return 0;
}

[[noreturn]] static void fail(const std::string &text) {
  std::printf("error: %s\n", text.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

struct NcclId {
  char data[128];
};
/// Its C interface, of any version 2.
static struct Nccl {
  int (*GetUniqueId)(NcclId *);
  int (*CommInitRank)(void **, int, NcclId, int);
  int (*MemAlloc)(void **, size_t);
  int (*AllGather)(const void *, void *, size_t, int, void *, void *);
  int (*ReduceScatter)(const void *, void *, size_t, int, int, void *, void *);
  int (*Send)(const void *, size_t, int, int, void *, void *);
  int (*Recv)(void *, size_t, int, int, void *, void *);
  int (*GroupStart)();
  int (*GroupEnd)();
  const char *(*GetErrorString)(int);
  bool loaded = false;

  void load() {
    void *library = dlopen(ncclPath.empty() ? "libnccl.so.2" : ncclPath.c_str(), RTLD_NOW);
    loaded = library;
    auto find = [&](auto &function, const char *name) {
      function =
          library
              ? reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name))
              : nullptr;
      loaded = loaded && function;
    };
    find(GetUniqueId, "ncclGetUniqueId");
    find(CommInitRank, "ncclCommInitRank");
    find(MemAlloc, "ncclMemAlloc");
    find(AllGather, "ncclAllGather");
    find(ReduceScatter, "ncclReduceScatter");
    find(Send, "ncclSend");
    find(Recv, "ncclRecv");
    find(GroupStart, "ncclGroupStart");
    find(GroupEnd, "ncclGroupEnd");
    find(GetErrorString, "ncclGetErrorString");
  }
  void check(int result) {
    if (result)
      fail(std::string("NCCL: ") + GetErrorString(result));
  }
} nccl;

/// A rank's thread: its GPU, a stream, and NCCL's communicator where that is loaded.
struct PairRank {
  int me;
  ncclxrtCudaComm_t comm = nullptr;
  void *stream = nullptr, *ncclComm = nullptr;

  void check(ncclxrtResult_t result) {
    if (result != ncclxrtSuccess)
      fail("rank " + std::to_string(me) + ": " + ncclxrtCudaLastError(comm));
  }
  void connect(int device) {
    ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
    config.rank = me;
    config.device = device;
    config.nranks = ranks;
    config.allgather = allgather;
    config.context = &me;
    config.driver = driver.empty() ? nullptr : driver.c_str();
    check(ncclxrtCudaInit(&config, &comm));
    check(ncclxrtCudaStream(comm, &stream));
    if (!nccl.loaded)
      return;
    NcclId id{};
    if (me == 0)
      nccl.check(nccl.GetUniqueId(&id));
    NcclId ids[ranks];
    allgather(&me, &id, sizeof id, ids);
    nccl.check(nccl.CommInitRank(&ncclComm, ranks, ids[0], me));
  }
};

#endif // NCCLX_TEST_BENCH_CUDA_PAIR_H

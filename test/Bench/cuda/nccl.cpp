//===- nccl.cpp - NCCL by dlopen ------------------------------------------===//
#include "nccl.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <unistd.h>

namespace bench {

static struct Api {
#define NCCLX_NCCL(F) decltype(&::nccl##F) F;
#define NCCLX_NCCL_ALL                                                                             \
  NCCLX_NCCL(GetVersion)                                                                           \
  NCCLX_NCCL(GetUniqueId)                                                                          \
  NCCLX_NCCL(CommInitRankConfig)                                                                   \
  NCCLX_NCCL(CommDestroy)                                                                          \
  NCCLX_NCCL(MemAlloc)                                                                             \
  NCCLX_NCCL(MemFree)                                                                              \
  NCCLX_NCCL(CommWindowRegister)                                                                   \
  NCCLX_NCCL(AllGather)                                                                            \
  NCCLX_NCCL(AllReduce)                                                                            \
  NCCLX_NCCL(ReduceScatter)                                                                        \
  NCCLX_NCCL(AlltoAll)                                                                             \
  NCCLX_NCCL(Broadcast)                                                                            \
  NCCLX_NCCL(Send)                                                                                 \
  NCCLX_NCCL(Recv)                                                                                 \
  NCCLX_NCCL(GroupStart)                                                                           \
  NCCLX_NCCL(GroupEnd)                                                                             \
  NCCLX_NCCL(GetErrorString)
  NCCLX_NCCL_ALL
#undef NCCLX_NCCL
  bool loaded = false;
} api;

static bool load() {
  static std::once_flag once;
  std::call_once(once, [] {
    void *library = nullptr;
    for (const char *path : {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"})
      if (!library)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return;
    bool all = true;
#define NCCLX_NCCL(F) all &= bool(api.F = (decltype(api.F))dlsym(library, "nccl" #F));
    NCCLX_NCCL_ALL
#undef NCCLX_NCCL
    api.loaded = all;
  });
  return api.loaded;
}

static void check(ncclResult_t result, const char *what) {
  if (result == ncclSuccess)
    return;
  std::fprintf(stderr, "error: %s: %s\n", what, api.GetErrorString(result));
  std::fflush(nullptr);
  _exit(1);
}
#define NCCL(call) check(api.call, #call)

const char *Nccl::modeName(int mode) {
  static const char *names[] = {"default", "symmetric", "zero-cta"};
  return names[mode];
}

bool Nccl::init(Rank &r, int64_t bytes, int &version) {
  if (!load())
    return false;
  rank = &r;
  NCCL(GetVersion(&version));
  NCCL(MemAlloc((void **)&in, size_t(bytes)));
  NCCL(MemAlloc((void **)&out, size_t(bytes)));
  CUDA(cudaMemset(in, 0x3c, size_t(bytes))); // not zeros
  for (int mode = 0; mode < modes; ++mode) {
    ncclUniqueId id{};
    if (r.me == 0)
      NCCL(GetUniqueId(&id));
    std::vector<ncclUniqueId> ids(r.ranks);
    Team::allgather(&r.member, &id, sizeof id, ids.data());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (mode == 2)
      config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    NCCL(CommInitRankConfig((ncclComm_t *)&comm[mode], r.ranks, ids[0], r.me, &config));
    if (mode == 0)
      continue;
    ncclWindow_t window;
    NCCL(CommWindowRegister((ncclComm_t)comm[mode], in, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(CommWindowRegister((ncclComm_t)comm[mode], out, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
  }
  return true;
}

void Nccl::destroy() {
  for (void *c : comm)
    if (c)
      NCCL(CommDestroy((ncclComm_t)c));
  NCCL(MemFree(in));
  NCCL(MemFree(out));
}

bool Nccl::launch(int mode, const Call &call, cudaStream_t s) {
  auto c = (ncclComm_t)comm[mode];
  ncclDataType_t type = call.dtype == Dtype::F32 ? ncclFloat32 : ncclBfloat16;
  size_t size = call.dtype == Dtype::F32 ? 4 : 2;
  size_t all = call.bytes / size, piece = all / rank->ranks;
  switch (call.coll) {
  case Coll::AllGather:
    NCCL(AllGather(in, out, piece, type, c, s));
    break;
  case Coll::ReduceScatter:
    NCCL(ReduceScatter(in, out, piece, type, ncclSum, c, s));
    break;
  case Coll::AllReduce:
    NCCL(AllReduce(in, out, all, type, ncclSum, c, s));
    break;
  case Coll::AllToAll:
    NCCL(AlltoAll(in, out, piece, type, c, s));
    break;
  case Coll::Broadcast:
    NCCL(Broadcast(in, out, all, type, call.root, c, s));
    break;
  case Coll::Permute: {
    int to = (rank->me + call.shift) % rank->ranks;
    int from = (rank->me + rank->ranks - call.shift % rank->ranks) % rank->ranks;
    NCCL(GroupStart());
    NCCL(Send(in, all, type, to, c, s));
    NCCL(Recv(out, all, type, from, c, s));
    NCCL(GroupEnd());
    break;
  }
  }
  return true;
}

} // namespace bench
#else
namespace bench {
const char *Nccl::modeName(int) { return ""; }
bool Nccl::init(Rank &, int64_t, int &) { return false; }
void Nccl::destroy() {}
bool Nccl::launch(int, const Call &, cudaStream_t) { return false; }
} // namespace bench
#endif

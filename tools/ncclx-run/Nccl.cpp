//===- Nccl.cpp - The same collective by NCCL, by turns ---------------------------------===//
#include "Nccl.h"

#if defined(NCCLX_CUDA_HEADERS) && __has_include(<nccl.h>)
#define NCCLX_HAS_NCCL 1
#include <nccl.h>
#endif

#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <vector>

using namespace mlir::ncclx;

const char *Nccl::modeName(int mode) {
  static const char *names[] = {"default", "symmetric", "zero-cta"};
  return names[mode];
}

#ifdef NCCLX_HAS_NCCL

#define NCCLX_NCCL(F)                                                                              \
  F(MemAlloc)                                                                                      \
  F(MemFree)                                                                                       \
  F(GetUniqueId)                                                                                   \
  F(CommInitRankConfig)                                                                            \
  F(CommDestroy)                                                                                   \
  F(CommWindowRegister)                                                                            \
  F(AllGather)                                                                                     \
  F(AllReduce)                                                                                     \
  F(ReduceScatter)                                                                                 \
  F(AlltoAll)                                                                                      \
  F(Broadcast)                                                                                     \
  F(Send)                                                                                          \
  F(Recv)                                                                                          \
  F(GroupStart)                                                                                    \
  F(GroupEnd)                                                                                      \
  F(GetErrorString)

static struct {
#define NCCLX_MEMBER(name) decltype(&nccl##name) name;
  NCCLX_NCCL(NCCLX_MEMBER)
#undef NCCLX_MEMBER
} api;

bool Nccl::available(std::string &why) {
  static std::once_flag once;
  static std::string missing;
  std::call_once(once, [] {
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      missing = dlerror();
      return;
    }
#define NCCLX_FIND(name)                                                                           \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, "nccl" #name));                   \
  if (!api.name)                                                                                   \
    missing = "it has no nccl" #name;
    NCCLX_NCCL(NCCLX_FIND)
#undef NCCLX_FIND
  });
  why = missing;
  return missing.empty();
}

struct Nccl::State {
  NcclCall call;
  int32_t rank = 0, ranks = 1;
  ncclComm_t comm[modes] = {};
  void *in = nullptr, *out = nullptr;
};

Nccl::Nccl() : state(std::make_unique<State>()) {}
Nccl::~Nccl() { leave(); }
void Nccl::leave() {
  for (ncclComm_t comm : state->comm)
    if (comm)
      api.CommDestroy(comm);
  if (state->in)
    api.MemFree(state->in);
  if (state->out)
    api.MemFree(state->out);
  *state = State();
}

static std::string text(ncclResult_t result, const char *what) {
  return result == ncclSuccess ? "" : std::string(what) + " failed: " + api.GetErrorString(result);
}
#define NCCLX_TRY(what)                                                                            \
  if (std::string wrong = text(api.what, "nccl" #what); !wrong.empty())                            \
  return wrong

std::string Nccl::join(int32_t rank, int32_t ranks, const NcclCall &call,
                       llvm::function_ref<bool(const void *, size_t, void *)> gather) {
  State &s = *state;
  s.call = call, s.rank = rank, s.ranks = ranks;
  NCCLX_TRY(MemAlloc(&s.in, size_t(call.bytes)));
  NCCLX_TRY(MemAlloc(&s.out, size_t(call.bytes)));
  for (int mode = 0; mode < call.modes(); ++mode) {
    ncclUniqueId id{};
    if (rank == 0)
      NCCLX_TRY(GetUniqueId(&id));
    std::vector<ncclUniqueId> ids(ranks);
    if (!gather(&id, sizeof id, ids.data()))
      return "another rank has left";
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (mode == 2)
      config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    NCCLX_TRY(CommInitRankConfig(&s.comm[mode], ranks, ids[0], rank, &config));
    ncclWindow_t window;
    for (void *memory : {s.in, s.out})
      if (mode)
        NCCLX_TRY(CommWindowRegister(s.comm[mode], memory, size_t(call.bytes), &window,
                                     NCCL_WIN_COLL_SYMMETRIC));
  }
  return "";
}

std::string Nccl::launch(int mode, void *on) {
  State &s = *state;
  auto stream = static_cast<cudaStream_t>(on);
  ncclDataType_t type = s.call.bf16 ? ncclBfloat16 : ncclFloat32;
  size_t all = size_t(s.call.bytes) / (s.call.bf16 ? 2 : 4), piece = all / size_t(s.ranks);
  ncclComm_t comm = s.comm[mode];
  if (s.call.kind == "permute") {
    NCCLX_TRY(GroupStart());
    NCCLX_TRY(Send(s.in, all, type, (s.rank + 1) % s.ranks, comm, stream));
    NCCLX_TRY(Recv(s.out, all, type, (s.rank + s.ranks - 1) % s.ranks, comm, stream));
    NCCLX_TRY(GroupEnd());
    return "";
  }
  ncclResult_t result =
      s.call.kind == "all_gather" ? api.AllGather(s.in, s.out, piece, type, comm, stream)
      : s.call.kind == "reduce_scatter"
          ? api.ReduceScatter(s.in, s.out, piece, type, ncclSum, comm, stream)
      : s.call.kind == "all_reduce" ? api.AllReduce(s.in, s.out, all, type, ncclSum, comm, stream)
      : s.call.kind == "broadcast"  ? api.Broadcast(s.in, s.out, all, type, 0, comm, stream)
                                    : api.AlltoAll(s.in, s.out, piece, type, comm, stream);
  return text(result, ("NCCL's " + s.call.kind).c_str());
}

#else

struct Nccl::State {};
Nccl::Nccl() = default;
Nccl::~Nccl() = default;
void Nccl::leave() {}
bool Nccl::available(std::string &why) {
  why = "this program was built without NCCL's header";
  return false;
}
std::string Nccl::join(int32_t, int32_t, const NcclCall &,
                       llvm::function_ref<bool(const void *, size_t, void *)>) {
  return "no NCCL";
}
std::string Nccl::launch(int, void *) { return "no NCCL"; }

#endif

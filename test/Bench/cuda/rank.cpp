//===- rank.cpp - Buffers, launches, barriers -----------------------------===//
#include "rank.h"
#include "ncclxrt/device/partition.h"

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace bench {
using namespace ncclxrt::device;

void require(cudaError_t result, const char *what) {
  if (result == cudaSuccess)
    return;
  std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(result));
  std::fflush(nullptr);
  _exit(1);
}
void require(ncclxrtCudaComm_t comm, ncclxrtResult_t result, const char *what) {
  if (result == ncclxrtSuccess)
    return;
  std::fprintf(stderr, "error: %s: %s\n", what, ncclxrtCudaLastError(comm));
  std::fflush(nullptr);
  _exit(1);
}

const char *name(Coll coll) {
  static const char *names[] = {"all_gather", "reduce_scatter", "all_reduce",
                                "all_to_all", "broadcast",      "permute"};
  return names[int(coll)];
}
const char *name(Algo algo) {
  static const char *names[] = {"packet16", "packet128", "two16", "two128",
                                "direct",   "bulk",      "ce",    "ce-meet"};
  return names[int(algo)];
}

struct Team::State {
  explicit State(int ranks) : meet(ranks), values(ranks), pieces(ranks) {}
  std::barrier<> meet;
  std::vector<double> values;
  std::vector<const void *> pieces;
};
Team::Team(int n) : ranks(n), state(new State(n)) {}
Team::~Team() { delete state; }
void Team::barrier() { state->meet.arrive_and_wait(); }
double Team::maxOf(int rank, double value) {
  state->values[rank] = value;
  barrier();
  double most = *std::max_element(state->values.begin(), state->values.end());
  barrier();
  return most;
}
int32_t Team::allgather(void *context, const void *mine, size_t bytes, void *all) {
  auto *member = static_cast<Member *>(context);
  State &state = *member->team->state;
  state.pieces[member->rank] = mine;
  member->team->barrier();
  for (int r = 0; r < member->team->ranks; ++r)
    std::memcpy(static_cast<char *>(all) + r * bytes, state.pieces[r], bytes);
  member->team->barrier();
  return 0;
}

static constexpr int64_t slotWords = 3 * 16 * 264;

void Rank::init(Team &team, int rank, int gpus, int64_t maxBytes, int64_t timeoutMs) {
  member = {&team, rank};
  me = rank, ranks = team.ranks, device = rank % gpus, capacity = maxBytes;
  CUDA(cudaSetDevice(device));
  CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA(cudaEventCreate(&start));
  CUDA(cudaEventCreate(&stop));
  ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
  config.rank = me, config.nranks = ranks, config.device = device;
  config.timeout_ms = timeoutMs;
  config.allgather = Team::allgather, config.context = &member;
  require(nullptr, ncclxrtCudaInit(&config, &comm), "ncclxrtCudaInit");
  void *control;
  require(comm, ncclxrtCudaGuard(comm, &control, &guard.timeoutNs), "ncclxrtCudaGuard");
  guard.control = static_cast<Control *>(control);
  for (auto *peers : {&in, &out, &scratch, &slots})
    peers->resize(ranks);
  // The user's own memory, registered; scratch and slots are the runtime's.
  void *memory[2];
  for (void *&m : memory)
    CUDA(cudaMalloc(&m, size_t(maxBytes + 2 * guardBytes)));
  require(comm, ncclxrtCudaWindow(comm, memory[0], maxBytes + 2 * guardBytes, in.data()), "in");
  require(comm, ncclxrtCudaWindow(comm, memory[1], maxBytes + 2 * guardBytes, out.data()), "out");
  scratchBytes = std::max<int64_t>(maxBytes, int64_t(64) << 20) + (1 << 20);
  require(comm, ncclxrtCudaWindow(comm, nullptr, scratchBytes, scratch.data()), "scratch");
  require(comm, ncclxrtCudaWindow(comm, nullptr, slotWords * 8, slots.data()), "slots");
  CUDA(cudaMalloc(reinterpret_cast<void **>(&epochs), 264 * 8));
  lanes.init(comm, me, ranks);
  reset();
}

void Rank::reset() {
  CUDA(cudaStreamSynchronize(stream));
  barrier();
  // Flags start from 0 again, so old packets must not lie there.
  CUDA(cudaMemsetAsync(scratch[me], 0, size_t(scratchBytes), stream));
  CUDA(cudaMemsetAsync(slots[me], 0, slotWords * 8, stream));
  CUDA(cudaMemsetAsync(epochs, 0, 264 * 8, stream));
  CUDA(cudaStreamSynchronize(stream));
  barrier();
}

void Rank::destroy() {
  CUDA(cudaDeviceSynchronize());
  barrier();
  void *memory[] = {in[me], out[me], epochs};
  ncclxrtCudaDestroy(comm);
  barrier();
  for (void *m : memory)
    cudaFree(m);
}

int64_t Rank::piece(const Call &call) const { return call.bytes / ranks; }
int64_t Rank::inputBytes(const Call &call) const {
  return call.coll == Coll::AllGather ? piece(call) : call.bytes;
}
int64_t Rank::outputBytes(const Call &call) const {
  return call.coll == Coll::ReduceScatter ? piece(call) : call.bytes;
}
char *Rank::input(const Call &call, int rank) const {
  if (call.inPlace && call.coll == Coll::AllGather)
    return outAt(call, rank) + rank * piece(call);
  return call.inPlace && call.coll != Coll::ReduceScatter ? outAt(call, rank) : inAt(call, rank);
}
char *Rank::output(const Call &call, int rank) const {
  if (call.inPlace && call.coll == Coll::ReduceScatter)
    return inAt(call, rank) + rank * piece(call);
  return outAt(call, rank);
}

template <class F> static auto withRanks(int ranks, F f) {
  switch (ranks) {
  case 3:
    return f(std::integral_constant<int, 3>());
  case 8:
    return f(std::integral_constant<int, 8>());
  default:
    return f(std::integral_constant<int, 2>());
  }
}
/// All messages start and end on 8 bytes.
static bool isAligned(int ranks, const Call &call) {
  bool whole =
      call.coll == Coll::AllReduce || call.coll == Coll::Broadcast || call.coll == Coll::Permute;
  return ((whole ? call.bytes : call.bytes / ranks) | call.inOffset | call.outOffset) % 8 == 0;
}

static const void *kernel(int ranks, const Call &call, Algo algo) {
  bool aligned = isAligned(ranks, call);
  if (call.coll != Coll::ReduceScatter && call.coll != Coll::AllReduce)
    return withRanks(ranks, [&](auto r) { return movementOf<r>(call.coll, algo, aligned); });
  if (call.op == ReduceOp::Sum && call.dtype == Dtype::BF16)
    return withRanks(ranks,
                     [&](auto r) { return sumOf<r, Dtype::BF16>(call.coll, algo, aligned); });
  if (call.op == ReduceOp::Sum && call.dtype == Dtype::F32 && ranks == 2)
    return sumOf<2, Dtype::F32>(call.coll, algo, aligned);
  if (ranks != 2 || call.coll != Coll::AllReduce)
    return nullptr;
  switch (call.dtype) {
#define NCCLX_CASE(T)                                                                              \
  case Dtype::T:                                                                                   \
    return everyOpOf<Dtype::T>(algo, call.op);
    NCCLX_CASE(F32)
    NCCLX_CASE(F64)
    NCCLX_CASE(F16)
    NCCLX_CASE(BF16)
    NCCLX_CASE(F8E4M3)
    NCCLX_CASE(F8E5M2)
    NCCLX_CASE(I8)
    NCCLX_CASE(I16)
    NCCLX_CASE(I32)
    NCCLX_CASE(I64)
    NCCLX_CASE(U8)
    NCCLX_CASE(U16)
    NCCLX_CASE(U32)
    NCCLX_CASE(U64)
#undef NCCLX_CASE
  }
  return nullptr;
}

bool Rank::can(const Call &call, const Config &config) const {
  bool reduces = call.coll == Coll::ReduceScatter || call.coll == Coll::AllReduce;
  if (call.inPlace && (call.coll == Coll::AllToAll || call.coll == Coll::Permute))
    return false;
  if (config.algo >= Algo::CopyEngine)
    return !reduces || (kernel(ranks, call, config.algo) != nullptr && config.pieces <= 64);
  if (!kernel(ranks, call, config.algo))
    return false;
  int64_t piece = call.coll == Coll::AllGather || call.coll == Coll::ReduceScatter ||
                          call.coll == Coll::AllToAll
                      ? this->piece(call)
                      : call.bytes;
  int64_t slot = scratchBytes / 2 / 128 * 128 / (2 * ranks) / 128 * 128;
  bool packets = config.algo <= Algo::Two128;
  return !packets || packetBytes<Packet16>(piece) <= slot ||
         (packetBytes<Packet128>(piece) <= slot &&
          (config.algo == Algo::Packet128 || config.algo == Algo::Two128));
}

void Rank::launch(const Call &call, const Config &config) {
  const void *function = kernel(ranks, call, config.algo);
  auto start = [&](void *arguments) {
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t launch{};
    launch.gridDim = dim3(config.blocks);
    launch.blockDim = dim3(config.threads);
    launch.stream = stream;
    launch.attrs = &early;
    launch.numAttrs = config.early ? 1 : 0;
    launch.dynamicSmemBytes = config.algo == Algo::Bulk ? 131072 : 0;
    if (config.algo == Algo::Bulk)
      CUDA(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, 131072));
    CUDA(cudaLaunchKernelExC(&launch, function, &arguments));
  };
  if (config.algo < Algo::CopyEngine)
    return start(withRanks(ranks, [&](auto r) { return argumentsOf<r>(*this, call, config); }));
  if (config.algo == Algo::MeetEngine) {
    Call any{Coll::AllGather};
    const void *meets = kernel(ranks, any, Algo::MeetEngine);
    lanes.meet = [this, call, config, meets](int kind) {
      void *own = withRanks(ranks, [&](auto r) { return argumentsOf<r>(*this, call, config); });
      void *arguments[] = {own, &kind};
      CUDA(cudaLaunchKernel(meets, dim3(1), dim3(32), arguments, 0, stream));
    };
  } else {
    lanes.meet = nullptr;
  }
  int64_t piece = this->piece(call);
  switch (call.coll) {
  case Coll::AllGather:
    return lanes.exchange(
        stream, piece, config.pieces, [](int, int) { return true; },
        [&](int) { return input(call, me); }, [&](int p) { return output(call, p) + me * piece; });
  case Coll::AllToAll:
    return lanes.exchange(
        stream, piece, config.pieces, [](int, int) { return true; },
        [&](int p) { return input(call, me) + p * piece; },
        [&](int p) { return output(call, p) + me * piece; });
  case Coll::Broadcast:
    return lanes.exchange(
        stream, call.bytes, config.pieces, [&](int p, int) { return p == call.root; },
        [&](int) { return input(call, me); }, [&](int p) { return output(call, p); });
  case Coll::Permute:
    return lanes.exchange(
        stream, call.bytes, config.pieces,
        [&](int p, int q) { return (p + call.shift) % ranks == q; },
        [&](int) { return input(call, me); }, [&](int p) { return output(call, p); });
  case Coll::ReduceScatter:
  case Coll::AllReduce:
    break;
  }
  bool all = call.coll == Coll::AllReduce;
  int64_t stride = scratchBytes / ranks / 128 * 128;
  std::function<char *(int)> gatherTo;
  if (all)
    gatherTo = [&](int p) { return output(call, p); };
  lanes.reduce(
      stream, config.pieces, config.blocks,
      [&](int p) {
        return all ? shareOf(call.bytes, ownershipGranule, ranks, p)
                   : Share{p * piece, (p + 1) * piece};
      },
      [&](int64_t bytes, int c) { return shareOf(bytes, 4096, config.pieces, c); }, input(call, me),
      [&](int p) { return static_cast<char *>(scratch[p]) + me * stride; }, gatherTo,
      [&] {
        void *arguments =
            withRanks(ranks, [&](auto r) { return chunkArgumentsOf<r>(*this, call, config); });
        cudaLaunchConfig_t launch{};
        launch.gridDim = dim3(config.blocks);
        launch.blockDim = dim3(config.threads);
        launch.stream = stream;
        CUDA(cudaLaunchKernelExC(&launch, function, &arguments));
      });
}

} // namespace bench

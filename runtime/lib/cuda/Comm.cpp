//===- Comm.cpp - Windows, stream signals and the watchdog ----------------===//
#include "Comm.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <cuda.h>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

Status Driver::load(int rank) {
  auto find = [&](const char *name, auto &function) -> Status {
    void *address = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaError_t result =
        cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found);
    if (result != cudaSuccess || found != cudaDriverEntryPointSuccess)
      return error(ncclxrtUnsupported, "the driver has no {} (rank={})", name, rank);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    return {};
  };
  if (Status s = find("cuStreamWaitValue32", waitValue32); !s.ok())
    return s;
  if (Status s = find("cuStreamWriteValue32", writeValue32); !s.ok())
    return s;
  return find("cuMemGetAddressRange", addressRange);
}

Status Comm::call(cudaError_t result, const char *what) const {
  if (result == cudaSuccess)
    return {};
  cudaGetLastError(); // or the next call of anybody reports it again
  ncclxrtResult_t code =
      result == cudaErrorMemoryAllocation ? ncclxrtOutOfMemory : ncclxrtSystemError;
  return error(code, "{} failed: {} (rank={}, device={})", what, cudaGetErrorString(result),
               config.rank, config.device);
}

Status Comm::callDriver(int result, const char *what) const {
  if (result == CUDA_SUCCESS)
    return {};
  return error(ncclxrtSystemError, "{} failed: CUresult {} (rank={}, device={})", what, result,
               config.rank, config.device);
}

Status Comm::exchange(const void *mine, size_t bytes, void *all, const char *what) {
  if (config.allgather(config.context, mine, bytes, all) != 0)
    return error(ncclxrtPeerFailed, "the exchange of {} failed (rank={})", what, config.rank);
  return {};
}

namespace {
/// What a rank tells of its memory. Ranks of one process use each other's pointers.
struct Handle {
  int64_t process;
  int32_t device, ok;
  uint64_t address, offset, bytes;
  cudaIpcMemHandle_t ipc;
};
} // namespace

Status Comm::init() {
  if (config.nranks < 1 || config.rank < 0 || config.rank >= config.nranks || !config.allgather)
    return error(ncclxrtInvalidArgument, "rank {} of {} ranks{}", config.rank, config.nranks,
                 config.allgather ? "" : " without an allgather");
  if (config.timeout_ms < 0)
    return error(ncclxrtInvalidArgument, "timeout_ms is at least 0, found {} (rank={})",
                 config.timeout_ms, config.rank);
  if (config.timeout_ms == 0)
    config.timeout_ms = 30000;
  if (Status s = call(cudaSetDevice(config.device), "cudaSetDevice"); !s.ok())
    return s;
  if (Status s = driver.load(config.rank); !s.ok())
    return s;
  void *block = nullptr;
  if (Status s = call(cudaHostAlloc(&block, sizeof(device::Control), cudaHostAllocMapped),
                      "cudaHostAlloc");
      !s.ok())
    return s;
  control = static_cast<device::Control *>(block);
  std::memset(block, 0, sizeof(device::Control));
  if (Status s = call(cudaHostGetDevicePointer(&block, control, 0), "cudaHostGetDevicePointer");
      !s.ok())
    return s;
  device = static_cast<device::Control *>(block);
  block = nullptr;
  if (Status s =
          call(cudaHostAlloc(&block, releaseChunk * 4, cudaHostAllocDefault), "cudaHostAlloc");
      !s.ok())
    return s;
  releaseValues = static_cast<uint32_t *>(block);
  std::fill_n(releaseValues, releaseChunk, device::abortValue);
  if (Status s = call(cudaStreamCreateWithFlags(&releaseStream, cudaStreamNonBlocking),
                      "cudaStreamCreateWithFlags");
      !s.ok())
    return s;
  watchdog = std::thread([this] { guardLoop(); });
  return {};
}

Comm::~Comm() {
  leaving = true;
  if (watchdog.joinable())
    watchdog.join();
  cudaSetDevice(config.device);
  for (Deadline &d : deadlines)
    cudaEventDestroy(d.event);
  for (cudaEvent_t event : freeEvents)
    cudaEventDestroy(event);
  for (auto it = memory.rbegin(); it != memory.rend(); ++it)
    it->imported ? cudaIpcCloseMemHandle(it->memory) : cudaFree(it->memory);
  if (releaseStream)
    cudaStreamDestroy(releaseStream);
  cudaFreeHost(releaseValues);
  cudaFreeHost(control);
  cudaGetLastError();
}

//===--- memory ---------------------------------------------------------------------------===//

Status Comm::window(void *own, size_t bytes, void **peers) {
  Handle mine{};
  Status local = call(cudaSetDevice(config.device), "cudaSetDevice");
  if (local.ok() && !own) {
    local = call(cudaMalloc(&own, std::max<size_t>(bytes, 1)), "cudaMalloc");
    if (local.ok()) {
      memory.push_back({own, false});
      local = call(cudaMemset(own, 0, std::max<size_t>(bytes, 1)), "cudaMemset");
    }
    if (local.ok())
      local = call(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  mine.process = ::getpid();
  mine.device = config.device;
  mine.address = reinterpret_cast<uint64_t>(own);
  mine.bytes = bytes;
  if (local.ok()) {
    unsigned long long base = 0;
    size_t size = 0;
    local = callDriver(driver.addressRange(&base, &size, mine.address), "cuMemGetAddressRange");
    mine.offset = mine.address - base;
    if (local.ok() && mine.offset + bytes > size)
      local = error(ncclxrtInvalidArgument,
                    "a window of {} bytes ends {} bytes behind its allocation (rank={})", bytes,
                    mine.offset + bytes - size, config.rank);
    // Memory that cannot be shared with processes still serves the threads of this one.
    if (local.ok() &&
        cudaIpcGetMemHandle(&mine.ipc, reinterpret_cast<void *>(base)) != cudaSuccess) {
      cudaGetLastError();
      mine.ipc = {};
    }
  }
  mine.ok = local.ok();
  std::vector<Handle> all(config.nranks);
  if (Status s = exchange(&mine, sizeof mine, all.data(), "window handles"); !s.ok())
    return s;
  // Every rank sees the same handles, so every rank comes to the same end.
  for (int r = 0; r < config.nranks; ++r) {
    if (!all[r].ok)
      return local.ok() ? error(ncclxrtPeerFailed, "rank {} could not make its window (rank={})", r,
                                config.rank)
                        : local;
    if (all[r].bytes != bytes)
      return error(ncclxrtPlanMismatch, "rank {} makes a window of {} bytes, rank {} one of {}", r,
                   all[r].bytes, config.rank, bytes);
  }
  for (int r = 0; r < config.nranks; ++r) {
    const Handle &peer = all[r];
    if (r == config.rank) {
      peers[r] = own;
      continue;
    }
    if (peer.process == mine.process) {
      if (peer.device != config.device) {
        int can = 0;
        cudaDeviceCanAccessPeer(&can, config.device, peer.device);
        cudaError_t result =
            can ? cudaDeviceEnablePeerAccess(peer.device, 0) : cudaErrorPeerAccessUnsupported;
        if (result == cudaErrorPeerAccessAlreadyEnabled) {
          cudaGetLastError();
          result = cudaSuccess;
        }
        if (Status s = call(result, "cudaDeviceEnablePeerAccess"); !s.ok())
          return s;
      }
      peers[r] = reinterpret_cast<void *>(peer.address);
      continue;
    }
    std::string key(reinterpret_cast<const char *>(&peer.ipc), sizeof peer.ipc);
    char *&base = imports[{r, key}];
    if (!base) {
      void *mapped = nullptr;
      if (Status s = call(cudaIpcOpenMemHandle(&mapped, peer.ipc, cudaIpcMemLazyEnablePeerAccess),
                          "cudaIpcOpenMemHandle");
          !s.ok()) {
        imports.erase({r, key});
        return s;
      }
      base = static_cast<char *>(mapped);
      memory.push_back({mapped, true});
    }
    peers[r] = base + peer.offset;
  }
  // Nobody writes here before everybody can.
  std::vector<int32_t> ready(config.nranks);
  int32_t one = 1;
  return exchange(&one, sizeof one, ready.data(), "window imports");
}

Status Comm::slots(size_t count, uint32_t **peers) {
  std::vector<void *> at(config.nranks);
  if (Status s = window(nullptr, count * sizeof(uint32_t), at.data()); !s.ok())
    return s;
  for (int r = 0; r < config.nranks; ++r)
    peers[r] = static_cast<uint32_t *>(at[r]);
  std::lock_guard<std::mutex> hold(lock);
  streamSlots.push_back({peers[config.rank], count});
  return {};
}

//===--- signals of streams ----------------------------------------------------------------===//

Status Comm::signal(cudaStream_t stream, uint32_t *slot) {
  // The default write is a release of the stream's earlier work for the whole system.
  return callDriver(driver.writeValue32(stream, reinterpret_cast<uintptr_t>(slot), 1,
                                        CU_STREAM_WRITE_VALUE_DEFAULT),
                    "cuStreamWriteValue32");
}

Status Comm::wait(cudaStream_t stream, uint32_t *slot, uint32_t value, bool consume) {
  // At least, not equal: the value that an abort writes ends the wait, too.
  if (Status s = callDriver(driver.waitValue32(stream, reinterpret_cast<uintptr_t>(slot), value,
                                               CU_STREAM_WAIT_VALUE_GEQ),
                            "cuStreamWaitValue32");
      !s.ok() || !consume)
    return s;
  return callDriver(driver.writeValue32(stream, reinterpret_cast<uintptr_t>(slot), 0,
                                        CU_STREAM_WRITE_VALUE_DEFAULT),
                    "cuStreamWriteValue32");
}

Status Comm::watch(cudaStream_t stream) {
  std::lock_guard<std::mutex> hold(lock);
  int64_t at = nowNs() + config.timeout_ms * nsPerMs;
  if (deadlines.size() < maxDeadlines) {
    Deadline d{nullptr, at};
    if (freeEvents.empty()) {
      if (Status s = call(cudaEventCreateWithFlags(&d.event, cudaEventDisableTiming),
                          "cudaEventCreateWithFlags");
          !s.ok())
        return s;
    } else {
      d.event = freeEvents.back();
      freeEvents.pop_back();
    }
    deadlines.push_back(d);
  }
  // When many are under way the last one moves on with the stream.
  deadlines.back().at = at;
  return call(cudaEventRecord(deadlines.back().event, stream), "cudaEventRecord");
}

//===--- the watchdog ------------------------------------------------------------------------===//

void Comm::abort(Status reason) {
  {
    std::lock_guard<std::mutex> hold(lock);
    if (failure.ok())
      failure = std::move(reason);
  }
  __atomic_store_n(&control->abort, 1u, __ATOMIC_RELEASE);
}

Status Comm::query() {
  if (__atomic_load_n(&control->failed, __ATOMIC_ACQUIRE) == 2) {
    const device::Failure &f = control->failure;
    abort(error(ncclxrtTimeout,
                "step {} of rank {}: block {} waited more than {} ms for rank {} (expected {}, "
                "found {})",
                f.step, config.rank, f.block, config.timeout_ms, f.peer, f.expected, f.found));
  }
  std::lock_guard<std::mutex> hold(lock);
  return failure;
}

void Comm::checkDeadlines() {
  bool late = false;
  {
    std::lock_guard<std::mutex> hold(lock);
    while (!deadlines.empty() && cudaEventQuery(deadlines.front().event) == cudaSuccess) {
      freeEvents.push_back(deadlines.front().event);
      deadlines.pop_front();
    }
    cudaGetLastError();
    late = !deadlines.empty() && nowNs() > deadlines.front().at;
  }
  if (late)
    abort(error(ncclxrtTimeout, "the stream of rank {} was not done within {} ms", config.rank,
                config.timeout_ms));
}

void Comm::releaseStreams() {
  // Again and again: a wait that consumes leaves 0 for the next one.
  std::lock_guard<std::mutex> hold(lock);
  for (auto [slots, count] : streamSlots)
    for (size_t at = 0; at < count; at += releaseChunk)
      cudaMemcpyAsync(slots + at, releaseValues, std::min(releaseChunk, count - at) * 4,
                      cudaMemcpyHostToDevice, releaseStream);
  cudaStreamSynchronize(releaseStream);
  cudaGetLastError();
}

void Comm::guardLoop() {
  cudaSetDevice(config.device);
  while (!leaving) {
    (void)query();
    checkDeadlines();
    bool aborted = __atomic_load_n(&control->abort, __ATOMIC_ACQUIRE) != 0;
    if (aborted)
      releaseStreams();
    std::this_thread::sleep_for(std::chrono::milliseconds(aborted ? 1 : 10));
  }
}

ncclxrtResult_t Comm::remember(Status status) {
  if (!status.ok()) {
    std::lock_guard<std::mutex> hold(lock);
    if (failure.ok())
      failure = status;
  }
  return status.code();
}

std::string Comm::lastError() {
  std::lock_guard<std::mutex> hold(lock);
  return failure.text();
}

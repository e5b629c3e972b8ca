//===- Comm.h - One rank on one GPU -----------------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_CUDA_COMM_H
#define NCCLXRT_LIB_CUDA_COMM_H

#include "../Base.h"
#include "ncclxrt/cuda.h"
#include "ncclxrt/device/control.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

/// The parts of the driver that the runtime library of CUDA has no words for. Loaded when used.
struct CUstream_st;

namespace ncclxrt::cuda {

struct Driver {
  int (*waitValue32)(CUstream_st *, unsigned long long, uint32_t, unsigned);
  int (*writeValue32)(CUstream_st *, unsigned long long, uint32_t, unsigned);
  int (*addressRange)(unsigned long long *, size_t *, unsigned long long);
  Status load(int rank);
};

class Comm {
public:
  explicit Comm(const ncclxrtCudaConfig_t &config) : config(config) {}
  ~Comm();
  Comm(const Comm &) = delete;
  Comm &operator=(const Comm &) = delete;

  Status init();
  Status window(void *memory, size_t bytes, void **peers);
  Status slots(size_t count, uint32_t **peers);
  Status signal(cudaStream_t stream, uint32_t *slot);
  Status wait(cudaStream_t stream, uint32_t *slot, uint32_t value, bool consume);
  Status watch(cudaStream_t stream);
  void guard(void **controlOnDevice, uint64_t *timeoutNs) const {
    *controlOnDevice = device;
    *timeoutNs = uint64_t(config.timeout_ms) * nsPerMs;
  }

  /// Ends every wait. The first reason wins.
  void abort(Status reason);
  /// What has failed so far, a wait of a kernel included.
  Status query();
  ncclxrtResult_t remember(Status status);
  std::string lastError();

private:
  ncclxrtCudaConfig_t config;
  Driver driver{};
  device::Control *control = nullptr; // in host memory
  device::Control *device = nullptr;  // the same, as the GPU sees it

  struct Owned {
    void *memory;
    bool imported;
  };
  std::vector<Owned> memory;                             // to give back, the last first
  std::map<std::pair<int, std::string>, char *> imports; // of another process: rank, handle

  // The watchdog's part.
  struct Deadline {
    cudaEvent_t event;
    int64_t at;
  };
  std::mutex lock;
  std::deque<Deadline> deadlines;
  std::vector<cudaEvent_t> freeEvents;
  std::vector<std::pair<uint32_t *, size_t>> streamSlots;
  Status failure;
  std::thread watchdog;
  std::atomic<bool> leaving{false};
  cudaStream_t releaseStream = nullptr;
  uint32_t *releaseValues = nullptr; // pinned
  static constexpr size_t releaseChunk = 1024;
  static constexpr size_t maxDeadlines = 64;

  Status call(cudaError_t result, const char *what) const;
  Status callDriver(int result, const char *what) const;
  Status exchange(const void *mine, size_t bytes, void *all, const char *what);
  void guardLoop();
  void checkDeadlines();
  void releaseStreams();
};

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_COMM_H

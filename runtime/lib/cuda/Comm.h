//===- Comm.h - One rank on one GPU -----------------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_CUDA_COMM_H
#define NCCLXRT_LIB_CUDA_COMM_H

#include "../Base.h"
#include "Driver.h"
#include "ncclxrt/cuda.h"
#include "ncclxrt/device/control.h"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace ncclxrt::cuda {

class Comm {
public:
  explicit Comm(const ncclxrtCudaConfig_t &config) : config(config) {}
  ~Comm();
  Comm(const Comm &) = delete;
  Comm &operator=(const Comm &) = delete;

  Status init();
  Status window(void *memory, size_t bytes, void **peers);
  Status slots(size_t count, uint32_t **peers);
  Status signal(Stream stream, uint32_t *slot);
  Status wait(Stream stream, uint32_t *slot, uint32_t value, bool consume);
  Status watch(Stream stream);
  /// 64-bit counters of a plan, and what raises and awaits them: a stream's write of `value`, a
  /// stream's wait for it. Known to the watchdog.
  Status counters(size_t count, uint64_t **peers);
  Status raise(Stream stream, uint64_t *slot, uint64_t value);
  Status await(Stream stream, const uint64_t *slot, uint64_t value);
  Status makeStream(void **stream);
  /// Zeros, when it returns.
  Status clear(Address at, size_t bytes);
  /// What lies there, when it returns.
  Status fetch(void *to, Address at, size_t bytes);
  /// Brings a graph to the GPU, on a stream of its own: not behind what the caller's still holds.
  Status upload(GraphExec graph);
  Status copy(Stream stream, void *to, const void *from, size_t bytes);
  /// `at` starts `bytes` of one allocation of the rank's GPU, which has `size` from `base` on.
  Status isOwnMemory(Address at, size_t bytes, const std::string &what, Address &base,
                     size_t &size) const;
  Status isOwnStream(Stream stream) const;
  Status synchronize(Stream stream) {
    return call(driver->synchronize(stream), "cuStreamSynchronize");
  }
  device::Control *controlOnDevice() const { return mapped; }
  /// A number by which a kernel's failure names this place.
  uint32_t numberOf(const std::string &place);
  /// The first of their numbers, which follow one another.
  uint32_t numberOf(const std::vector<std::string> &more);
  std::string placeOf(uint32_t number);
  void guard(void **controlOnDevice, uint64_t *timeoutNs) const {
    *controlOnDevice = mapped;
    *timeoutNs = uint64_t(config.timeout_ms) * nsPerMs;
  }

  /// Ends every wait. The first reason wins.
  void abort(Status reason);
  /// What has failed so far, a wait of a kernel included.
  Status query();
  ncclxrtResult_t remember(Status status);
  /// The same of a call that did nothing: the communicator has not failed.
  ncclxrtResult_t refuse(const Status &status);
  std::string lastError();

  const Driver &cuda() const { return *driver; }
  int rank() const { return config.rank; }
  int nranks() const { return config.nranks; }
  int deviceNumber() const { return device; }
  const Uuid &deviceUuid() const { return uuid; } ///< the same in every process
  int architecture() const { return capability; } ///< 90 for 9.0
  int64_t timeoutMs() const { return config.timeout_ms; }
  /// Why the job that the ranks belong to has failed, or NULL.
  const char *jobFailure() const {
    return config.failure ? config.failure(config.context) : nullptr;
  }
  /// The rank's GPU becomes the calling thread's.
  Status enter() const { return call(driver->setContext(context), "cuCtxSetCurrent"); }
  Status call(int result, const char *what) const;
  Status exchange(const void *mine, size_t bytes, void *all, const char *what);

  int users = 0; ///< plans and graphs of the C interface, which refer to this

private:
  ncclxrtCudaConfig_t config;
  const Driver *driver = nullptr;
  Context context = nullptr;
  int device = 0; ///< the driver's number
  int capability = 0;
  Uuid uuid{};
  device::Control *control = nullptr; // in host memory
  device::Control *mapped = nullptr;  // the same, as the GPU sees it

  struct Owned {
    Address memory;
    bool imported;
    size_t mapped; ///< so many bytes, by this communicator
  };
  std::vector<Stream> streams;
  std::vector<Owned> memory;                              // to give back, the last first
  std::map<std::pair<int, std::string>, Address> imports; // of another process: rank, handle
  bool importing = false;                                 ///< some, by whatever handle

  // The watchdog's part.
  struct Deadline {
    Event event;
    int64_t at;
  };
  std::mutex lock;
  std::deque<Deadline> deadlines;
  std::vector<Event> freeEvents;
  std::vector<std::pair<Address, size_t>> streamSlots;  // of 32 bits: place, count
  std::vector<std::pair<Address, size_t>> planCounters; // of 64 bits
  Status failure;
  std::string refusal; ///< the last
  std::vector<std::string> places;
  std::thread watchdog;
  std::atomic<bool> leaving{false};
  Stream releaseStream = nullptr;
  uint32_t *releaseValues = nullptr; // pinned
  uint64_t *releaseCounts = nullptr; // behind them
  static constexpr size_t releaseChunk = 1024;
  static constexpr size_t maxDeadlines = 64;

  Status reach(int other);
  struct Handle;
  static bool isNear(const Handle &a, const Handle &b);
  static bool isFile(const Handle &handle);
  void share(Address base, size_t size, Handle &mine, Fd &file);
  int allowAccess(Address base, size_t bytes) const;
  Status open(int rank, const Handle &own, const Handle &peer, const Fd &file, void *&at);
  Status openFile(int rank, const Handle &peer, const Fd &file, Address &base);
  Status openIpc(int rank, const Handle &peer, Address &base);
  static std::string keyOf(const Handle &handle);
  Status takeFiles(const Handle &mine, const std::vector<Handle> &all, const Fd &file,
                   std::vector<Fd> &files);
  void checkJob();
  void guardLoop();
  void checkDeadlines();
  void releaseStreams();
};

/// What ncclxrtCudaLastError(NULL) says to the calling thread.
void tellThread(const std::string &sentence);

/// What a handle of the C interface stands for.
Comm &commOf(ncclxrtCudaComm_t comm);

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_COMM_H

//===- fake-cuda.cpp - Stands for the CUDA driver and NVRTC ---------------===//
//
// Device memory is host memory, a stream a thread that does one thing after the other, the
// runtime's own kernels are done by the host runtime's code, and NVRTC hands the text back. Kernels
// of a plan cannot run. What is asked for is in the environment:
//
//   FAKE_CUDA_GPUS=N      so many GPUs (default 2)
//   FAKE_CUDA_SM=N        of compute capability N (default 90; a multiple of 10)
//   FAKE_CUDA_FAIL=NAME   every call of this function fails; with NAME:N its N-th alone
//   FAKE_CUDA_KILL=GPU:NAME:N  the N-th call of this function for this GPU kills the process
//   FAKE_CUDA_IPC=1       memory can be shared with other processes (else cuIpcGetMemHandle fails);
//                         what cuMemCreate made always can, where it was asked for
//   FAKE_CUDA_OPEN=N      at most so much memory of other processes is open at a time
//   FAKE_CUDA_EDGE=1      memory ends where none can be read or written
//   FAKE_CUDA_QUEUES=1    a GPU's streams share CUDA_DEVICE_MAX_CONNECTIONS queues (default 8), in
//                         which what one waits for holds up the others
//   FAKE_CUDA_DELAY=US    each thing that a stream does starts late, by up to so much at random
//   FAKE_CUDA_STAMP=1     kernels of a plan do nothing but note their timeline, where they have one
//   FAKE_CUDA_LOG=FILE    one line a call that enqueues or compiles, appended
//
//===----------------------------------------------------------------------===//
#include "fake-cuda.h"

#include "Base.h"
#include "Reduce.h"
#include "cuda/Driver.h"
#include "ncclxrt/device/serve.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

namespace {
constexpr int invalidValue = 1, illegalState = 401, notFound = 500, notSupported = 801,
              unjoined = 904, unknown = 999;

std::mutex everything;

const char *setting(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}
bool fails(const char *name) {
  static std::atomic<int> calls{0};
  std::string wanted = setting("FAKE_CUDA_FAIL");
  size_t colon = wanted.find(':');
  if (wanted.substr(0, colon) != name)
    return false;
  return colon == std::string::npos || ++calls == std::atoi(wanted.c_str() + colon + 1);
}
/// The driver's own lock. Whoever gives back memory keeps it while the GPU's streams end.
std::recursive_mutex driverLock;
std::vector<CUstream_st *> streams;
void dies(const char *name);
#define FAKE_CUDA_FAILS                                                                            \
  dies(__func__);                                                                                  \
  if (fails(__func__))                                                                             \
  return unknown

template <typename... Args> void log(fmt::format_string<Args...> format, Args &&...args) {
  if (!*setting("FAKE_CUDA_LOG"))
    return;
  std::lock_guard<std::mutex> hold(everything);
  if (FILE *file = std::fopen(setting("FAKE_CUDA_LOG"), "a")) {
    fmt::print(file, "{}\n", fmt::format(format, std::forward<Args>(args)...));
    std::fclose(file);
  }
}

struct Allocation {
  size_t bytes;
  int device;
  int file = -1; ///< of memory that other processes can map, which goes when no process has it
  void *edge = nullptr;  ///< of memory that ends at one: what has been mapped
  MemoryHandle made = 0; ///< of what a caller has made and mapped, as the next
  unsigned allowed = 0;  ///< the devices that reach it, a bit for each
};
/// Memory that has been made and not mapped; a file, so that other processes can map it.
struct Made {
  int file;
  size_t bytes;
  int device;
  bool shareable;
  int users; ///< handles and mappings
};
std::map<MemoryHandle, Made> made;
std::map<Address, size_t> opened; ///< of other processes
/// Whether one more can be opened; under `everything`.
bool mayOpen() {
  const char *most = std::getenv("FAKE_CUDA_OPEN");
  size_t open = opened.size();
  for (const auto &[handle, memory] : made)
    open += memory.device < 0;
  return !most || open < size_t(std::atoi(most));
}
void drop(MemoryHandle handle) {
  auto it = made.find(handle);
  if (--it->second.users)
    return;
  close(it->second.file);
  made.erase(it);
}
size_t wholePages(size_t bytes) { return (std::max<size_t>(bytes, 1) + 4095) / 4096 * 4096; }
/// What the 64 bytes of a handle hold.
struct Shared {
  int64_t process, file;
  uint64_t bytes;
};
static_assert(sizeof(Shared) <= sizeof(IpcHandle));
std::map<Address, Allocation> allocations;
/// Of a place in one; under `everything`.
std::map<Address, Allocation>::iterator allocationOf(Address at) {
  auto it = allocations.upper_bound(at);
  if (it == allocations.begin() ||
      at >= std::prev(it)->first + std::max<size_t>(1, std::prev(it)->second.bytes))
    return allocations.end();
  return std::prev(it);
}

template <typename T> T load(Address at) {
  return __atomic_load_n(reinterpret_cast<const T *>(at), __ATOMIC_ACQUIRE);
}
} // namespace

/// What captured streams were given: things to do, each after others.
struct CUgraph_st {
  struct Node {
    std::function<bool()> act;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
  std::vector<CUstream_st *> members; ///< the first is the one whose capture this is
};
struct CUgraphExec_st {
  std::vector<CUgraph_st::Node> nodes;
};
/// What streams of one GPU share: things are done in the order in which they were given.
struct Queue {
  std::mutex lock;
  std::deque<uint64_t> tickets;
  uint64_t given = 0;

  uint64_t enter() {
    std::lock_guard<std::mutex> hold(lock);
    tickets.push_back(++given);
    return given;
  }
  bool isFirst(uint64_t ticket) {
    std::lock_guard<std::mutex> hold(lock);
    return tickets.front() == ticket;
  }
  void leave() {
    std::lock_guard<std::mutex> hold(lock);
    tickets.pop_front();
  }
};
struct CUctx_st {
  int device;
  bool peers[16];
  std::vector<std::unique_ptr<Queue>> queues; ///< under the driver's lock
  size_t streams = 0;                         ///< so many have been made
};
struct CUstream_st {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::function<bool()>> work; ///< false: not yet
  bool busy = false, leaving = false;
  CUctx_st *context = nullptr;
  Queue *queue = nullptr;              ///< that it shares
  std::shared_ptr<CUgraph_st> capture; ///< with `tail`, of the thread that captures
  std::vector<size_t> tail;            ///< what the stream's next captured thing comes after
  std::thread thread{[this] { serve(); }};

  void serve() {
    std::mt19937 random(unsigned(reinterpret_cast<uintptr_t>(this) >> 4));
    unsigned most = unsigned(std::atoi(setting("FAKE_CUDA_DELAY")));
    std::unique_lock<std::mutex> hold(lock);
    for (;;) {
      changed.wait(hold, [&] { return leaving || !work.empty(); });
      if (work.empty())
        return;
      std::function<bool()> next = std::move(work.front());
      work.pop_front();
      busy = true;
      hold.unlock();
      if (most)
        usleep(random() % most);
      while (!next())
        usleep(20);
      hold.lock();
      busy = false;
      changed.notify_all();
    }
  }
  void add(std::function<bool()> next) {
    if (capture) {
      capture->nodes.push_back({std::move(next), std::exchange(tail, {capture->nodes.size()})});
      return;
    }
    std::lock_guard<std::recursive_mutex> driver(driverLock);
    std::lock_guard<std::mutex> hold(lock);
    if (queue)
      next = [queue = queue, ticket = queue->enter(), act = std::move(next)] {
        bool done = queue->isFirst(ticket) && act();
        if (done)
          queue->leave();
        return done;
      };
    work.push_back(std::move(next));
    changed.notify_all();
  }
  void drain() {
    std::unique_lock<std::mutex> hold(lock);
    changed.wait(hold, [&] { return work.empty() && !busy; });
  }
};
struct CUevent_st {
  uint64_t recorded = 0, done = 0; // under `everything`, as these
  int device = -1;
  uint64_t time = 0;                   // of `device`
  std::shared_ptr<CUgraph_st> capture; ///< recorded there last, behind `tail`
  std::vector<size_t> tail;
};
struct CUfunc_st {
  std::string name;
  int steps = 0; ///< of its timeline
};
struct CUmod_st {
  std::string image;
  std::vector<std::unique_ptr<CUfunc_st>> functions = {}; // which go with it
};

static thread_local Context current = nullptr;

/// What is mapped is reached by those devices alone that it has been said for.
static bool reaches(Stream stream, Address at) {
  std::lock_guard<std::mutex> hold(everything);
  auto it = allocationOf(at);
  return it == allocations.end() || !it->second.made ||
         (it->second.allowed >> stream->context->device & 1);
}

namespace {
void dies(const char *name) {
  static std::atomic<int> calls{0};
  std::string wanted = setting("FAKE_CUDA_KILL");
  std::string prefix = fmt::format("{}:{}:", current ? current->device : -1, name);
  if (wanted.rfind(prefix, 0) == 0 && ++calls == std::atoi(wanted.c_str() + prefix.size()))
    kill(getpid(), SIGKILL);
}

void doReduce(const std::string &name, const device::ReduceJob &job) {
  static const std::vector<std::string> kinds = {"sum", "min", "max", "prod", "avg", "scaled"},
                                        types = {"f32", "f64", "bf16", "f16", "i32",
                                                 "i64", "i8",  "i16",  "u8",  "u16",
                                                 "u32", "u64", "e4m3", "e5m2"};
  size_t from = std::strlen("ncclxrt_reduce_"), cut = name.find('_', from);
  auto number = [](const std::vector<std::string> &list, const std::string &word) {
    return int(std::find(list.begin(), list.end(), word) - list.begin());
  };
  int kind = number(kinds, name.substr(from, cut - from));
  auto dtype = ncclxrtDtype_t(number(types, name.substr(cut + 1)));
  bool narrow = isFloat(dtype) && sizeOf(dtype) < 4;
  Reduction reduction{kind > 3 ? ncclxrtReduceSum : ncclxrtReduceKind_t(kind), dtype,
                      narrow ? ncclxrtF32 : dtype, job.scale, job.divisor};
  auto placed = [](const device::Pieces &p) {
    return Placed{reinterpret_cast<std::byte *>(p.at), Range{0, p.rows, p.stride, p.rowBytes}};
  };
  Placed b = placed(job.b);
  reduceRanges(reduction, placed(job.to), placed(job.a), job.count, job.step,
               job.b.at ? Further(&b, 1) : Further());
}

/// A byte of pieces.
char *byteOf(const device::Pieces &pieces, int64_t byte) {
  return pieces.at + byte / pieces.rowBytes * pieces.stride + byte % pieces.rowBytes;
}
void doSize(const device::SizeJob &job) {
  int64_t size = 0;
  std::memcpy(&size, job.at, size_t(job.bytes));
  if (job.bytes == 4)
    size = int32_t(size);
  bool good = size >= 0 && size <= job.most;
  *job.to = good ? size : 0;
  if (good)
    return;
  if (uint32_t none = 0; __atomic_compare_exchange_n(&job.control->failed, &none, 1, false,
                                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    job.control->failure = {uint64_t(job.most),    uint64_t(size), uint32_t(job.place), 0, 0,
                            device::sizeOutOfRange};
    __atomic_store_n(&job.control->failed, 2, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&job.control->abort, 1, __ATOMIC_RELEASE);
}
void doSizedCopy(const device::SizedCopy &job) {
  device::Pieces to = job.to, from = job.from;
  to.rowBytes = *job.size * job.toUnit, from.rowBytes = *job.size * job.fromUnit;
  for (int64_t i = 0; i < to.rows * to.rowBytes; ++i)
    *byteOf(to, i) = *byteOf(from, i);
  for (int64_t row = 0; job.clears && row < to.rows; ++row)
    std::memset(to.at + row * to.stride + to.rowBytes, 0, size_t(job.to.rowBytes - to.rowBytes));
}

/// No two devices have one clock.
uint64_t timeOf(int device) { return uint64_t(nowNs()) + uint64_t(device + 1) * 1'000'000'007; }

/// What a kernel with a timeline notes.
void stamp(uint64_t *words, int steps, unsigned blocks, int device) {
  for (int step = 0; step < steps; ++step)
    for (unsigned block = 0; block < blocks; ++block) {
      uint64_t *at = words + 2 * (size_t(step) * blocks + block);
      at[0] = timeOf(device);
      usleep(1);
      at[1] = timeOf(device) + 5000; // other warps are late
    }
}

/// A kernel of a plan.
int launchOther(Function function, unsigned blocks, Stream stream, void **parameters) {
  int device = stream->context->device;
  uint64_t *words = parameters ? *static_cast<uint64_t **>(parameters[0]) : nullptr;
  if (function->name == "ncclxrt_clock")
    stream->add([=] {
      __atomic_store_n(words, timeOf(device), __ATOMIC_RELEASE);
      return true;
    });
  else if (*setting("FAKE_CUDA_STAMP"))
    stream->add([=, steps = function->steps] {
      stamp(words, steps, blocks, device);
      return true;
    });
  else
    return notSupported; // no code of its own runs here
  return success;
}

template <typename T> int waitFor(Stream stream, Address at, T value, const char *name) {
  log("{} {}", name, value);
  using Signed = std::make_signed_t<T>;
  stream->add([=] { return Signed(load<T>(at) - value) >= 0; });
  return success;
}
template <typename T> int writeTo(Stream stream, Address at, T value, const char *name) {
  log("{} {}", name, value);
  stream->add([=] {
    __atomic_store_n(reinterpret_cast<T *>(at), value, __ATOMIC_RELEASE);
    return true;
  });
  return success;
}
} // namespace

static void logLine(const std::string &line) { log("{}", line); }

void fakecuda::enqueue(Stream stream, std::function<void()> act) {
  stream->add([act = std::move(act)] {
    act();
    return true;
  });
}
bool fakecuda::fails(const char *name) { return ::fails(name); }
void fakecuda::log(const std::string &line) { logLine(line); }
size_t fakecuda::roomAt(Address at) {
  std::lock_guard<std::mutex> hold(everything);
  auto it = allocationOf(at);
  return it == allocations.end() ? 0 : size_t(it->first + it->second.bytes - at);
}

extern "C" {
int cuInit(unsigned) {
  FAKE_CUDA_FAILS;
  return success;
}
int cuGetErrorString(int result, const char **text) {
  *text = result == unknown ? "made to fail" : result == notSupported ? "not supported" : "failed";
  return success;
}
int cuDeviceGetCount(int *count) {
  *count = *setting("FAKE_CUDA_GPUS") ? std::atoi(setting("FAKE_CUDA_GPUS")) : 2;
  return success;
}
int cuDeviceGet(int *device, int index) {
  *device = index;
  return success;
}
int cuDeviceGetName(char *name, int size, int) {
  std::snprintf(name, size_t(size), "fake GPU");
  return success;
}
int cuDeviceGetUuid_v2(Uuid *uuid, int device) {
  FAKE_CUDA_FAILS;
  *uuid = {};
  uuid->bytes[0] = char(device + 1);
  return success;
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = attribute == capabilityMajor
               ? std::atoi(*setting("FAKE_CUDA_SM") ? setting("FAKE_CUDA_SM") : "90") / 10
           : attribute == has64BitStreamOps ? 1
           : attribute == multiprocessors   ? 132
                                            : 0;
  return success;
}
int cuDeviceCanAccessPeer(int *can, int, int) {
  *can = !fails(__func__);
  return success;
}
int cuDevicePrimaryCtxRetain(Context *context, int device) {
  FAKE_CUDA_FAILS;
  static CUctx_st contexts[16];
  contexts[device].device = device;
  *context = &contexts[device];
  return success;
}
int cuDevicePrimaryCtxRelease_v2(int) { return success; }
int cuCtxSetCurrent(Context context) {
  current = context;
  return success;
}
int cuCtxEnablePeerAccess(Context peer, unsigned) {
  std::lock_guard<std::mutex> hold(everything);
  return std::exchange(current->peers[peer->device], true) ? alreadyEnabled : success;
}
int cuCtxSynchronize() { return success; }
int cuMemAlloc_v2(Address *at, size_t bytes) {
  FAKE_CUDA_FAILS;
  if (!current)
    return invalidValue;
  int file = -1;
  void *memory = nullptr, *edge = nullptr;
  if (*setting("FAKE_CUDA_EDGE")) {
    size_t pages = wholePages(bytes);
    edge = mmap(nullptr, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (edge == MAP_FAILED || mprotect(static_cast<char *>(edge) + pages, 4096, PROT_NONE) < 0)
      return outOfMemory;
    memory = static_cast<char *>(edge) + pages - bytes;
  } else if (*setting("FAKE_CUDA_IPC")) {
    file = memfd_create("fake-cuda", MFD_CLOEXEC);
    memory = file < 0 || ftruncate(file, off_t(wholePages(bytes))) < 0
                 ? MAP_FAILED
                 : mmap(nullptr, wholePages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    memory = memory == MAP_FAILED ? nullptr : memory;
  } else {
    memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  }
  if (!memory)
    return outOfMemory;
  std::memset(memory, 0xcd, bytes);
  *at = reinterpret_cast<Address>(memory);
  std::lock_guard<std::mutex> hold(everything);
  allocations[*at] = {bytes, current->device, file, edge};
  return success;
}
int cuMemFree_v2(Address at) {
  std::lock_guard<std::recursive_mutex> driver(driverLock);
  for (Stream stream : streams)
    stream->drain();
  std::lock_guard<std::mutex> hold(everything);
  auto it = allocations.find(at);
  if (it == allocations.end())
    return invalidValue;
  if (it->second.edge) {
    munmap(it->second.edge, wholePages(it->second.bytes) + 4096);
  } else if (it->second.file < 0) {
    std::free(reinterpret_cast<void *>(at));
  } else {
    munmap(reinterpret_cast<void *>(at), wholePages(it->second.bytes));
    close(it->second.file);
  }
  allocations.erase(it);
  return success;
}
int cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return success;
}
int cuMemFreeHost(void *memory) {
  std::free(memory);
  return success;
}
int cuMemHostGetDevicePointer_v2(Address *at, void *memory, unsigned) {
  *at = reinterpret_cast<Address>(memory);
  return success;
}
int cuMemGetAddressRange_v2(Address *base, size_t *size, Address at) {
  std::lock_guard<std::mutex> hold(everything);
  auto it = allocationOf(at);
  if (it == allocations.end())
    return invalidValue;
  *base = it->first;
  *size = it->second.bytes;
  return success;
}
int cuPointerGetAttribute(void *value, int attribute, Address at) {
  std::lock_guard<std::mutex> hold(everything);
  auto it = allocationOf(at);
  if (it != allocations.end() && attribute == bufferId) {
    *static_cast<uint64_t *>(value) = it->second.made;
    return success;
  }
  if (attribute != deviceOrdinal || it == allocations.end())
    return invalidValue;
  *static_cast<int *>(value) = it->second.device;
  return success;
}
int cuIpcGetMemHandle(IpcHandle *handle, Address at) {
  FAKE_CUDA_FAILS;
  std::lock_guard<std::mutex> hold(everything);
  auto it = allocations.find(at);
  if (it == allocations.end())
    return invalidValue;
  if (it->second.made)
    return invalidValue;
  if (it->second.file < 0)
    return notSupported;
  Shared shared{getpid(), it->second.file, it->second.bytes};
  *handle = {};
  std::memcpy(handle->reserved, &shared, sizeof shared);
  return success;
}
int cuIpcOpenMemHandle_v2(Address *at, IpcHandle handle, unsigned) {
  FAKE_CUDA_FAILS;
  Shared shared;
  std::memcpy(&shared, handle.reserved, sizeof shared);
  if (shared.process == getpid())
    return invalidValue;
  {
    std::lock_guard<std::mutex> hold(everything);
    if (!mayOpen())
      return outOfMemory;
  }
  int file =
      open(fmt::format("/proc/{}/fd/{}", shared.process, shared.file).c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return invalidValue;
  void *memory =
      mmap(nullptr, wholePages(shared.bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED)
    return outOfMemory;
  *at = reinterpret_cast<Address>(memory);
  std::lock_guard<std::mutex> hold(everything);
  opened[*at] = wholePages(shared.bytes);
  return success;
}
int cuIpcCloseMemHandle(Address at) {
  std::lock_guard<std::mutex> hold(everything);
  auto it = opened.find(at);
  if (it == opened.end())
    return invalidValue;
  munmap(reinterpret_cast<void *>(at), it->second);
  opened.erase(it);
  return success;
}

// CUmemAllocationProp, of which one kind is used here.
struct FakeProp {
  int type, handleTypes;
  struct {
    int type, id;
  } location;
};
int cuMemCreate(MemoryHandle *handle, size_t bytes, const FakeProp *prop, unsigned long long) {
  FAKE_CUDA_FAILS;
  if (bytes == 0 || bytes % 4096)
    return invalidValue;
  int file = memfd_create("fake-cuda", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, off_t(bytes)) < 0)
    return outOfMemory;
  static MemoryHandle last = 0;
  std::lock_guard<std::mutex> hold(everything);
  made[ *handle = ++last] = {file, bytes, prop->location.id, (prop->handleTypes & posixFile) != 0,
                             1};
  return success;
}
int cuMemRetainAllocationHandle(MemoryHandle *handle, void *at) {
  FAKE_CUDA_FAILS;
  std::lock_guard<std::mutex> hold(everything);
  auto it = allocationOf(reinterpret_cast<Address>(at));
  if (it == allocations.end() || !it->second.made)
    return invalidValue;
  ++made[*handle = it->second.made].users;
  return success;
}
int cuMemRelease(MemoryHandle handle) {
  std::lock_guard<std::mutex> hold(everything);
  if (!made.count(handle))
    return invalidValue;
  drop(handle);
  return success;
}
int cuMemExportToShareableHandle(void *to, MemoryHandle handle, int type, unsigned long long) {
  FAKE_CUDA_FAILS;
  std::lock_guard<std::mutex> hold(everything);
  auto it = made.find(handle);
  if (it == made.end() || type != posixFile || !it->second.shareable)
    return invalidValue;
  *static_cast<int *>(to) = fcntl(it->second.file, F_DUPFD_CLOEXEC, 0);
  return success;
}
int cuMemImportFromShareableHandle(MemoryHandle *handle, void *from, int type) {
  FAKE_CUDA_FAILS;
  int file = fcntl(int(reinterpret_cast<intptr_t>(from)), F_DUPFD_CLOEXEC, 0);
  off_t bytes = lseek(file, 0, SEEK_END);
  if (type != posixFile || bytes < 1)
    return invalidValue;
  static MemoryHandle last = 1 << 20;
  std::lock_guard<std::mutex> hold(everything);
  if (!mayOpen()) {
    close(file);
    return outOfMemory;
  }
  made[ *handle = ++last] = {file, size_t(bytes), -1, true, 1};
  return success;
}
int cuMemAddressReserve(Address *at, size_t bytes, size_t, Address, unsigned long long) {
  FAKE_CUDA_FAILS;
  void *memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *at = reinterpret_cast<Address>(memory);
  return memory == MAP_FAILED ? outOfMemory : success;
}
int cuMemAddressFree(Address at, size_t bytes) {
  return munmap(reinterpret_cast<void *>(at), bytes) ? invalidValue : success;
}
int cuMemMap(Address at, size_t bytes, size_t offset, MemoryHandle handle, unsigned long long) {
  FAKE_CUDA_FAILS;
  std::lock_guard<std::mutex> hold(everything);
  auto it = made.find(handle);
  if (it == made.end() || offset || bytes > it->second.bytes)
    return invalidValue;
  // The host's own loads and stores are not what is tested.
  if (mmap(reinterpret_cast<void *>(at), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           it->second.file, 0) == MAP_FAILED)
    return outOfMemory;
  ++it->second.users;
  Allocation &mapped = allocations[at] = {bytes, it->second.device};
  mapped.made = handle;
  return success;
}
int cuMemUnmap(Address at, size_t bytes) {
  std::lock_guard<std::mutex> hold(everything);
  auto it = allocations.find(at);
  if (it == allocations.end() || !it->second.made || it->second.bytes != bytes)
    return invalidValue;
  drop(it->second.made);
  allocations.erase(it);
  mmap(reinterpret_cast<void *>(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
       0);
  return success;
}
int cuMemSetAccess(Address at, size_t bytes, const AccessDesc *access, size_t count) {
  FAKE_CUDA_FAILS;
  std::lock_guard<std::mutex> hold(everything);
  auto it = allocations.find(at);
  if (it == allocations.end() || !it->second.made || it->second.bytes != bytes)
    return invalidValue;
  for (size_t i = 0; i < count; ++i)
    if (access[i].location.type == onDevice && access[i].flags == readAndWrite)
      it->second.allowed |= 1u << access[i].location.id;
  return success;
}
// No multicast is left.
int cuMulticastCreate(MemoryHandle *, const void *) {
  log("cuMulticastCreate");
  return outOfMemory;
}

int cuMemsetD8Async(Address at, unsigned char value, size_t bytes, Stream stream) {
  stream->add([=] {
    std::memset(reinterpret_cast<void *>(at), value, bytes);
    return true;
  });
  return success;
}
int cuMemcpyAsync(Address to, Address from, size_t bytes, Stream stream) {
  FAKE_CUDA_FAILS;
  log("cuMemcpyAsync {}", bytes);
  if (!reaches(stream, to) || !reaches(stream, from))
    return invalidValue;
  stream->add([=] {
    // Words at a time: the watchdog writes counters that others load.
    if (to % 8 == 0 && from % 8 == 0 && bytes == 8)
      __atomic_store_n(reinterpret_cast<uint64_t *>(to), load<uint64_t>(from), __ATOMIC_RELEASE);
    else
      std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    return true;
  });
  return success;
}
int cuMemcpy2DAsync_v2(const Copy2D *given, Stream stream) {
  Copy2D copy = *given;
  if (copy.fromType != unifiedMemory || copy.toType != unifiedMemory || copy.width > copy.toPitch ||
      copy.width > copy.fromPitch)
    return invalidValue;
  log("cuMemcpy2DAsync {} x {}", copy.height, copy.width);
  stream->add([=] {
    for (size_t row = 0; row < copy.height; ++row)
      std::memmove(reinterpret_cast<void *>(copy.to + row * copy.toPitch),
                   reinterpret_cast<void *>(copy.from + row * copy.fromPitch), copy.width);
    return true;
  });
  return success;
}
int cuStreamCreate(Stream *stream, unsigned) {
  FAKE_CUDA_FAILS;
  std::lock_guard<std::recursive_mutex> driver(driverLock);
  streams.push_back(*stream = new CUstream_st);
  (*stream)->context = current;
  if (*setting("FAKE_CUDA_QUEUES")) {
    const char *wanted = setting("CUDA_DEVICE_MAX_CONNECTIONS");
    size_t place = current->streams++ % size_t(*wanted ? std::atoi(wanted) : 8);
    while (current->queues.size() <= place)
      current->queues.push_back(std::make_unique<Queue>());
    (*stream)->queue = current->queues[place].get();
  }
  return success;
}
int cuStreamDestroy_v2(Stream stream) {
  {
    std::lock_guard<std::recursive_mutex> driver(driverLock);
    streams.erase(std::find(streams.begin(), streams.end(), stream));
  }
  {
    std::lock_guard<std::mutex> hold(stream->lock);
    stream->leaving = true;
    stream->changed.notify_all();
  }
  stream->thread.join();
  delete stream;
  return success;
}
int cuStreamSynchronize(Stream stream) {
  stream->drain();
  return success;
}
int cuStreamGetCtx(Stream stream, Context *context) {
  *context = stream->context;
  return success;
}
int cuStreamIsCapturing(Stream stream, int *capturing) {
  FAKE_CUDA_FAILS;
  *capturing = stream->capture != nullptr;
  return success;
}
int cuStreamBeginCapture_v2(Stream stream, int) {
  FAKE_CUDA_FAILS;
  if (stream->capture)
    return illegalState;
  stream->capture = std::make_shared<CUgraph_st>();
  stream->capture->members = {stream};
  stream->tail.clear();
  return success;
}
int cuStreamEndCapture(Stream stream, Graph *graph) {
  FAKE_CUDA_FAILS;
  std::shared_ptr<CUgraph_st> made = stream->capture;
  if (!made || made->members.front() != stream)
    return illegalState;
  // Whatever a stream did has been joined by the one that began.
  std::vector<bool> joined(made->nodes.size());
  for (size_t n : stream->tail)
    joined[n] = true;
  for (size_t n = made->nodes.size(); n-- > 0;)
    for (size_t before : made->nodes[n].after)
      joined[before] = joined[before] || joined[n];
  for (Stream member : made->members)
    member->capture = nullptr;
  if (std::find(joined.begin(), joined.end(), false) != joined.end())
    return unjoined;
  *graph = new CUgraph_st(*made);
  return success;
}
int cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph, unsigned long long) {
  FAKE_CUDA_FAILS;
  log("cuGraphInstantiate {} nodes", graph->nodes.size());
  *exec = new CUgraphExec_st{graph->nodes};
  return success;
}
int cuGraphUpload(GraphExec, Stream) {
  FAKE_CUDA_FAILS;
  return success;
}
int cuGraphLaunch(GraphExec exec, Stream stream) {
  FAKE_CUDA_FAILS;
  log("cuGraphLaunch");
  // One thing after the other, each when those before it are done: a wait does not hold up others.
  auto done = std::make_shared<std::vector<bool>>(exec->nodes.size());
  stream->add([exec, done] {
    bool all = true;
    for (size_t n = 0; n < done->size(); ++n)
      if (!(*done)[n]) {
        const std::vector<size_t> &after = exec->nodes[n].after;
        (*done)[n] =
            std::all_of(after.begin(), after.end(), [&](size_t b) { return (*done)[b]; }) &&
            exec->nodes[n].act();
        all = all && (*done)[n];
      }
    return all;
  });
  return success;
}
int cuGraphDestroy(Graph graph) {
  delete graph;
  return success;
}
int cuGraphExecDestroy(GraphExec exec) {
  delete exec;
  return success;
}
int cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  log("cuStreamWaitEvent");
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture)
      return illegalState;
    if (!stream->capture) {
      stream->capture = event->capture;
      stream->capture->members.push_back(stream);
      stream->tail.clear();
    }
    stream->tail.insert(stream->tail.end(), event->tail.begin(), event->tail.end());
    return success;
  }
  uint64_t wanted;
  {
    std::lock_guard<std::mutex> hold(everything);
    wanted = event->recorded;
  }
  stream->add([=] {
    std::lock_guard<std::mutex> hold(everything);
    return event->done >= wanted;
  });
  return success;
}
int cuStreamWaitValue32_v2(Stream s, Address at, uint32_t value, unsigned) {
  return waitFor(s, at, value, "cuStreamWaitValue32");
}
int cuStreamWriteValue32_v2(Stream s, Address at, uint32_t value, unsigned) {
  return writeTo(s, at, value, "cuStreamWriteValue32");
}
int cuStreamWaitValue64_v2(Stream s, Address at, uint64_t value, unsigned) {
  return waitFor(s, at, value, "cuStreamWaitValue64");
}
int cuStreamWriteValue64_v2(Stream s, Address at, uint64_t value, unsigned) {
  FAKE_CUDA_FAILS;
  return writeTo(s, at, value, "cuStreamWriteValue64");
}
int cuStreamBatchMemOp_v2(Stream s, unsigned count, MemoryOp *ops, unsigned flags) {
  FAKE_CUDA_FAILS;
  log("cuStreamBatchMemOp {}", count);
  if (!count || count > mostMemoryOps || flags)
    return invalidValue;
  for (MemoryOp *op = ops; op != ops + count; ++op) {
    if (op->flags || (op->kind != awaitOp && op->kind != writeOp))
      return invalidValue;
    int result = op->kind == awaitOp ? waitFor(s, op->at, op->value, "cuStreamWaitValue64")
                                     : writeTo(s, op->at, op->value, "cuStreamWriteValue64");
    if (result != success)
      return result;
  }
  return success;
}
int cuEventCreate(Event *event, unsigned) {
  *event = new CUevent_st;
  return success;
}
int cuEventDestroy_v2(Event event) {
  delete event;
  return success;
}
static int record(Event event, Stream stream) {
  uint64_t number;
  {
    std::lock_guard<std::mutex> hold(everything);
    number = ++event->recorded;
  }
  stream->add([=, device = stream->context->device] {
    std::lock_guard<std::mutex> hold(everything);
    event->done = std::max(event->done, number);
    event->device = device;
    event->time = timeOf(device);
    return true;
  });
  return success;
}
int cuEventRecord(Event event, Stream stream) {
  event->capture = stream->capture;
  event->tail = stream->tail;
  return stream->capture ? success : record(event, stream);
}
int cuEventRecordWithFlags(Event event, Stream stream, unsigned flags) {
  FAKE_CUDA_FAILS;
  log("cuEventRecordWithFlags {}", flags);
  if (flags > recordInGraph || (flags == recordInGraph && !stream->capture))
    return invalidValue;
  return flags ? record(event, stream) : cuEventRecord(event, stream);
}
int cuEventElapsedTime(float *ms, Event start, Event end) {
  std::lock_guard<std::mutex> hold(everything);
  if (start->device != end->device || !start->done || !end->done)
    return invalidValue;
  if (start->done < start->recorded || end->done < end->recorded)
    return notReady;
  *ms = float(double(int64_t(end->time - start->time)) * 1e-6);
  return success;
}
int cuEventQuery(Event event) {
  std::lock_guard<std::recursive_mutex> driver(driverLock);
  std::lock_guard<std::mutex> hold(everything);
  return event->done >= event->recorded ? success : notReady;
}
int cuModuleLoadData(Module *module, const void *image) {
  FAKE_CUDA_FAILS;
  log("cuModuleLoadData");
  *module = new CUmod_st{static_cast<const char *>(image)};
  return success;
}
int cuModuleUnload(Module module) {
  delete module;
  return success;
}
int cuModuleGetFunction(Function *function, Module module, const char *name) {
  if (module->image.find(std::string(name) + "(") == std::string::npos)
    return notFound;
  *function = module->functions.emplace_back(new CUfunc_st{name}).get();
  std::string steps = "timelineSteps = ";
  if (size_t at = module->image.find(steps); at != std::string::npos)
    (*function)->steps = std::atoi(module->image.c_str() + at + steps.size());
  return success;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function, int, size_t) {
  *blocks = 2;
  return success;
}
int cuLaunchKernel(Function function, unsigned blocks, unsigned, unsigned, unsigned threads,
                   unsigned, unsigned, unsigned, Stream stream, void **parameters, void **) {
  const std::string &name = function->name;
  log("cuLaunchKernel {} {} x {}", name, blocks, threads);
  if (name == "ncclxrt_raise") {
    auto *slot = *static_cast<uint64_t **>(parameters[0]);
    stream->add([=] {
      __atomic_fetch_add(slot, 1, __ATOMIC_RELEASE);
      return true;
    });
    return success;
  }
  if (name == "ncclxrt_size") {
    stream->add([job = *static_cast<device::SizeJob *>(parameters[0])] {
      doSize(job);
      return true;
    });
    return success;
  }
  if (name == "ncclxrt_copy_sized") {
    stream->add([job = *static_cast<device::SizedCopy *>(parameters[0])] {
      doSizedCopy(job);
      return true;
    });
    return success;
  }
  if (name.rfind("ncclxrt_reduce_", 0) != 0)
    return launchOther(function, blocks, stream, parameters);
  device::ReduceJob job = *static_cast<device::ReduceJob *>(parameters[0]);
  stream->add([=] {
    doReduce(name, job);
    return true;
  });
  return success;
}
int cuLaunchKernelEx(const LaunchConfig *config, Function function, void **parameters,
                     void **extra) {
  log("early {}", config->numAttributes ? config->attributes->allowed : 0);
  return cuLaunchKernel(function, config->blocks[0], 1, 1, config->threads[0], 1, 1, 0,
                        config->stream, parameters, extra);
}

// NVRTC.
struct nvrtcProgramState {
  std::string source, log;
};
int nvrtcCreateProgram(nvrtcProgramState **program, const char *source, const char *, int,
                       const char *const *, const char *const *) {
  *program = new nvrtcProgramState{source, ""};
  return 0;
}
int nvrtcCompileProgram(nvrtcProgramState *program, int count, const char *const *options) {
  log("nvrtcCompileProgram {}", count ? options[0] : "");
  if (!fails("nvrtcCompileProgram"))
    return 0;
  program->log = "made to fail";
  return 6;
}
int nvrtcGetProgramLogSize(nvrtcProgramState *program, size_t *size) {
  *size = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(nvrtcProgramState *program, char *text) {
  std::strcpy(text, program->log.c_str());
  return 0;
}
int nvrtcGetCUBINSize(nvrtcProgramState *program, size_t *size) {
  *size = program->source.size() + 1;
  return 0;
}
int nvrtcGetCUBIN(nvrtcProgramState *program, char *image) {
  std::memcpy(image, program->source.c_str(), program->source.size() + 1);
  return 0;
}
int nvrtcDestroyProgram(nvrtcProgramState **program) {
  delete *program;
  *program = nullptr;
  return 0;
}
}

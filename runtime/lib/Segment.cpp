//===- Segment.cpp - The memory of a plan on one rank ---------------------===//
#include "Segment.h"
#include "Wire.h"

#include <algorithm>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <map>
#include <mutex>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

using namespace ncclxrt;

static void futexWait(void *word, uint32_t expected, int64_t ns) {
  timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
  syscall(SYS_futex, word, FUTEX_WAIT, expected, &t, nullptr, 0);
}
static void futexWake(void *word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

bool ncclxrt::joinBarriers() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

// A sleeper announces itself and then looks at the value; a signaller changes the value and then
// looks for a sleeper. Where both are sequentially consistent, one of them sees the other. Where
// the signaller's two are plain, the sleeper, who has time, makes them so: after its barrier every
// signaller has either stored what the sleeper is about to load, or is yet to look for it. Who
// wakes takes the name away, so that a sleeper on its way sees that the futex word has changed.

void Segment::raise(int64_t number) {
  slot(number).value.fetch_add(1, std::memory_order_seq_cst);
  if (header().sleeper.load(std::memory_order_seq_cst) == nameOf(number))
    wake(number);
}

void Segment::wake(int64_t number) {
  uint32_t name = nameOf(number);
  if (header().sleeper.compare_exchange_strong(name, 0))
    futexWake(&header().sleeper);
}

void Segment::abort() {
  header().aborted.store(1, std::memory_order_seq_cst);
  header().sleeper.store(0, std::memory_order_seq_cst);
  futexWake(&header().sleeper);
}

WaitPolicy WaitPolicy::forRanks(int ranksHere) {
  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  WaitPolicy policy;
  // Longer than a sleeper takes to wake (50 to 100 us on a virtual machine whose core has halted):
  // else two ranks that once slept would go on to, each asleep when the other's signal comes.
  if (ranksHere <= cores)
    policy.budget = policy.most = 8000;
  else
    policy.yields = true;
  return policy;
}

static void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Ranks that share cores and all wait by yielding hand the core on in a microsecond. Beside work
// that does not yield, the core comes back a time slice later (measured: 20 to 100 times the time
// of a barrier that sleeps): then waits sleep for a while before yielding is tried again.
template <typename Reached> bool WaitPolicy::yieldUntil(Reached reached) {
  constexpr int64_t slice = 500'000, patience = 2'000'000; // ns
  if (sleepsLeft > 0) {
    --sleepsLeft;
    return false;
  }
  int64_t start = nowNs(), before = start;
  while (before - start < patience) {
    sched_yield();
    if (reached()) {
      penalty = nowNs() - before < slice ? std::max(penalty / 2, leastPenalty) : penalty;
      return true;
    }
    int64_t now = nowNs();
    if (now - before >= slice) {
      sleepsLeft = penalty;
      penalty = std::min(2 * penalty, mostPenalty);
      return false;
    }
    before = now;
  }
  return false;
}

bool Segment::waitFor(int64_t number, uint64_t value, int64_t timeoutNs, int64_t &deadlineNs,
                      WaitPolicy &policy, bool barrier) {
  auto reached = [&] { return this->reached(number, value); };
  if (reached())
    return true;
  int polls = ++policy.waits % 64 == 0 ? policy.most : policy.budget;
  for (int i = 0; i < polls; ++i) {
    relax();
    if (reached()) {
      policy.budget = policy.most;
      return true;
    }
  }
  policy.budget = std::max(policy.least, policy.budget / 2);
  if (deadlineNs == 0)
    deadlineNs = nowNs() + timeoutNs;
  if (policy.yields && policy.yieldUntil(reached))
    return true;
  std::atomic<uint32_t> &sleeper = header().sleeper;
  bool result;
  for (;;) {
    sleeper.store(nameOf(number), std::memory_order_seq_cst);
    if (barrier)
      syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    if ((result = slot(number).value.load(std::memory_order_seq_cst) >= value ||
                  header().aborted.load(std::memory_order_seq_cst)))
      break;
    int64_t left = deadlineNs - nowNs();
    if (left <= 0)
      break;
    futexWait(&sleeper, nameOf(number), left);
  }
  sleeper.store(0, std::memory_order_relaxed);
  return result;
}

void Doorbell::ring() {
  sequence.fetch_add(1);
  if (sleepers.load())
    futexWake(&sequence);
}

void Doorbell::sleep(uint32_t seen, int64_t ns) { futexWait(&sequence, seen, ns); }

namespace {
constexpr uint64_t segmentMagic = 0x746d67732d78636e; // "ncx-sgmt"

/// The segments of this process, by file descriptor.
struct Registry {
  std::mutex mutex;
  std::map<int, std::weak_ptr<Segment>> segments;
};
} // namespace

static Registry &registry() {
  static auto *instance = new Registry; // never destroyed: segments may outlive statics
  return *instance;
}

Status Segment::map(int64_t size) {
  // Populated at once, so that the first run pays no page faults.
  void *address =
      mmap(nullptr, size_t(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (address == MAP_FAILED)
    return systemError(fmt::format("mmap of {} bytes", size));
  memory = static_cast<std::byte *>(address);
  bytes = size;
  return {};
}

Status Segment::create(int64_t size, int64_t windowsAt, uint64_t owner,
                       std::shared_ptr<Segment> &segment) {
  // More than the machine has would not fail here but kill some process later.
  int64_t physical = int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (size > physical)
    return error(ncclxrtOutOfMemory, "windows and slots need {} bytes, the machine has {}", size,
                 physical);
  std::shared_ptr<Segment> made(new Segment);
  made->file = Fd(memfd_create("ncclxrt", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made->file)
    return systemError("memfd_create");
  if (ftruncate(made->file.get(), size))
    return systemError(fmt::format("ftruncate to {} bytes", size));
  // No peer can shrink it under our feet.
  if (fcntl(made->file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
    return systemError("sealing the memory file");
  if (Status s = made->map(size); !s.ok())
    return s;
  made->windows = windowsAt;
  made->header().magic = segmentMagic;
  made->header().owner = owner;
  {
    std::lock_guard lock(registry().mutex);
    registry().segments[made->file.get()] = made;
  }
  segment = std::move(made);
  return {};
}

Status Segment::alias(int64_t at, const Segment &other, int64_t from, int64_t count) {
  int64_t page = sysconf(_SC_PAGESIZE), before = at % page;
  size_t length = size_t((before + count + page - 1) / page * page);
  std::byte *to = memory + (at - before);
  madvise(to, length, MADV_REMOVE); // the memory under them is never used
  // With an old size of 0 a second mapping of the same pages.
  void *made = mremap(other.memory + (from - before), 0, length, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  if (made == MAP_FAILED)
    return systemError(fmt::format("sharing {} bytes of memory", count));
  aliased = true;
  return {};
}

std::string Segment::ticket() const {
  return Writer().put(int64_t(getpid())).put(int32_t(file.get())).take();
}

Status Segment::open(const std::string &ticket, int64_t size, uint64_t owner,
                     std::shared_ptr<Segment> &segment) {
  Reader reader(ticket);
  auto pid = reader.get<int64_t>();
  auto number = reader.get<int32_t>();
  if (!reader.ok())
    return error(ncclxrtInternalError, "a peer's memory ticket is cut short");
  std::shared_ptr<Segment> found;
  if (pid == getpid()) {
    std::lock_guard lock(registry().mutex);
    found = registry().segments[number].lock();
    if (!found)
      return error(ncclxrtInternalError, "no segment {} in this process", number);
  } else {
    found.reset(new Segment);
    std::string path = fmt::format("/proc/{}/fd/{}", pid, number);
    found->file = Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!found->file)
      return systemError("opening a peer's memory at " + path);
    struct stat info;
    if (fstat(found->file.get(), &info))
      return systemError("fstat");
    if (info.st_size != size)
      return error(ncclxrtInternalError, "a peer's memory has {} bytes, expected {}",
                   int64_t(info.st_size), size);
    if (Status s = found->map(size); !s.ok())
      return s;
    found->closeFile();
  }
  if (found->header().magic != segmentMagic || found->header().owner != owner)
    return error(ncclxrtInternalError, "a peer's memory is not that of its plan");
  segment = std::move(found);
  return {};
}

Segment::~Segment() {
  if (memory)
    munmap(memory, size_t(bytes));
}

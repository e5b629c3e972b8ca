//===- Windows.cpp - A rank's memory as others see it ---------------------===//
//
// Threads of one process use each other's pointers. Processes get memory of the driver's allocator
// by its handle for them (cuIpcGetMemHandle), and what the caller has made and mapped himself
// (cuMemCreate, cuMemMap), for which there is none, as a file, which one process passes to another.
//
//===----------------------------------------------------------------------===//
#include "Comm.h"
#include "Files.h"

#include <algorithm>
#include <sys/stat.h>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

/// What a rank tells of its memory. Ranks of one process use each other's pointers.
struct Comm::Handle {
  int64_t process, space; ///< a process is known within a name space of them
  int32_t device, ok;
  int64_t unshared; ///< what the driver said when it was to be shared with other processes
  int64_t mapped;   ///< not 0: it is a file for them; bytes of the allocation
  uint64_t id;      ///< the driver's, of the allocation
  uint64_t address, offset, bytes;
  IpcHandle ipc;
};

bool Comm::isNear(const Handle &a, const Handle &b) {
  return a.process == b.process && a.space == b.space;
}
bool Comm::isFile(const Handle &handle) { return handle.mapped && !handle.unshared; }

/// What tells an allocation of a rank from its others.
std::string Comm::keyOf(const Handle &handle) {
  if (!handle.mapped)
    return std::string(reinterpret_cast<const char *>(&handle.ipc), sizeof handle.ipc);
  return fmt::format("{} {} {}", handle.address - handle.offset, handle.mapped, handle.id);
}

/// Threads of one process use each other's pointers, once their contexts may.
Status Comm::reach(int other) {
  int peer = 0, can = 0;
  Context there = nullptr;
  if (Status s = call(driver->deviceGet(&peer, other), "cuDeviceGet"); !s.ok())
    return s;
  driver->canAccessPeer(&can, device, peer);
  if (!can)
    return error(ncclxrtUnsupported, "GPU {} of rank {} cannot reach GPU {} by load and store",
                 config.device, config.rank, other);
  if (Status s = call(driver->retainContext(&there, peer), "cuDevicePrimaryCtxRetain"); !s.ok())
    return s;
  int result = driver->enablePeer(there, 0);
  driver->releaseContext(peer); // its own rank holds it
  return result == alreadyEnabled ? Status() : call(result, "cuCtxEnablePeerAccess");
}

Status Comm::isOwnMemory(Address at, size_t bytes, const std::string &what, Address &base,
                         size_t &size) const {
  if (Status s = call(driver->addressRange(&base, &size, at), "cuMemGetAddressRange"); !s.ok())
    return s;
  int on = -1;
  if (Status s = call(driver->pointerAttribute(&on, deviceOrdinal, at), "cuPointerGetAttribute");
      !s.ok())
    return s;
  if (on != device)
    return error(ncclxrtInvalidArgument, "{} is memory of GPU {}, but rank {} has GPU {}", what, on,
                 config.rank, device);
  if (at - base + bytes > size)
    return error(ncclxrtInvalidArgument,
                 "{} of {} bytes ends {} bytes behind its allocation (rank={})", what, bytes,
                 at - base + bytes - size, config.rank);
  return {};
}

Status Comm::window(void *own, size_t bytes, void **peers) {
  Handle mine{};
  Fd file; // of what the caller has mapped
  Status local = enter();
  if (local.ok() && !own) {
    Address made = 0;
    local = call(driver->allocate(&made, std::max<size_t>(bytes, 1)), "cuMemAlloc");
    if (local.ok()) {
      memory.push_back({made, false, 0});
      own = reinterpret_cast<void *>(made);
      local =
          call(driver->fill(made, 0, std::max<size_t>(bytes, 1), releaseStream), "cuMemsetD8Async");
    }
    if (local.ok())
      local = call(driver->synchronize(releaseStream), "cuStreamSynchronize");
  }
  mine.process = ::getpid();
  if (struct stat spaceOf; ::stat("/proc/self/ns/pid", &spaceOf) == 0)
    mine.space = int64_t(spaceOf.st_ino);
  mine.device = config.device;
  mine.address = reinterpret_cast<uint64_t>(own);
  mine.bytes = bytes;
  if (local.ok()) {
    Address base = 0;
    size_t size = 0;
    local = isOwnMemory(mine.address, bytes, "a window", base, size);
    mine.offset = mine.address - base;
    // Memory that cannot be shared with processes still serves the threads of this one.
    if (local.ok())
      share(base, size, mine, file);
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
  std::vector<Fd> files;
  if (Status s = takeFiles(mine, all, file, files); !s.ok())
    return s;
  for (int r = 0; local.ok() && r < config.nranks; ++r)
    if (r == config.rank)
      peers[r] = own;
    else
      local = open(r, mine, all[r], files[r], peers[r]);
  // Nobody writes here before everybody can, and if one cannot, nobody does.
  std::vector<int32_t> ready(config.nranks);
  int32_t good = local.ok();
  if (Status s = exchange(&good, sizeof good, ready.data(), "window imports"); !s.ok())
    return s;
  for (int r = 0; local.ok() && r < config.nranks; ++r)
    if (!ready[r])
      local = error(ncclxrtPeerFailed, "rank {} cannot reach the memory of another (rank={})", r,
                    config.rank);
  return local;
}

/// The files that this rank has not mapped yet.
Status Comm::takeFiles(const Handle &mine, const std::vector<Handle> &all, const Fd &file,
                       std::vector<Fd> &files) {
  size_t ranks = all.size();
  files.resize(ranks);
  auto mayTake = [&](const Handle &to, const Handle &from) {
    return isFile(from) && !isNear(to, from);
  };
  if (std::none_of(all.begin(), all.end(), [&](const Handle &from) {
        return std::any_of(all.begin(), all.end(),
                           [&](const Handle &to) { return mayTake(to, from); });
      }))
    return {};
  std::vector<uint8_t> wanted(ranks), everyones(ranks * ranks);
  for (size_t r = 0; r < ranks; ++r)
    wanted[r] = mayTake(mine, all[r]) && !imports.count({int(r), keyOf(all[r])});
  if (Status s = exchange(wanted.data(), ranks, everyones.data(), "wanted memory"); !s.ok())
    return s;
  if (std::none_of(everyones.begin(), everyones.end(), [](uint8_t w) { return w; }))
    return {};
  std::vector<bool> gives(ranks), takes(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    gives[r] = everyones[r * ranks + size_t(config.rank)];
    takes[r] = wanted[r];
  }
  return passFiles(*this, file, gives, takes, files);
}

/// How other processes get the allocation at `base`.
void Comm::share(Address base, size_t size, Handle &mine, Fd &file) {
  mine.unshared = driver->ipcHandle(&mine.ipc, base);
  MemoryHandle handle = 0;
  if (!mine.unshared || driver->retainHandle(&handle, reinterpret_cast<void *>(base)) != success)
    return;
  mine.mapped = int64_t(size);
  int made = -1;
  mine.unshared = driver->exportHandle(&made, handle, posixFile, 0);
  if (!mine.unshared)
    file = Fd(made);
  driver->releaseHandle(handle);
  if (driver->pointerAttribute(&mine.id, bufferId, base) != success)
    mine.id = 0;
}

/// What is mapped is reached by the GPUs alone that it has been said for.
int Comm::allowAccess(Address base, size_t bytes) const {
  AccessDesc here{{onDevice, device}, readAndWrite};
  return driver->setAccess(base, bytes, &here, 1);
}

Status Comm::openFile(int rank, const Handle &peer, const Fd &file, Address &base) {
  MemoryHandle handle = 0;
  size_t bytes = size_t(peer.mapped);
  auto good = [&](int result, const char *what) {
    return result == success
               ? Status()
               : error(result == outOfMemory ? ncclxrtOutOfMemory : ncclxrtSystemError,
                       "the memory of rank {} cannot be opened: {} failed: {} (rank={}, device={})",
                       rank, what, driver->text(result), config.rank, config.device);
  };
  if (Status s = good(
          driver->importHandle(&handle, reinterpret_cast<void *>(intptr_t(file.get())), posixFile),
          "cuMemImportFromShareableHandle");
      !s.ok())
    return s;
  Status s = good(driver->reserve(&base, bytes, 0, 0, 0), "cuMemAddressReserve");
  if (s.ok()) {
    s = good(driver->map(base, bytes, 0, handle, 0), "cuMemMap");
    if (s.ok())
      memory.push_back({base, true, bytes});
    else
      driver->freeReserved(base, bytes);
  }
  driver->releaseHandle(handle); // the mapping keeps it
  if (!s.ok())
    return s;
  return good(allowAccess(base, bytes), "cuMemSetAccess");
}

Status Comm::openIpc(int rank, const Handle &peer, Address &base) {
  int result = driver->ipcOpen(&base, peer.ipc, lazyPeerAccess);
  if (result != success)
    return error(ncclxrtSystemError,
                 "the memory of rank {} cannot be opened: cuIpcOpenMemHandle failed: {} "
                 "(rank={}, device={})",
                 rank, driver->text(result), config.rank, config.device);
  memory.push_back({base, true, 0});
  return {};
}

/// A peer's memory as this GPU sees it.
Status Comm::open(int rank, const Handle &own, const Handle &peer, const Fd &file, void *&at) {
  if (isNear(own, peer)) {
    at = reinterpret_cast<void *>(peer.address);
    if (peer.device == config.device)
      return {};
    if (Status s = reach(peer.device); !s.ok() || !peer.mapped)
      return s;
    return call(allowAccess(peer.address - peer.offset, size_t(peer.mapped)), "cuMemSetAccess");
  }
  if (peer.unshared)
    return error(ncclxrtUnsupported,
                 "the memory of rank {} cannot be shared with other processes: {} "
                 "failed there: {} (rank={})",
                 rank, peer.mapped ? "cuMemExportToShareableHandle" : "cuIpcGetMemHandle",
                 driver->text(int(peer.unshared)), config.rank);
  importing = true;
  auto [known, isNew] = imports.try_emplace({rank, keyOf(peer)});
  Status s = !isNew        ? Status()
             : peer.mapped ? openFile(rank, peer, file, known->second)
                           : openIpc(rank, peer, known->second);
  if (s.ok())
    at = reinterpret_cast<void *>(known->second + peer.offset);
  else
    imports.erase(known);
  return s;
}

Status Comm::slots(size_t count, uint32_t **peers) {
  std::vector<void *> at(config.nranks);
  if (Status s = window(nullptr, count * sizeof(uint32_t), at.data()); !s.ok())
    return s;
  for (int r = 0; r < config.nranks; ++r)
    peers[r] = static_cast<uint32_t *>(at[r]);
  std::lock_guard<std::mutex> hold(lock);
  streamSlots.push_back({reinterpret_cast<Address>(peers[config.rank]), count});
  return {};
}

Status Comm::counters(size_t count, uint64_t **peers) {
  std::vector<void *> at(config.nranks);
  if (Status s = window(nullptr, count * sizeof(uint64_t), at.data()); !s.ok())
    return s;
  for (int r = 0; r < config.nranks; ++r)
    peers[r] = static_cast<uint64_t *>(at[r]);
  std::lock_guard<std::mutex> hold(lock);
  planCounters.push_back({reinterpret_cast<Address>(peers[config.rank]), count});
  return {};
}

//===- Peers.h - How ranks on GPUs find each other ---------------------------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_RUN_PEERS_H
#define NCCLX_TOOLS_NCCLX_RUN_PEERS_H

#include "ncclxrt/cuda.h"

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace mlir::ncclx {

/// The other ranks of a run, as each of them sees them.
class Peers {
public:
  virtual ~Peers() = default;
  /// All of `mine`, in the order of the ranks, into `all`. False: somebody has left.
  virtual bool gather(int32_t rank, const void *mine, size_t bytes, void *all) = 0;
  virtual bool meet(int32_t rank) = 0;
  /// The last meeting: of all, those that have left among them.
  virtual void part(int32_t rank) = 0;
  /// The rank leaves for a reason: meetings and waits of the others end.
  virtual void leave(int32_t rank, const std::string &why) = 0;
  /// The rank waits with this communicator from here on, or, with null, no more.
  virtual void waitsWith(int32_t rank, ncclxrtCudaComm_t comm) = 0;
  /// Why somebody has left, as far as is known, or null.
  virtual const char *failure() = 0;
};

/// Where threads meet and hand each other what they brought. One that leaves ends every meeting.
class Hall {
public:
  explicit Hall(int32_t ranks) : ranks(ranks), brought(ranks) {}

  /// All of `mine`, in the order of the ranks, into `all`. False: somebody has left.
  bool gather(int32_t rank, const void *mine, size_t bytes, void *all) {
    std::unique_lock<std::mutex> hold(lock);
    brought[rank] = mine;
    if (!meet(hold))
      return false;
    for (int32_t r = 0; r < ranks; ++r)
      std::memcpy(static_cast<char *>(all) + r * bytes, brought[r], bytes);
    return meet(hold); // nobody goes on while others still read what he brought
  }
  bool meet() {
    std::unique_lock<std::mutex> hold(lock);
    return meet(hold);
  }
  /// The last meeting: of all, those that have left among them.
  void part() {
    std::unique_lock<std::mutex> hold(lock);
    ++parted;
    changed.notify_all();
    changed.wait(hold, [&] { return parted == ranks; });
  }
  void leave() {
    std::lock_guard<std::mutex> hold(lock);
    left = true;
    changed.notify_all();
  }

private:
  int32_t ranks, here = 0, parted = 0;
  uint64_t meetings = 0;
  bool left = false;
  std::mutex lock;
  std::condition_variable changed;
  std::vector<const void *> brought;

  bool meet(std::unique_lock<std::mutex> &hold) {
    uint64_t mine = meetings;
    if (++here == ranks) {
      here = 0;
      ++meetings;
      changed.notify_all();
    }
    changed.wait(hold, [&] { return meetings != mine || left; });
    return meetings != mine; // of a meeting that took place, a later leaving takes nothing
  }
};

/// Ranks that are threads of this process.
class ThreadPeers : public Peers {
public:
  explicit ThreadPeers(int32_t ranks) : hall(ranks), comms(size_t(ranks)) {}
  bool gather(int32_t rank, const void *mine, size_t bytes, void *all) override {
    return hall.gather(rank, mine, bytes, all);
  }
  bool meet(int32_t) override { return hall.meet(); }
  void part(int32_t) override { hall.part(); }
  void leave(int32_t, const std::string &) override {
    hall.leave();
    std::lock_guard<std::mutex> hold(lock);
    for (ncclxrtCudaComm_t comm : comms)
      if (comm)
        ncclxrtCudaAbort(comm, "another rank has left");
  }
  void waitsWith(int32_t rank, ncclxrtCudaComm_t comm) override {
    std::lock_guard<std::mutex> hold(lock);
    comms[size_t(rank)] = comm;
  }
  const char *failure() override { return nullptr; }

private:
  Hall hall;
  std::mutex lock;
  std::vector<ncclxrtCudaComm_t> comms; ///< by rank; null: not yet, or no more
};

/// One rank of several processes, over the control plane of the host's runtime.
class ProcessPeers : public Peers {
public:
  explicit ProcessPeers(ncclxrtComm_t job) : job(job) {}
  bool gather(int32_t, const void *mine, size_t bytes, void *all) override {
    return ncclxrtCommAllgather(job, mine, bytes, all) == 0;
  }
  bool meet(int32_t rank) override { return gather(rank, nullptr, 0, nullptr); }
  void part(int32_t rank) override { meet(rank); }
  void leave(int32_t, const std::string &why) override {
    if (!failure())
      ncclxrtCommAbort(job, why.c_str());
  }
  void waitsWith(int32_t, ncclxrtCudaComm_t) override {} // its watchdog asks for failure()
  const char *failure() override { return ncclxrtCommFailure(job); }

private:
  ncclxrtComm_t job;
};

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_NCCLX_RUN_PEERS_H

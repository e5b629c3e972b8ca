//===- Threads.h - Ranks that are threads of one process ---------------------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_RUN_THREADS_H
#define NCCLX_TOOLS_NCCLX_RUN_THREADS_H

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

namespace mlir::ncclx {

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

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_NCCLX_RUN_THREADS_H

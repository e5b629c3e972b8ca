//===- FakeWorld.h - Ranks of one process under a virtual clock -*- C++ -*-===//
//
// Each rank is a thread, but one runs at a time, and which one follows from the seed. The clock
// moves when nobody can go on. The network is as unkind as ncclxrt/abi.h allows: a put's source is
// read late, its pieces land one by one and in any order, puts overtake each other, and local
// completion may be told long after landing.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TEST_UNIT_RUNTIME_FAKEWORLD_H
#define NCCLX_TEST_UNIT_RUNTIME_FAKEWORLD_H

#include "Comm.h"

#include <deque>
#include <functional>
#include <map>
#include <random>
#include <semaphore>

namespace harness {

class FakeTransport;
class FakeControl;

class FakeWorld {
public:
  FakeWorld(int nranks, uint64_t seed);
  ~FakeWorld();

  /// Runs the body on each rank; returns when all have ended.
  void run(const std::function<void(int rank)> &body);
  /// What ncclxrt::makeComm takes for a rank of this world.
  ncclxrt::Comm::Config config(int rank, int64_t timeoutMs);

  int64_t now() const { return clock; }
  uint64_t random(uint64_t bound) { return bound ? engine() % bound : 0; }

  // Called by a rank's thread.

  /// Gives the turn away until `ready()`; false when the clock has passed `deadlineNs` before.
  bool block(int rank, const std::function<bool()> &ready, int64_t deadlineNs);
  /// The process is gone: nothing of it reaches anybody any more, and the others hear of it.
  void die(int rank);
  /// The process stands still until all others have ended.
  void stop(int rank);

private:
  friend class FakeTransport;
  friend class FakeControl;
  enum class State { Ready, Blocked, Stopped, Ended };
  struct Member {
    std::binary_semaphore turn{0};
    State state = State::Ready;
    std::function<bool()> ready;
    int64_t deadlineNs = 0;
    bool dead = false;
    FakeTransport *transport = nullptr;
    FakeControl *control = nullptr;
    std::vector<std::optional<std::string>> parts; // of each all-gather it came to
    bool left = false;
  };
  void after(int64_t maxDelayNs, std::function<void()> event);
  /// Picks who goes on, firing events on the way; -1 when all have ended.
  int next();
  void giveTurn(int from);
  void abort(ncclxrt::Status reason);

  std::mt19937_64 engine;
  int64_t clock = 0;
  std::multimap<int64_t, std::function<void()>> events;
  std::deque<Member> members;
  std::optional<ncclxrt::Status> failure; // the job's first
  std::binary_semaphore finished{0};
};

} // namespace harness

#endif // NCCLX_TEST_UNIT_RUNTIME_FAKEWORLD_H

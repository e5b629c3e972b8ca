//===- Transport.h - How bytes and signals reach a peer ---------*- C++ -*-===//
//
// Where a transport maps a peer's memory (shm), copies, reductions and signals act on it directly,
// and the transport is needed to prepare only. Where it does not (tcp), puts and signals go through
// it.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_LIB_TRANSPORT_H
#define NCCLXRT_LIB_TRANSPORT_H

#include "Range.h"
#include "Segment.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ncclxrt {

class Comm;

/// A lane's copies that complete after their call.
struct LaneProgress {
  int64_t issued = 0;                // by the calling thread
  std::atomic<int64_t> completed{0}; // by whoever completes them
};

/// A put to a rank whose memory this rank cannot store to.
struct Put {
  int64_t plan;
  int peer;
  const std::byte *sourceBase;
  Range source;
  Range target; // in the peer's segment of the plan
  int64_t slot; // the peer's slot to raise when it has landed, or -1
  /// Asynchronous if set: it counts the completion, and *endNs (if set) gets its time. Otherwise
  /// the put has landed when the call returns.
  LaneProgress *lane;
  int64_t *endNs;
};

class Transport {
public:
  virtual ~Transport() = default;
  virtual const char *name() const = 0;

  /// What the other ranks must know of this one, found out before they meet. `ip` is this machine
  /// as the rendezvous reaches it.
  virtual Status open(uint32_t ip, std::string &contact) = 0;
  virtual Status connect(const std::vector<std::string> &contacts) = 0;

  /// Takes a plan's own segment and says how the others find it; called before any of them uses it.
  virtual std::string offer(int64_t plan, const std::shared_ptr<Segment> &segment) = 0;
  /// The peers' segments, as far as this transport maps them (null: not).
  virtual Status attach(int64_t plan, int64_t bytes, const std::vector<std::string> &offers,
                        std::vector<std::shared_ptr<Segment>> &peers) = 0;
  /// Bytes for the plan that still come are dropped from here on.
  virtual void forget(int64_t plan) = 0;

  virtual Status put(const Put &put) = 0;
  virtual Status raise(int64_t plan, int peer, int64_t slot) = 0;
  /// Waits until the lane's asynchronous puts are locally complete.
  virtual Status complete(LaneProgress &lane) = 0;

  /// Whether every rank that sleeps has a barrier first, so that a signal may be a plain store:
  /// see Segment::set. Known once connected.
  virtual bool hasBarrier() const { return false; }
  /// Waits for an own slot, which peers raise: see Segment::waitFor.
  [[nodiscard]] virtual bool await(Segment &own, int64_t slot, uint64_t value, int64_t timeoutNs,
                                   int64_t &deadlineNs, WaitPolicy &policy) {
    return own.waitFor(slot, value, timeoutNs, deadlineNs, policy, hasBarrier());
  }

  /// Waits until everything that was issued has been sent.
  virtual Status drain() = 0;
  /// Wakes waits inside, after the communicator has failed.
  virtual void wake() = 0;
  /// Ends threads and connections.
  virtual void close() = 0;
};

std::unique_ptr<Transport> makeShmTransport(Comm &comm);
std::unique_ptr<Transport> makeTcpTransport(Comm &comm);

} // namespace ncclxrt

#endif // NCCLXRT_LIB_TRANSPORT_H

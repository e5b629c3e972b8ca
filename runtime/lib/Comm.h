//===- Comm.h - One rank of one job -----------------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_COMM_H
#define NCCLXRT_LIB_COMM_H

#include "Control.h"
#include "Segment.h"
#include "Transport.h"

#include <set>

namespace ncclxrt {

class Plan;

class Comm {
public:
  struct Config {
    int rank = 0, nranks = 1;
    bool external = false; // who serves
    std::string transport = "shm", rendezvous, job;
    int64_t timeoutNs = 0;
    /// What stands in for the control plane and the transport that `transport` names (tests).
    std::function<std::unique_ptr<Control>(Control::Config, Control::Owner)> makeControl;
    std::function<std::unique_ptr<Transport>(Comm &)> makeTransport;
  };
  /// Fills what the caller left out from the environment.
  static Status resolve(const ncclxrtCommConfig_t *source, Config &config);

  explicit Comm(Config config);
  ~Comm();
  Status init();
  /// Meets the other ranks a last time and leaves.
  Status leave();

  int rank() const { return config.rank; }
  int nranks() const { return config.nranks; }
  int64_t timeoutNs() const { return config.timeoutNs; }
  /// Of the calling thread.
  WaitPolicy &waitPolicy() { return policy; }
  Transport &transport() { return *link; }
  /// An all-gather of the control plane. Ranks that come to steps of different `kind` fail the job;
  /// so does a passed deadline.
  Status meet(const char *kind, const std::string &what, std::string part,
              std::vector<std::string> &parts);

  /// The same of a caller's bytes.
  Status gather(const void *mine, size_t bytes, void *all);

  /// The result of the job's failure, or success. Cheap: every call asks.
  ncclxrtResult_t failure() const {
    return ncclxrtResult_t(failureCode.load(std::memory_order_acquire));
  }
  /// Ends the job with this rank's reason, unless it has failed before; the code that won.
  ncclxrtResult_t fail(const Status &reason);
  /// The job's failure as a status.
  Status failureStatus();
  /// Keeps an error that does not end the job, for ncclxrtGetLastError.
  Status remember(Status status);
  std::string lastError();
  /// Adds where this rank was when a failure elsewhere ended it. Once.
  void addPlace(const std::string &place);

  /// Plans whose waits an abort must end.
  void add(Plan &plan);
  void remove(Plan &plan);
  int64_t nextPlan() { return planCount++; }
  size_t planCountAlive();

  /// Where this rank is, for its heartbeats. Written by its thread, read by the control thread.
  struct Place {
    std::atomic<int64_t> phase{RankState::Idle}, plan{-1}, run{-1}, op{-1};
  } place;
  /// The ranks that are down or busy, for a passed deadline.
  std::string describeOthers();

private:
  void failFrom(const Status &reason, bool local);
  Status startServer(Address &address);
  std::string describePlace(const RankState &state);
  Config config;
  WaitPolicy policy;
  std::unique_ptr<Server> server;
  std::thread serverThread;
  std::atomic<bool> serverStop{false};
  std::unique_ptr<Transport> link;
  std::unique_ptr<Control> plane;

  std::atomic<int32_t> failureCode{ncclxrtSuccess};
  std::mutex mutex; // of all below
  std::string failureText, softText;
  bool placed = false, localFailure = false, failing = false;
  std::set<Plan *> plans;
  int64_t planCount = 0;
};

/// ncclxrtCommInit after the configuration has been read. On failure *comm is null.
Status makeComm(const Comm::Config &config, ncclxrtComm_t *comm);

} // namespace ncclxrt

#endif // NCCLXRT_LIB_COMM_H

//===- Control.h - Rendezvous, agreement, heartbeats, abort -----*- C++ -*-===//
//
// The control plane of a job, the same for every transport: each rank holds one connection to a
// server (a thread of rank 0, or the launcher). It carries who is there, small all-gathers,
// heartbeats with each rank's place in its schedule, and the abort with the job's first reason. A
// killed rank shows as a closed connection, a stopped one as a heart that does not beat.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_LIB_CONTROL_H
#define NCCLXRT_LIB_CONTROL_H

#include "Socket.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ncclxrt {

enum class Message : uint8_t { Hello = 1, Beat, Gather, Abort, Bye, Reject, Beats, Gathered };

/// First word of a Hello: other programs that find the port are turned away.
constexpr uint64_t helloMagic = 0x3274727863636e63; // "cnccxrt2"

/// What a rank is doing, as its heartbeat tells.
struct RankState {
  enum Phase : int64_t { Idle, Working, Waiting, Meeting };
  int64_t phase = Idle;
  int64_t plan = -1;
  int64_t run = -1;
  int64_t op = -1;
};

/// What the server knows of a rank.
struct RankReport {
  static constexpr int64_t neverJoined = -1, left = -2;
  int64_t ageNs = neverJoined; // since it was last heard from
  int64_t gathers = 0;         // all-gathers it has come to
  RankState state;
};

/// The beat of a job's heart: often enough to tell a stopped rank within the deadline.
int64_t beatNs(int64_t timeoutNs);

/// The server: a state machine over non-blocking sockets; whoever owns it calls poll().
class Server {
public:
  Server(Fd listener, int nranks, std::string job);
  /// Handles what comes until `untilNs` at the latest; returns after the first batch of events,
  /// also of the descriptors in `extra`.
  void poll(int64_t untilNs, const std::vector<int> &extra = {});
  /// True when every connection is closed.
  bool idle() const { return clients.empty(); }
  /// Takes no newcomers any more.
  void closeListener() { listener.reset(); }

private:
  struct Client {
    MessageStream stream;
    int rank = -1; // before its Hello
    bool gone = false;
  };
  struct Member {
    int64_t heardNs = 0;
    bool left = false;
    RankReport report;
  };
  void handle(Client &client, const std::string &message);
  void hello(Client &client, class Reader &reader);
  void gather(int rank, int64_t sequence, const std::string &kind, std::string part);
  void lost(Client &client);
  void abort(ncclxrtResult_t code, const std::string &text);
  void broadcast(const std::string &message, bool droppable = false);
  void beat();

  Fd listener;
  int nranks;
  std::string job;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Member> members;
  std::vector<std::optional<std::string>> parts; // of the all-gather under way
  std::string partsKind;                         // what the first of them came for
  int firstRank = -1;
  int64_t sequence = 0;
  int64_t intervalNs, nextBeatNs = 0;
  std::string abortMessage; // not empty: the job has failed
};

/// One rank's end of the control plane.
class Control {
public:
  struct Config {
    int rank, nranks;
    std::string job;
    Address server;
    bool serverIsRank0;
    int64_t timeoutNs;
  };
  /// What the plane needs of its communicator.
  struct Owner {
    std::function<void(Status)> onAbort; ///< a failure elsewhere; at most once, on any thread
    std::function<RankState()> state;    ///< for each beat
    std::function<std::string(const RankState &)> place; ///< where in its plans a rank is
  };
  Control(Config config, Owner owner) : config(std::move(config)), owner(std::move(owner)) {}
  virtual ~Control() = default;

  virtual Status connect() = 0;
  /// This machine as the rendezvous reaches it; once connected.
  virtual uint32_t localIp() const = 0;
  /// Says hello, and returns when all ranks have: their contacts in order of rank.
  virtual Status join(const std::string &contact, std::vector<std::string> &contacts) = 0;
  /// All ranks' parts, in order of rank. All must come to a step of the same `kind`; `what` names
  /// it for messages.
  virtual Status gather(const std::string &kind, const std::string &what, std::string part,
                        std::vector<std::string> &parts) = 0;
  /// Tells the others that this rank has failed.
  virtual void sendAbort(const Status &reason) = 0;
  /// Says goodbye: the end of the connection is then no failure.
  virtual void leave() = 0;
  /// Wakes a gather, after the communicator has failed.
  virtual void wake() = 0;

  /// What is known of the other ranks, for the message of a passed deadline: those never heard
  /// from, stopped, or busy elsewhere; or those that an all-gather misses (-1: none is meant).
  std::string describeOthers(int64_t missingGather);

protected:
  /// The last reports of all ranks, and how long ago they came.
  virtual void snapshot(std::vector<RankReport> &reports, int64_t &silenceNs) = 0;
  /// The error of a gather whose deadline has passed.
  Status missed(const std::string &what, int64_t gather);

  Config config;
  Owner owner;
};

/// The one over sockets: a connection to the server and a thread that listens to it and beats.
class SocketControl : public Control {
public:
  SocketControl(Config config, Owner owner);
  ~SocketControl() override;
  Status connect() override;
  uint32_t localIp() const override { return localAddress(stream->fd()).ip; }
  Status join(const std::string &contact, std::vector<std::string> &contacts) override;
  Status gather(const std::string &kind, const std::string &what, std::string part,
                std::vector<std::string> &parts) override;
  void sendAbort(const Status &reason) override;
  void leave() override;
  void wake() override;

protected:
  void snapshot(std::vector<RankReport> &reports, int64_t &silenceNs) override;

private:
  void loop();
  bool handle(const std::string &message);
  Status await(const std::string &what, int64_t sequence, std::vector<std::string> &parts);

  Fd wakeup;
  std::thread thread;
  std::atomic<bool> stopping{false}, failed{false};

  std::mutex mutex; // of all below
  std::condition_variable changed;
  std::unique_ptr<MessageStream> stream;
  std::vector<RankReport> reports;
  int64_t reportsNs = 0;
  int64_t sequence = 0;                 // the next all-gather's
  int64_t gathered = -1;                // the last whole one
  std::vector<std::string> gatherParts; // its parts
};

} // namespace ncclxrt

#endif // NCCLXRT_LIB_CONTROL_H

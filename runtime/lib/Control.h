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
constexpr uint64_t helloMagic = 0x3174727863636e63; // "cnccxrt1"

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
  void gather(int rank, int64_t sequence, std::string part);
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
  /// `onAbort` is called on the control thread, at most once; `state` from it for each beat.
  Control(Config config, std::function<void(Status)> onAbort, std::function<RankState()> state);
  ~Control();

  /// Connects, says hello, and returns when all ranks have: their contacts in order of rank.
  /// `aborted` tells of a failure elsewhere.
  Status join(const std::string &contact, std::vector<std::string> &contacts);
  /// This end's address of the connection: where other machines can reach this one.
  Status connect();
  Address local() const { return localAddress(stream->fd()); }

  /// All ranks' parts, in order of rank. `what` names the step for messages.
  Status gather(const std::string &what, std::string part, std::vector<std::string> &parts);
  /// Tells the others that this rank has failed.
  void sendAbort(const Status &reason);
  /// Says goodbye: the end of the connection is then no failure.
  void leave();
  /// Wakes a gather, after the communicator has failed.
  void wake();

  /// What is known of the other ranks, for the message of a passed deadline: those never heard
  /// from, stopped, or busy elsewhere. `opName` names an op of a plan.
  std::string describeOthers(int64_t missingGather,
                             const std::function<std::string(const RankState &)> &place);

private:
  void loop();
  bool handle(const std::string &message);
  Status await(const std::string &what, int64_t sequence, std::vector<std::string> &parts);

  Config config;
  std::function<void(Status)> onAbort;
  std::function<RankState()> state;
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

//===- FakeWorld.cpp - Ranks of one process under a virtual clock ---------===//
#include "FakeWorld.h"

#include "Segment.h"

#include <algorithm>
#include <thread>

using namespace harness;
using namespace ncclxrt;

static constexpr int64_t usNs = 1000;

//===- Turns and time -----------------------------------------------------===//

FakeWorld::FakeWorld(int nranks, uint64_t seed) : engine(seed), members(size_t(nranks)) {}
FakeWorld::~FakeWorld() = default;

void FakeWorld::run(const std::function<void(int)> &body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < int(members.size()); ++rank)
    threads.emplace_back([&, rank] {
      members[size_t(rank)].turn.acquire();
      body(rank);
      members[size_t(rank)].state = State::Ended;
      giveTurn(rank);
    });
  members[size_t(next())].turn.release();
  finished.acquire();
  for (std::thread &thread : threads)
    thread.join();
  events.clear();
}

void FakeWorld::after(int64_t maxDelayNs, std::function<void()> event) {
  events.emplace(clock + int64_t(random(uint64_t(maxDelayNs) + 1)), std::move(event));
}

int FakeWorld::next() {
  for (;;) {
    clock += int64_t(random(200));
    std::vector<int> able;
    bool others = false;
    int64_t wake = INT64_MAX;
    for (int rank = 0; rank < int(members.size()); ++rank) {
      Member &m = members[size_t(rank)];
      if (m.state == State::Blocked) {
        wake = std::min(wake, m.deadlineNs);
        if (m.deadlineNs <= clock || m.ready())
          able.push_back(rank);
      } else if (m.state == State::Ready) {
        able.push_back(rank);
      }
      others |= m.state == State::Blocked || m.state == State::Ready;
    }
    auto due = events.upper_bound(clock);
    size_t fires = size_t(std::distance(events.begin(), due));
    if (able.empty() && fires == 0) {
      if (!others) { // the stopped ones go on, to end
        for (int rank = 0; rank < int(members.size()); ++rank)
          if (members[size_t(rank)].state == State::Stopped)
            return rank;
        return -1;
      }
      clock = std::min(wake, events.empty() ? INT64_MAX : events.begin()->first);
      continue;
    }
    uint64_t pick = random(able.size() + fires);
    if (pick < able.size())
      return able[pick];
    auto it = std::next(events.begin(), int64_t(pick - able.size()));
    auto event = std::move(it->second);
    events.erase(it);
    event();
  }
}

void FakeWorld::giveTurn(int from) {
  int to = next();
  if (to == from)
    return;
  if (to < 0)
    finished.release();
  else
    members[size_t(to)].turn.release();
  if (members[size_t(from)].state != State::Ended)
    members[size_t(from)].turn.acquire();
}

bool FakeWorld::block(int rank, const std::function<bool()> &ready, int64_t deadlineNs) {
  Member &m = members[size_t(rank)];
  m.ready = ready;
  m.deadlineNs = deadlineNs;
  m.state = State::Blocked;
  giveTurn(rank);
  m.state = State::Ready;
  return ready();
}

void FakeWorld::stop(int rank) {
  members[size_t(rank)].state = State::Stopped;
  giveTurn(rank);
  members[size_t(rank)].state = State::Ready;
}

void FakeWorld::die(int rank) {
  members[size_t(rank)].dead = true;
  after(50 * usNs, [this, rank] {
    abort(error(ncclxrtPeerFailed, "rank {} died or ended without leaving: its connection closed",
                rank));
  });
}

//===- The network --------------------------------------------------------===//

namespace harness {

class FakeTransport : public Transport {
public:
  FakeTransport(FakeWorld &world, Comm &comm) : world(world), comm(comm) { me().transport = this; }
  ~FakeTransport() override { me().transport = nullptr; }
  const char *name() const override { return "fake"; }

  Status open(uint32_t, std::string &) override { return {}; }
  Status connect(const std::vector<std::string> &) override { return {}; }
  std::string offer(int64_t plan, const std::shared_ptr<Segment> &segment) override {
    plans[plan] = segment;
    return "";
  }
  Status attach(int64_t, int64_t, const std::vector<std::string> &offers,
                std::vector<std::shared_ptr<Segment>> &peers) override {
    peers.resize(offers.size());
    return {};
  }
  void forget(int64_t plan) override { plans.erase(plan); }

  Status put(const Put &put) override {
    auto flight = std::make_shared<Flight>();
    flight->put = put;
    if (put.lane)
      ++put.lane->issued;
    ++outstanding;
    later([this, flight] { read(flight); });
    if (put.lane)
      return {};
    return await("a put to land", [flight] { return flight->landed; });
  }

  Status raise(int64_t plan, int peer, int64_t slot) override {
    if (!me().dead)
      world.after(delay(), [&world = world, plan, peer, slot] { land(world, plan, peer, slot); });
    return {};
  }

  Status complete(LaneProgress &lane) override {
    return await("puts to be sent", [&] { return lane.completed == lane.issued; });
  }
  Status drain() override {
    return await("sends to end", [&] { return outstanding == 0; });
  }
  bool await(Segment &own, int64_t slot, uint64_t value, int64_t timeoutNs, int64_t &deadlineNs,
             WaitPolicy &) override {
    if (deadlineNs == 0)
      deadlineNs = world.now() + timeoutNs;
    return world.block(comm.rank(), [&] { return own.reached(slot, value); }, deadlineNs);
  }
  void wake() override {}
  void close() override {}

private:
  struct Flight {
    Put put;
    std::vector<std::byte> bytes;
    int pieces = 0;
    bool landed = false;
  };
  FakeWorld::Member &me() { return world.members[size_t(comm.rank())]; }
  int64_t delay() { return int64_t(world.random(4)) * 20 * usNs; }

  /// An event of this rank's own, which does not outlive its transport.
  void later(std::function<void()> event) {
    world.after(delay(), [alive = std::weak_ptr<int>(life), event = std::move(event)] {
      if (alive.lock())
        event();
    });
  }

  template <typename Done> Status await(const char *what, Done done) {
    auto over = [&] { return done() || comm.failure() != ncclxrtSuccess; };
    bool met = over() || world.block(comm.rank(), over, world.now() + comm.timeoutNs());
    if (comm.failure() != ncclxrtSuccess)
      return comm.failureStatus();
    if (met)
      return {};
    return error(ncclxrtTimeout, "waited {} ms for {}; {}", comm.timeoutNs() / nsPerMs, what,
                 comm.describeOthers());
  }

  static std::shared_ptr<Segment> find(FakeWorld &world, int peer, int64_t plan) {
    FakeTransport *to = world.members[size_t(peer)].transport;
    auto it = to ? to->plans.find(plan) : decltype(to->plans.end())();
    return to && it != to->plans.end() ? it->second : nullptr;
  }
  static void land(FakeWorld &world, int64_t plan, int peer, int64_t slot) {
    if (auto segment = find(world, peer, plan); segment && slot >= 0)
      segment->raise(slot);
  }

  /// The source is read, somewhat late; from here on the network has the bytes.
  void read(const std::shared_ptr<Flight> &flight) {
    Flight &f = *flight;
    if (me().dead || !plans.count(f.put.plan))
      return; // its memory is gone
    f.bytes.resize(size_t(f.put.source.bytes()));
    Range all{0, 1, int64_t(f.bytes.size()), int64_t(f.bytes.size())};
    copyRange(f.bytes.data(), all, f.put.sourceBase, f.put.source);
    // Each row, or each third of a single one, is a piece.
    Range target = f.put.target.canonical();
    std::vector<std::pair<int64_t, Range>> pieces; // where its bytes begin, and where it goes
    if (target.rows == 1)
      for (int64_t at = 0, k = 3; k > 0; --k) {
        int64_t n = k == 1 ? target.rowBytes - at : target.rowBytes / 3;
        pieces.push_back({at, {target.offset + at, 1, n, n}});
        at += n;
      }
    else
      for (int64_t r = 0; r < target.rows; ++r)
        pieces.push_back(
            {r * target.rowBytes,
             {target.offset + r * target.stride, 1, target.rowBytes, target.rowBytes}});
    if (pieces.empty() || pieces.size() > 64)
      pieces = {{0, target}}; // all at once
    f.pieces = int(pieces.size());
    for (auto &[at, range] : pieces)
      world.after(delay(), [&world = world, flight, at = at, range = range] {
        auto segment = find(world, flight->put.peer, flight->put.plan);
        Range from{at, 1, range.bytes(), range.bytes()};
        if (segment)
          copyRange(segment->base(), range, flight->bytes.data(), from);
        if (--flight->pieces > 0)
          return;
        land(world, flight->put.plan, flight->put.peer, flight->put.slot);
        flight->landed = true;
      });
    // Local completion may be told long after; a put that had landed when its call returned has
    // told.
    later([this, flight] {
      --outstanding;
      if (!flight->put.lane || !plans.count(flight->put.plan))
        return; // no one to tell; or the job has failed, and the plan with its lanes is gone
      if (flight->put.endNs)
        *flight->put.endNs = nowNs();
      ++flight->put.lane->completed;
    });
  }

  FakeWorld &world;
  Comm &comm;
  std::map<int64_t, std::shared_ptr<Segment>> plans;
  int64_t outstanding = 0;
  std::shared_ptr<int> life = std::make_shared<int>();
};

//===- The control plane --------------------------------------------------===//

class FakeControl : public Control {
public:
  FakeControl(FakeWorld &world, Config config, Owner owner)
      : Control(std::move(config), std::move(owner)), world(world) {
    me().control = this;
  }
  ~FakeControl() override { me().control = nullptr; }
  Status connect() override { return {}; }
  uint32_t localIp() const override { return 0; }
  Status join(const std::string &contact, std::vector<std::string> &contacts) override {
    return gather("join", "the rendezvous", contact, contacts);
  }

  Status gather(const std::string &, const std::string &what, std::string part,
                std::vector<std::string> &parts) override {
    auto number = int64_t(me().parts.size());
    me().parts.push_back(std::move(part));
    if (world.failure)
      tell(*world.failure); // too late: the job has failed
    auto whole = [&] {
      for (auto &m : world.members)
        if (int64_t(m.parts.size()) <= number)
          return false;
      return true;
    };
    if (!world.block(
            config.rank, [&] { return whole() || failed; }, world.now() + config.timeoutNs))
      return missed(what, number);
    if (!whole())
      return Status(ncclxrtAborted, ""); // the communicator holds the reason
    for (auto &m : world.members)
      parts.push_back(*m.parts[size_t(number)]);
    return {};
  }
  void sendAbort(const Status &reason) override {
    failed = true;
    if (!me().dead)
      world.after(50 * usNs, [&world = world, reason] { world.abort(reason); });
  }
  void leave() override { me().left = true; }
  void wake() override { failed = true; }

  void tell(const Status &reason) {
    failed = true;
    owner.onAbort(reason);
  }
  RankState state() const { return owner.state(); }

protected:
  void snapshot(std::vector<RankReport> &reports, int64_t &silenceNs) override {
    silenceNs = 0;
    for (auto &m : world.members) {
      RankReport report;
      report.gathers = int64_t(m.parts.size());
      if (!m.parts.empty())
        report.ageNs = m.left                                 ? RankReport::left
                       : m.state == FakeWorld::State::Stopped ? config.timeoutNs
                                                              : 0;
      if (m.control)
        report.state = m.control->state();
      reports.push_back(report);
    }
  }

private:
  FakeWorld::Member &me() { return world.members[size_t(config.rank)]; }
  FakeWorld &world;
  bool failed = false;
};

} // namespace harness

void FakeWorld::abort(Status reason) {
  if (failure)
    return; // the first reason wins
  failure = std::move(reason);
  for (int rank = 0; rank < int(members.size()); ++rank)
    after(20 * usNs, [this, rank] {
      if (FakeControl *control = members[size_t(rank)].control)
        control->tell(*failure);
    });
}

Comm::Config FakeWorld::config(int rank, int64_t timeoutMs) {
  Comm::Config config;
  config.rank = rank;
  config.nranks = int(members.size());
  config.timeoutNs = timeoutMs * nsPerMs;
  config.makeControl = [this](Control::Config c, Control::Owner owner) {
    return std::make_unique<FakeControl>(*this, std::move(c), std::move(owner));
  };
  config.makeTransport = [this](Comm &comm) {
    return std::make_unique<FakeTransport>(*this, comm);
  };
  return config;
}

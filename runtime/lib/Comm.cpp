//===- Comm.cpp - One rank of one job -------------------------------------===//
#include "Comm.h"
#include "Plan.h"
#include "Shape.h"

#include <cstdlib>

using namespace ncclxrt;

static Status integerFrom(const char *variable, int32_t &value) {
  const char *text = getenv(variable);
  char *end = nullptr;
  long number = text ? strtol(text, &end, 10) : 0;
  if (!text || end == text || *end || number < 0 || number > INT32_MAX)
    return error(ncclxrtInvalidArgument,
                 "{} is {}, expected a number, since the configuration "
                 "leaves it out",
                 variable, text ? "'" + std::string(text) + "'" : "not set");
  value = int32_t(number);
  return {};
}

/// The rendezvous address that the environment names; "" if none.
static Status rendezvousFromEnvironment(std::string &address) {
  if (const char *text = getenv("NCCLXRT_RENDEZVOUS")) {
    address = text;
    return {};
  }
  const char *host = getenv("MASTER_ADDR");
  if (!host || !getenv("MASTER_PORT"))
    return {};
  int32_t port;
  if (Status s = integerFrom("MASTER_PORT", port); !s.ok())
    return s;
  const char *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
  address = fmt::format("{}:{}", host, port + (agent && std::string(agent) == "True"));
  return {};
}

Status Comm::resolve(const ncclxrtCommConfig_t *source, Config &config) {
  ncclxrtCommConfig_t given = NCCLXRT_COMM_CONFIG_INIT;
  if (Status s = readStruct(source, sizeof(ncclxrtCommConfig_t), "the communicator's configuration",
                            given);
      !s.ok())
    return s;
  if (given.abi_version != NCCLXRT_ABI_VERSION)
    return error(ncclxrtVersionMismatch, "the caller uses interface version {}, the runtime has {}",
                 given.abi_version, NCCLXRT_ABI_VERSION);
  if (given.rank == -1)
    if (Status s = integerFrom("RANK", given.rank); !s.ok())
      return s;
  if (given.nranks == 0)
    if (Status s = integerFrom("WORLD_SIZE", given.nranks); !s.ok())
      return s;
  if (given.nranks < 1 || given.rank < 0 || given.rank >= given.nranks)
    return error(ncclxrtInvalidArgument, "expected 0 <= rank < nranks, found rank {} of {}",
                 given.rank, given.nranks);
  config.rank = given.rank;
  config.nranks = given.nranks;
  if (given.server != ncclxrtServerRank0 && given.server != ncclxrtServerExternal)
    return error(ncclxrtInvalidArgument, "{} is no ncclxrtServer_t", given.server);
  config.external = given.server == ncclxrtServerExternal;
  if (given.transport && *given.transport)
    config.transport = given.transport;
  if (config.transport != "shm" && config.transport != "tcp")
    return error(ncclxrtInvalidArgument, "expected transport 'shm' or 'tcp', found '{}'",
                 config.transport);
  if (given.rendezvous && *given.rendezvous)
    config.rendezvous = given.rendezvous;
  else if (Status s = rendezvousFromEnvironment(config.rendezvous); !s.ok())
    return s;
  if (config.rendezvous.empty()) {
    if (config.nranks > 1 || config.external)
      return error(ncclxrtInvalidArgument,
                   "no rendezvous address: neither in the configuration nor in "
                   "NCCLXRT_RENDEZVOUS or MASTER_ADDR and MASTER_PORT");
    config.rendezvous = "127.0.0.1:0";
  }
  if (given.job)
    config.job = given.job;
  int64_t ms = given.timeout_ms ? given.timeout_ms : 30'000;
  if (ms < 1 || ms > int64_t(1) << 40)
    return error(ncclxrtInvalidArgument, "expected 1 <= timeout_ms <= 2^40, found {}", ms);
  config.timeoutNs = ms * nsPerMs;
  return {};
}

Comm::Comm(Config c) : config(std::move(c)), policy(WaitPolicy::forRanks(config.nranks)) {}

Status Comm::startServer(Address &address) {
  Fd listener;
  if (Status s = listenOn(address, listener); !s.ok())
    return error(s.code(), "rank 0 cannot host the rendezvous: {}", s.text());
  server = std::make_unique<Server>(std::move(listener), config.nranks, config.job);
  serverThread = std::thread([this] {
    while (!serverStop)
      server->poll(nowNs() + 10 * nsPerMs);
    // The others may still have to hear why the job failed.
    server->closeListener();
    for (int64_t end = nowNs() + 500 * nsPerMs; !server->idle() && nowNs() < end;)
      server->poll(nowNs() + 10 * nsPerMs);
  });
  return {};
}

Status Comm::init() {
  Control::Owner owner{[this](Status reason) { failFrom(reason, /*local=*/false); },
                       [this] {
                         return RankState{place.phase.load(std::memory_order_relaxed),
                                          place.plan.load(std::memory_order_relaxed),
                                          place.run.load(std::memory_order_relaxed),
                                          place.op.load(std::memory_order_relaxed)};
                       },
                       [this](const RankState &state) { return describePlace(state); }};
  Control::Config plan{config.rank, config.nranks,    config.job,
                       {},          !config.external, config.timeoutNs};
  if (config.makeControl) {
    plane = config.makeControl(plan, owner);
  } else {
    if (Status s = Address::parse(config.rendezvous, plan.server); !s.ok())
      return s;
    if (config.rank == 0 && !config.external)
      if (Status s = startServer(plan.server); !s.ok())
        return s;
    plane = std::make_unique<SocketControl>(plan, owner);
  }
  if (Status s = plane->connect(); !s.ok())
    return s;
  link = config.makeTransport        ? config.makeTransport(*this)
         : config.transport == "shm" ? makeShmTransport(*this)
                                     : makeTcpTransport(*this);
  std::string contact;
  if (Status s = link->open(plane->localIp(), contact); !s.ok())
    return s;
  std::vector<std::string> contacts;
  if (Status s = plane->join(config.transport + "\n" + contact, contacts); !s.ok())
    return s;
  std::string mine = config.transport + "\n";
  for (int r = 0; r < config.nranks; ++r) {
    if (contacts[r].compare(0, mine.size(), mine) != 0)
      return error(ncclxrtInvalidArgument, "rank {} uses transport {}, rank {} uses {}", r,
                   contacts[r].substr(0, contacts[r].find('\n')), config.rank, config.transport);
    contacts[r].erase(0, mine.size());
  }
  return link->connect(contacts);
}

Status Comm::leave() {
  if (failure() != ncclxrtSuccess) {
    bool told = [&] {
      std::lock_guard lock(mutex);
      return localFailure || placed;
    }();
    if (told)
      return {};
    addPlace(fmt::format("rank {}, about to leave", config.rank)); // it came since the last call
    return failureStatus();
  }
  place.phase = RankState::Meeting;
  if (Status s = link->drain(); !s.ok()) {
    fail(s);
    return failureStatus();
  }
  std::vector<std::string> nothing;
  return meet("leave", "all ranks to leave", "", nothing);
}

Status Comm::meet(const char *kind, const std::string &what, std::string part,
                  std::vector<std::string> &parts) {
  Status s = plane->gather(kind, what, std::move(part), parts);
  if (s.ok())
    return s;
  fail(s);
  addPlace(fmt::format("rank {}, waiting for {}", config.rank, what));
  return failureStatus();
}

Status Comm::gather(const void *mine, size_t bytes, void *all) {
  if (bytes && (!mine || !all))
    return error(ncclxrtInvalidArgument, "CommAllgather: a pointer is null (rank={})", config.rank);
  int64_t before = place.phase.exchange(RankState::Meeting);
  std::vector<std::string> parts;
  Status s = meet("gather", fmt::format("an all-gather of {} bytes", bytes),
                  std::string(static_cast<const char *>(mine), bytes), parts);
  place.phase = before;
  if (!s.ok())
    return s;
  for (int r = 0; r < config.nranks; ++r)
    if (parts[r].size() != bytes)
      return error(ncclxrtInvalidUsage, "rank {} brings {} bytes to an all-gather, rank {} {}", r,
                   parts[r].size(), config.rank, bytes);
  for (int r = 0; r < config.nranks; ++r)
    std::copy(parts[r].begin(), parts[r].end(), static_cast<char *>(all) + r * bytes);
  return {};
}

Comm::~Comm() {
  // The goodbye goes first: what closes after it is no failure to the others.
  if (plane)
    plane->leave();
  if (link)
    link->close();
  plane.reset();
  serverStop = true;
  if (serverThread.joinable())
    serverThread.join();
}

ncclxrtResult_t Comm::fail(const Status &reason) {
  failFrom(reason, /*local=*/true);
  return failure();
}

void Comm::failFrom(const Status &reason, bool local) {
  std::lock_guard lock(mutex);
  if (failing)
    return;
  failing = true;
  localFailure = local;
  failureText =
      local ? reason.text() : fmt::format("rank {} ended: {}", config.rank, reason.text());
  failureCode.store(reason.code(), std::memory_order_release);
  if (local && plane) {
    // To the others it is an abort, whatever the mistake was here.
    bool same = reason.code() == ncclxrtTimeout || reason.code() == ncclxrtPeerFailed;
    plane->sendAbort(Status(same ? reason.code() : ncclxrtAborted, reason.text()));
  }
  for (Plan *plan : plans)
    plan->abortWaits();
  if (plane)
    plane->wake();
  if (link)
    link->wake();
}

Status Comm::failureStatus() {
  std::lock_guard lock(mutex);
  return Status(failure(), failureText);
}

Status Comm::remember(Status status) {
  if (status.ok())
    return status;
  std::lock_guard lock(mutex);
  if (failing)
    return Status(failure(), failureText);
  softText = status.text();
  return status;
}

std::string Comm::lastError() {
  std::lock_guard lock(mutex);
  placed |= failing; // what has been told stays as it is
  return failing ? failureText : softText;
}

void Comm::addPlace(const std::string &text) {
  std::lock_guard lock(mutex);
  if (failing && !localFailure && !placed)
    failureText += fmt::format(" (here: {})", text);
  placed = true;
}

void Comm::add(Plan &plan) {
  std::lock_guard lock(mutex);
  plans.insert(&plan);
  if (failing)
    plan.abortWaits();
}

void Comm::remove(Plan &plan) {
  std::lock_guard lock(mutex);
  plans.erase(&plan);
}

size_t Comm::planCountAlive() {
  std::lock_guard lock(mutex);
  return plans.size();
}

std::string Comm::describeOthers() {
  if (config.nranks == 1)
    return "there is no other rank";
  return plane->describeOthers(-1);
}

std::string Comm::describePlace(const RankState &state) {
  std::string op;
  {
    std::lock_guard lock(mutex);
    for (Plan *plan : plans)
      if (plan->isPlan(state.plan))
        op = fmt::format("{} of plan '{}'", plan->opName(state.op), plan->name());
  }
  switch (state.phase) {
  case RankState::Working:
    return fmt::format("in run {} at op {}", state.run, op);
  case RankState::Waiting:
    return fmt::format("waiting in run {} at op {}", state.run, op);
  case RankState::Meeting:
    return "in prepare or destroy";
  default:
    return "alive, but in no run";
  }
}

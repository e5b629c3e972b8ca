//===- Control.cpp - A rank's end of the control plane --------------------===//
#include "Control.h"
#include "Wire.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

using namespace ncclxrt;

SocketControl::SocketControl(Config config, Owner owner)
    : Control(std::move(config), std::move(owner)), wakeup(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      reports(size_t(this->config.nranks)) {}

SocketControl::~SocketControl() {
  stopping = true;
  wake();
  if (thread.joinable())
    thread.join();
}

void SocketControl::wake() {
  uint64_t one = 1;
  (void)!write(wakeup.get(), &one, sizeof(one));
  // Taking the lock orders this with a gather that has just looked and is about to sleep.
  {
    std::lock_guard lock(mutex);
  }
  changed.notify_all();
}

Status SocketControl::connect() {
  int64_t deadline = nowNs() + config.timeoutNs;
  Status last;
  for (;;) {
    Fd fd;
    last = connectTo(config.server, deadline, fd);
    if (last.ok()) {
      stream = std::make_unique<MessageStream>(std::move(fd));
      return {};
    }
    if (nowNs() + 10 * nsPerMs >= deadline)
      break;
    usleep(10'000);
  }
  return error(ncclxrtTimeout, "rank {}: found no rendezvous at {} within {} ms{} ({})",
               config.rank, config.server.str(), config.timeoutNs / nsPerMs,
               config.serverIsRank0 ? "; rank 0, which hosts it, was not started or has ended" : "",
               last.text());
}

Status SocketControl::join(const std::string &contact, std::vector<std::string> &contacts) {
  if (!wakeup)
    return systemError("eventfd");
  {
    std::lock_guard lock(mutex);
    sequence = 1;
    reportsNs = nowNs();
    stream->send(Writer()
                     .put(Message::Hello)
                     .put(helloMagic)
                     .put(int32_t(NCCLXRT_ABI_VERSION))
                     .put(int32_t(config.rank))
                     .put(int32_t(config.nranks))
                     .put(config.timeoutNs)
                     .put(std::string_view(config.job))
                     .put(std::string_view(contact))
                     .take());
  }
  thread = std::thread([this] { loop(); });
  return await("the rendezvous", 0, contacts);
}

Status SocketControl::gather(const std::string &kind, const std::string &what, std::string part,
                             std::vector<std::string> &parts) {
  int64_t number;
  {
    std::lock_guard lock(mutex);
    number = sequence++;
    stream->send(Writer()
                     .put(Message::Gather)
                     .put(number)
                     .put(std::string_view(kind))
                     .put(std::string_view(part))
                     .take());
  }
  return await(what, number, parts);
}

Status SocketControl::await(const std::string &what, int64_t number,
                            std::vector<std::string> &parts) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(config.timeoutNs);
  {
    std::unique_lock lock(mutex);
    changed.wait_until(lock, deadline, [&] { return gathered >= number || failed; });
    if (gathered >= number) {
      parts = std::move(gatherParts);
      return {};
    }
    if (failed)
      return Status(ncclxrtAborted, ""); // the communicator holds the reason
  }
  return missed(what, number);
}

void SocketControl::sendAbort(const Status &reason) {
  failed = true;
  std::lock_guard lock(mutex);
  if (stream)
    stream->send(Writer()
                     .put(Message::Abort)
                     .put(int32_t(reason.code()))
                     .put(std::string_view(reason.text()))
                     .take());
  changed.notify_all();
}

void SocketControl::leave() {
  stopping = true;
  std::lock_guard lock(mutex);
  if (stream) {
    stream->send(Writer().put(Message::Bye).take());
    shutdown(stream->fd(), SHUT_WR);
  }
}

void SocketControl::loop() {
  int64_t interval = beatNs(config.timeoutNs), next = 0;
  int fd = stream->fd();
  while (!stopping) {
    if (int64_t now = nowNs(); now >= next) {
      next = now + interval;
      RankState current = owner.state();
      std::lock_guard lock(mutex);
      if (!stream->wantsWrite())
        stream->send(Writer().put(Message::Beat).put(current).take());
    }
    bool full;
    {
      std::lock_guard lock(mutex);
      full = stream->wantsWrite();
    }
    pollfd fds[] = {{fd, short(POLLIN | (full ? POLLOUT : 0)), 0}, {wakeup.get(), POLLIN, 0}};
    int64_t wait = std::max<int64_t>(0, next - nowNs());
    timespec t{wait / 1'000'000'000, wait % 1'000'000'000};
    if (ppoll(fds, 2, &t, nullptr) <= 0)
      continue;
    if (fds[1].revents) {
      uint64_t count;
      (void)!read(wakeup.get(), &count, sizeof(count));
    }
    bool open = true, more = true;
    if (fds[0].revents) {
      std::lock_guard lock(mutex);
      stream->flush();
      open = stream->receive();
    }
    while (more) {
      std::string message;
      {
        std::lock_guard lock(mutex);
        more = stream->next(message);
      }
      // An abort is the last thing that the server has to say; the communicator needs no lock of
      // ours to take it.
      if (more && !handle(message))
        return;
    }
    if (!open && !stopping) {
      failed = true;
      if (config.serverIsRank0)
        owner.onAbort(error(ncclxrtPeerFailed,
                            "rank 0, which hosts the rendezvous, died or ended without leaving"));
      else
        owner.onAbort(error(ncclxrtPeerFailed, "the launcher's rendezvous server ended"));
      return;
    }
  }
}

bool SocketControl::handle(const std::string &message) {
  Reader reader(message);
  switch (Message(reader.get<uint8_t>())) {
  case Message::Beats: {
    std::lock_guard lock(mutex);
    for (RankReport &report : reports)
      report = reader.get<RankReport>();
    reportsNs = nowNs();
    return true;
  }
  case Message::Gathered: {
    std::lock_guard lock(mutex);
    gathered = reader.get<int64_t>();
    gatherParts.assign(config.nranks, "");
    for (std::string &part : gatherParts)
      part = reader.text();
    changed.notify_all();
    return true;
  }
  case Message::Abort:
  case Message::Reject: {
    auto code = ncclxrtResult_t(reader.get<int32_t>());
    failed = true;
    owner.onAbort(Status(code, reader.text()));
    return false;
  }
  default:
    failed = true;
    owner.onAbort(
        error(ncclxrtInternalError, "the rendezvous server sent a message of unknown kind"));
    return false;
  }
}

void SocketControl::snapshot(std::vector<RankReport> &last, int64_t &silenceNs) {
  std::lock_guard lock(mutex);
  last = reports;
  silenceNs = nowNs() - reportsNs;
}

//===- What is said of the others -----------------------------------------===//

Status Control::missed(const std::string &what, int64_t gather) {
  return error(ncclxrtTimeout, "rank {}: waited {} ms for {}; {}", config.rank,
               config.timeoutNs / nsPerMs, what, describeOthers(gather));
}

std::string Control::describeOthers(int64_t missingGather) {
  // A copy, for the owner may take the communicator's lock, inside which ours is taken elsewhere.
  std::vector<RankReport> reports;
  int64_t silence;
  snapshot(reports, silence);
  // Long enough that a loaded machine does not make a live rank look dead, short enough that a rank
  // that stopped when the wait began is told by its end.
  int64_t stale = std::clamp<int64_t>(config.timeoutNs / 4, 50 * nsPerMs, 2000 * nsPerMs);
  // Of a late report a rank's age is still true, at least: only a server that was silent for half
  // of the wait is itself under suspicion.
  std::string server;
  if (silence > std::clamp<int64_t>(config.timeoutNs / 2, stale, 5000 * nsPerMs))
    server = fmt::format("{} has not been heard from for {} ms: stopped, or cut off",
                         config.serverIsRank0 ? "rank 0, which hosts the rendezvous,"
                                              : "the launcher's rendezvous server",
                         silence / nsPerMs);
  const RankState mine = owner.state();
  std::string never, silent, absent, busy, waiting;
  auto add = [](std::string &list, const std::string &item) {
    list += (list.empty() ? "" : ", ") + item;
  };
  for (int rank = 0; rank < config.nranks; ++rank) {
    if (rank == config.rank)
      continue;
    const RankReport &report = reports[rank];
    std::string name = fmt::format("rank {}", rank);
    std::string where = owner.place(report.state);
    if (report.ageNs == RankReport::neverJoined)
      add(never, name);
    else if (report.ageNs > stale)
      add(silent, fmt::format("{} (for {} ms{})", name, (report.ageNs + silence) / nsPerMs,
                              "; last " + where));
    else if (report.ageNs == RankReport::left)
      add(busy, name + " has left");
    else if (missingGather >= 0) {
      if (report.gathers <= missingGather)
        add(absent, name + " (" + where + ")");
    } else if (report.state.phase != RankState::Waiting || report.state.plan != mine.plan ||
               report.state.run != mine.run)
      add(busy, name + " is " + where);
    else
      add(waiting, name + " is " + where);
  }
  std::string text;
  auto say = [&](const std::string &list, const char *before, const char *after) {
    if (!list.empty())
      text += (text.empty() ? "" : "; ") + std::string(before) + list + after;
  };
  say(server, "", "");
  say(never, "", " never joined");
  say(silent, "not heard from: ", " (stopped, or hung)");
  say(absent, "", " did not come");
  say(busy, "", "");
  if (text.empty())
    say(waiting, "all ranks are alive and wait: ", "");
  return text.empty() ? "all ranks are alive" : text;
}

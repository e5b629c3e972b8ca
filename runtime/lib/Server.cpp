//===- Server.cpp - The rendezvous server ---------------------------------===//
#include "Control.h"
#include "Wire.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>

using namespace ncclxrt;

int64_t ncclxrt::beatNs(int64_t timeoutNs) {
  return std::clamp<int64_t>(timeoutNs / 20, 5 * nsPerMs, 250 * nsPerMs);
}

Server::Server(Fd listenerFd, int nranks, std::string job)
    : listener(std::move(listenerFd)), nranks(nranks), job(std::move(job)), members(nranks),
      parts(nranks), intervalNs(250 * nsPerMs) {}

void Server::poll(int64_t untilNs, const std::vector<int> &extra) {
  if (nextBeatNs == 0)
    nextBeatNs = nowNs() + intervalNs;
  std::vector<pollfd> fds;
  for (auto &client : clients)
    fds.push_back(
        {client->stream.fd(), short(POLLIN | (client->stream.wantsWrite() ? POLLOUT : 0)), 0});
  size_t listenerAt = fds.size();
  fds.push_back({listener.get(), POLLIN, 0}); // -1 is ignored
  for (int fd : extra)
    fds.push_back({fd, POLLIN, 0});

  int64_t left = std::min(untilNs, nextBeatNs) - nowNs();
  timespec wait{0, 0};
  if (left > 0)
    wait = {left / 1'000'000'000, left % 1'000'000'000};
  if (ppoll(fds.data(), fds.size(), &wait, nullptr) > 0) {
    for (size_t i = 0; i < listenerAt; ++i) {
      Client &client = *clients[i];
      if (!fds[i].revents || client.gone)
        continue;
      bool open = client.stream.receive();
      std::string message;
      while (!client.gone && client.stream.next(message))
        handle(client, message);
      if (!client.stream.flush() || !open || client.stream.broken())
        lost(client);
    }
    if (fds[listenerAt].revents)
      while (Fd fd = acceptFrom(listener.get()))
        clients.push_back(std::make_unique<Client>(Client{MessageStream(std::move(fd))}));
    std::erase_if(clients, [](auto &client) { return client->gone; });
  }
  if (nowNs() >= nextBeatNs)
    beat();
}

void Server::handle(Client &client, const std::string &message) {
  Reader reader(message);
  auto kind = Message(reader.get<uint8_t>());
  if (client.rank < 0) {
    if (kind == Message::Hello)
      hello(client, reader);
    else
      client.gone = true;
    return;
  }
  Member &member = members[client.rank];
  member.heardNs = nowNs();
  switch (kind) {
  case Message::Beat:
    member.report.state = reader.get<RankState>();
    break;
  case Message::Gather: {
    auto number = reader.get<int64_t>();
    std::string step = reader.text();
    gather(client.rank, number, step, reader.text());
    break;
  }
  case Message::Abort: {
    auto code = ncclxrtResult_t(reader.get<int32_t>());
    abort(code, reader.text());
    break;
  }
  case Message::Bye:
    member.left = true;
    break;
  default:
    lost(client);
  }
}

void Server::hello(Client &client, Reader &reader) {
  bool known = reader.get<uint64_t>() == helloMagic;
  auto version = reader.get<int32_t>();
  auto rank = reader.get<int32_t>();
  auto count = reader.get<int32_t>();
  auto timeoutNs = reader.get<int64_t>();
  std::string theirJob = reader.text(), contact = reader.text();
  if (!known || !reader.ok()) {
    client.gone = true;
    return;
  }
  auto reject = [&](ncclxrtResult_t code, const std::string &text) {
    client.stream.send(
        Writer().put(Message::Reject).put(int32_t(code)).put(std::string_view(text)).take());
    client.gone = true;
  };
  if (theirJob != job) // a stranger: no failure of this job
    return reject(
        ncclxrtInvalidArgument,
        fmt::format("this is job '{}', but rank {} belongs to job '{}'", job, rank, theirJob));
  // Of a job that is not yet whole it is one of ours, so that its mistake is everybody's; a whole
  // job lacks nobody.
  auto refuse = [&](ncclxrtResult_t code, const std::string &text) {
    if (sequence == 0)
      abort(code, text);
    reject(code, text);
  };
  if (version != NCCLXRT_ABI_VERSION)
    return refuse(ncclxrtVersionMismatch,
                  fmt::format("rank {} runs interface version {}, the rendezvous version {}", rank,
                              version, NCCLXRT_ABI_VERSION));
  if (count != nranks)
    return refuse(
        ncclxrtInvalidArgument,
        fmt::format("rank {} was started for {} ranks, but the job has {}", rank, count, nranks));
  if (rank < 0 || rank >= nranks)
    return refuse(ncclxrtInvalidArgument,
                  fmt::format("rank {} is out of range, the job has {} ranks", rank, nranks));
  if (!abortMessage.empty()) { // too late: the job has failed
    client.stream.send(abortMessage);
    client.gone = true;
    return;
  }
  if (members[rank].heardNs)
    return reject(ncclxrtInvalidUsage,
                  fmt::format("rank {} of job '{}' is there already", rank, job));
  client.rank = rank;
  members[rank].heardNs = nowNs();
  intervalNs = std::min(intervalNs, beatNs(timeoutNs));
  nextBeatNs = std::min(nextBeatNs, nowNs() + intervalNs);
  gather(rank, 0, "join", std::move(contact));
}

void Server::gather(int rank, int64_t number, const std::string &step, std::string part) {
  if (number != sequence || parts[rank])
    return abort(ncclxrtInternalError,
                 fmt::format("rank {} came to step {} of the control plane, expected {}", rank,
                             number, sequence));
  bool isFirst = std::none_of(parts.begin(), parts.end(), [](auto &p) { return p.has_value(); });
  if (isFirst) {
    partsKind = step;
    firstRank = rank;
  } else if (step != partsKind) {
    return abort(
        ncclxrtInvalidUsage,
        fmt::format("rank {} came to {}, while rank {} came to {}: all ranks make the same "
                    "collective calls in the same order",
                    rank, step, firstRank, partsKind));
  }
  parts[rank] = std::move(part);
  members[rank].report.gathers = sequence + 1;
  if (!std::all_of(parts.begin(), parts.end(), [](auto &p) { return p.has_value(); }))
    return;
  Writer writer;
  writer.put(Message::Gathered).put(sequence);
  for (auto &p : parts) {
    writer.put(std::string_view(*p));
    p.reset();
  }
  ++sequence;
  broadcast(writer.take());
}

void Server::lost(Client &client) {
  client.gone = true;
  if (client.rank < 0 || members[client.rank].left)
    return;
  abort(ncclxrtPeerFailed,
        fmt::format("rank {} died or ended without leaving: its connection closed", client.rank));
}

void Server::abort(ncclxrtResult_t code, const std::string &text) {
  if (!abortMessage.empty())
    return; // the first reason wins
  abortMessage = Writer().put(Message::Abort).put(int32_t(code)).put(std::string_view(text)).take();
  broadcast(abortMessage);
}

void Server::broadcast(const std::string &message, bool droppable) {
  // A broken stream is noticed when it is polled.
  for (auto &client : clients)
    if (client->rank >= 0 && !client->gone && !(droppable && client->stream.wantsWrite()))
      (void)client->stream.send(message);
}

void Server::beat() {
  int64_t now = nowNs();
  nextBeatNs = now + intervalNs;
  Writer writer;
  writer.put(Message::Beats);
  for (Member &member : members) {
    RankReport report = member.report;
    if (member.left)
      report.ageNs = RankReport::left;
    else if (member.heardNs)
      report.ageNs = now - member.heardNs;
    writer.put(report);
  }
  // Not to a rank that does not read: its queue must not grow.
  broadcast(writer.take(), /*droppable=*/true);
}

//===- Rendezvous.cpp - Where the ranks' threads meet ---------------------===//
#include "Rendezvous.h"

#include <algorithm>

using namespace mlir::ncclx::reference;

Rendezvous::Rendezvous(const std::vector<Site> &sites, int64_t ranks,
                       std::chrono::milliseconds deadline, uint8_t padding)
    : sites(sites), deadline(deadline), padding(padding), waitingAt(ranks, running) {}

bool Rendezvous::meet(int64_t rank, int64_t site, const void *in, const void *sizes, void *out) {
  const std::vector<int64_t> &members = sites[site].groups[sites[site].groupOf[rank]];
  std::vector<int64_t> key = members;
  std::sort(key.begin(), key.end());

  std::unique_lock lock(mutex);
  if (!error.empty())
    return false;
  Meeting &meeting = meetings[key];
  if (!meeting.arrived.empty()) {
    auto [first, arrival] = *meeting.arrived.begin();
    if (arrival.site != site) {
      failLocked("rank " + std::to_string(first) + " is at " + sites[arrival.site].name +
                 ", but rank " + std::to_string(rank) + " is at " + sites[site].name);
      return false;
    }
  }
  meeting.arrived[rank] = {site, in, sizes, out};
  if (meeting.arrived.size() == members.size()) {
    // The last one does the work, for all; the others cannot leave before the turn is over.
    std::vector<const void *> inputs, said;
    std::vector<void *> outputs;
    for (int64_t member : members) {
      inputs.push_back(meeting.arrived[member].in);
      said.push_back(meeting.arrived[member].sizes);
      outputs.push_back(meeting.arrived[member].out);
    }
    lock.unlock();
    const std::vector<Collective> &all = sites[site].collectives;
    const Collective &collective = all[sites[site].groupOf[rank] % all.size()];
    std::string wrong;
    if (sites[site].agrees)
      wrong = collective.compareInputs(inputs);
    if (!wrong.empty()) {
      // nobody goes on
    } else if (collective.sizeBytes) {
      Collective told = collective;
      wrong = told.readSizes(said);
      if (wrong.empty())
        told.execute(inputs, outputs, padding);
    } else {
      collective.execute(inputs, outputs, padding);
    }
    lock.lock();
    if (!wrong.empty())
      failLocked(sites[site].name + ": " + wrong);
    // They run again from here on, whenever they wake up.
    for (int64_t member : members)
      waitingAt[member] = running;
    meeting.arrived.clear();
    ++meeting.turn;
    changed.notify_all();
    return error.empty();
  }
  waitingAt[rank] = site;
  int64_t turn = meeting.turn;
  checkStuckLocked();
  auto limit = std::chrono::steady_clock::now() + deadline;
  while (error.empty() && meeting.turn == turn)
    if (changed.wait_until(lock, limit) == std::cv_status::timeout && meeting.turn == turn)
      failLocked("rank " + std::to_string(rank) + " waited " + std::to_string(deadline.count()) +
                 " ms: " + describeLocked());
  return error.empty();
}

void Rendezvous::finish(int64_t rank) {
  std::lock_guard lock(mutex);
  waitingAt[rank] = ended;
  checkStuckLocked();
}

void Rendezvous::fail(const std::string &message) {
  std::lock_guard lock(mutex);
  failLocked(message);
}

void Rendezvous::failLocked(const std::string &message) {
  if (error.empty())
    error = message;
  changed.notify_all();
}

/// A rank in a meeting that is being held is not waiting: the one that holds it runs.
void Rendezvous::checkStuckLocked() {
  bool waits = false;
  for (int64_t at : waitingAt) {
    if (at == running)
      return;
    waits |= at != ended;
  }
  if (waits)
    failLocked("the ranks wait for each other for ever: " + describeLocked());
}

std::string Rendezvous::describeLocked() const {
  std::string text;
  for (size_t rank = 0; rank < waitingAt.size(); ++rank) {
    int64_t at = waitingAt[rank];
    text += (rank ? ", rank " : "rank ") + std::to_string(rank);
    if (at == running)
      text += " computes";
    else if (at == ended)
      text += " has ended";
    else
      text += " is at " + sites[at].name;
  }
  return text;
}

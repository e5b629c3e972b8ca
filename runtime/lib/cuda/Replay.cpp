//===- Replay.cpp - What keeps a replayed run from the next one -----------===//
#include "Replay.h"

#include <algorithm>
#include <utility>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

namespace {
/// A step of a run: its rank, and its number among this rank's.
struct At {
  int rank;
  size_t step;
};
/// A counter, and what has to do with it, in the order of each rank.
struct Counter {
  std::vector<At> raises, waits;
};

/// What comes after what in two runs of all ranks.
class Paths {
public:
  using Node = size_t;
  using Step = Replay::Step;

  explicit Paths(const std::vector<Replay::Run> &all) : all(all) {
    for (const std::vector<Step> &steps : all) {
      first.push_back(perRun);
      perRun += steps.size() + 2;
    }
    next.resize(2 * perRun);
    for (int rank = 0; rank < int(all.size()); ++rank) {
      for (size_t i = 0; i < all[rank].size(); ++i)
        tell({rank, i}, all[rank][i]);
      for (int run = 0; run < 2; ++run)
        linkLanes(rank, run);
      next[end(rank, 0)].push_back(begin(rank, 1));
    }
    for (const auto &[place, counter] : counters)
      linkCounter(counter);
  }

  Node begin(int rank, int run) const { return size_t(run) * perRun + first[rank]; }
  Node end(int rank, int run) const { return begin(rank, run) + all[rank].size() + 1; }
  Node node(At at, int run) const { return begin(at.rank, run) + 1 + at.step; }
  const Step &step(At at) const { return all[at.rank][at.step]; }

  /// Of every node whether it comes after `from`, or is it; once `until` does, of no more.
  std::vector<bool> after(Node from, Node until = ~Node(0)) const {
    std::vector<bool> seen(next.size());
    std::vector<Node> left{from};
    while (!left.empty()) {
      Node node = left.back();
      left.pop_back();
      if (seen[node])
        continue;
      seen[node] = true;
      if (node == until)
        break;
      left.insert(left.end(), next[node].begin(), next[node].end());
    }
    return seen;
  }
  bool leads(Node from, Node to) const { return after(from, to)[to]; }

  std::map<std::pair<int, int64_t>, Counter> counters; ///< by the rank that has it, and place
  std::map<int, std::vector<At>> reached;              ///< by the rank whose memory it is
  bool known = true;

private:
  const std::vector<Replay::Run> &all;
  std::vector<Node> first;
  size_t perRun = 0;
  std::vector<std::vector<Node>> next;

  void tell(At at, const Step &step) {
    if (step.kind == Replay::Raise)
      counters[{step.rank, step.counter}].raises.push_back(at);
    else if (step.kind == Replay::Wait)
      counters[{at.rank, step.counter}].waits.push_back(at);
    else if (step.kind == Replay::Reach)
      reached[step.rank].push_back(at);
    known &= step.kind != Replay::Unknown;
  }

  void linkLanes(int rank, int run) {
    std::map<int32_t, Node> lanes;
    auto lastOf = [&](int32_t lane) -> Node & {
      return lanes.emplace(lane, begin(rank, run)).first->second;
    };
    for (size_t i = 0; i < all[rank].size(); ++i) {
      const Step &step = all[rank][i];
      Node here = node({rank, i}, run);
      if (step.kind == Replay::Order)
        next[lastOf(int32_t(step.counter))].push_back(here);
      next[std::exchange(lastOf(step.lane), here)].push_back(here);
    }
    next[begin(rank, run)].push_back(end(rank, run));
    for (auto [lane, last] : lanes)
      next[last].push_back(end(rank, run));
  }

  /// Its n-th value comes with its n-th raise, where one lane raises it.
  void linkCounter(const Counter &counter) {
    for (At at : counter.raises)
      known &= at.rank == counter.raises[0].rank && step(at).lane == step(counter.raises[0]).lane;
    for (At at : counter.waits) {
      auto value = size_t(step(at).value);
      known &= value <= counter.raises.size(); // or another run raises it
      for (int run = 0; known && run < 2; ++run)
        next[node(counter.raises[value - 1], run)].push_back(node(at, run));
    }
  }
};

} // namespace

/// Its counters are 0 before they are raised again, and its memory is its own between its runs.
std::optional<std::map<int64_t, int64_t>> Replay::lastOf(int rank, const std::vector<Run> &all) {
  Paths paths(all);
  if (!paths.known)
    return {};
  std::map<int64_t, int64_t> lasts;
  for (const auto &[place, counter] : paths.counters) {
    if (place.first != rank)
      continue;
    auto isLast = [&](At at) { return paths.step(at).value == int64_t(counter.raises.size()); };
    auto last = std::find_if(counter.waits.begin(), counter.waits.end(), isLast);
    if (last == counter.waits.end())
      return {};
    Paths::Node emptied = paths.node(*last, 0);
    for (At at : counter.waits)
      if (at.step != last->step && (isLast(at) || !paths.leads(paths.node(at, 0), emptied)))
        return {};
    if (!paths.leads(emptied, paths.node(counter.raises[0], 1)))
      return {};
    lasts[place.second] = int64_t(counter.raises.size());
  }
  std::vector<bool> begun = paths.after(paths.begin(rank, 0));
  for (At at : paths.reached[rank])
    if (!begun[paths.node(at, 0)] || !paths.leads(paths.node(at, 0), paths.end(rank, 0)))
      return {};
  return lasts;
}

Status Replay::decide(Comm &comm) {
  std::vector<uint64_t> sizes(comm.nranks());
  uint64_t size = mine.size();
  if (Status s = comm.exchange(&size, sizeof size, sizes.data(), "the lengths of runs"); !s.ok())
    return s;
  size_t most = *std::max_element(sizes.begin(), sizes.end());
  // Who searches more than this for each of its counters had better meet.
  constexpr uint64_t longest = 1 << 16;
  uint64_t total = 0;
  for (uint64_t s : sizes)
    total += s;
  if (most == 0 || total > longest)
    return {};
  std::vector<Step> steps(most * size_t(comm.nranks()));
  mine.resize(most);
  if (Status s = comm.exchange(mine.data(), most * sizeof(Step), steps.data(), "runs"); !s.ok())
    return s;
  std::vector<Run> all;
  for (int rank = 0; rank < comm.nranks(); ++rank)
    all.emplace_back(steps.begin() + ptrdiff_t(most) * rank,
                     steps.begin() + ptrdiff_t(most) * rank + ptrdiff_t(sizes[rank]));
  auto found = lastOf(comm.rank(), all);
  int32_t mineIs = found.has_value();
  std::vector<int32_t> votes(comm.nranks());
  if (Status s = comm.exchange(&mineIs, sizeof mineIs, votes.data(), "what follows a run"); !s.ok())
    return s;
  if (found)
    lasts = std::move(*found);
  good = std::find(votes.begin(), votes.end(), 0) == votes.end();
  return {};
}

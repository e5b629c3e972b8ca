//===- PairBounds.cpp - What each member has for each other ------------------===//
#include "Bounder.h"
#include <fmt/format.h>

using namespace mlir::ncclx::topology;

std::vector<Demand> Bounder::demands() const {
  std::vector<Demand> list;
  if (query.collective == Collective::permute) {
    for (auto [from, to] : query.pairs)
      if (from != to)
        list.push_back({from, to, 1});
    return list;
  }
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j = 0; j < n; ++j) {
      uint64_t amount = query.collective == Collective::all_to_all ? 1 : query.counts[i * n + j];
      if (i != j && amount > 0)
        list.push_back({i, j, amount});
    }
  return list;
}

/// LP duality: whatever lengths the links have, bytes times distance is at most capacity times
/// length times time.
Rational Bounder::dual(llvm::ArrayRef<int64_t> lengths, llvm::ArrayRef<Demand> moved) const {
  CutGraph metric = cuts;
  Rational supply = 0, demand = 0;
  for (size_t a = 0; a < lengths.size(); ++a) {
    metric.graph.arcs[a].latencyNs = lengths[a];
    supply += metric.graph.arcs[a].capacity * Rational(lengths[a]);
  }
  for (size_t d = 0; d < moved.size();) { // one search for each run of equal sources
    auto ways = metric.latencies(moved[d].from);
    unsigned from = moved[d].from;
    for (; d < moved.size() && moved[d].from == from; ++d)
      demand += ways[metric.member[moved[d].to]].value_or(0) *
                Rational::make(Rational::Int(moved[d].amount), 1);
  }
  return demand * amountUnit() / supply;
}

void Bounder::concurrent(llvm::ArrayRef<Demand> moved) {
  std::vector<int64_t> equal(cuts.graph.arcs.size(), 1);
  add(dual(equal, moved), "distance", "bytes times shortest way fill every link");
  std::vector<Demand> ends;
  for (const Demand &demand : moved)
    ends.push_back({cuts.member[demand.from], cuts.member[demand.to], demand.amount});
  std::optional<ConcurrentFlow> flow = concurrentFlow(cuts.graph, ends);
  if (!flow)
    return;
  Rational bound = dual(flow->lengths, moved), routed = flow->routed * amountUnit();
  std::string known = "the routing found overflows the check";
  if (bound == routed)
    known = "a routing takes no longer: this is the optimum, checked exactly";
  else if (routed.isValid())
    known = fmt::format("a routing that takes {:.6g} us is known, {:.2g} % more",
                        routed.toDouble() * 1e6, (routed.toDouble() / bound.toDouble() - 1) * 100);
  add(bound, "concurrent flow", "bytes times weighted distance; " + known);
}

void Bounder::allToAll() {
  std::vector<Demand> moved = demands();
  if (moved.empty())
    return add(0, "nothing moves", "no member has bytes for another");
  // Cuts: each rank, each part of each partition, each half of the group in order.
  std::vector<std::pair<const char *, std::vector<unsigned>>> parts;
  for (const auto &[what, partition] : partitions())
    for (const std::vector<unsigned> &part : partition)
      parts.emplace_back(part.size() == 1 ? "port" : "cut", part);
  for (unsigned start = 0; n <= 64 && start < n / 2; ++start) {
    std::vector<unsigned> half;
    for (unsigned i = 0; i < n / 2; ++i)
      half.push_back(start + i);
    parts.emplace_back("cut", half);
  }
  for (const char *argument : {"port", "cut"}) {
    Rational worst = -1;
    std::string detail;
    for (const auto &[kind, part] : parts) {
      if (kind != llvm::StringRef(argument))
        continue;
      std::vector<bool> inside(n);
      for (unsigned i : part)
        inside[i] = true;
      for (bool reversed : {false, true}) {
        Rational crossing = 0;
        for (const Demand &demand : moved)
          if (inside[demand.from] != reversed && inside[demand.to] == reversed)
            crossing += Rational::make(Rational::Int(demand.amount), 1);
        Rational capacity = crossing.isZero() ? Rational(1) : cutOut(part, reversed);
        if (capacity.isZero())
          return addUnreachable();
        Rational seconds = amountUnit() * crossing / capacity;
        if (seconds > worst) {
          worst = seconds;
          detail = fmt::format("{} {} must {} {} over {}", crossing.str(),
                               query.collective == Collective::all_to_all ? "shares" : "bytes",
                               reversed ? "enter" : "leave", rankList(part), gigabytes(capacity));
        }
      }
    }
    if (worst >= Rational(0))
      add(worst, argument, detail);
  }
  concurrent(moved);
}

void Bounder::permute() {
  Rational worst = -1;
  std::string detail;
  if (query.pairs.empty()) {
    for (unsigned i = 0; i < n; ++i)
      for (bool reversed : {false, true}) {
        Rational capacity = reversed ? cuts.portIn(i) : cuts.portOut(i);
        if (capacity.isZero())
          return addUnreachable();
        if (size / capacity > worst) {
          worst = size / capacity;
          detail = fmt::format("the buffer must {} rank {} over {}", reversed ? "enter" : "leave",
                               query.group[i], gigabytes(capacity));
        }
      }
    return add(worst, "port", detail);
  }
  std::vector<Demand> moving = demands();
  for (auto [from, to, unused] : moving) {
    Rational flow = cuts.graph.maxFlow(whole(from), whole(to));
    if (flow.isZero())
      return addUnreachable();
    if (size / flow > worst) {
      worst = size / flow;
      detail = fmt::format("the buffer must pass from rank {} to rank {} over {}",
                           query.group[from], query.group[to], gigabytes(flow));
    }
  }
  if (moving.empty())
    return add(0, "nothing moves", "every rank keeps its buffer");
  add(worst, "cut", detail);
  concurrent(moving);
}

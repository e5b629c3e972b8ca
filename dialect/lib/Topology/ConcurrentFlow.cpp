//===- ConcurrentFlow.cpp -------------------------------------------------===//
//
// The linear program has one flow for each source (the amounts from one source need not be told
// apart on their way) and the time as a variable. Its answer is rounded to fractions; the rounded
// flows are repaired where they lack something, and their time is taken exactly.
//
//===----------------------------------------------------------------------===//
#include "ConcurrentFlow.h"
#include "Contract.h"
#include "InteriorPoint.h"
#include "LinearProgram.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <queue>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;
using Int = Rational::Int;

namespace {
/// Columns of the program before it is folded, and what the search may look at in all its rounds.
constexpr size_t maxColumns = 1 << 17;
constexpr size_t maxSearch = 1 << 23;
constexpr size_t mostRounds = 120, fewestRounds = 8;

/// Doubles as whole numbers over one denominator.
struct Fractions {
  std::vector<Int> numerators;
  Int denominator = 1;
};

/// The fraction of least denominator that a double stands for, up to 10^-8 of it; 0: none is short.
int64_t shortDenominator(double value) {
  constexpr int64_t longest = 1 << 14;
  double rest = value;
  int64_t before = 0, now = 1; // denominators of the continued fraction's convergents
  for (unsigned step = 0; step < 24; ++step) {
    double numerator = std::round(value * double(now));
    if (std::fabs(value - numerator / double(now)) <= 1e-8 * std::max(1.0, std::fabs(value)))
      return now;
    double whole = std::floor(rest);
    if (rest - whole < 1e-12)
      return 0;
    rest = 1 / (rest - whole);
    if (rest > double(longest))
      return 0;
    int64_t next = int64_t(std::floor(rest)) * now + before;
    if (next > longest)
      return 0;
    before = now;
    now = next;
  }
  return 0;
}

/// Linear programs of small whole numbers have answers of short fractions: finds them, else cuts
/// off behind 30 binary places, or fewer of large numbers. Negative noise becomes zero.
Fractions toFractions(llvm::ArrayRef<double> values) {
  int64_t most = int64_t(1) << 30;
  for (double value : values)
    while (most > 1 && value * double(most) > 0x1p62)
      most /= 2;
  Fractions result;
  int64_t common = 1;
  double last = 0;
  for (double value : values) {
    if (value == last || value < 1e-9)
      continue;
    last = value;
    int64_t den = shortDenominator(value);
    if (den == 0 || common / std::gcd(common, den) > most / den) {
      common = most;
      break;
    }
    common = std::lcm(common, den);
  }
  result.denominator = common;
  for (double value : values)
    result.numerators.push_back(
        value < 1e-9 ? 0 : Int(std::llround(std::min(value * double(common), 9e18))));
  return result;
}

class Router {
public:
  Router(const FlowGraph &graph, llvm::ArrayRef<Demand> demands) : graph(graph) {
    out.resize(graph.size());
    for (unsigned a = 0; a < graph.arcs.size(); ++a) {
      out[graph.arcs[a].from].push_back(a);
      capacity.push_back(graph.arcs[a].capacity.toDouble());
      widest = std::max(widest, capacity.back());
    }
    for (double &c : capacity) // only ratios matter
      c /= widest;
    for (const Demand &demand : demands) {
      targets[demand.from].push_back({demand.to, demand.amount});
      unit = std::gcd(unit, demand.amount);
      largest = std::max(largest, demand.amount);
    }
  }
  std::optional<ConcurrentFlow> byProgram() const;
  std::optional<ConcurrentFlow> byInteriorPoint() const;
  std::optional<ConcurrentFlow> bySearch() const;

private:
  std::optional<ConcurrentFlow> prove(llvm::ArrayRef<double> flows, llvm::ArrayRef<double> prices,
                                      double scale) const;
  /// Shortest ways from a vertex: the arc that enters each vertex, -1 where there is none.
  std::vector<int> ways(unsigned from, llvm::ArrayRef<double> length,
                        std::vector<double> &distance) const;
  /// Adds to each source's flow what its targets lack; false on overflow.
  bool repair(unsigned from, llvm::ArrayRef<std::pair<unsigned, uint64_t>> ends, Int scale,
              llvm::MutableArrayRef<Int> flow) const;
  Rational timeOf(llvm::ArrayRef<Int> load, const Rational &scale) const;

  const FlowGraph &graph;
  std::vector<std::vector<unsigned>> out;
  std::vector<double> capacity;
  double widest = 0;
  std::map<unsigned, std::vector<std::pair<unsigned, uint64_t>>> targets;
  uint64_t unit = 0, largest = 0; ///< the amounts' greatest divisor, and the largest
};
} // namespace

std::vector<int> Router::ways(unsigned from, llvm::ArrayRef<double> length,
                              std::vector<double> &distance) const {
  distance.assign(graph.size(), std::numeric_limits<double>::infinity());
  std::vector<int> via(graph.size(), -1);
  using Entry = std::pair<double, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  distance[from] = 0;
  queue.push({0, from});
  while (!queue.empty()) {
    auto [d, v] = queue.top();
    queue.pop();
    if (d > distance[v])
      continue;
    for (unsigned a : out[v]) {
      unsigned to = graph.arcs[a].to;
      if (d + length[a] < distance[to]) {
        distance[to] = d + length[a];
        via[to] = int(a);
        queue.push({distance[to], to});
      }
    }
  }
  return via;
}

Rational Router::timeOf(llvm::ArrayRef<Int> load, const Rational &scale) const {
  Rational most = 0;
  for (unsigned a = 0; a < load.size(); ++a) {
    Rational time = Rational::make(load[a], 1) / (graph.arcs[a].capacity * scale);
    if (!time.isValid())
      return Rational::invalid();
    if (time > most)
      most = time;
  }
  return most;
}

bool Router::repair(unsigned from, llvm::ArrayRef<std::pair<unsigned, uint64_t>> ends, Int scale,
                    llvm::MutableArrayRef<Int> flow) const {
  std::vector<Int> lacks(graph.size(), 0); // what must still arrive
  for (auto [end, amount] : ends)
    lacks[end] += Int(amount / unit) * scale;
  for (unsigned a = 0; a < flow.size(); ++a) {
    lacks[graph.arcs[a].to] -= flow[a];
    lacks[graph.arcs[a].from] += flow[a];
  }
  std::vector<double> distance, hops(graph.arcs.size(), 1);
  std::vector<int> via;
  for (unsigned v = 0; v < graph.size(); ++v) {
    if (v == from || lacks[v] <= 0)
      continue; // what arrives and is not wanted does no harm
    if (via.empty())
      via = ways(from, hops, distance);
    if (via[v] < 0)
      return false;
    for (unsigned at = v; at != from; at = graph.arcs[via[at]].from)
      flow[via[at]] += lacks[v];
  }
  return true;
}

std::optional<ConcurrentFlow> Router::byProgram() const {
  unsigned arcs = graph.arcs.size();
  if (targets.size() * arcs + 1 > maxColumns)
    return std::nullopt;
  LinearProgram program;
  program.objective.assign(targets.size() * arcs + 1, 0);
  unsigned time = program.objective.size() - 1;
  program.objective[time] = 1;
  program.rows.resize(arcs); // loads within capacity * time
  for (unsigned a = 0; a < arcs; ++a)
    program.entries.push_back({a, time, -capacity[a]});
  unsigned column = 0;
  for (const auto &[from, ends] : targets) {
    unsigned base = program.rows.size();
    program.rows.resize(base + graph.size(), {0, true});
    for (auto [end, amount] : ends)
      program.rows[base + end].right += double(amount) / double(largest);
    for (unsigned a = 0; a < arcs; ++a, ++column) {
      program.entries.push_back({a, column, 1});
      // Nothing flows back into a source, nor is its own balance a constraint.
      if (graph.arcs[a].from != from)
        program.entries.push_back({base + graph.arcs[a].from, column, -1});
      if (graph.arcs[a].to != from)
        program.entries.push_back({base + graph.arcs[a].to, column, 1});
    }
  }
  std::optional<LinearSolution> solution = solve(program);
  if (!solution)
    return std::nullopt;
  return prove({solution->values.data(), solution->values.size() - 1},
               {solution->prices.data(), arcs}, double(largest));
}

std::optional<ConcurrentFlow> Router::byInteriorPoint() const {
  std::vector<SourceFlow> sources;
  double total = 0;
  for (const auto &[from, ends] : targets)
    for (auto [end, amount] : ends)
      total += double(amount);
  double scale = total / double(targets.size());
  for (const auto &[from, ends] : targets) {
    sources.push_back({from, std::vector<double>(graph.size())});
    for (auto [end, amount] : ends)
      sources.back().wanted[end] += double(amount) / scale;
  }
  std::optional<FlowSolution> solution = solveFlows(graph, capacity, sources);
  if (!solution)
    return std::nullopt;
  return prove(solution->flows, solution->prices, scale);
}

/// Prices become lengths. Flows, in `scale` bytes, become fractions that are repaired and timed.
std::optional<ConcurrentFlow> Router::prove(llvm::ArrayRef<double> flows,
                                            llvm::ArrayRef<double> prices, double scale) const {
  ConcurrentFlow result;
  double dearest = 0;
  for (double price : prices)
    dearest = std::max(dearest, price);
  if (!(dearest > 0))
    return std::nullopt;
  std::vector<double> relative;
  for (double price : prices)
    relative.push_back(price / dearest);
  for (Int length : toFractions(relative).numerators)
    result.lengths.push_back(int64_t(length));

  std::vector<double> amounts;
  for (double flow : flows)
    amounts.push_back(flow * (scale / double(unit)));
  Fractions exact = toFractions(amounts);
  std::vector<Int> load(graph.arcs.size(), 0);
  size_t source = 0;
  for (const auto &[from, ends] : targets) {
    llvm::MutableArrayRef<Int> flow(exact.numerators.data() + load.size() * source++, load.size());
    if (!repair(from, ends, exact.denominator, flow))
      return std::nullopt;
    for (unsigned a = 0; a < load.size(); ++a)
      load[a] += flow[a];
  }
  result.routed = timeOf(load, Rational::make(exact.denominator, 1)) * Rational::make(Int(unit), 1);
  return result;
}

/// Each round routes every pair along a shortest way and lengthens links by their load. The rounds'
/// average is a routing; the lengths that bound best are a dual solution.
std::optional<ConcurrentFlow> Router::bySearch() const {
  size_t looks = targets.size() * graph.arcs.size();
  for (const auto &[from, ends] : targets)
    looks += ends.size();
  size_t most = std::min(mostRounds, maxSearch / looks);
  if (most < fewestRounds)
    return std::nullopt;
  std::vector<double> length, distance, best;
  for (double c : capacity)
    length.push_back(1 / c);
  std::vector<Int> load(graph.arcs.size(), 0);
  double bestBound = -1;
  for (size_t round = 0; round < most; ++round) {
    std::vector<double> now(graph.arcs.size(), 0);
    double demand = 0, supply = 0;
    for (const auto &[from, ends] : targets) {
      std::vector<int> via = ways(from, length, distance);
      for (auto [end, amount] : ends) {
        if (via[end] < 0)
          return std::nullopt;
        demand += distance[end] * double(amount);
        for (unsigned v = end; v != from; v = graph.arcs[via[v]].from) {
          now[via[v]] += double(amount);
          load[via[v]] += Int(amount / unit);
        }
      }
    }
    double busiest = 0;
    for (unsigned a = 0; a < now.size(); ++a) {
      supply += capacity[a] * length[a];
      busiest = std::max(busiest, now[a] / capacity[a]);
    }
    if (demand / supply > bestBound) {
      bestBound = demand / supply;
      best = length;
    }
    double step = 0.5 / (1 + 0.1 * double(round)), longest = 0;
    for (unsigned a = 0; a < now.size(); ++a) {
      length[a] *= std::exp(step * now[a] / capacity[a] / busiest);
      longest = std::max(longest, length[a] * capacity[a]);
    }
    for (double &l : length) // only ratios matter
      l /= longest;
  }
  ConcurrentFlow result;
  result.routed = timeOf(load, Rational(int64_t(most))) * Rational::make(Int(unit), 1);
  double longest = *std::max_element(best.begin(), best.end());
  for (double l : best)
    result.lengths.push_back(int64_t(std::llround(l / longest * double(1 << 20))));
  return result;
}

std::optional<ConcurrentFlow> topology::concurrentFlow(const FlowGraph &whole,
                                                       llvm::ArrayRef<Demand> demands) {
  Contraction small = contract(whole, demands);
  Router router(small.graph, small.demands);
  std::optional<ConcurrentFlow> flow = router.byProgram();
  if (!flow)
    flow = router.byInteriorPoint();
  if (!flow)
    flow = router.bySearch();
  if (!flow)
    return std::nullopt;
  // The narrowest of a chain has its length, the others have none.
  std::vector<int64_t> lengths(whole.arcs.size(), 0);
  for (size_t a = 0; a < flow->lengths.size(); ++a)
    lengths[small.narrowest[a]] = flow->lengths[a];
  flow->lengths = std::move(lengths);
  return flow;
}

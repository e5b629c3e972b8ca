//===- ConcurrentFlow.cpp -------------------------------------------------===//
//
// The linear program has one flow for each source (the amounts from one source need not be told
// apart on their way) and the time as a variable. Its answer is rounded to fractions; the rounded
// flows are repaired where they lack something, and their time is taken exactly.
//
//===----------------------------------------------------------------------===//
#include "ConcurrentFlow.h"
#include "Contract.h"
#include "FlowSplitting.h"
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
/// Columns of the program before it is folded. (128 ranks in a full mesh.)
constexpr size_t maxColumns = 1 << 21;

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
      head.push_back(graph.arcs[a].to);
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
  /// From the fastest method that is exact to the one that takes the largest networks.
  std::optional<ConcurrentFlow> run() {
    if (byProgram() || byInteriorPoint() || bySplitting())
      return best;
    return std::nullopt;
  }

private:
  bool byProgram();
  bool byInteriorPoint();
  bool bySplitting();
  /// What each source wants, in units of the second: the amounts of a source on average.
  std::pair<std::vector<SourceFlow>, double> sourceFlows() const;
  /// Keeps what a solution proves: its prices become lengths, its flows, in `scale` bytes,
  /// fractions that are repaired and timed. False: its prices prove nothing.
  bool prove(llvm::ArrayRef<double> flows, llvm::ArrayRef<double> prices, double scale);
  double boundOf(llvm::ArrayRef<double> length) const;
  Rational route(llvm::ArrayRef<double> flows, double scale) const;
  /// Shortest ways from a vertex: the arc that enters each vertex, -1 where there is none.
  std::vector<int> ways(unsigned from, llvm::ArrayRef<double> length,
                        std::vector<double> &distance) const;
  /// Adds to the arcs' load what the targets of a source's flow lack; false: no way leads there.
  bool repair(unsigned from, llvm::ArrayRef<std::pair<unsigned, uint64_t>> ends, Int scale,
              llvm::ArrayRef<Int> flow, double busiest, llvm::MutableArrayRef<Int> load) const;
  double timeOf(unsigned arc, Int load) const { return double(load) / capacity[arc]; }
  Rational timeOf(llvm::ArrayRef<Int> load, const Rational &scale) const;

  const FlowGraph &graph;
  std::vector<std::vector<unsigned>> out;
  std::vector<unsigned> head; ///< by arc: where it leads
  std::vector<double> capacity;
  double widest = 0;
  std::map<unsigned, std::vector<std::pair<unsigned, uint64_t>>> targets;
  uint64_t unit = 0, largest = 0; ///< the amounts' greatest divisor, and the largest
  ConcurrentFlow best;
};
} // namespace

std::vector<int> Router::ways(unsigned from, llvm::ArrayRef<double> length,
                              std::vector<double> &distance) const {
  distance.assign(graph.size(), std::numeric_limits<double>::infinity());
  std::vector<int> via(graph.size(), -1);
  distance[from] = 0;
  auto leave = [&](unsigned v, llvm::function_ref<void(unsigned)> nearer) {
    for (unsigned a : out[v]) {
      unsigned to = head[a];
      if (distance[v] + length[a] < distance[to]) {
        distance[to] = distance[v] + length[a];
        via[to] = int(a);
        nearer(to);
      }
    }
  };
  // Where each is linked to most, to look at all of them costs less than a heap.
  if (graph.arcs.size() > graph.size() * graph.size() / 8) {
    std::vector<unsigned> rest(graph.size());
    std::iota(rest.begin(), rest.end(), 0u);
    while (!rest.empty()) {
      auto next = std::min_element(rest.begin(), rest.end(), [&](unsigned a, unsigned b) {
        return distance[a] < distance[b];
      });
      unsigned v = *next;
      *next = rest.back();
      rest.pop_back();
      leave(v, [](unsigned) {});
    }
    return via;
  }
  using Entry = std::pair<double, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.push({0, from});
  while (!queue.empty()) {
    auto [d, v] = queue.top();
    queue.pop();
    if (d <= distance[v])
      leave(v, [&](unsigned to) { queue.push({distance[to], to}); });
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
                    llvm::ArrayRef<Int> flow, double busiest,
                    llvm::MutableArrayRef<Int> load) const {
  std::vector<Int> lacks(graph.size(), 0); // what must still arrive
  for (auto [end, amount] : ends)
    lacks[end] += Int(amount / unit) * scale;
  for (unsigned a = 0; a < flow.size(); ++a) {
    lacks[graph.arcs[a].to] -= flow[a];
    lacks[graph.arcs[a].from] += flow[a];
  }
  std::vector<double> distance, length;
  std::vector<int> via;
  for (unsigned v = 0; v < graph.size(); ++v) {
    if (v == from || lacks[v] <= 0)
      continue; // what arrives and is not wanted does no harm
    if (via.empty()) {
      // Round busy arcs: a per cent more load makes them e^2 times as long.
      for (unsigned a = 0; a < load.size(); ++a)
        length.push_back(
            (std::exp(std::min(300.0, 200 * (timeOf(a, load[a]) / busiest - 1))) + 1e-4) /
            capacity[a]);
      via = ways(from, length, distance);
    }
    if (via[v] < 0)
      return false;
    for (unsigned at = v; at != from; at = graph.arcs[via[at]].from)
      load[via[at]] += lacks[v];
  }
  return true;
}

bool Router::byProgram() {
  unsigned arcs = graph.arcs.size();
  if (targets.size() * arcs + 1 > maxColumns)
    return false;
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
    return false;
  return prove({solution->values.data(), solution->values.size() - 1},
               {solution->prices.data(), arcs}, double(largest));
}

std::pair<std::vector<SourceFlow>, double> Router::sourceFlows() const {
  double total = 0;
  for (const auto &[from, ends] : targets)
    for (auto [end, amount] : ends)
      total += double(amount);
  double scale = total / double(targets.size());
  std::vector<SourceFlow> sources;
  for (const auto &[from, ends] : targets) {
    sources.push_back({from, std::vector<double>(graph.size())});
    for (auto [end, amount] : ends)
      sources.back().wanted[end] += double(amount) / scale;
  }
  return {std::move(sources), scale};
}

bool Router::byInteriorPoint() {
  auto [sources, scale] = sourceFlows();
  std::optional<FlowSolution> solution = solveFlows(graph, capacity, sources);
  return solution && prove(solution->flows, solution->prices, scale);
}

bool Router::bySplitting() {
  auto flows = sourceFlows();
  double scale = flows.second;
  std::optional<FlowSolution> solution =
      splitFlows(graph, capacity, flows.first,
                 [&](llvm::ArrayRef<double> prices) { return boundOf(prices) / scale; });
  return solution && prove(solution->flows, solution->prices, scale);
}

bool Router::prove(llvm::ArrayRef<double> flows, llvm::ArrayRef<double> prices, double scale) {
  double dearest = 0;
  for (double price : prices)
    dearest = std::max(dearest, price);
  if (!(dearest > 0))
    return false;
  std::vector<double> relative;
  for (double price : prices)
    relative.push_back(price / dearest);
  best.lengths.clear();
  for (Int length : toFractions(relative).numerators)
    best.lengths.push_back(int64_t(length));
  best.routed = route(flows, scale);
  return boundOf(relative) > 0;
}

/// The bound of some lengths, in bytes over the widest arc's capacity.
double Router::boundOf(llvm::ArrayRef<double> length) const {
  double demand = 0, supply = 0;
  std::vector<double> distance;
  for (const auto &[from, ends] : targets) {
    ways(from, length, distance);
    for (auto [end, amount] : ends)
      demand += distance[end] * double(amount);
  }
  for (unsigned a = 0; a < length.size(); ++a)
    supply += capacity[a] * length[a];
  return demand / supply;
}

/// The time of a routing made of flows, in whole numbers; invalid: there is none, or it overflows.
Rational Router::route(llvm::ArrayRef<double> flows, double scale) const {
  std::vector<double> amounts;
  for (double flow : flows)
    amounts.push_back(flow * (scale / double(unit)));
  Fractions exact = toFractions(amounts);
  size_t arcs = graph.arcs.size();
  std::vector<Int> load(arcs, 0);
  for (size_t i = 0; i < exact.numerators.size(); ++i)
    load[i % arcs] += exact.numerators[i];
  double busiest = 0;
  for (unsigned a = 0; a < arcs; ++a)
    busiest = std::max(busiest, timeOf(a, load[a]));
  llvm::ArrayRef<Int> flow = exact.numerators;
  for (const auto &[from, ends] : targets) {
    if (!repair(from, ends, exact.denominator, flow.take_front(arcs), busiest, load))
      return Rational::invalid();
    flow = flow.drop_front(arcs);
  }
  return timeOf(load, Rational::make(exact.denominator, 1)) * Rational::make(Int(unit), 1);
}

std::optional<ConcurrentFlow> topology::concurrentFlow(const FlowGraph &whole,
                                                       llvm::ArrayRef<Demand> demands) {
  Contraction small = contract(whole, demands);
  std::optional<ConcurrentFlow> flow = Router(small.graph, small.demands).run();
  if (!flow)
    return std::nullopt;
  // The narrowest of a chain has its length, the others have none.
  std::vector<int64_t> lengths(whole.arcs.size(), 0);
  for (size_t a = 0; a < flow->lengths.size(); ++a)
    lengths[small.narrowest[a]] = flow->lengths[a];
  flow->lengths = std::move(lengths);
  return flow;
}

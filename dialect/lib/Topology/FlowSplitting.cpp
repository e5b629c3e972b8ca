//===- FlowSplitting.cpp --------------------------------------------------===//
//
// The program of InteriorPoint.cpp, for g(k, a) and f(k, a), equal at the end:
//   g is not negative, and what passes an arc fits:  sum over k of g(k, a) <= capacity(a) T
//   f arrives:  at each vertex but k's own, what arrives less what leaves = what is wanted there
// A step goes to the nearest f, then to the nearest g and T, where T has its cost:
//   f = the balanced flows nearest to g - u       (one Laplacian of the network, for all sources)
//   v = u + 1.7 f - 0.7 g
//   g, T = minimum of  T + rho/2 |v - g|^2:  g(k, a) = max(0, v(k, a) - capacity(a) over(a))
//   u = v - g
// with distances divided by capacities, so that wide arcs may change more. `over` is not negative,
// zero where an arc has room, and the sum of capacity(a) over(a) is 1 / rho: rho over(a) are prices
// that give a bound in each step; f, with what is negative turned round, is a routing. Both swing
// round the optimum, and averages of them are nearer. Flows are stored by arc, then by source.
//
//===----------------------------------------------------------------------===//
#include "FlowSplitting.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
/// Flows, in number: each is there four times. (180 ranks in a full mesh.)
constexpr size_t maxFlows = size_t(1) << 23;
/// Multiplications in all: behind the first, close enough ends the search; behind the second,
/// anything does. (10^9 take about a second.)
constexpr double softWork = 5e8, maxWork = 1e10;
constexpr double veryClose = 1e-5, closeEnough = 9e-4;
constexpr unsigned fewestSteps = 40, stepsBetweenLooks = 10;
constexpr double relaxation = 1.7;

using Vector = std::vector<double>;

class Splitting {
public:
  Splitting(const FlowGraph &graph, llvm::ArrayRef<double> capacity,
            llvm::ArrayRef<SourceFlow> sources)
      : arcs(graph.arcs.data(), graph.arcs.size()), capacity(capacity), sources(sources),
        k(sources.size()), n(graph.size()), m(graph.arcs.size()) {}
  bool run(llvm::function_ref<FlowWorth(const FlowSolution &)> consider);

private:
  bool invertLaplacian();
  void start();
  void balance(FlowSolution *shown);
  void turnRound(FlowSolution &shown) const;
  void fit();
  void limitLoads();
  [[nodiscard]] double leastTime() const;
  void changeRho(double times);

  llvm::ArrayRef<FlowGraph::Arc> arcs;
  llvm::ArrayRef<double> capacity;
  llvm::ArrayRef<SourceFlow> sources;
  size_t k, n, m;
  Vector inverse;        ///< of the Laplacian without vertex 0's row and column, which are 0
  Vector g, u;           ///< by arc, then by source; between balance() and fit(), u holds v
  Vector over;           ///< by arc
  Vector total, active;  ///< by arc: of what fit() left above zero, the sum of v and the number
  Vector rest, heights;  ///< by vertex, then by source
  std::vector<int> back; ///< by arc: one that leads the other way, or -1
  double time = 0, rho = 0;
};
} // namespace

bool Splitting::invertLaplacian() {
  Vector factor(n * n);
  for (size_t a = 0; a < m; ++a) {
    size_t from = arcs[a].from, to = arcs[a].to;
    factor[from * n + from] += capacity[a];
    factor[to * n + to] += capacity[a];
    factor[from * n + to] -= capacity[a];
    factor[to * n + from] -= capacity[a];
  }
  for (size_t v = 0; v < n; ++v)
    factor[v] = factor[v * n] = 0;
  factor[0] = 1;
  // L = C C', C in the lower triangle.
  for (size_t p = 0; p < n; ++p) {
    double pivot = factor[p * n + p];
    for (size_t j = 0; j < p; ++j)
      pivot -= factor[p * n + j] * factor[p * n + j];
    if (!(pivot > 1e-13))
      return false; // the network falls apart
    factor[p * n + p] = std::sqrt(pivot);
    for (size_t i = p + 1; i < n; ++i) {
      double sum = factor[i * n + p];
      for (size_t j = 0; j < p; ++j)
        sum -= factor[i * n + j] * factor[p * n + j];
      factor[i * n + p] = sum / factor[p * n + p];
    }
  }
  inverse.assign(n * n, 0);
  for (size_t column = 1; column < n; ++column) {
    double *x = inverse.data() + column * n; // symmetric
    x[column] = 1;
    for (size_t i = column; i < n; ++i) {
      for (size_t j = column; j < i; ++j)
        x[i] -= factor[i * n + j] * x[j];
      x[i] /= factor[i * n + i];
    }
    for (size_t i = n; i-- > 1;) {
      for (size_t j = i + 1; j < n; ++j)
        x[i] -= factor[j * n + i] * x[j];
      x[i] /= factor[i * n + i];
    }
  }
  return true;
}

/// Everything by fewest links.
void Splitting::start() {
  std::vector<std::vector<unsigned>> out(n);
  for (unsigned a = 0; a < m; ++a)
    out[arcs[a].from].push_back(a);
  for (size_t s = 0; s < k; ++s) {
    std::vector<int> via(n, -1);
    std::vector<unsigned> reached = {sources[s].from};
    for (size_t i = 0; i < reached.size(); ++i)
      for (unsigned a : out[reached[i]])
        if (unsigned to = arcs[a].to; to != sources[s].from && via[to] < 0) {
          via[to] = int(a);
          reached.push_back(to);
        }
    Vector passes = sources[s].wanted;
    for (size_t i = reached.size(); i-- > 1;) {
      unsigned v = reached[i];
      g[size_t(via[v]) * k + s] = passes[v];
      passes[arcs[via[v]].from] += passes[v];
    }
  }
  double all = 0;
  for (size_t a = 0; a < m; ++a) {
    double load = 0;
    for (size_t s = 0; s < k; ++s)
      load += g[a * k + s];
    time = std::max(time, load / capacity[a]);
    all += capacity[a];
  }
  rho = double(k) / (time * all); // `over` of about the flows' size
}

/// The first half of a step. `shown` gets f.
void Splitting::balance(FlowSolution *shown) {
  std::fill(rest.begin(), rest.end(), 0);
  for (size_t s = 0; s < k; ++s)
    for (size_t v = 0; v < n; ++v) {
      rest[v * k + s] -= sources[s].wanted[v];
      rest[sources[s].from * k + s] += sources[s].wanted[v];
    }
  for (size_t a = 0; a < m; ++a) {
    double *to = rest.data() + arcs[a].to * k, *from = rest.data() + arcs[a].from * k;
    const double *ga = g.data() + a * k, *ua = u.data() + a * k;
    for (size_t s = 0; s < k; ++s) {
      double flow = ga[s] - ua[s];
      to[s] += flow;
      from[s] -= flow;
    }
  }
  std::fill(heights.begin(), heights.end(), 0);
  for (size_t v = 1; v < n; ++v) {
    double *height = heights.data() + v * k;
    for (size_t w = 1; w < n; ++w) {
      double times = inverse[v * n + w];
      const double *lack = rest.data() + w * k;
      for (size_t s = 0; s < k; ++s)
        height[s] += times * lack[s];
    }
  }
  for (size_t a = 0; a < m; ++a) {
    const double *to = heights.data() + arcs[a].to * k, *from = heights.data() + arcs[a].from * k;
    const double *ga = g.data() + a * k;
    double *ua = u.data() + a * k;
    for (size_t s = 0; s < k; ++s) {
      double flow = ga[s] - ua[s] - capacity[a] * (to[s] - from[s]);
      ua[s] += relaxation * flow + (1 - relaxation) * ga[s];
      if (shown)
        shown->flows[s * m + a] = flow;
    }
  }
}

/// Of what exceeds `over` at each arc: how many flows, and their sum.
void Splitting::limitLoads() {
  constexpr size_t lanes = 4; // sums that a compiler may run side by side
  for (size_t a = 0; a < m; ++a) {
    const double *va = u.data() + a * k;
    double limit = capacity[a] * over[a], sum[lanes] = {}, count[lanes] = {};
    size_t s = 0;
    for (; s + lanes <= k; s += lanes)
      for (size_t l = 0; l < lanes; ++l) {
        bool above = va[s + l] > limit;
        sum[l] += above ? va[s + l] : 0;
        count[l] += above ? 1 : 0;
      }
    for (; s < k; ++s)
      if (va[s] > limit) {
        sum[0] += va[s];
        count[0] += 1;
      }
    total[a] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    active[a] = (count[0] + count[1]) + (count[2] + count[3]);
  }
}

/// The T at which the arcs whose flows would take longer give up 1 / rho together. Newton's method,
/// from below: what they give up is convex.
double Splitting::leastTime() const {
  double from = 0;
  for (unsigned round = 0; round < 64; ++round) {
    double given = -1 / rho, slope = 0;
    for (size_t a = 0; a < m; ++a)
      if (active[a] > 0 && total[a] > capacity[a] * from) {
        given += (total[a] - capacity[a] * from) / active[a];
        slope += capacity[a] / active[a];
      }
    if (!(slope > 0) || !(given > 1e-12 / rho))
      break;
    from += given / slope;
  }
  return from;
}

/// The second half. Which flows are above zero depends on `over`, and `over` on those: the set of
/// the step before is nearly right.
void Splitting::fit() {
  for (unsigned round = 0; round < 30; ++round) {
    limitLoads();
    time = leastTime();
    double change = 0;
    for (size_t a = 0; a < m; ++a) {
      double now = active[a] > 0 ? std::max(0.0, (total[a] / capacity[a] - time) / active[a]) : 0;
      change = std::max(change, std::fabs(now - over[a]));
      over[a] = now;
    }
    if (!(change > 1e-6 * time / double(k)))
      break;
  }
  for (size_t a = 0; a < m; ++a) {
    double *ga = g.data() + a * k, *va = u.data() + a * k;
    double limit = capacity[a] * over[a];
    for (size_t s = 0; s < k; ++s) {
      double kept = std::max(0.0, va[s] - limit);
      ga[s] = kept;
      va[s] -= kept;
    }
  }
}

/// Less than nothing one way is more than nothing the other way; where there is none, nothing.
void Splitting::turnRound(FlowSolution &shown) const {
  for (size_t s = 0; s < k; ++s) {
    double *flow = shown.flows.data() + s * m;
    for (size_t a = 0; a < m; ++a) {
      double net = flow[a] - (back[a] < 0 ? 0 : flow[back[a]]);
      flow[a] = std::max(0.0, net);
      if (back[a] >= 0)
        flow[back[a]] = std::max(0.0, -net);
    }
  }
}

void Splitting::changeRho(double times) {
  rho *= times;
  for (double &one : u)
    one /= times;
  for (double &one : over)
    one /= times;
}

bool Splitting::run(llvm::function_ref<FlowWorth(const FlowSolution &)> consider) {
  if (k == 0 || m == 0 || k * m > maxFlows || !invertLaplacian())
    return false;
  g.resize(k * m);
  u.resize(k * m);
  over.resize(m);
  total.resize(m);
  active.resize(m);
  rest.resize(n * k);
  heights.resize(n * k);
  std::map<std::pair<unsigned, unsigned>, int> arcOf;
  for (unsigned a = 0; a < m; ++a)
    arcOf.try_emplace({arcs[a].from, arcs[a].to}, int(a));
  for (const FlowGraph::Arc &arc : arcs) {
    auto it = arcOf.find({arc.to, arc.from});
    back.push_back(it == arcOf.end() ? -1 : it->second);
  }
  start();
  FlowSolution now{Vector(k * m), Vector(m)}, average = now;
  double stepWork = double(k) * (double(n) * double(n) + 12.0 * double(m)), work = 0;
  double bound = 0, routed = std::numeric_limits<double>::infinity(), first = rho;
  auto look = [&](const FlowSolution &shown) {
    FlowWorth worth = consider(shown);
    bound = std::max(bound, worth.bound);
    routed = std::min(routed, worth.routed);
  };
  for (unsigned step = 1, looks = 0; step <= fewestSteps || work < maxWork; ++step) {
    bool shows = step % stepsBetweenLooks == 0;
    balance(shows ? &now : nullptr);
    fit();
    if (!std::isfinite(time))
      break;
    work += stepWork;
    double fresh = std::max(0.03, 2.0 / (step + 1));
    for (size_t a = 0; a < m; ++a) {
      now.prices[a] = rho * over[a];
      average.prices[a] += fresh * (now.prices[a] - average.prices[a]);
    }
    if (!shows)
      continue;
    turnRound(now);
    fresh = std::max(0.2, 2.0 / (++looks + 1));
    for (size_t i = 0; i < now.flows.size(); ++i)
      average.flows[i] += fresh * (now.flows[i] - average.flows[i]);
    look(now);
    look(average);
    double gap = routed / bound - 1;
    if (gap < veryClose || (gap < closeEnough && work > softWork))
      break;
    // Whichever side is farther from T should move faster.
    double middle = std::min(std::max(time, bound), routed);
    double above = routed / middle - 1, below = 1 - bound / middle;
    constexpr double change = 1.4, much = 3;
    if (looks % 2 == 0) {
      if (above > much * below && rho < first * 1e4)
        changeRho(change);
      else if (below > much * above && rho > first * 1e-4)
        changeRho(1 / change);
    }
  }
  return true;
}

bool topology::splitFlows(const FlowGraph &graph, llvm::ArrayRef<double> capacity,
                          llvm::ArrayRef<SourceFlow> sources,
                          llvm::function_ref<FlowWorth(const FlowSolution &)> consider) {
  return Splitting(graph, capacity, sources).run(consider);
}

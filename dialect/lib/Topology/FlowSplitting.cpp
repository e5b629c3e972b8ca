//===- FlowSplitting.cpp --------------------------------------------------===//
//
// The program of InteriorPoint.cpp, for g(k, a) and f(k, a), equal at the end:
//   g is not negative, and what passes an arc fits:  sum over k of g(k, a) <= capacity(a) T
//   f arrives:  at each vertex but k's own, what arrives less what leaves = what is wanted there
// A step goes to the nearest f, then to the nearest g and T, where T has its cost:
//   f = the balanced flows nearest to g - u       (one Laplacian of the network, for all sources)
//   v = u + 1.6 f - 0.6 g
//   g, T = minimum of  T + rho/2 |v - g|^2:  g(k, a) = max(0, v(k, a) - limit(a))
//   u = v - g = min(v(k, a), limit(a)),  where limit(a) = capacity(a) over(a)
// with distances divided by capacities, so that wide arcs may change more. `over` is not negative,
// zero where an arc has room, and the sum of capacity(a) over(a) is 1 / rho: rho over(a) are prices
// that give a bound in each step; f, with what is negative turned round, is a routing. Both swing
// round the optimum, and averages of them are nearer. v alone is stored, by arc, then by source, in
// single precision: what it rounds is less than the gap that ends the search, and is not carried
// on, since each f is balanced anew.
//
//===----------------------------------------------------------------------===//
#include "FlowSplitting.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

// The same operations in the same order on wider registers: the same bits.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) &&                 \
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

namespace {
/// Flows, in number. (180 ranks in a full mesh.)
constexpr size_t maxFlows = size_t(1) << 23;
/// How close bound and routing must be to end the search, once so much work is done; behind the
/// last, anything ends it. (3 10^9 multiplications take about a second: a bound for 64 ranks is to
/// take no longer, and says its gap.)
constexpr struct {
  double work, gap;
} enough[] = {{0, 1e-5},
              {5e8, 9e-4},
              {1.5e9, 1.9e-3},
              {2.4e9, 1e-2},
              {1e10, std::numeric_limits<double>::max()}};
constexpr unsigned fewestSteps = 40, stepsBetweenLooks = 20;
constexpr float relaxation = 1.6F;

using Vector = std::vector<double>;
using Singles = std::vector<float>;

/// Sources side by side. What is beyond the last is zero and stays so.
constexpr size_t width = 8;
using Lanes = float __attribute__((vector_size(width * sizeof(float))));
struct __attribute__((packed, may_alias)) Packed {
  Lanes x;
};
const Packed &lanes(const float *at) { return *reinterpret_cast<const Packed *>(at); }
Packed &lanes(float *at) { return *reinterpret_cast<Packed *>(at); }
float sum(const Lanes &x) {
  return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

class Splitting {
public:
  Splitting(const FlowGraph &graph, llvm::ArrayRef<double> capacity,
            llvm::ArrayRef<SourceFlow> sources)
      : arcs(graph.arcs.data(), graph.arcs.size()), capacity(capacity), sources(sources),
        k(sources.size()), n(graph.size()), m(graph.arcs.size()),
        row((k + width - 1) / width * width) {}
  std::optional<FlowSolution> run(llvm::function_ref<double(llvm::ArrayRef<double>)> boundOf);

private:
  bool invertLaplacian();
  void start(double leastTime);
  void balance();
  void advance(float *shown);
  void countAbove();
  void fit();
  [[nodiscard]] double leastTime();
  [[nodiscard]] double timeOf(const Singles &flows) const;
  [[nodiscard]] Vector turnRound(const Singles &flows) const;
  void changeRho(float times);

  llvm::ArrayRef<FlowGraph::Arc> arcs;
  llvm::ArrayRef<double> capacity;
  llvm::ArrayRef<SourceFlow> sources;
  size_t k, n, m, row;   ///< row: k and what fills the lanes
  Vector inverse;        ///< of the Laplacian without vertex 0's row and column, which are 0
  Singles v;             ///< by arc, then by source
  Singles limit;         ///< by arc
  Vector over;           ///< by arc
  Vector perActive;      ///< by arc: 1 / active
  Singles total, active; ///< by arc: of what v has above `limit`, the sum and the number
  Singles wanted, rest, heights; ///< by vertex, then by source
  std::vector<int> back;         ///< by arc: one that leads the other way, or -1
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

/// Everything by fewest links. `leastTime`: a bound of the time.
void Splitting::start(double leastTime) {
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
      unsigned end = reached[i];
      v[size_t(via[end]) * row + s] = float(passes[end]);
      passes[arcs[via[end]].from] += passes[end];
    }
    for (size_t end = 0; end < n; ++end) {
      wanted[end * row + s] += float(sources[s].wanted[end]);
      wanted[sources[s].from * row + s] -= float(sources[s].wanted[end]);
    }
  }
  double all = 0;
  for (double one : capacity)
    all += one;
  rho = 2 * double(k) / (leastTime * all); // `over` of about the flows' size
}

/// What g - u lacks at each vertex, and the heights from which it would flow there.
WIDE void Splitting::balance() {
  for (size_t i = 0; i < rest.size(); ++i)
    rest[i] = -wanted[i];
  for (size_t a = 0; a < m; ++a) {
    float *to = rest.data() + arcs[a].to * row, *from = rest.data() + arcs[a].from * row;
    const float *va = v.data() + a * row;
    const Lanes most = Lanes{} + limit[a];
    for (size_t s = 0; s < row; s += width) {
      Lanes x = lanes(va + s).x, flow = (x > most ? x - most : most - x) - most;
      lanes(to + s).x += flow;
      lanes(from + s).x -= flow;
    }
  }
  for (size_t p = 1; p < n; ++p) {
    float *height = heights.data() + p * row;
    std::fill(height, height + row, 0.0F);
    for (size_t q = 1; q < n; ++q) {
      const Lanes times = Lanes{} + float(inverse[p * n + q]);
      const float *lack = rest.data() + q * row;
      for (size_t s = 0; s < row; s += width)
        lanes(height + s).x += times * lanes(lack + s).x;
    }
  }
}

/// From f, which `shown` gets, to v.
WIDE void Splitting::advance(float *shown) {
  for (size_t a = 0; a < m; ++a) {
    const float *to = heights.data() + arcs[a].to * row,
                *from = heights.data() + arcs[a].from * row;
    float *va = v.data() + a * row;
    const Lanes most = Lanes{} + limit[a], wide = Lanes{} + float(capacity[a]);
    for (size_t s = 0; s < row; s += width) {
      Lanes x = lanes(va + s).x, u = x < most ? x : most, g = x - u;
      Lanes flow = g - u - wide * (lanes(to + s).x - lanes(from + s).x);
      if (shown)
        lanes(shown + a * row + s).x = flow;
      lanes(va + s).x = u + relaxation * flow + (1 - relaxation) * g;
    }
  }
}

/// Where nothing is above the limit, the largest stands for those that will be.
WIDE void Splitting::countAbove() {
  for (size_t a = 0; a < m; ++a) {
    const float *va = v.data() + a * row;
    const Lanes most = Lanes{} + limit[a], none = {}, one = none + 1.0F;
    Lanes sums = none, count = none, largest = none;
    for (size_t s = 0; s < row; s += width) {
      Lanes x = lanes(va + s).x;
      sums += x > most ? x : none;
      count += x > most ? one : none;
      largest = x > largest ? x : largest;
    }
    total[a] = sum(sums);
    active[a] = sum(count);
    for (size_t l = 0; active[a] == 0 && l < width; ++l)
      total[a] = std::max(total[a], largest[l]);
    if (active[a] == 0 && total[a] > 0)
      active[a] = 1;
  }
}

/// The T at which the arcs whose flows would take longer give up 1 / rho together. Newton's method
/// from the step before; what they give up is convex, so from its first round on T comes from
/// below.
double Splitting::leastTime() {
  for (size_t a = 0; a < m; ++a)
    perActive[a] = active[a] > 0 ? 1.0 / active[a] : 0;
  double from = std::isfinite(time) ? time : 0;
  for (unsigned round = 0; round < 64; ++round) {
    double given = -1 / rho, slope = 0;
    for (size_t a = 0; a < m; ++a)
      if (double excess = total[a] - capacity[a] * from; excess > 0) {
        given += excess * perActive[a];
        slope += capacity[a] * perActive[a];
      }
    if (std::abs(given) <= 1e-12 / rho || (from == 0 && !(given > 0)))
      break;
    from = slope > 0 ? std::max(0.0, from + given / slope) : 0; // none takes longer: far beyond it
  }
  return from;
}

/// Which flows are above zero depends on `over`, and `over` on those: the set of the step before is
/// nearly right.
void Splitting::fit() {
  constexpr unsigned rounds = 2;
  for (unsigned round = 0; round < rounds; ++round) {
    countAbove();
    time = leastTime();
    for (size_t a = 0; a < m; ++a) {
      over[a] = active[a] > 0 ? std::max(0.0, (total[a] / capacity[a] - time) / active[a]) : 0;
      limit[a] = float(capacity[a] * over[a]);
    }
  }
}

/// Less than nothing one way is more than nothing the other way; where there is none, nothing. How
/// long that takes:
WIDE double Splitting::timeOf(const Singles &flows) const {
  double most = 0;
  for (size_t a = 0; a < m; ++a) {
    const float *there = flows.data() + a * row;
    const float *again = back[a] < 0 ? nullptr : flows.data() + size_t(back[a]) * row;
    Lanes load = {}, none = {};
    for (size_t s = 0; s < row; s += width) {
      Lanes net = lanes(there + s).x - (again ? lanes(again + s).x : none);
      load += net > none ? net : none;
    }
    most = std::max(most, sum(load) / capacity[a]);
  }
  return most;
}

/// And the flows, by source, then by arc.
Vector Splitting::turnRound(const Singles &flows) const {
  Vector result(k * m);
  for (size_t s = 0; s < k; ++s)
    for (size_t a = 0; a < m; ++a) {
      double net = flows[a * row + s];
      if (back[a] >= 0)
        net -= flows[size_t(back[a]) * row + s];
      result[s * m + a] = std::max(0.0, net);
    }
  return result;
}

void Splitting::changeRho(float times) {
  rho *= times;
  for (size_t a = 0; a < m; ++a) {
    for (size_t s = 0; s < row; ++s) {
      float &x = v[a * row + s], u = std::min(x, limit[a]);
      x = (x - u) + u / times;
    }
    over[a] /= times;
    limit[a] = float(capacity[a] * over[a]);
  }
}

std::optional<FlowSolution>
Splitting::run(llvm::function_ref<double(llvm::ArrayRef<double>)> boundOf) {
  if (k == 0 || m == 0 || k * m > maxFlows || !invertLaplacian())
    return std::nullopt;
  v.resize(m * row);
  over.resize(m);
  perActive.resize(m);
  for (Singles *one : {&limit, &total, &active})
    one->resize(m);
  for (Singles *one : {&wanted, &rest, &heights})
    one->resize(n * row);
  std::map<std::pair<unsigned, unsigned>, int> arcOf;
  for (unsigned a = 0; a < m; ++a)
    arcOf.try_emplace({arcs[a].from, arcs[a].to}, int(a));
  // One arc each way cancel; of several side by side, none takes what another has taken.
  for (unsigned a = 0; a < m; ++a) {
    auto there = arcOf.find({arcs[a].from, arcs[a].to}),
         again = arcOf.find({arcs[a].to, arcs[a].from});
    back.push_back(there->second == int(a) && again != arcOf.end() ? again->second : -1);
  }
  start(boundOf(Vector(m, 1.0)));
  Singles now(m * row), average = now, routing;
  Vector prices(m), averagePrices(m), best;
  double stepWork = double(k) * (double(n) * double(n) + 12.0 * double(m)), work = 0;
  double bound = 0, routed = std::numeric_limits<double>::infinity(), first = rho;
  auto price = [&](const Vector &shown) {
    if (double one = boundOf(shown); one > bound) {
      bound = one;
      best = shown;
    }
  };
  auto route = [&](const Singles &shown) {
    if (double one = timeOf(shown); one < routed) {
      routed = one;
      routing = shown;
    }
  };
  for (unsigned step = 1, looks = 0;; ++step) {
    bool shows = step % stepsBetweenLooks == 0;
    balance();
    advance(shows ? now.data() : nullptr);
    fit();
    if (!std::isfinite(time))
      break;
    work += stepWork;
    double fresh = std::max(0.015, 2.0 / (step + 1));
    for (size_t a = 0; a < m; ++a) {
      prices[a] = rho * over[a];
      averagePrices[a] += fresh * (prices[a] - averagePrices[a]);
    }
    if (!shows)
      continue;
    auto share = float(std::max(0.25, 2.0 / (++looks + 1)));
    for (size_t i = 0; i < now.size(); ++i)
      average[i] += share * (now[i] - average[i]);
    price(prices);
    price(averagePrices);
    route(now);
    route(average);
    double gap = routed / bound - 1;
    if (step >= fewestSteps &&
        llvm::any_of(enough, [&](const auto &one) { return work >= one.work && gap <= one.gap; }))
      break;
    // Whichever side is farther from T should move faster.
    double middle = std::min(std::max(time, bound), routed);
    double above = routed / middle - 1, below = 1 - bound / middle;
    constexpr float change = 1.4F;
    constexpr double much = 2;
    if (above > much * below && rho < first * 1e4)
      changeRho(change);
    else if (below > much * above && rho > first * 1e-4)
      changeRho(1 / change);
  }
  if (best.empty() || routing.empty())
    return std::nullopt;
  return FlowSolution{turnRound(routing), std::move(best)};
}

std::optional<FlowSolution>
topology::splitFlows(const FlowGraph &graph, llvm::ArrayRef<double> capacity,
                     llvm::ArrayRef<SourceFlow> sources,
                     llvm::function_ref<double(llvm::ArrayRef<double>)> boundOf) {
  return Splitting(graph, capacity, sources).run(boundOf);
}

//===- InteriorPoint.cpp --------------------------------------------------===//
//
// The program: flows f(k, a) of each source k, an arc's spare w(a) and the time T, none negative.
//   minimise T
//   for each k, and each vertex but k's own:  what arrives less what leaves = what is wanted there
//   for each a:  sum over k of f(k, a) + w(a) - capacity(a) T = 0
// Its duals are heights y(k, v) and costs p(a); -p are the prices.
//
// A step solves (A D A') dy = rhs, D diagonal. Sorted by source that is a matrix L(k) = B D(k) B'
// of vertices squared for each, and one border of arcs squared. Eliminating the first leaves
//   S = sum over k of (D(k) - D(k) B' L(k)^-1 B D(k)) + D(w) + D(T) capacity capacity'.
//
//===----------------------------------------------------------------------===//
#include "InteriorPoint.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
/// Multiplications in one step, and steps. (64 sources in an 8 x 8 torus: 25 million, 14 ms; 10 to
/// 40 steps.)
constexpr double maxWork = 6e7;
constexpr unsigned maxSteps = 60;
/// Where to stop: what flows times what they cost too much, over the time; and what the rows lack.
constexpr double closeEnough = 1e-9;

using Vector = std::vector<double>;

/// Values at all columns of the program.
struct Columns {
  Vector flow;  ///< by source, then by arc
  Vector spare; ///< by arc
  double time = 0;
};
/// Values at all rows.
struct Rows {
  Vector balance; ///< by source, then by vertex; 0 at the source itself
  Vector arc;
};

class InteriorPoint {
public:
  InteriorPoint(const FlowGraph &graph, llvm::ArrayRef<double> capacity,
                llvm::ArrayRef<SourceFlow> sources)
      : arcs(graph.arcs.data(), graph.arcs.size()), capacity(capacity), sources(sources),
        k(sources.size()), n(graph.size()), m(graph.arcs.size()) {}
  std::optional<FlowSolution> run();

private:
  Columns columns(double value) const { return {Vector(k * m, value), Vector(m, value), value}; }
  Rows multiply(const Columns &x) const;
  Columns transposed(const Rows &y) const;
  bool factor(const Columns &weights);
  Rows solve(const Rows &right) const;
  Rows solveOnce(Rows right) const;
  /// f(every column's entries of the arguments).
  template <typename F, typename... C> static void each(F f, C &...columns) {
    auto at = [&](auto member, size_t i) { f((columns.*member)[i]...); };
    size_t flows = std::get<0>(std::tie(columns...)).flow.size();
    size_t spares = std::get<0>(std::tie(columns...)).spare.size();
    for (size_t i = 0; i < flows; ++i)
      at(&Columns::flow, i);
    for (size_t i = 0; i < spares; ++i)
      at(&Columns::spare, i);
    f(columns.time...);
  }

  llvm::ArrayRef<FlowGraph::Arc> arcs;
  llvm::ArrayRef<double> capacity;
  llvm::ArrayRef<SourceFlow> sources;
  size_t k, n, m;
  Columns d;      ///< of the last factor()
  Vector inverse; ///< L(k)^-1, one after the other; row and column of the source are 0
  Vector border;  ///< S = U'U, U in the upper triangle
};
} // namespace

Rows InteriorPoint::multiply(const Columns &x) const {
  Rows y{Vector(k * n), Vector(m)};
  for (size_t s = 0; s < k; ++s) {
    for (size_t a = 0; a < m; ++a) {
      double flow = x.flow[s * m + a];
      y.balance[s * n + arcs[a].to] += flow;
      y.balance[s * n + arcs[a].from] -= flow;
      y.arc[a] += flow;
    }
    y.balance[s * n + sources[s].from] = 0;
  }
  for (size_t a = 0; a < m; ++a)
    y.arc[a] += x.spare[a] - capacity[a] * x.time;
  return y;
}

Columns InteriorPoint::transposed(const Rows &y) const {
  Columns x = columns(0);
  for (size_t s = 0; s < k; ++s)
    for (size_t a = 0; a < m; ++a)
      x.flow[s * m + a] =
          y.balance[s * n + arcs[a].to] - y.balance[s * n + arcs[a].from] + y.arc[a];
  for (size_t a = 0; a < m; ++a) {
    x.spare[a] = y.arc[a];
    x.time -= capacity[a] * y.arc[a];
  }
  return x;
}

/// Inverts a symmetric positive matrix in place (Gauss and Jordan, no pivoting). A row that
/// vanishes, of a vertex that no arc joins to the source, gets an inverse of zero.
static void invert(double *matrix, size_t n) {
  double widest = 0;
  for (size_t i = 0; i < n; ++i)
    widest = std::max(widest, matrix[i * n + i]);
  for (size_t p = 0; p < n; ++p) {
    double *row = matrix + p * n;
    if (!(row[p] > widest * 1e-20)) {
      for (size_t j = 0; j < n; ++j)
        row[j] = matrix[j * n + p] = 0;
      continue;
    }
    double scale = 1 / row[p];
    row[p] = 1;
    for (size_t j = 0; j < n; ++j)
      row[j] *= scale;
    for (size_t i = 0; i < n; ++i) {
      double *other = matrix + i * n, times = other[p];
      if (i == p || times == 0)
        continue;
      other[p] = 0;
      for (size_t j = 0; j < n; ++j)
        other[j] -= times * row[j];
    }
  }
}

bool InteriorPoint::factor(const Columns &weights) {
  d = weights;
  inverse.assign(k * n * n, 0);
  border.assign(m * m, 0);
  Vector product(n * m);
  for (size_t s = 0; s < k; ++s) {
    double *l = inverse.data() + s * n * n;
    const double *ds = d.flow.data() + s * m;
    size_t own = sources[s].from;
    for (size_t a = 0; a < m; ++a) {
      size_t from = arcs[a].from, to = arcs[a].to;
      l[from * n + from] += ds[a];
      l[to * n + to] += ds[a];
      l[from * n + to] -= ds[a];
      l[to * n + from] -= ds[a];
    }
    for (size_t v = 0; v < n; ++v)
      l[own * n + v] = l[v * n + own] = 0;
    invert(l, n);
    for (size_t v = 0; v < n; ++v)
      for (size_t a = 0; a < m; ++a)
        product[v * m + a] = ds[a] * (l[v * n + arcs[a].to] - l[v * n + arcs[a].from]);
    for (size_t a = 0; a < m; ++a) {
      const double *to = product.data() + arcs[a].to * m, *from = product.data() + arcs[a].from * m;
      double *row = border.data() + a * m, times = ds[a];
      for (size_t b = a; b < m; ++b)
        row[b] -= times * (to[b] - from[b]);
      row[a] += times;
    }
  }
  for (size_t a = 0; a < m; ++a) {
    border[a * m + a] += d.spare[a];
    for (size_t b = a; b < m; ++b)
      border[a * m + b] += d.time * capacity[a] * capacity[b];
  }
  double widest = 0;
  for (size_t a = 0; a < m; ++a)
    widest = std::max(widest, border[a * m + a]);
  for (size_t p = 0; p < m; ++p) {
    double *row = border.data() + p * m;
    if (!std::isfinite(row[p]))
      return false;
    // What rounding has eaten up decides nothing any more.
    double root = row[p] > widest * 1e-30 ? std::sqrt(row[p]) : 1e64;
    for (size_t b = p; b < m; ++b)
      row[b] /= root;
    row[p] = root;
    for (size_t a = p + 1; a < m; ++a) {
      double times = row[a], *other = border.data() + a * m;
      if (times != 0)
        for (size_t b = a; b < m; ++b)
          other[b] -= times * row[b];
    }
  }
  return true;
}

Rows InteriorPoint::solveOnce(Rows right) const {
  Rows y{Vector(k * n), std::move(right.arc)};
  auto applyInverse = [&](size_t s, const double *in, double *out) {
    for (size_t v = 0; v < n; ++v) {
      const double *row = inverse.data() + (s * n + v) * n;
      double sum = 0;
      for (size_t u = 0; u < n; ++u)
        sum += row[u] * in[u];
      out[v] = sum;
    }
  };
  for (size_t s = 0; s < k; ++s) {
    double *heights = y.balance.data() + s * n;
    applyInverse(s, right.balance.data() + s * n, heights);
    for (size_t a = 0; a < m; ++a)
      y.arc[a] -= d.flow[s * m + a] * (heights[arcs[a].to] - heights[arcs[a].from]);
  }
  for (size_t a = 0; a < m; ++a) { // U' first
    y.arc[a] /= border[a * m + a];
    for (size_t b = a + 1; b < m; ++b)
      y.arc[b] -= border[a * m + b] * y.arc[a];
  }
  for (size_t a = m; a-- > 0;) {
    for (size_t b = a + 1; b < m; ++b)
      y.arc[a] -= border[a * m + b] * y.arc[b];
    y.arc[a] /= border[a * m + a];
  }
  Vector rest(n);
  for (size_t s = 0; s < k; ++s) {
    std::copy_n(right.balance.data() + s * n, n, rest.begin());
    for (size_t a = 0; a < m; ++a) {
      double flow = d.flow[s * m + a] * y.arc[a];
      rest[arcs[a].to] -= flow;
      rest[arcs[a].from] += flow;
    }
    rest[sources[s].from] = 0;
    applyInverse(s, rest.data(), y.balance.data() + s * n);
  }
  return y;
}

static void add(Rows &to, const Rows &what, double times) {
  for (size_t i = 0; i < to.balance.size(); ++i)
    to.balance[i] += times * what.balance[i];
  for (size_t i = 0; i < to.arc.size(); ++i)
    to.arc[i] += times * what.arc[i];
}

/// Solves, and solves again for what rounding has left: near the end weights differ by 10^20.
Rows InteriorPoint::solve(const Rows &right) const {
  Rows y = solveOnce(right);
  for (unsigned again = 0; again < 2; ++again) {
    Columns product = transposed(y);
    each([](double &p, double d) { p *= d; }, product, d);
    Rows rest = right;
    add(rest, multiply(product), -1);
    add(y, solveOnce(std::move(rest)), 1);
  }
  return y;
}

std::optional<FlowSolution> InteriorPoint::run() {
  double work =
      double(k) * (double(n) * n * n + 3.0 * n * m + double(m) * m / 2) + double(m) * m * m / 6;
  if (work > maxWork)
    return std::nullopt;
  size_t all = k * m + m + 1;
  Rows wanted{Vector(k * n), Vector(m)};
  for (size_t s = 0; s < k; ++s)
    std::copy(sources[s].wanted.begin(), sources[s].wanted.end(),
              wanted.balance.begin() + ptrdiff_t(s * n));

  // Mehrotra's start: the shortest solutions of the equations, moved inside.
  if (!factor(columns(1)))
    return std::nullopt;
  Columns x = transposed(solve(wanted)), cost = columns(0);
  cost.time = 1;
  Rows y = solve(multiply(cost));
  Columns z = transposed(y);
  each([](double &z, double c) { z = c - z; }, z, cost);
  auto shift = [&](Columns &values) {
    double least = 0;
    each([&](double v) { least = std::min(least, v); }, values);
    each([&](double &v) { v += -1.5 * least + 1e-8; }, values);
  };
  shift(x);
  shift(z);
  double product = 0, sumX = 0, sumZ = 0;
  each([&](double x, double z) { product += x * z, sumX += x, sumZ += z; }, x, z);
  double moveX = product / sumZ / 2, moveZ = product / sumX / 2;
  each([&](double &x, double &z) { x += moveX, z += moveZ; }, x, z);

  FlowSolution solution;
  double least = std::numeric_limits<double>::infinity();
  unsigned best = 0;
  for (unsigned step = 0; step < maxSteps; ++step) {
    Rows lacks = wanted;
    add(lacks, multiply(x), -1);
    Columns off = transposed(y);
    double gap = 0;
    each(
        [&](double &off, double c, double x, double z) {
          off = c - off - z;
          gap += x * z;
        },
        off, cost, x, z);
    double mean = gap / double(all);
    if (!std::isfinite(gap))
      return std::nullopt;
    // The last steps can lose more to rounding than they gain: the best one counts.
    double fault = gap / x.time;
    for (const Vector *part : {&lacks.balance, &lacks.arc})
      for (double lack : *part)
        fault = std::max(fault, std::fabs(lack));
    if (fault < least) {
      least = fault;
      best = step;
      solution = {x.flow, y.arc};
    }
    if (fault < closeEnough || (step > best + 2 && least < 1e-6))
      break;
    Columns weights = x;
    each([](double &w, double z) { w /= z; }, weights, z);
    if (!factor(weights))
      break;
    // Twice with one factor: aiming at the boundary, then, knowing how far that goes, inside.
    Columns dx = columns(0), dz = dx, aim = dx;
    double stepX = 1, stepZ = 1;
    auto direction = [&] {
      Columns rest = aim;
      each([](double &r, double w, double off, double z) { r = r / z - w * off; }, rest, weights,
           off, z);
      Rows right = lacks;
      add(right, multiply(rest), -1);
      Rows dy = solve(right);
      dz = transposed(dy);
      each([](double &dz, double off) { dz = off - dz; }, dz, off);
      dx = aim;
      each([](double &dx, double w, double z, double dz) { dx = dx / z - w * dz; }, dx, weights, z,
           dz);
      stepX = stepZ = 1;
      each(
          [&](double x, double dx, double z, double dz) {
            if (dx < 0)
              stepX = std::min(stepX, -x / dx);
            if (dz < 0)
              stepZ = std::min(stepZ, -z / dz);
          },
          x, dx, z, dz);
      return dy;
    };
    each([](double &aim, double x, double z) { aim = -x * z; }, aim, x, z);
    direction();
    double after = 0;
    each([&](double x, double dx, double z,
             double dz) { after += (x + stepX * dx) * (z + stepZ * dz); },
         x, dx, z, dz);
    double centre = std::pow(after / gap, 3) * mean;
    each([&](double &aim, double x, double z, double dx,
             double dz) { aim = centre - x * z - dx * dz; },
         aim, x, z, dx, dz);
    Rows dy = direction();
    constexpr double inside = 0.995;
    stepX = std::min(1.0, inside * stepX);
    stepZ = std::min(1.0, inside * stepZ);
    if (!(std::max(stepX, stepZ) > 1e-6))
      break;
    each([&](double &x, double dx, double &z, double dz) { x += stepX * dx, z += stepZ * dz; }, x,
         dx, z, dz);
    add(y, dy, stepZ);
  }
  for (double &price : solution.prices)
    price = std::max(0.0, -price);
  return solution;
}

std::optional<FlowSolution> topology::solveFlows(const FlowGraph &graph,
                                                 llvm::ArrayRef<double> capacity,
                                                 llvm::ArrayRef<SourceFlow> sources) {
  return InteriorPoint(graph, capacity, sources).run();
}

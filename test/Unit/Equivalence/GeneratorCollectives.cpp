//===- GeneratorCollectives.cpp - What a random graph communicates ----------------===//
#include "Generator.h"

#include <algorithm>
#include <numeric>

using namespace equivalence;

Axes Generator::listed() {
  int64_t ranks = g.ranks(), size = 1 + below(ranks);
  while (ranks % size)
    --size;
  bool even = below(2) == 0;
  Axes axes;
  Shape all(ranks);
  std::iota(all.begin(), all.end(), 0);
  if (more(3))
    c.shuffle(all);
  for (int64_t rank : all) {
    bool isFull =
        even ? !axes.groups.empty() && int64_t(axes.groups.back().size()) == size : below(3) == 2;
    if (axes.groups.empty() || isFull)
      axes.groups.emplace_back();
    axes.groups.back().push_back(rank);
  }
  return axes;
}
Axes Generator::group() {
  work += times * g.ranks() * g.ranks();
  if (below(3) == 2 && mixed)
    return listed();
  Axes axes = any(grids);
  for (int64_t order = below(6); order > 0; --order)
    std::next_permutation(axes.begin(), axes.end());
  axes.resize(1 + below(axes.size()));
  return axes;
}
std::string Generator::reduction(const std::string &type, const std::string &order) {
  std::string accumulate = type;
  if (order.empty() && type != "f64" && below(2))
    accumulate = type == "ui8"    ? "ui16"
                 : type == "ui32" ? "ui64"
                 : type == "i64"  ? type
                 : type[0] == 'i' ? "i64"
                 : type == "f32"  ? "f64"
                                  : "f32";
  std::string kind = any<std::string>({"sum", "sum", "min", "max", "prod", "avg", "sum scale 0.7"});
  if (kind.size() > 4 && (type[0] == 'i' || type[0] == 'u'))
    kind = "sum";
  return kind + " accumulate " + accumulate + " order " +
         (order.empty() || below(2) == 0 ? "any" : order);
}

Tensor Generator::alike(const Tensor &a, bool future) {
  Axes axes = group();
  g.algorithm = "";
  g.async = future || below(3) == 2;
  int64_t kind = below(4);
  Tensor t = kind == 0   ? g.permute(a, "shift " + std::to_string(1 + below(4)), axes)
             : kind == 1 ? g.allReduce(a, reduction(a.element, ""), axes)
             : kind == 2 ? g.broadcast(a, below(smallest(axes)), axes)
                         : g.reduce(a, 0, reduction(a.element, ""), axes);
  return t.isFuture && !future ? g.await(t) : t; // started here and awaited here
}

std::pair<std::string, std::string> Generator::pairs(int64_t members) {
  Shape to(members);
  std::iota(to.begin(), to.end(), 0);
  c.shuffle(to);
  std::string forth, back;
  for (int64_t from = 0; from < members; ++from)
    if (more(4)) {
      std::string comma = forth.empty() ? "" : ", ";
      forth += comma + std::to_string(from) + " -> " + std::to_string(to[from]);
      back += comma + std::to_string(to[from]) + " -> " + std::to_string(from);
    }
  return {"pairs [" + forth + "]", "pairs [" + back + "]"};
}
std::pair<std::string, std::string> Generator::peers(int64_t members) {
  if (below(2))
    return pairs(members);
  int64_t by = below(9) - 4;
  return {"shift " + std::to_string(by), "shift " + std::to_string(-by)};
}

void Generator::oneSided(const Tensor &a) {
  std::vector<size_t> fitting;
  for (size_t i = 0; i < windows.size(); ++i)
    if (windows[i].window.shape == a.shape && windows[i].window.element == a.element &&
        (windows[i].pending.empty() || windows[i].pendingDepth == depth))
      fitting.push_back(i);
  bool again = !fitting.empty() && below(3);
  if (!again) {
    Axes axes = group();
    windows.push_back({g.window(a.shape, a.element, axes, a), axes, "", 0});
  }
  Shared &shared = windows[again ? any(fitting) : windows.size() - 1];
  settle(shared);
  const Axes &axes = shared.axes;
  // Signals order those of one map; what goes by another comes behind all of them (SPEC.md, W5).
  if (again)
    g.barrier(axes);
  auto [forth, back] = peers(smallest(axes));
  Tensor w = shared.window, result;
  for (int64_t round = 0, rounds = 1 + below(2); round < rounds; ++round) {
    int64_t dim = below(2), rows = a.shape[dim], begin = below(rows);
    Tensor part = g.slice(a, dim, begin, 1 + below(rows - begin));
    Shape at(2);
    at[dim] = below(rows - part.shape[dim] + 1);
    g.put(part, w, at, forth);
    int64_t signals = 1 + below(2);
    for (int64_t i = 0; i < signals; ++i)
      g.signal(w, forth);
    if (below(2))
      g.barrier(group());
    g.wait(w, forth, signals);
    bool own = below(3);
    result = g.get(w, {0, 0}, a.shape, own ? "" : peers(smallest(axes)).first);
    if (!own)
      g.barrier(axes);
    g.signal(w, back);
    if (round + 1 == rounds && below(3) == 2) {
      shared.pending = back;
      shared.pendingDepth = depth;
    } else {
      g.wait(w, back);
    }
  }
  values.push_back(result);
}

namespace {
enum Kind {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Permute,
  Broadcast,
  Reduce,
  Gather,
  Scatter,
  AllToAllV,
  AllToAllSized,
  numKinds
};
bool gathers(int64_t kind) { return kind == AllGather || kind == Gather; }
bool scatters(int64_t kind) { return kind == ReduceScatter || kind == Scatter; }
bool isRooted(int64_t kind) { return kind >= Broadcast && kind <= Scatter; }
} // namespace

std::string Generator::algorithm(int64_t kind) {
  std::vector<std::string> able = {"", "direct"};
  if (isRooted(kind))
    able.push_back("binomial");
  if (kind != AllToAllSized)
    able.push_back("ring");
  if (kind <= AllToAll)
    able.push_back("bruck");
  if (kind <= AllToAll || isRooted(kind))
    able.push_back("eager");
  return any(able);
}

bool Generator::cuts(const Axes &axes, int64_t extent) const {
  return ceilDiv(extent, smallest(axes)) == ceilDiv(extent, g.groupSize(axes));
}

void Generator::communicate(const Tensor &a) {
  hasCollective |= depth == 0;
  Axes axes = group();
  int64_t n = g.groupSize(axes), least = smallest(axes), dim = below(2), kind = below(numKinds);
  // Extents that make shards of as many rows as `a` has.
  int64_t fewest = (a.shape[dim] - 1) * n + 1, most = a.shape[dim] * least;
  bool oneSize = least == n, isLarge = a.count() * n > 5000;
  if ((gathers(kind) && (isLarge || most < fewest)) ||
      (scatters(kind) && !cuts(axes, a.shape[dim])) ||
      ((kind == AllToAll || kind == AllToAllSized) && (!oneSize || a.shape[dim] % n)) ||
      (kind == AllToAll && isLarge) || (kind == AllToAllV && !oneSize))
    kind = AllReduce;
  g.algorithm = algorithm(kind);
  std::string order = g.algorithm == "ring"                                 ? "ring"
                      : g.algorithm == "bruck" || g.algorithm == "binomial" ? "tree"
                                                                            : "";
  g.async = below(3) == 2;
  Shape out = a.shape;
  if (gathers(kind))
    out[dim] = most - below(most - fewest + 1);
  if (scatters(kind))
    out[dim] = ceilDiv(a.shape[dim], n);
  int64_t concat = below(2);
  if (kind == AllToAll) {
    out[dim] /= n;
    out[concat] *= n;
  }
  std::vector<Shape> counts;
  if (kind == AllToAllV) {
    Shape received(n);
    for (int64_t from = 0; from < n; ++from) {
      Shape &row = counts.emplace_back(n);
      for (int64_t left = a.shape[dim]; left > 0; --left)
        if (more(4)) {
          int64_t to = below(n);
          ++row[to];
          ++received[to];
        }
    }
    out[dim] = *std::max_element(received.begin(), received.end());
  }
  if (below(3) == 2)
    g.into = destination(out, a.element);
  int64_t root = below(least);
  Tensor t;
  switch (kind) {
  case AllGather:
    t = g.allGather(a, dim, out[dim], axes);
    break;
  case ReduceScatter:
    t = g.reduceScatter(a, dim, reduction(a.element, order), axes);
    break;
  case AllReduce:
    t = g.allReduce(a, reduction(a.element, order), axes);
    break;
  case AllToAll:
    t = g.allToAll(a, dim, concat, axes);
    break;
  case AllToAllV:
    t = g.allToAllV(a, dim, counts, axes);
    break;
  case AllToAllSized:
    t = g.allToAllSized(a, dim, g.sizes(n, a.shape[dim] / n, below(2) ? "i32" : "i64"), axes);
    break;
  case Broadcast:
    t = g.broadcast(a, root, axes);
    break;
  case Reduce:
    t = g.reduce(a, root, reduction(a.element, order), axes);
    break;
  case Gather:
    t = g.gather(a, dim, out[dim], root, axes);
    break;
  case Scatter:
    t = g.scatter(a, dim, root, axes);
    break;
  default:
    t = g.permute(a,
                  g.algorithm == "ring" || below(2) == 0
                      ? "shift " + std::to_string(below(2 * n + 1) - n)
                      : pairs(least).first,
                  axes);
  }
  (t.isFuture ? futures : values).push_back(t);
  if (t.isFuture && axes.groups.empty() && mixed < 2 &&
      (g.algorithm.empty() || g.algorithm == "direct")) {
    if (kind == AllGather && oneSize && out[dim] % n == 0)
      takeChunks(t, dim);
    else if (kind == AllToAll)
      takeChunks(t, concat);
  }
}

void Generator::takeChunks(const Tensor &future, int64_t dim) {
  bool each = computes(future.element) && times * future.number <= mostTimes;
  int64_t how = below(each ? 4 : 3);
  if (how < 2)
    return;
  Tensor first = g.chunk(future, below(future.number), dim);
  if (how == 2)
    return values.push_back(first);
  values.push_back(
      g.loop(0, future.number, 1, {first}, [&](const std::string &i, const auto &held) {
         return GraphText::Carried{g.elementwise("max", held[0], g.chunk(future, i, dim))};
       }).front());
}

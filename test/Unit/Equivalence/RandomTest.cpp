//===- RandomTest.cpp - Graphs from a seed ---------------------------------===//
#include "Equivalence.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace equivalence;

namespace {

class Generator {
public:
  explicit Generator(uint64_t seed) : random(seed), g(makeGrid()) {
    for (int i = 0; i < 3; ++i)
      values.push_back(g.argument({size(), size()}, element()));
    flags = g.uniformArgument({3}, "i32");
    for (int64_t left = 6 + below(8); left > 0; --left)
      step();
    while (!futures.empty())
      awaitAny();
    // The last ones, and some that others have used: these may not be overwritten.
    for (size_t i = 0; i < values.size(); ++i)
      if (i + 3 >= values.size() || below(4) == 0)
        g.result(values[i]);
  }
  GraphText take() { return std::move(g); }

private:
  std::mt19937_64 random;
  Axes names;
  GraphText g;
  std::vector<Tensor> values, futures;
  Tensor flags; ///< what conditions depend on

  int64_t below(int64_t n) { return random() % n; }
  template <typename T> const T &any(const std::vector<T> &from) {
    return from[below(from.size())];
  }
  int64_t size() { return any<int64_t>({1, 2, 3, 4, 6, 7, 12}); }
  std::string element() {
    return any<std::string>({"f32", "f32", "f32", "f64", "bf16", "f16", "i32", "i64", "f8E4M3FN",
                             "f8E5M2", "i8", "i16", "ui8", "ui32"});
  }
  /// What upstream ops compute with; the others are only moved and reduced.
  static bool computes(const std::string &type) {
    return type[0] != 'u' && type.substr(0, 2) != "f8";
  }

  Grid makeGrid() {
    Grid grid = any<Grid>({{{"x", 2}},
                           {{"x", 3}},
                           {{"x", 4}},
                           {{"x", 5}},
                           {{"x", 2}, {"y", 2}},
                           {{"x", 2}, {"y", 3}},
                           {{"x", 3}, {"y", 2}},
                           {{"x", 2}, {"y", 2}, {"z", 2}},
                           {{"x", 2}, {"y", 1}, {"z", 3}}});
    for (auto &[name, extent] : grid)
      names.push_back(name);
    return grid;
  }
  /// Every rank in one of some groups; half the time all of one size.
  Axes listed() {
    int64_t ranks = g.ranks(), size = 1 + below(ranks);
    while (ranks % size)
      --size;
    bool even = below(2);
    Axes axes;
    Shape all(ranks);
    std::iota(all.begin(), all.end(), 0);
    if (below(3))
      std::shuffle(all.begin(), all.end(), random);
    for (int64_t rank : all) {
      bool isFull =
          even ? !axes.groups.empty() && int64_t(axes.groups.back().size()) == size : below(3) == 0;
      if (axes.groups.empty() || isFull)
        axes.groups.emplace_back();
      axes.groups.back().push_back(rank);
    }
    return axes;
  }
  static int64_t smallest(const Axes &axes, int64_t n) {
    for (const Shape &ranks : axes.groups)
      n = std::min<int64_t>(n, ranks.size());
    return n;
  }
  Axes group() {
    if (below(5) == 0)
      return listed();
    Axes axes = names;
    std::shuffle(axes.begin(), axes.end(), random);
    axes.resize(1 + below(axes.size()));
    return axes;
  }
  /// `order` is that of the algorithm that is asked for, or nothing.
  std::string reduction(const std::string &type, const std::string &order) {
    std::string accumulate = type;
    if (order.empty() && type != "f64" && below(2))
      accumulate = type == "ui8"    ? "ui16"
                   : type == "ui32" ? "ui64"
                   : type == "i64"  ? type
                   : type[0] == 'i' ? "i64"
                   : type == "f32"  ? "f64"
                                    : "f32";
    std::string kind =
        any<std::string>({"sum", "sum", "min", "max", "prod", "avg", "sum scale 0.7"});
    if (kind.size() > 4 && (type[0] == 'i' || type[0] == 'u'))
      kind = "sum";
    return kind + " accumulate " + accumulate + " order " +
           (order.empty() || below(2) ? "any" : order);
  }
  /// A tensor of this type that exists, or a new buffer.
  Tensor destination(const Shape &shape, const std::string &type) {
    std::vector<Tensor> fitting;
    for (const Tensor &t : values)
      if (t.shape == shape && t.element == type)
        fitting.push_back(t);
    return fitting.empty() || below(3) == 0 ? g.empty(shape, type) : any(fitting);
  }

  void awaitAny() {
    size_t i = below(futures.size());
    values.push_back(g.await(futures[i]));
    futures.erase(futures.begin() + i);
  }

  void step() {
    if (!futures.empty() && below(3) == 0)
      return awaitAny();
    Tensor a = any(values);
    if (a.padding) {    // whatever reads whole tensors would spread what is unspecified
      g.algorithm = ""; // that of the step before may not carry these axes
      if (below(2) || !computes(a.element))
        values.push_back(g.allGather(a, a.padding->dim, a.padding->extent, a.padding->axes));
      else
        values.push_back(g.elementwise("add", a, a));
      return;
    }
    if (below(12) == 0)
      g.barrier(group());
    if (below(10) == 0)
      return values.push_back(choose(a, 0));
    if (computes(a.element) && below(3) == 0)
      return compute(a);
    if (below(8) == 0)
      return oneSided(a);
    communicate(a);
  }

  /// A map of peers, and its inverse; the members are those that every group has.
  std::pair<std::string, std::string> peers(int64_t members) {
    if (below(2)) {
      int64_t by = below(9) - 4;
      return {"shift " + std::to_string(by), "shift " + std::to_string(-by)};
    }
    Shape to(members);
    std::iota(to.begin(), to.end(), 0);
    std::shuffle(to.begin(), to.end(), random);
    std::string forth, back;
    for (int64_t from = 0; from < members; ++from)
      if (below(3)) {
        std::string comma = forth.empty() ? "" : ", ";
        forth += comma + std::to_string(from) + " -> " + std::to_string(to[from]);
        back += comma + std::to_string(to[from]) + " -> " + std::to_string(from);
      }
    return {"pairs [" + forth + "]", "pairs [" + back + "]"};
  }

  /// A window over what `a` holds: parts of it are put once or twice to the same peers, who read
  /// what has come, and say so.
  void oneSided(const Tensor &a) {
    Axes axes = group();
    auto [forth, back] = peers(smallest(axes, g.groupSize(axes)));
    Tensor w = g.window(a.shape, a.element, axes, a), result;
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
      result =
          g.get(w, {0, 0}, a.shape, below(3) ? "" : peers(smallest(axes, g.groupSize(axes))).first);
      g.signal(w, back);
      g.wait(w, back);
    }
    values.push_back(result);
  }

  void compute(const Tensor &a) {
    switch (below(4)) {
    case 0:
      return values.push_back(g.matmul(a, g.argument({a.shape[1], size()}, a.element)));
    case 1: {
      int64_t dim = below(2), rows = a.shape[dim], begin = below(rows);
      return values.push_back(g.slice(a, dim, begin, 1 + below(rows - begin)));
    }
    default: {
      std::vector<Tensor> same;
      for (const Tensor &t : values)
        if (t.shape == a.shape && t.element == a.element && !t.padding)
          same.push_back(t);
      std::optional<Tensor> out;
      if (below(2))
        out = destination(a.shape, a.element);
      return values.push_back(
          g.elementwise(any<std::string>({"add", "sub", "mul", "max"}), a, any(same), out));
    }
    }
  }

  /// A tensor like `a`, made in one of two ways, some of which have branches of their own.
  Tensor choose(const Tensor &a, int depth) {
    auto way = [&] {
      return below(4) == 0 ? a : depth == 0 && below(3) == 0 ? choose(a, 1) : alike(a);
    };
    return g.branch(g.condition(flags, below(flags.count())), way, way);
  }

  Tensor alike(const Tensor &a) {
    Axes axes = group();
    g.algorithm = "";
    switch (below(4)) {
    case 0:
      return g.allReduce(a, reduction(a.element, ""), axes);
    case 1:
      return g.permute(a, "shift " + std::to_string(below(4)), axes);
    case 2:
      return g.broadcast(a, below(smallest(axes, g.groupSize(axes))), axes);
    default: // started here and awaited here
      g.async = true;
      return g.await(g.reduce(a, 0, reduction(a.element, ""), axes));
    }
  }

  enum Kind {
    AllGather,
    ReduceScatter,
    AllReduce,
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
  static bool gathers(int64_t kind) { return kind == AllGather || kind == Gather; }
  static bool scatters(int64_t kind) { return kind == ReduceScatter || kind == Scatter; }

  /// One that carries this kind over these axes, or nothing: chosen.
  std::string algorithm(int64_t kind, bool oneAxis) {
    if (below(3) == 0)
      return "";
    std::vector<std::string> able = {"direct"};
    bool rooted = kind >= Broadcast && kind <= Scatter;
    if (rooted)
      able.push_back("binomial");
    else if (oneAxis && kind < AllToAllV)
      able.push_back("ring");
    if (oneAxis && kind <= AllToAll)
      able.push_back("bruck");
    return any(able);
  }

  void communicate(const Tensor &a) {
    Axes axes = group();
    int64_t n = g.groupSize(axes), dim = below(2), kind = below(numKinds);
    bool isListed = !axes.groups.empty();
    int64_t least = smallest(axes, n); // members that every group has
    if (isListed && (kind >= AllToAllV || (scatters(kind) && a.shape[dim] % n) ||
                     (least != n && (gathers(kind) || scatters(kind) || kind == AllToAll))))
      kind = AllReduce;
    if ((kind == AllToAll || kind == AllToAllSized) && a.shape[dim] % n)
      kind = AllReduce;
    if (kind >= AllToAllV && axes.size() > 1)
      kind = Broadcast;
    if ((gathers(kind) || kind == AllToAll) && a.count() * n > 5000)
      kind = isListed ? AllReduce : ReduceScatter;
    g.algorithm = isListed ? any<std::string>({"", "direct"}) : algorithm(kind, axes.size() == 1);
    std::string order = g.algorithm == "ring"                                 ? "ring"
                        : g.algorithm == "bruck" || g.algorithm == "binomial" ? "tree"
                                                                              : "";
    g.async = below(3) == 0;
    Shape out = a.shape;
    if (gathers(kind))
      out[dim] = (a.shape[dim] - 1) * n + (isListed ? n : 1 + below(n));
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
          if (below(4)) {
            int64_t to = below(n);
            ++row[to];
            ++received[to];
          }
      }
      out[dim] = *std::max_element(received.begin(), received.end());
    }
    if (below(3) == 0)
      g.into = destination(out, a.element);
    bool async = g.async;
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
      if (g.algorithm == "ring" || below(2)) {
        t = g.permute(a, "shift " + std::to_string(below(2 * n + 1) - n), axes);
      } else {
        std::vector<int64_t> to(least);
        std::iota(to.begin(), to.end(), 0);
        std::shuffle(to.begin(), to.end(), random);
        std::string pairs;
        for (int64_t i = 0; i < least; ++i)
          if (below(4))
            pairs +=
                (pairs.empty() ? "" : ", ") + std::to_string(i) + " -> " + std::to_string(to[i]);
        t = g.permute(a, "pairs [" + pairs + "]", axes);
      }
    }
    (async ? futures : values).push_back(t);
  }
};

void expectSeeds(uint64_t from, uint64_t to, Options options = {}) {
  if (const char *one = getenv("NCCLX_TEST_SEED"))
    from = strtoull(one, nullptr, 10), to = from + 1;
  for (uint64_t seed = from; seed < to; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    options.seed = seed;
    expectEqual(Generator(seed).take(), options);
  }
}

TEST(EquivalenceRandom, Graphs) { expectSeeds(1, 9); }
TEST(SlowEquivalenceRandom, Graphs) { expectSeeds(9, 30); }
TEST(EquivalenceRandom, CppCarrier) { expectSeeds(45, 47, {.cpp = true}); }
TEST(SlowEquivalenceRandom, CppCarrier) { expectSeeds(47, 57, {.cpp = true}); }

// Every gain is taken, so that much moves; GEMMs of these sizes hide nothing under a margin.
Options overlap(const std::string &pass) {
  return {.pipeline = pass + "{machine=" NCCLX_MACHINES "/h100-nvswitch.json margin=0}"};
}
TEST(EquivalenceRandom, Overlapped) { expectSeeds(101, 105, overlap("ncclx-overlap")); }
TEST(SlowEquivalenceRandom, Overlapped) { expectSeeds(105, 117, overlap("ncclx-overlap")); }
TEST(SlowEquivalenceRandom, NamedOverlaps) {
  for (const char *pass :
       {"ncclx-pair-bulk", "ncclx-reschedule-ag-wgrad", "ncclx-hoist-collectives"})
    expectSeeds(117, 121, overlap(pass));
}
// What cuts ops, one behind the other, and placed.
TEST(SlowEquivalenceRandom, Cut) {
  std::string pipeline;
  for (const char *pass : {"split-halos", "direct-exchanges", "split-exchanges", "split-batches",
                           "split-sinks", "pipeline-loops", "braid-loops", "overlap"})
    pipeline += (pipeline.empty() ? "ncclx-" : ",ncclx-") + std::string(pass) +
                "{machine=" NCCLX_MACHINES "/../../test/Overlap/Inputs/free-steps.json" +
                (std::string(pass) == "split-sinks" ? "}" : " margin=0}");
  expectSeeds(121, 133, {.pipeline = pipeline});
}

} // namespace

//===- RandomGraph.cpp - Graphs made of choices ---------------------------------===//
#include "RandomGraph.h"
#include "Patterns.h"

#include <algorithm>
#include <numeric>

using namespace equivalence;

namespace {

/// Each choice has its simplest alternative first, so that what shrinks becomes simple.
class Generator {
public:
  Generator(Choices &choices, bool overlaps) : c(choices), overlaps(overlaps), g(makeGrid()) {
    mixed = below(3);
    late = below(4) == 3;
    if (mixed == 2)
      makeSecondGrid();
    for (int64_t left = 3; left > 0; --left) {
      Choices::Part part(c);
      if (!more(3) && !values.empty())
        break;
      int64_t rows = size(), columns = size();
      values.push_back(g.argument({rows, columns}, element()));
    }
    steps(10, 9);
    if (!hasCollective)
      communicate(values.front());
    awaitAll();
    // The last ones, and some that others have used: these may not be overwritten.
    for (size_t i = 0; i < values.size(); ++i)
      if (below(8) >= (i + 3 >= values.size() ? 1 : 5))
        g.result(values[i]);
    if (g.outputs().empty())
      g.result(values.back());
  }
  GraphText take() { return std::move(g); }

private:
  Choices &c;
  const bool overlaps;
  std::vector<Axes> grids;
  int64_t mixed = 0; ///< 0: axes alone; 1: listed groups too; 2: another grid, too
  bool late = false; ///< may what is known on the way decide?
  GraphText g;
  std::vector<Tensor> values, futures; ///< those in reach
  bool hasCollective = false;          ///< that every run comes to
  std::optional<Tensor> flags;         ///< what conditions depend on
  std::optional<Tensor> ownFlags;      ///< and what they depend on when it is summed over all ranks
  std::vector<std::string> numbers;    ///< of the loops around
  int64_t depth = 0;                   ///< of loops and branches around
  int64_t times = 1;                   ///< how often the loops around run a step
  int64_t ways = 1;                    ///< through the branches
  int64_t work = 0;                    ///< messages of one way
  static constexpr int64_t mostWays = 4, mostTimes = 4;

  int64_t below(int64_t n) { return c.below(n); }
  /// Once in n not, which is the simplest.
  bool more(int64_t n) { return below(n) != 0; }
  template <typename T> const T &any(const std::vector<T> &from) { return c.any(from); }
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
    Grid grid = any<Grid>({{{"x", 1}},
                           {{"x", 2}},
                           {{"x", 3}},
                           {{"x", 4}},
                           {{"x", 5}},
                           {{"x", 7}},
                           {{"x", 2}, {"y", 2}},
                           {{"x", 2}, {"y", 3}},
                           {{"x", 3}, {"y", 2}},
                           {{"x", 2}, {"y", 2}, {"z", 2}},
                           {{"x", 2}, {"y", 1}, {"z", 3}}});
    addAxes("g", grid);
    return grid;
  }
  /// The same ranks, cut otherwise: axes may overlap those of the first, or cross them.
  void makeSecondGrid() {
    Grid grid;
    for (int64_t rest = g.ranks(); rest > 1;) {
      std::vector<int64_t> factors;
      for (int64_t n = rest; n > 1; --n)
        if (rest % n == 0)
          factors.push_back(n);
      grid.emplace_back("u" + std::to_string(grid.size()), any(factors));
      rest /= grid.back().second;
    }
    if (grid.empty())
      grid = {{"u0", 1}};
    g.addGrid("h", grid);
    addAxes("h", grid);
  }
  void addAxes(const std::string &name, const Grid &grid) {
    grids.emplace_back().grid = name;
    for (auto &[axis, extent] : grid)
      grids.back().push_back(axis);
  }

  /// Every rank in one of some groups; half the time all of one size.
  Axes listed() {
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
  int64_t smallest(const Axes &axes) const {
    int64_t n = g.groupSize(axes);
    for (const Shape &ranks : axes.groups)
      n = std::min<int64_t>(n, ranks.size());
    return n;
  }
  Axes group() {
    work += times * g.ranks() * g.ranks();
    if (below(3) == 2 && mixed)
      return listed();
    Axes axes = any(grids);
    for (int64_t order = below(6); order > 0; --order)
      std::next_permutation(axes.begin(), axes.end());
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
           (order.empty() || below(2) == 0 ? "any" : order);
  }
  std::vector<Tensor> like(const Tensor &a) const {
    std::vector<Tensor> same;
    for (const Tensor &t : values)
      if (t.shape == a.shape && t.element == a.element && !t.padding)
        same.push_back(t);
    return same;
  }
  /// A tensor of this type that exists, or a new buffer.
  Tensor destination(const Shape &shape, const std::string &type) {
    std::vector<Tensor> fitting;
    for (const Tensor &t : values)
      if (t.shape == shape && t.element == type)
        fitting.push_back(t);
    return below(3) == 0 || fitting.empty() ? g.empty(shape, type) : any(fitting);
  }
  /// Some rows of `a`; in a loop, of its number on.
  Tensor part(const Tensor &a) {
    int64_t dim = below(2), rows = a.shape[dim];
    if (!numbers.empty() && rows >= mostTimes && more(2))
      return g.slice(a, dim, any(numbers), 1 + below(rows - mostTimes + 1));
    int64_t begin = below(rows);
    return g.slice(a, dim, begin, 1 + below(rows - begin));
  }

  void await(size_t i) {
    values.push_back(g.await(futures[i]));
    futures.erase(futures.begin() + i);
  }
  void awaitAll() {
    while (!futures.empty())
      await(below(futures.size()));
  }

  /// At most so many; one is the last once in `n`.
  void steps(int64_t most, int64_t n) {
    for (int64_t left = most; left > 0; --left) {
      Choices::Part part(c);
      if (!more(n) || work * ways > 400) // a graph is to be proved and run in well under a second
        return;
      step();
    }
  }
  void step() {
    if (below(3) == 2 && !futures.empty())
      return await(below(futures.size()));
    Tensor a = any(values);
    if (a.padding) {    // whatever reads whole tensors would spread what is unspecified
      g.algorithm = ""; // that of the step before may not carry these axes
      if (below(2) == 0 || !computes(a.element))
        values.push_back(g.allGather(a, a.padding->dim, a.padding->extent, a.padding->axes));
      else
        values.push_back(g.elementwise("add", a, a));
      return;
    }
    if (overlaps && computes(a.element) && below(2)) {
      Axes axes = group();
      if (smallest(axes) == g.groupSize(axes) && a.count() * smallest(axes) < 5000) {
        values.push_back(overlapPattern(c, g, a, axes, mostTimes / times));
        hasCollective |= depth == 0;
        return;
      }
    }
    switch (below(16)) {
    default:
      return communicate(a);
    case 8:
    case 9:
    case 10:
    case 11:
      return computes(a.element) ? compute(a) : communicate(a);
    case 12:
      return g.barrier(group());
    case 13:
      return oneSided(a);
    case 14:
      return depth < 2 && (ways << times) <= mostWays ? choose(a) : communicate(a);
    case 15:
      return depth < 2 && times * 2 <= mostTimes ? loop(a) : compute(a);
    }
  }

  /// Some steps of their own: what they make is out of reach behind, but `result`.
  template <typename Result> Result inside(const std::function<Result()> &write) {
    std::vector<Tensor> outer = values, flying = std::exchange(futures, {});
    ++depth;
    steps(2, 4);
    Result result = write();
    awaitAll();
    --depth;
    values = std::move(outer);
    futures = std::move(flying);
    return result;
  }

  const Tensor &uniformFlags() {
    if (!flags)
      flags = g.uniformArgument({3}, "i32");
    return *flags;
  }
  /// A condition that depends on the flags or, where that may be known late, on what comes of them
  /// by communication. `i`: of a turn, or empty.
  std::string condition(const std::string &i) {
    int64_t how = late ? below(3) : 0, number = below(3);
    Tensor from = uniformFlags();
    if (how == 2) {
      if (!ownFlags)
        ownFlags = g.argument({3}, "i32");
      g.algorithm = "";
      work += times * g.ranks() * g.ranks();
      from = g.allReduce(*ownFlags, "sum accumulate i32 order any", grids.front());
    }
    std::string isSet =
        below(2) == 0 || i.empty() ? g.condition(from, number) : g.condition(from, i);
    return how == 1 ? g.assumed(isSet, "i1") : isSet;
  }

  /// A tensor like `a`, or its future, made in one of two ways.
  void choose(const Tensor &a) {
    ways <<= times;
    bool future = below(3) == 2;
    auto way = [&] {
      return inside<Tensor>([&] { return future || more(4) ? alike(any(like(a)), future) : a; });
    };
    std::string isTaken = condition(numbers.empty() ? "" : any(numbers));
    (future ? futures : values).push_back(g.branch(isTaken, way, way));
  }

  /// Carries one or two tensors round, and perhaps what is in flight.
  void loop(const Tensor &a) {
    int64_t trips = below(std::min<int64_t>(4, mostTimes / times + 1));
    int64_t from = below(2), by = from + trips <= 3 ? 1 + below(2) : 1;
    GraphText::Carried carried{a};
    if (Tensor b = any(values); more(3) && !b.padding)
      carried.push_back(b);
    bool future = below(2);
    if (future)
      carried.push_back(alike(any(like(a)), true));
    times *= std::max<int64_t>(1, trips);
    auto body = [&](const std::string &i, const GraphText::Carried &held) {
      numbers.push_back(i);
      std::vector<Tensor> outer = values;
      for (const Tensor &t : held)
        values.push_back(t.isFuture ? g.await(t) : t);
      auto next = inside<GraphText::Carried>([&] {
        GraphText::Carried next;
        for (const Tensor &t : held) {
          std::vector<Tensor> same = like(t);
          std::reverse(same.begin(), same.end());
          Tensor last = below(2) ? any(same) : same.front();
          // One that communicates: bufferization keeps no loop that carries another buffer on.
          bool moves = t.isFuture || (!future && next.empty());
          next.push_back(moves ? alike(last, t.isFuture) : last);
        }
        return next;
      });
      values = std::move(outer);
      numbers.pop_back();
      return next;
    };
    // Bounds that are constants, that are known when a run starts, and conditions known on the way.
    GraphText::Carried results;
    int64_t how = late ? below(3) : 0;
    if (how == 0)
      results = g.loop(from, from + trips * by, by, carried, body);
    else if (std::string turns = g.count(uniformFlags(), below(3), trips); how == 1)
      results = g.loop(turns, carried, body);
    else
      results =
          g.whileLoop(turns, carried, [&](const std::string &i) { return condition(i); }, body);
    for (const Tensor &t : results)
      (t.isFuture ? futures : values).push_back(t);
    times /= std::max<int64_t>(1, trips);
  }

  Tensor alike(const Tensor &a, bool future = false) {
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

  /// "[...]" of pairs among members, each at most once source and target; and the pairs back.
  std::pair<std::string, std::string> pairs(int64_t members) {
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
  /// A map of peers, and its inverse; the members are those that every group has.
  std::pair<std::string, std::string> peers(int64_t members) {
    if (below(2))
      return pairs(members);
    int64_t by = below(9) - 4;
    return {"shift " + std::to_string(by), "shift " + std::to_string(-by)};
  }

  /// A window over what `a` holds: parts of it are put once or twice to the same peers, who read
  /// what has come, and say so.
  void oneSided(const Tensor &a) {
    Axes axes = group();
    auto [forth, back] = peers(smallest(axes));
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
      result = g.get(w, {0, 0}, a.shape, below(3) ? "" : peers(smallest(axes)).first);
      g.signal(w, back);
      g.wait(w, back);
    }
    values.push_back(result);
  }

  void compute(const Tensor &a) {
    if (!computes(a.element))
      return communicate(a);
    switch (below(4)) {
    case 2:
      return values.push_back(g.matmul(a, g.argument({a.shape[1], size()}, a.element)));
    case 3:
      return values.push_back(part(a));
    default: {
      std::optional<Tensor> out;
      if (below(2))
        out = destination(a.shape, a.element);
      return values.push_back(
          g.elementwise(any<std::string>({"add", "sub", "mul", "max"}), a, any(like(a)), out));
    }
    }
  }

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
  static bool gathers(int64_t kind) { return kind == AllGather || kind == Gather; }
  static bool scatters(int64_t kind) { return kind == ReduceScatter || kind == Scatter; }
  static bool isRooted(int64_t kind) { return kind >= Broadcast && kind <= Scatter; }

  /// One that carries this kind over these axes, or nothing: chosen.
  std::string algorithm(int64_t kind, const Axes &axes) {
    std::vector<std::string> able = {"", "direct"};
    bool oneSize = smallest(axes) == g.groupSize(axes);
    if (isRooted(kind) && oneSize)
      able.push_back("binomial");
    if (kind < AllToAllV && !isRooted(kind) && oneSize)
      able.push_back("ring");
    if (kind <= AllToAll && oneSize)
      able.push_back("bruck");
    return any(able);
  }

  /// Whether groups of all sizes cut `extent` into pieces of one size.
  bool cuts(const Axes &axes, int64_t extent) const {
    return ceilDiv(extent, smallest(axes)) == ceilDiv(extent, g.groupSize(axes));
  }

  void communicate(const Tensor &a) {
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
    g.algorithm = algorithm(kind, axes);
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
    if (t.isFuture && axes.groups.empty() && mixed < 2 && g.algorithm != "ring" &&
        g.algorithm != "bruck") {
      if (kind == AllGather && oneSize && out[dim] % n == 0)
        takeChunks(t, dim);
      else if (kind == AllToAll)
        takeChunks(t, concat);
    }
  }

  /// Perhaps some chunks of what is in flight: one, or all in a loop, which carries their maximum.
  void takeChunks(const Tensor &future, int64_t dim) {
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
};

} // namespace

GraphText equivalence::makeGraph(Choices &choices, bool overlaps) {
  return Generator(choices, overlaps).take();
}

std::string equivalence::failureOf(uint64_t seed, const Run &run, int64_t tries, bool overlaps) {
  Choices first(seed);
  std::string wrong = run(makeGraph(first, overlaps));
  if (wrong.empty())
    return "";
  auto stage = [](const std::string &message) { return message.substr(0, message.find(':')); };
  auto fails = [&](Choices &choices) {
    return stage(run(makeGraph(choices, overlaps))) == stage(wrong);
  };
  Choices least(shrink(first, fails, tries).list());
  GraphText graph = makeGraph(least, overlaps);
  return "seed " + std::to_string(seed) + ": " + wrong +
         "\nThe smallest graph found that fails at this stage is\n" + graph.str() + run(graph);
}

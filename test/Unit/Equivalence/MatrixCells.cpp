//===- MatrixCells.cpp - What a collective can be -----------------------------------===//
#include "MatrixCells.h"

#include <algorithm>

namespace equivalence {

const List<std::string> words = {"all_gather",
                                 "reduce_scatter",
                                 "all_reduce",
                                 "all_to_all",
                                 "all_to_all_v counts",
                                 "all_to_all_v sizes",
                                 "broadcast",
                                 "reduce",
                                 "gather",
                                 "scatter",
                                 "permute shift",
                                 "permute pairs",
                                 "put, signal, wait, get",
                                 "barrier"};
const List<std::pair<std::string, std::string>> elements = {
    {"f32", "f64"},    {"f64", ""},      {"f16", "f32"},   {"bf16", "f32"}, {"f8E4M3FN", "f32"},
    {"f8E5M2", "f16"}, {"i8", "i32"},    {"i16", "i64"},   {"i32", "i64"},  {"i64", ""},
    {"ui8", "ui16"},   {"ui16", "ui32"}, {"ui32", "ui64"}, {"ui64", ""}};
const List<std::string> kinds = {"sum", "prod", "min", "max", "avg", "sum scale 0.5"};
const List<std::string> algorithms = {"",      "direct",       "ring",  "bruck", "binomial",
                                      "eager", "hierarchical", "trees", "routed"};

static Group listed(Grid grid, List<Shape> groups, bool isUneven = false) {
  Axes axes;
  axes.groups = std::move(groups);
  return {std::move(grid), std::move(axes), isUneven};
}
static Group ofGrid(const std::string &name, Axes axes) {
  axes.grid = name;
  return {{{"x", 2}, {"y", 3}}, std::move(axes)};
}
const List<Group> groups = {
    {{{"x", 1}}, {"x"}},
    {{{"x", 2}}, {"x"}},
    {{{"x", 3}}, {"x"}},
    {{{"x", 5}}, {"x"}},
    {{{"x", 7}}, {"x"}},
    {{{"x", 8}}, {"x"}},
    {{{"x", 24}}, {"x"}},
    {{{"x", 2}, {"y", 3}}, {"x", "y"}},
    {{{"x", 3}, {"y", 2}}, {"y", "x"}},
    {{{"x", 2}, {"y", 3}}, {"x"}},
    {{{"x", 2}, {"y", 3}}, {"y"}},
    {{{"x", 2}, {"y", 3}, {"z", 2}}, {"z", "x"}},
    {{{"x", 2}, {"y", 3}, {"z", 4}}, {"x", "y", "z"}},
    listed({{"x", 6}}, {{0, 2, 4}, {1, 3, 5}}),
    listed({{"x", 6}}, {{4, 0, 1}, {5, 2, 3}}),
    listed({{"x", 2}, {"y", 3}}, {{3, 1}, {2}, {0, 5, 4}}, true),
    ofGrid("h", {"u"}),
    listed({{"x", 7}}, {{5, 1, 6, 2}, {0}, {4, 3}}, true),
};
const List<std::string> sizes = {"none", "one", "fewer than members", "not divisible", "larger"};
const List<std::string> shapes = {"vector", "dim 0 of 3", "dim 1 of 3", "dim 2 of 3", "scalar"};
const List<std::string> uses = {"plain", "into", "in place", "async", "of a slice"};
const List<std::string> transports = {"shm", "tcp"};
const List<std::string> orders = {"any", "as the algorithm"};

const List<int64_t> factors = {int64_t(words.size()),     int64_t(elements.size()),
                               int64_t(kinds.size()),     2,
                               int64_t(groups.size()),    int64_t(algorithms.size()),
                               int64_t(sizes.size()),     int64_t(shapes.size()),
                               int64_t(uses.size()),      int64_t(orders.size()),
                               int64_t(transports.size())};

GraphText graphOf(const Group &group) {
  GraphText g(group.grid);
  if (group.axes.grid == "h")
    g.addGrid("h", {{"u", 3}, {"v", 2}});
  return g;
}
int64_t hostsOf(int64_t ranks) {
  for (int64_t hosts = 2; hosts < ranks; ++hosts)
    if (ranks % hosts == 0)
      return hosts;
  return 1;
}

namespace {
struct Facts {
  int64_t members, ranks;
  int64_t axes; ///< that span the groups; 0: none
};
} // namespace
static Facts factsOf(int64_t group) {
  static const List<Facts> all = [] {
    List<Facts> facts;
    for (const Group &g : groups) {
      GraphText text = graphOf(g);
      int64_t axes = g.axes.groups.empty() ? int64_t(g.axes.size())
                                           : int64_t(g.axes.groups.front() == Shape{0, 2, 4});
      facts.push_back({text.groupSize(g.axes), text.ranks(), axes});
    }
    return facts;
  }();
  return all[group];
}

bool carries(const Cell &c) {
  const std::string &a = algorithms[c.algorithm];
  if (c.word == Window || c.word == Barrier)
    return a.empty();
  auto [n, ranks, axes] = factsOf(c.group);
  if (c.wide && !(a.empty() || a == "direct" || a == "eager"))
    return false; // partial results travel as elements
  if (axes == 0 && (a == "hierarchical" || a == "trees" || a == "routed"))
    return false;
  if (a == "ring")
    return c.word != AllToAllSized && c.word != Listed;
  if (a == "bruck")
    return c.word <= AllToAll;
  if (a == "binomial")
    return c.isRooted();
  if (a == "eager")
    return c.word <= AllToAll || c.isRooted();
  if (a == "hierarchical") // hosts before what is in them
    return (c.word <= AllToAll || c.word == Broadcast) && n == ranks && hostsOf(n) > 1 &&
           c.of().axes.front() == "x";
  if (a == "trees")
    return c.word <= AllReduce && n == ranks && n > 1;
  if (a == "routed")
    return (c.word == AllToAll || c.word == Shift || c.word == Listed ||
            (c.word == AllToAllV && axes == 1)) &&
           n == ranks && n > 1;
  return true;
}

bool settle(Row &row) {
  {
    Cell c(row);
    auto &[word, element, kind, wide, group, algorithm, size, shape, use, order, transport] = c;
    if (!c.reduces())
      kind = wide = order = 0;
    if (elements[element].second.empty())
      wide = 0;
    if (word == Window || word == Barrier)
      algorithm = use = 0;
    if (word == Barrier)
      element = size = shape = 0;
    if (c.isCut() && shape == 4)
      shape = 0;
    if (shape == 4)
      size = 1;
    // Of groups of several sizes the members' shards are of one size still.
    if (c.of().isUneven && c.isCut())
      size = word == AllToAll ? 0 : size % 2;
    if ((use == 2 && word != AllReduce) || (use == 4 && (shape == 4 || word == AllToAllSized)))
      use = 0;
    row = {word, element, kind, wide, group, algorithm, size, shape, use, order, transport};
  }
  const Cell c(row);
  if (c.kind == 5 && !c.isFloat())
    return false;
  if (c.of().isUneven && !c.isOfSeveralSizes())
    return false;
  const std::string &a = algorithms[c.algorithm];
  bool inAnyOrder = a == "trees" || a == "hierarchical";
  if (inAnyOrder && c.reduces()) {
    if (c.order)
      return false;
    // What no order changes, of whole numbers in -2..2.
    bool rounds = c.isFloat() && c.kind != 2 && c.kind != 3;
    if (rounds && (c.isNarrow() || (c.kind == 1 && elements[c.element].first == "f16")))
      return false;
  }
  return carries(c);
}

static std::string reductionOf(const Cell &c) {
  const auto &[element, wider] = elements[c.element];
  const std::string &a = algorithms[c.algorithm];
  std::string order = a == "ring" ? "ring" : a == "bruck" || a == "binomial" ? "tree" : "rank";
  return kinds[c.kind] + " accumulate " + (c.wide ? wider : element) + " order " +
         (c.order ? order : "any");
}

void add(GraphText &g, const Cell &c) {
  const Axes &axes = c.of().axes;
  const std::string &element = elements[c.element].first;
  int64_t n = g.groupSize(axes), dim = c.shape == 4 ? 0 : std::max<int64_t>(0, c.shape - 1);
  int64_t root = (c.element + c.size) % (c.of().isUneven ? 1 : n);
  const int64_t extents[] = {0, 1, n == 1 ? 3 : n - 1, 2 * n + 1, 41 * n + 3};
  int64_t extent = extents[c.size];
  g.algorithm = algorithms[c.algorithm];
  auto shaped = [&](int64_t rows) {
    if (c.shape == 4)
      return Shape{};
    if (c.shape == 0)
      return Shape{rows};
    Shape shape = {2, 3, 2};
    shape[dim] = rows;
    return shape;
  };
  auto input = [&](int64_t rows) {
    if (c.use != 4)
      return g.argument(shaped(rows), element, c.use == 2);
    Tensor around = g.argument(shaped(rows + 3), element);
    return g.slice(around, dim, 1, rows);
  };
  // Where the result goes.
  auto use = [&](const Tensor &in, Shape out) {
    if (c.use == 1)
      g.into = g.empty(std::move(out), element);
    if (c.use == 2)
      g.into = in;
    g.async = c.use == 3;
  };
  auto result = [&](const Tensor &t) { g.result(t.isFuture ? g.await(t) : t); };
  switch (Word(c.word)) {
  case AllGather:
  case Gather: {
    Tensor in = input(ceilDiv(extent, n));
    use(in, shaped(extent));
    result(c.word == Gather ? g.gather(in, dim, extent, root, axes)
                            : g.allGather(in, dim, extent, axes));
    return;
  }
  case ReduceScatter:
  case Scatter: {
    Tensor in = input(extent);
    use(in, shaped(ceilDiv(extent, n)));
    result(c.word == Scatter ? g.scatter(in, dim, root, axes)
                             : g.reduceScatter(in, dim, reductionOf(c), axes));
    return;
  }
  case AllReduce:
  case Broadcast:
  case Reduce:
  case Shift:
  case Listed: {
    Tensor in = input(extent);
    use(in, in.shape);
    std::string last = std::to_string(n - 1);
    result(c.word == AllReduce   ? g.allReduce(in, reductionOf(c), axes)
           : c.word == Broadcast ? g.broadcast(in, root, axes)
           : c.word == Reduce    ? g.reduce(in, root, reductionOf(c), axes)
           : c.word == Shift
               ? g.permute(in, "shift " + std::to_string(c.element % 5 - 2), axes)
               : g.permute(in, "pairs [0 -> " + last + (n > 2 ? ", 1 -> 0]" : "]"), axes));
    return;
  }
  case AllToAll: {
    Tensor in = input(extent * n);
    bool isSame = c.use == 1 || c.shape == 0 || c.of().isUneven;
    int64_t concat = isSame ? dim : (dim + c.use) % 3;
    use(in, in.shape);
    result(g.allToAll(in, dim, concat, axes));
    return;
  }
  case AllToAllV: {
    List<Shape> counts(n, Shape(n, 0));
    int64_t most = 0;
    for (int64_t from = 0; from < n; ++from) {
      int64_t sum = 0;
      for (int64_t to = 0; to < n; ++to)
        sum += counts[from][to] = (from * 5 + to * 3) % 4 * ceilDiv(extent, n) / 2;
      most = std::max(most, sum);
    }
    Tensor in = input(most + 1);
    g.async = c.use == 3;
    result(g.allToAllV(in, dim, counts, axes));
    return;
  }
  case AllToAllSized: {
    Tensor in = input(extent * n), rows = g.sizes(n, extent, c.element % 2 ? "i32" : "i64");
    use(in, in.shape);
    result(g.allToAllSized(in, dim, rows, axes));
    return;
  }
  case Window: {
    Tensor in = input(extent), init = g.argument(in.shape, element);
    Tensor w = g.window(in.shape, element, axes, init);
    Shape origin(in.shape.size(), 0);
    std::string peers = "shift " + std::to_string(c.element % 3 + 1);
    g.put(in, w, origin, peers);
    g.signal(w, peers);
    g.wait(w, peers);
    g.result(g.get(w, origin, in.shape));
    return;
  }
  case Barrier:
    g.barrier(axes);
    return;
  }
}

std::string gpus(int64_t ranks) {
  std::string nodes, links;
  for (int64_t i = 0; i < ranks; ++i) {
    std::string name = "gpu" + std::to_string(i), comma = i ? ", " : "";
    nodes += comma + "{name = \"" + name +
             "\", kind = \"gpu\", gpu = \"A100-SXM-80GB\", rank = " + std::to_string(i) + "}";
    if (i + 1 == ranks && ranks < 4)
      continue;
    links += comma + "{from = \"" + name + "\", to = \"gpu" +
             std::to_string(i + 1 < ranks ? i + 1 : ranks / 2) +
             "\", kind = \"nvlink\", count = 1, raw = \"1 GB/s\", payload = \"1 GB/s\", both_ways}";
  }
  return "{nodes = [" + nodes + "], links = [" + links + "]}";
}

Common commonOf(const Cell &c) {
  const std::string &a = algorithms[c.algorithm];
  return {c.group, c.transport, a == "trees" || a == "routed", a == "hierarchical"};
}

} // namespace equivalence

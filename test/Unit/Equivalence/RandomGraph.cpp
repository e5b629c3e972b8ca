//===- RandomGraph.cpp - Graphs made of choices ---------------------------------===//
#include "RandomGraph.h"
#include "Generator.h"
#include "Patterns.h"

#include <algorithm>

using namespace equivalence;

Generator::Generator(Choices &choices, bool overlaps)
    : c(choices), overlaps(overlaps), g(makeGrid()) {
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
  for (int64_t left = overlaps ? 2 : 0; left > 0; --left) {
    Choices::Part part(c);
    if (left < 2 && !more(2))
      break;
    pattern(values[below(values.size())]);
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

Grid Generator::makeGrid() {
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

void Generator::makeSecondGrid() {
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

void Generator::addAxes(const std::string &name, const Grid &grid) {
  grids.emplace_back().grid = name;
  for (auto &[axis, extent] : grid)
    grids.back().push_back(axis);
}

Tensor Generator::destination(const Shape &shape, const std::string &type) {
  std::vector<Tensor> fitting;
  for (const Tensor &t : values)
    if (t.shape == shape && t.element == type)
      fitting.push_back(t);
  return below(3) == 0 || fitting.empty() ? g.empty(shape, type) : any(fitting);
}

Tensor Generator::part(const Tensor &a) {
  int64_t dim = below(2), rows = a.shape[dim];
  if (!numbers.empty() && rows >= mostTimes && more(2))
    return g.slice(a, dim, any(numbers), 1 + below(rows - mostTimes + 1));
  int64_t begin = below(rows);
  return g.slice(a, dim, begin, 1 + below(rows - begin));
}

void Generator::steps(int64_t most, int64_t n) {
  for (int64_t left = most; left > 0; --left) {
    Choices::Part part(c);
    if (!more(n) || work * ways > 400) // a graph is to be proved and run in well under a second
      return;
    step();
  }
}

void Generator::step() {
  if (below(3) == 2 && !futures.empty())
    return await(below(futures.size()));
  // One of before is of use where it is carried.
  if (depth > 0 && !windows.empty() && below(3) == 2)
    if (std::vector<Tensor> same = like(any(windows).window); !same.empty())
      return oneSided(any(same));
  Tensor a = any(values);
  if (a.padding) {    // whatever reads whole tensors would spread what is unspecified
    g.algorithm = ""; // that of the step before may not carry these axes
    if (below(2) == 0 || !computes(a.element))
      values.push_back(g.allGather(a, a.padding->dim, a.padding->extent, a.padding->axes));
    else
      values.push_back(g.elementwise("add", a, a));
    return;
  }
  if (overlaps && below(2) && pattern(a))
    return;
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

bool Generator::pattern(const Tensor &a) {
  if (a.padding || !computes(a.element))
    return false;
  Axes axes = group();
  if (smallest(axes) < g.groupSize(axes) || smallest(axes) == 1)
    axes = grids.front();
  if (a.count() * smallest(axes) >= 5000)
    return false;
  values.push_back(overlapPattern(c, g, a, axes, mostTimes / times, depth == 0));
  hasCollective |= depth == 0;
  return true;
}

const Tensor &Generator::uniformFlags() {
  if (!flags)
    flags = g.uniformArgument({3}, "i32");
  return *flags;
}

std::string Generator::condition(const std::string &i) {
  int64_t how = late ? below(3) : 0, number = below(3);
  Tensor from = uniformFlags();
  if (how == 2) {
    if (!ownFlags)
      ownFlags = g.argument({3}, "i32");
    g.algorithm = "";
    work += times * g.ranks() * g.ranks();
    from = g.allReduce(*ownFlags, "sum accumulate i32 order any", grids.front());
  }
  std::string isSet = below(2) == 0 || i.empty() ? g.condition(from, number) : g.condition(from, i);
  return how == 1 ? g.assumed(isSet, "i1") : isSet;
}

void Generator::choose(const Tensor &a) {
  ways <<= times;
  bool future = below(3) == 2;
  auto way = [&] {
    return inside<Tensor>([&] { return future || more(4) ? alike(any(like(a)), future) : a; });
  };
  std::string isTaken = condition(numbers.empty() ? "" : any(numbers));
  (future ? futures : values).push_back(g.branch(isTaken, way, way));
}

void Generator::loop(const Tensor &a) {
  int64_t trips = below(std::min<int64_t>(4, mostTimes / times + 1));
  int64_t from = below(2), by = from + trips <= 3 ? 1 + below(2) : 1;
  GraphText::Carried carried{a};
  if (Tensor b = any(values); more(3) && !b.padding)
    carried.push_back(b);
  bool future = below(2);
  if (future)
    carried.push_back(alike(any(like(a)), true));
  // Bounds that are constants, that are known when a run starts, and conditions known on the way.
  int64_t how = late ? below(3) : 0;
  // Turns that carry futures are one stage, four together, and what is left of them.
  int64_t copies = how == 1 && future ? 5 : std::max<int64_t>(1, trips);
  times *= copies;
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
  GraphText::Carried results;
  if (how == 0)
    results = g.loop(from, from + trips * by, by, carried, body);
  else if (std::string turns = g.count(uniformFlags(), below(3), trips); how == 1)
    results = g.loop(turns, carried, body);
  else
    results = g.whileLoop(turns, carried, [&](const std::string &i) { return condition(i); }, body);
  for (const Tensor &t : results)
    (t.isFuture ? futures : values).push_back(t);
  times /= copies;
}

void Generator::compute(const Tensor &a) {
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

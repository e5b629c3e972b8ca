//===- Patterns.cpp - What overlap passes look for, in random graphs -------------------===//
#include "Patterns.h"

using namespace equivalence;

namespace {

struct Maker {
  Choices &c;
  GraphText &g;
  const Axes &axes;
  const int64_t n = g.groupSize(axes);

  std::string reduction(const std::string &type) {
    std::string kind = c.any<std::string>({"sum", "max", "prod"});
    std::string order = c.any<std::string>({"any", "rank", "ring", "tree"});
    // Other orders than the lowering's are for exact sums alone.
    if (type[0] == 'i')
      return kind + " accumulate i64 order any";
    return (order == "any" ? "max" : kind) + " accumulate " + type + " order " + order;
  }
  Tensor square(const Tensor &a) { return g.argument({a.shape[1], a.shape[1]}, a.element); }

  Tensor gatherProduct(const Tensor &a) {
    int64_t dim = c.below(2);
    Tensor full = g.allGather(a, dim, a.shape[dim] * n, axes);
    Tensor other = dim == 0 ? g.argument({a.shape[1], 1 + c.below(5)}, a.element)
                            : g.argument({1 + c.below(5), a.shape[0]}, a.element);
    return dim == 0 ? g.matmul(full, other) : g.matmul(other, full);
  }
  Tensor productReduction(const Tensor &a) {
    Tensor rows = g.argument({n * (1 + c.below(3)), a.shape[0]}, a.element);
    return g.reduceScatter(g.matmul(rows, a), 0, reduction(a.element), axes);
  }
  /// A collective and a product, neither of which needs the other, in either order; and what needs
  /// both.
  Tensor beside(const Tensor &a) {
    Tensor weights = square(a);
    auto product = [&] { return g.matmul(g.elementwise("add", a, a), weights); };
    auto moved = [&] {
      return c.below(2) ? g.permute(a, "shift 1", axes)
                        : g.allReduce(a, "max accumulate " + a.element + " order any", axes);
    };
    bool first = c.below(2);
    Tensor one = first ? product() : moved(), other = first ? moved() : product();
    return g.elementwise("add", one, other);
  }
  /// Two layers of a backward: a gather, of what the layer above has made, the product behind it,
  /// and one of the same that nobody needs but the caller.
  Tensor backward(const Tensor &a) {
    Tensor dy = a;
    for (int layer = 0; layer < 2; ++layer) {
      Tensor full = g.allGather(dy, 0, a.shape[0] * n, axes);
      Tensor dx = g.matmul(full, square(a));
      g.result(g.matmul(g.argument({1 + c.below(6), full.shape[0]}, a.element), full));
      dy = g.slice(dx, 0, 0, a.shape[0]);
    }
    return dy;
  }
  /// A layer of shards of rows, which are gathered and scattered.
  Tensor shards(const Tensor &a) {
    Tensor full = g.allGather(g.elementwise("mul", a, a), 0, a.shape[0] * n, axes);
    Tensor part = g.matmul(g.matmul(full, square(a)), square(a));
    return g.elementwise("add", g.reduceScatter(part, 0, reduction(a.element), axes), a);
  }
  /// Micro-batches, each forward and backward: products and exchanges by turns, that add up.
  Tensor microBatches(const Tensor &a, int64_t times) {
    int64_t trips = 2 + c.below(times - 1);
    Tensor batches = g.argument({a.shape[0] + trips, a.shape[1]}, a.element), weights = square(a);
    return g
        .loop(0, trips, 1, {a},
              [&](const std::string &i, const GraphText::Carried &held) {
                Tensor x = g.slice(batches, 0, i, a.shape[0]);
                for (int turn = 0; turn < 2; ++turn)
                  x = g.permute(g.matmul(x, weights), "shift 1", axes);
                return GraphText::Carried{g.elementwise("add", held[0], g.matmul(x, weights))};
              })
        .front();
  }
  /// Sums of the rows above and below.
  Tensor stencil(const Tensor &a) {
    int64_t rows = a.shape[0], columns = a.shape[1];
    Tensor last = g.slice(a, 0, rows - 1, 1), first = g.slice(a, 0, 0, 1), above, below;
    if (c.below(2)) {
      Tensor w = g.window({rows + 2, columns}, a.element, axes);
      g.put(a, w, {1, 0}, "");
      g.put(last, w, {0, 0}, "shift 1");
      g.signal(w, "shift 1");
      g.put(first, w, {rows + 1, 0}, "shift -1");
      g.signal(w, "shift -1");
      g.wait(w, "shift 1");
      g.wait(w, "shift -1");
      above = g.get(w, {0, 0}, a.shape);
      below = g.get(w, {2, 0}, a.shape);
      for (const char *back : {"shift -1", "shift 1"})
        g.signal(w, back);
      for (const char *back : {"shift -1", "shift 1"})
        g.wait(w, back);
    } else {
      Tensor padded = g.insert(a, g.empty({rows + 2, columns}, a.element), 0, 1);
      padded = g.insert(g.permute(last, "shift 1", axes), padded, 0, 0);
      padded = g.insert(g.permute(first, "shift -1", axes), padded, 0, rows + 1);
      above = g.slice(padded, 0, 0, rows);
      below = g.slice(padded, 0, 2, rows);
    }
    return g.elementwise("sub", g.elementwise("add", above, below), a);
  }
  Tensor rows(const Tensor &a) {
    Tensor moved =
        g.allReduce(g.matmul(a, square(a)), "max accumulate " + a.element + " order any", axes);
    return g.permute(g.elementwise("add", g.matmul(moved, square(a)), a), "shift 1", axes);
  }
  /// Gathers in a loop of what it does not change, and of what it has made an iteration ago.
  Tensor loop(const Tensor &a, int64_t times) {
    Tensor weights = square(a), all = g.argument({a.shape[0] * n, a.shape[1]}, a.element);
    bool late = c.below(2), swaps = c.below(2);
    auto made = g.loop(0, 1 + c.below(times), 1, {all, all, a},
                       [&](const std::string &, const GraphText::Carried &held) {
                         Tensor full = g.allGather(late ? held[2] : a, 0, all.shape[0], axes);
                         Tensor product = g.matmul(late ? held[0] : full, weights);
                         Tensor sum = g.elementwise("add", held[1], full);
                         Tensor next = g.slice(product, 0, 0, a.shape[0]);
                         if (swaps)
                           return GraphText::Carried{sum, product, next};
                         return GraphText::Carried{product, sum, next};
                       });
    return g.elementwise("add", made[0], made[1]);
  }
};

} // namespace

Tensor equivalence::overlapPattern(Choices &c, GraphText &g, const Tensor &a, const Axes &axes,
                                   int64_t times, bool outside) {
  g.algorithm = "";
  g.async = false;
  Maker make{c, g, axes};
  // What fewest of the others hold stands here more than once.
  switch (c.below(14)) {
  case 0:
    return make.gatherProduct(a);
  case 1:
    return make.productReduction(a);
  case 2:
    return make.rows(a);
  case 3:
    return make.beside(a);
  case 4:
    return make.shards(a);
  case 5:
  case 10:
  case 11:
    return outside ? make.backward(a) : make.beside(a);
  case 6:
  case 12:
    return times > 1 ? make.loop(a, times) : make.gatherProduct(a);
  case 7:
  case 13:
    return times > 1 ? make.microBatches(a, times) : make.rows(a);
  default:
    return make.stencil(a);
  }
}

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
                                   int64_t times) {
  g.algorithm = "";
  g.async = false;
  Maker make{c, g, axes};
  switch (c.below(6)) {
  case 0:
    return make.gatherProduct(a);
  case 1:
    return make.productReduction(a);
  case 2:
    return make.rows(a);
  case 3:
    return times > 1 ? make.loop(a, times) : make.gatherProduct(a);
  default:
    return make.stencil(a);
  }
}

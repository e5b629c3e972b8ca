//===- Generator.h - What makes a random graph ----------------------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_EQUIVALENCE_GENERATOR_H
#define NCCLX_TEST_UNIT_EQUIVALENCE_GENERATOR_H

#include "Choices.h"
#include "GraphText.h"

#include <algorithm>

namespace equivalence {

/// Each choice has its simplest alternative first, so that what shrinks becomes simple.
class Generator {
public:
  Generator(Choices &choices, bool overlaps);
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
  /// A window that may be used again, also in loops and branches.
  struct Shared {
    Tensor window;
    Axes axes;
    std::string pending; ///< the map of a signal that is to be waited for where it was made
    int64_t pendingDepth = 0;
  };
  std::vector<Shared> windows; ///< those in reach
  int64_t times = 1;           ///< how often the loops around run a step
  int64_t ways = 1;            ///< through the branches
  int64_t work = 0;            ///< messages of one way
  static constexpr int64_t mostWays = 4, mostTimes = 4;

  int64_t below(int64_t n) { return c.below(n); }
  /// Once in n not, which is the simplest.
  bool more(int64_t n) { return below(n) != 0; }
  template <typename T> const T &any(const std::vector<T> &from) { return c.any(from); }
  int64_t size() { return any<int64_t>({1, 2, 3, 4, 6, 7, 12}); }
  std::string element() {
    if (overlaps && more(4)) // what products are made of
      return any<std::string>({"f32", "f32", "bf16", "f64", "i32", "f16"});
    return any<std::string>({"f32", "f32", "f32", "f64", "bf16", "f16", "i32", "i64", "f8E4M3FN",
                             "f8E5M2", "i8", "i16", "ui8", "ui32"});
  }
  /// What upstream ops compute with; the others are only moved and reduced.
  static bool computes(const std::string &type) {
    return type[0] != 'u' && type.substr(0, 2) != "f8";
  }

  Grid makeGrid();
  /// The same ranks, cut otherwise: axes may overlap those of the first, or cross them.
  void makeSecondGrid();
  void addAxes(const std::string &name, const Grid &grid);

  /// Every rank in one of some groups; half the time all of one size.
  Axes listed();
  int64_t smallest(const Axes &axes) const {
    int64_t n = g.groupSize(axes);
    for (const Shape &ranks : axes.groups)
      n = std::min<int64_t>(n, ranks.size());
    return n;
  }
  Axes group();
  /// `order` is that of the algorithm that is asked for, or nothing.
  std::string reduction(const std::string &type, const std::string &order);
  std::vector<Tensor> like(const Tensor &a) const {
    std::vector<Tensor> same;
    for (const Tensor &t : values)
      if (t.shape == a.shape && t.element == a.element && !t.padding)
        same.push_back(t);
    return same;
  }
  /// A tensor of this type that exists, or a new buffer.
  Tensor destination(const Shape &shape, const std::string &type);
  /// Some rows of `a`; in a loop, of its number on.
  Tensor part(const Tensor &a);

  void await(size_t i) {
    values.push_back(g.await(futures[i]));
    futures.erase(futures.begin() + i);
  }
  /// What goes on here ends here: futures, and signals that nobody has waited for.
  void awaitAll() {
    while (!futures.empty())
      await(below(futures.size()));
    for (Shared &one : windows)
      settle(one);
  }

  /// At most so many; one is the last once in `n`.
  void steps(int64_t most, int64_t n);
  void step();
  /// What overlap passes look for, of `a`; false where there is none of it.
  bool pattern(const Tensor &a);

  /// Some steps of their own: what they make is out of reach behind, but `result`.
  template <typename Result> Result inside(const std::function<Result()> &write) {
    std::vector<Tensor> outer = values, flying = std::exchange(futures, {});
    size_t made = windows.size();
    ++depth;
    steps(2, 4);
    Result result = write();
    awaitAll();
    windows.resize(made);
    --depth;
    values = std::move(outer);
    futures = std::move(flying);
    return result;
  }

  const Tensor &uniformFlags();
  /// A condition that depends on the flags or, where that may be known late, on what comes of them
  /// by communication. `i`: of a turn, or empty.
  std::string condition(const std::string &i);
  /// A tensor like `a`, or its future, made in one of two ways.
  void choose(const Tensor &a);
  /// Carries one or two tensors round, and perhaps what is in flight.
  void loop(const Tensor &a);
  /// A tensor like `a` that a collective makes.
  Tensor alike(const Tensor &a, bool future = false);

  /// "[...]" of pairs among members, each at most once source and target; and the pairs back.
  std::pair<std::string, std::string> pairs(int64_t members);
  /// A map of peers, and its inverse; the members are those that every group has.
  std::pair<std::string, std::string> peers(int64_t members);
  /// A window over what `a` holds, or one that is there: parts of it are put once or twice to the
  /// same peers, who read what has come, and say so, which is waited for now or later.
  void oneSided(const Tensor &a);
  void settle(Shared &one) {
    if (!one.pending.empty() && one.pendingDepth == depth)
      g.wait(one.window, std::exchange(one.pending, ""));
  }

  void compute(const Tensor &a);
  /// One that carries this kind over these axes, or nothing: chosen.
  std::string algorithm(int64_t kind);
  /// Whether groups of all sizes cut `extent` into pieces of one size.
  bool cuts(const Axes &axes, int64_t extent) const;
  void communicate(const Tensor &a);
  /// Perhaps some chunks of what is in flight: one, or all in a loop, which carries their maximum.
  void takeChunks(const Tensor &future, int64_t dim);
};

} // namespace equivalence
#endif // NCCLX_TEST_UNIT_EQUIVALENCE_GENERATOR_H

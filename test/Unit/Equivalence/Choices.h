//===- Choices.h - The numbers that a random thing is made of ------*- C++ -*-===//
//
// What is random is made of choices, each a number below some other one, of which 0 is the
// simplest. So a thing is the list of its choices: played again they make the thing again, and a
// list with some left out or lowered makes a smaller one that is as legal. That is how it shrinks.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TEST_UNIT_EQUIVALENCE_CHOICES_H
#define NCCLX_TEST_UNIT_EQUIVALENCE_CHOICES_H

#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace equivalence {

class Choices {
public:
  /// Drawn from a seed.
  explicit Choices(uint64_t seed) : random(seed), drawn(true) {}
  /// These, as far as they go, and zeros behind them.
  explicit Choices(std::vector<int64_t> played) : played(std::move(played)) {}

  /// A number below `n`, which is at least 1.
  int64_t below(int64_t n);
  template <typename T> const T &any(const std::vector<T> &from) {
    return from[below(from.size())];
  }
  template <typename T> void shuffle(std::vector<T> &list) {
    for (size_t i = 1; i < list.size(); ++i)
      std::swap(list[i], list[i - below(i + 1)]);
  }

  /// What is chosen while this lives may be left out together.
  class Part {
  public:
    explicit Part(Choices &choices) : choices(choices), begin(choices.made.size()) {}
    ~Part() { choices.parts.emplace_back(begin, choices.made.size()); }
    Part(const Part &) = delete;

  private:
    Choices &choices;
    size_t begin;
  };

  const std::vector<int64_t> &list() const { return made; }

private:
  friend class Shrinker;
  std::mt19937_64 random;
  bool drawn = false;
  std::vector<int64_t> played, made;
  std::vector<std::pair<size_t, size_t>> parts;
};

/// The smallest choices found, in `tries` tries at most, for which `fails` holds as it does for
/// `choices`; it makes its thing of the choices that it gets.
Choices shrink(Choices choices, const std::function<bool(Choices &)> &fails, int64_t tries);

} // namespace equivalence
#endif // NCCLX_TEST_UNIT_EQUIVALENCE_CHOICES_H

//===- Choices.cpp - Making choices, and fewer of them ------------------------------===//
#include "Choices.h"

#include <algorithm>

using namespace equivalence;

int64_t Choices::below(int64_t n) {
  // Also where there is only one, so that what is chosen behind keeps its place.
  int64_t choice = 0;
  if (drawn)
    choice = int64_t(random() % uint64_t(n));
  else if (made.size() < played.size())
    choice = std::min(played[made.size()], n - 1);
  made.push_back(choice);
  return choice;
}

namespace equivalence {

/// Fewer choices are smaller, and of as many those that are lower.
class Shrinker {
public:
  Shrinker(Choices first, const std::function<bool(Choices &)> &fails, int64_t tries)
      : best(std::move(first)), fails(fails), left(tries) {}

  Choices shrink() {
    // What takes many tries comes when what takes few is of no more use.
    for (bool better = true; better && left > 0;) {
      better = dropParts() || keepInner() || lower();
      for (size_t size : {8, 4, 3, 2, 1})
        better = better || dropRuns(size);
      better = better || lowerPairs();
    }
    return std::move(best);
  }

private:
  Choices best;
  const std::function<bool(Choices &)> &fails;
  int64_t left;

  static bool isSmaller(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
  bool isBetter(std::vector<int64_t> list) {
    if (left <= 0 || !isSmaller(list, best.made))
      return false;
    --left;
    Choices candidate(std::move(list));
    if (!fails(candidate) || !isSmaller(candidate.made, best.made))
      return false;
    best = std::move(candidate);
    return true;
  }
  bool isBetterWithout(size_t begin, size_t end) {
    std::vector<int64_t> list = best.made;
    list.erase(list.begin() + begin, list.begin() + end);
    return isBetter(std::move(list));
  }

  /// Large ones first, each once.
  bool dropParts() {
    bool better = false;
    for (std::pair<size_t, size_t> last(SIZE_MAX, 0);;) { // size and begin
      std::pair<size_t, size_t> next(0, 0);
      for (auto [begin, end] : best.parts)
        if (std::pair part(end - begin, begin); part < last)
          next = std::max(next, part);
      if (next.first == 0)
        return better;
      last = next;
      better |= isBetterWithout(next.second, next.second + next.first);
    }
  }
  /// A part inside another one takes its place: what stands in a loop comes out of it.
  bool keepInner() {
    for (auto [begin, end] : best.parts)
      for (auto [from, to] : best.parts)
        if (begin <= from && to <= end && to - from < end - begin && from < to) {
          std::vector<int64_t> list(best.made.begin(), best.made.begin() + begin);
          list.insert(list.end(), best.made.begin() + from, best.made.begin() + to);
          list.insert(list.end(), best.made.begin() + end, best.made.end());
          if (isBetter(std::move(list)))
            return true;
        }
    return false;
  }
  /// From the end, where what is left out moves the least.
  bool dropRuns(size_t size) {
    bool better = false;
    for (size_t end = best.made.size(); end >= size; end = std::min(end, best.made.size() + 1) - 1)
      better |= isBetterWithout(end - size, end);
    return better;
  }
  bool lower() {
    bool better = false;
    for (size_t i = 0; i < best.made.size(); ++i)
      for (bool again = true; again && i < best.made.size() && best.made[i] > 0;) {
        again = false;
        for (int64_t value : {int64_t(0), best.made[i] / 2, best.made[i] - 1}) {
          std::vector<int64_t> list = best.made;
          list[i] = value;
          if (isBetter(std::move(list))) {
            again = better = true;
            break;
          }
        }
      }
    return better;
  }
  /// One lower and another, behind it, left out: a number of things, and one of the things.
  bool lowerPairs() {
    bool better = false;
    for (size_t i = 0; i < best.made.size(); ++i)
      for (size_t j = i + 1; j < best.made.size(); ++j)
        for (size_t size : {1, 2})
          if (best.made[i] > 0 && j + size <= best.made.size()) {
            std::vector<int64_t> list = best.made;
            --list[i];
            list.erase(list.begin() + j, list.begin() + j + size);
            better |= isBetter(std::move(list));
          }
    return better;
  }
};

} // namespace equivalence

Choices equivalence::shrink(Choices choices, const std::function<bool(Choices &)> &fails,
                            int64_t tries) {
  return Shrinker(std::move(choices), fails, tries).shrink();
}

//===- Pairs.cpp - Few rows in which all pairs of values occur -----------===//
#include "Pairs.h"

#include <random>
#include <set>
#include <tuple>

using namespace equivalence;

namespace {
using Pair = std::tuple<size_t, int64_t, size_t, int64_t>; // factor, value, later factor, value

std::vector<Pair> pairsOf(const Row &row) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i < row.size(); ++i)
    for (size_t j = i + 1; j < row.size(); ++j)
      pairs.push_back({i, row[i], j, row[j]});
  return pairs;
}
} // namespace

Pairs equivalence::coverPairs(const std::vector<int64_t> &factors,
                              const std::function<bool(Row &)> &settle, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::set<Pair> open;
  for (size_t i = 0; i < factors.size(); ++i)
    for (size_t j = i + 1; j < factors.size(); ++j)
      for (int64_t a = 0; a < factors[i]; ++a)
        for (int64_t b = 0; b < factors[j]; ++b)
          open.insert({i, a, j, b});
  Pairs result;
  const int64_t all = int64_t(open.size());
  // Around one open pair, of many random rows the one that has the most; legal rows may be rare.
  constexpr int64_t tries = 4000, enough = 60;
  while (!open.empty()) {
    auto [i, a, j, b] = *open.begin();
    Row best;
    size_t most = 0;
    int64_t legal = 0;
    for (int64_t turn = 0; turn < tries && legal < enough; ++turn) {
      Row row;
      for (size_t f = 0; f < factors.size(); ++f)
        row.push_back(f == i ? a : f == j ? b : int64_t(random() % uint64_t(factors[f])));
      if (!settle(row) || row[i] != a || row[j] != b)
        continue;
      ++legal;
      size_t fresh = 0;
      for (const Pair &pair : pairsOf(row))
        fresh += open.count(pair);
      if (fresh > most) {
        most = fresh;
        best = std::move(row);
      }
    }
    if (best.empty()) {
      ++result.excluded;
      open.erase(open.begin());
      continue;
    }
    for (const Pair &pair : pairsOf(best))
      open.erase(pair);
    result.rows.push_back(std::move(best));
  }
  result.covered = all - result.excluded;
  return result;
}

//===- Pairs.h - Few rows in which all pairs of values occur ------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_EQUIVALENCE_PAIRS_H
#define NCCLX_TEST_UNIT_EQUIVALENCE_PAIRS_H

#include <cstdint>
#include <functional>
#include <vector>

namespace equivalence {

/// One value of each factor, by number.
using Row = std::vector<int64_t>;

struct Pairs {
  std::vector<Row> rows;
  int64_t covered = 0;  ///< pairs of values of two factors that some row has
  int64_t excluded = 0; ///< those that no row was found for
};

/// Rows, of factors of so many values, that have every pair of values of two of them which a row
/// can have. `settle` says whether there is such a row, and may set to other values what means
/// nothing in it. The same ones for the same seed.
Pairs coverPairs(const std::vector<int64_t> &factors, const std::function<bool(Row &)> &settle,
                 uint64_t seed);

} // namespace equivalence
#endif // NCCLX_TEST_UNIT_EQUIVALENCE_PAIRS_H

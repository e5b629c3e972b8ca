//===- Data.h - Inputs from a seed, and comparing outputs ----------*- C++ -*-===//
#ifndef NCCLX_REFERENCE_DATA_H
#define NCCLX_REFERENCE_DATA_H

#include "mlir/IR/Types.h"

#include <cstdint>
#include <string>

namespace mlir::ncclx {

/// Bytes of a dense value: a tensor or memref of static shape, or a scalar (index has 8, i1 has 1).
/// Elements are floats of 8, 16, 32 or 64 bits, index, or integers of 1, 8, 16, 32 or 64 bits; 0
/// for another.
int64_t getDenseBytes(Type type);

/// Fills `data` with a value of `type` that depends on the numbers given and on nothing else: each
/// element is drawn by splitmix64 from (seed, rank, argument, index).
///   floats:   k/10 rounded to the type, k uniform in -20..20: small, and sums depend on their
///   order integers: uniform in -100..100 (so that sums of a few millions do not wrap in 32 bits)
///   index:    0; i1: 0 or 1
/// `exact`: floats are whole numbers in -2..2, so that no order changes a sum of a few of them.
/// Every rank draws the same if `rank` is the same: pass 0 for an argument that is uniform.
void fillInputs(uint64_t seed, int64_t rank, int64_t argument, Type type, void *data,
                bool exact = false);

/// How two values of one type differ, bit by bit or, with a tolerance of at least 0, by more than
/// that; two NaNs are equal whatever they carry.
struct Comparison {
  int64_t count = 0;              ///< elements compared
  int64_t different = 0;          ///< of them, how many differ
  int64_t first = -1;             ///< the flat index of the first that does
  double expected = 0, found = 0; ///< its two values
  /// Largest |expected - found|, NaN if one side alone is NaN: to tell a rounding from a wrong
  /// value.
  double largest = 0;

  bool equal() const { return different == 0; }
  /// "3 of 120 elements differ, the first at [1, 4]: expected 2, found 3 (largest difference 1)".
  std::string describe(Type type) const;
};

Comparison compare(Type type, const void *expected, const void *found, double tolerance = -1);

/// The largest finite magnitude in a value.
double largestMagnitude(Type type, const void *data);

} // namespace mlir::ncclx
#endif // NCCLX_REFERENCE_DATA_H

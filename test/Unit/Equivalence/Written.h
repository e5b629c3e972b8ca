//===- Written.h - Schedules as a user writes them ----------------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_EQUIVALENCE_WRITTEN_H
#define NCCLX_TEST_UNIT_EQUIVALENCE_WRITTEN_H

#include <cstdint>
#include <string>

namespace equivalence {

/// A `ctran.program` of one axis, by puts: each member sends its input, or its piece of it, to each
/// other. all_gather, all_to_all, and, with what comes reduced in member order, reduce_scatter and
/// all_reduce.
struct Written {
  std::string name, kind;
  int64_t members = 1;
  int64_t elements = 1; ///< of one member's piece; of an all_reduce all of them
  std::string element = "f32";
  std::string reduction = "sum accumulate f32"; ///< words of ctran.reduce
  bool inPlace = false;                         ///< an all_reduce on one window
  std::string str() const;
};

} // namespace equivalence
#endif // NCCLX_TEST_UNIT_EQUIVALENCE_WRITTEN_H

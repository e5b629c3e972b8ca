//===- Streamed.h - Rounds in chunks that follow each other at once -------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_STREAMED_H
#define NCCLX_LIB_CONVERSION_STREAMED_H

#include "Algorithms.h"

namespace mlir::ctran {

/// How the rounds of a log-step algorithm follow each other.
struct Streaming {
  int64_t chunks = 1; ///< of each block; each goes on when it has come
  int64_t depth = 1;  ///< rounds under way together; 0: each waits for the whole of the one before
};

/// How the rounds of `c` stream: as it asks for, or as is quickest on its link. None where they go
/// whole: that is quickest, or a block is one row, or what arrives is cut otherwise.
std::optional<Streaming> streamingOf(ScheduleBuilder &s, const CollectiveSpec &c);

/// all_gather, reduce_scatter, all_reduce and all_to_all by rounds that stream, of more than one
/// chunk.
InFlight emitStreamed(ScheduleBuilder &s, const CollectiveSpec &c, const Streaming &how);

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_STREAMED_H

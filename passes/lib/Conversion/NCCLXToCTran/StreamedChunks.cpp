//===- StreamedChunks.cpp - In how many chunks rounds stream ----------------------------------===//
#include "PairBlocks.h"
#include "Streamed.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;

/// What a block can be cut into at most.
static int64_t mostChunks(ScheduleBuilder &s, const CollectiveSpec &c) {
  int64_t n = c.groupSize(s);
  if (c.flow.inCut && c.flow.outCut) {
    switch (PairBlocks::cuttingOf(c)) {
    case PairBlocks::Cutting::Flat:
      return llvm::divideCeil(c.inType.getNumElements() / n, flatGranule(c.inType));
    case PairBlocks::Cutting::Rows:
      return c.inType.getDimSize(*c.flow.inCut) / n;
    default:
      return 1; // no part of a block is a box at both ends
    }
  }
  std::optional<int64_t> dim = c.flow.inCut ? c.flow.inCut : c.flow.outCut;
  if (!dim)
    return llvm::divideCeil(capacityOf(s, c), flatGranule(c.inType));
  int64_t rows = (c.flow.inCut ? c.inType : c.outType).getDimSize(*dim);
  return llvm::divideCeil(rows, n);
}

/// The first chunk goes through all that is done, the others take as long as what is busiest of
/// them: puts, or sums and copies.
static int64_t chunksByTime(ScheduleBuilder &s, const CollectiveSpec &c, int64_t most) {
  if (!c.link)
    return 1;
  int64_t n = c.groupSize(s), rounds = llvm::Log2_64_Ceil(n);
  bool exchanges = c.flow.inCut && c.flow.outCut;
  int64_t phases = exchanges ? 1 : int64_t(c.flow.combines) + int64_t(!c.flow.inCut);
  double block =
      double(capacityOf(s, c)) * double(llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8));
  int64_t blocks = n - 1, copies = n - 1, messages = rounds;
  if (exchanges) { // a block goes once for each bit of its way; it is taken then, and copied twice
    blocks = messages = 0;
    for (int64_t j = 1; j < n; ++j)
      blocks += llvm::popcount(uint64_t(j));
    for (int64_t d = 1; d < n; d *= 2)
      messages += llvm::divideCeil(n - d, 2 * d);
    copies = blocks + 2 * n;
  }
  double all = block * double(blocks), copied = block * double(copies) * c.link->copySecondsPerByte;
  double sums = c.flow.combines ? 3 * all * s.carrier.sumSecondsPerByte : 0;
  int64_t best = 1;
  double least = 0;
  for (int64_t chunks = 1; chunks <= std::min<int64_t>(most, 64); chunks *= 2) {
    double puts =
        double(phases) * (all / c.link->bytesPerSecond + double(messages * chunks) * stepSeconds);
    double local = sums + double(phases) * (copied + double(copies * chunks) * stepSeconds);
    double seconds = std::max(puts, local) * double(chunks - 1) / double(chunks) +
                     (puts + local) / double(chunks);
    if (chunks == 1 || seconds < least) {
      best = chunks;
      least = seconds;
    }
  }
  return best;
}

/// Why its rounds go whole.
static StringRef whyWhole(ScheduleBuilder &s, const CollectiveSpec &c) {
  if (s.carrier.oneKernel)
    return "it is one kernel's";
  if (c.flow.inCut && c.flow.outCut && PairBlocks::cuttingOf(c) == PairBlocks::Cutting::None)
    return "blocks are cut along one dimension and put together along another, so that no part of "
           "one is a box at both ends";
  return "its blocks are of one row, or of none";
}

std::optional<Streaming> ctran::streamingOf(ScheduleBuilder &s, const CollectiveSpec &c) {
  int64_t most = s.carrier.oneKernel ? 1 : mostChunks(s, c);
  if (most <= 1) {
    s.whole = whyWhole(s, c);
    return std::nullopt;
  }
  // A depth that is asked for is one for chunks that are.
  int64_t usual = c.pipeline.chunks ? 1 : std::max<int64_t>(1, s.carrier.lanes);
  Streaming how{c.pipeline.chunks ? *c.pipeline.chunks : chunksByTime(s, c, most),
                c.pipeline.depth.value_or(usual)};
  how.chunks = std::min(how.chunks, most);
  s.pipelined = ncclx::Pipeline{how.chunks, how.depth};
  return how.chunks > 1 ? std::optional(how) : std::nullopt;
}

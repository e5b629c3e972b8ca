//===- ChunkProgram.h - Programs over buffers that are counted in chunks ----*- C++ -*-===//
//
// MSCCL's XML and MSCCL++'s plans say little of sizes: a rank has so many chunks of input, output
// and scratch, and each GPU has a text of its own. What both become is written here.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_IMPORT_CHUNKPROGRAM_H
#define NCCLX_LIB_IMPORT_CHUNKPROGRAM_H

#include "ncclx/Conversion/ScheduleBuilder.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/DenseMap.h"

#include <map>
#include <memory>
#include <string>
#include <tuple>

namespace mlir::ncclx::msccl {

enum class Collective { AllGather, AllReduce, AllToAll, ReduceScatter, Custom };
/// "allgather" or "all_gather"; all else is Custom.
Collective collectiveOf(StringRef word);

/// Chunks of a buffer of one GPU.
struct Place {
  char buffer = 'i'; ///< i, o or s
  int64_t chunk = 0;
};

/// What a file says of the collective that it carries.
struct Shape {
  LocationAttr loc;
  std::string name, collectiveName;
  Collective collective = Collective::Custom;
  bool inPlace = false;
  int64_t ranks = 0;
  int64_t inputChunks = 0, outputChunks = 0, scratchChunks = 0; ///< of the largest rank

  StringRef kind() const; ///< as `ncclx` calls it
  /// In place there is one buffer, of the larger side.
  int64_t bufferChunks() const { return std::max(inputChunks, outputChunks); }
  /// Where a place lies: in place, inputs and outputs are chunks of one buffer, called 'o'.
  Place resolve(int64_t rank, Place place) const;
  /// Chunks of the buffer that a place of `resolve` lies in.
  int64_t chunksOf(char resolved) const;
  /// Takes what one side leaves open from the other; false after an error where they do not fit.
  bool completeSizes();
  /// The least that the busiest rank sends, in chunks, times the number of ranks, every rank on a
  /// port of its own. 0: not known.
  int64_t leastSentTimesRanks() const;
  /// ", the busiest rank sends 1.000 of the least", or nothing.
  std::string sentOfLeast(int64_t mostSent) const;
  /// Warns where the result of the collective is not known here.
  void warnIfCustom() const;
};

/// Counters of all ranks: those with equally many signals are one declaration.
class CounterTable {
public:
  /// A counter of `rank`; gives its number. `perRun` is at least 1.
  size_t add(int64_t rank, int64_t perRun, int64_t credits = 0);
  void declare(ctran::ScheduleBuilder &s, StringRef name);
  Value slots(size_t number) const { return declared.at(counters[number].family); }
  int64_t place(size_t number) const { return counters[number].place; }

private:
  using Family = std::pair<int64_t, int64_t>; ///< signals of a run, credits
  struct Counter {
    Family family;
    int64_t place;
  };
  std::vector<Counter> counters;
  std::map<Family, std::map<int64_t, int64_t>> used; ///< by rank
  std::map<Family, Value> declared;
};

/// Writes a program of one collective, for f32.
class ChunkProgram {
public:
  ChunkProgram(const Shape &shape, int64_t chunkElements, ModuleOp module);

protected:
  const Shape &shape;
  int64_t chunkElements;
  OpBuilder b;
  Value input, output, scratch; ///< cut in chunks
  ctran::ScheduleBuilder &s() { return *builder; }

  /// The program and its buffers, which peers may reach as `peers` says.
  void begin(ctran::PeerAccess peers, int64_t scratchGenerations);
  /// Says what the inputs hold; gives the token before all else.
  Value emitSources();
  /// The ops of one rank, which `body` writes behind `start`; gives their token.
  Value forRank(int64_t rank, Value start, llvm::function_ref<Value(Value start)> body);
  /// Demands what the outputs hold, and returns.
  void end(SmallVector<Value> ready);

  Value constant(int64_t value);
  Value chunks(Value window, int64_t first, int64_t count);
  /// The window that a place of `rank` lies in, and the chunks [place, place + count) of it in
  /// `view`, which is that window or a peer's view of it.
  Value windowOf(int64_t rank, Place place);
  Value chunksAt(Value view, int64_t rank, Place place, int64_t count);
  Value own(int64_t rank, Place place, int64_t count);
  Value peer(Value memory, int64_t rank);
  /// One token for all of `tokens`.
  Value join(ArrayRef<Value> tokens, ctran::ScheduleBuilder::LaneRef lane, StringRef note);

private:
  std::unique_ptr<ctran::ScheduleBuilder> builder;
  std::string value;
  std::map<int64_t, Value> constants; ///< at the top of the program
  /// Ranges of one rank's steps, which name the same chunks again and again.
  llvm::DenseMap<std::tuple<Block *, void *, int64_t, int64_t>, Value> ranges;

  Value whole(StringRef name, ctran::WindowRole role, int64_t chunks, ctran::PeerAccess peers,
              int64_t generations);
  Value coordNumber();
  Value emitSinks(ValueRange ready);
};

} // namespace mlir::ncclx::msccl
#endif // NCCLX_LIB_IMPORT_CHUNKPROGRAM_H

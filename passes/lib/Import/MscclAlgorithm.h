//===- MscclAlgorithm.h - What an MSCCL XML file says -----------------------*- C++ -*-===//
#ifndef NCCLX_LIB_IMPORT_MSCCLALGORITHM_H
#define NCCLX_LIB_IMPORT_MSCCLALGORITHM_H

#include "ChunkProgram.h"

#include <optional>
#include <tuple>
#include <vector>

namespace mlir::ncclx::msccl {

/// What a step does with what it receives (`receives`) and with what it sends (`sends`).
enum class StepType {
  Nop,
  Copy,                 ///< cpy: source to destination
  Reduce,               ///< re: source into destination
  Send,                 ///< s
  Receive,              ///< r
  ReceiveCopySend,      ///< rcs
  ReceiveReduceSend,    ///< rrs: received + source, sent on, not stored
  ReceiveReduceCopy,    ///< rrc: received + source to destination
  ReceiveReduceCopySend ///< rrcs: the same, and sent on
};
inline bool receives(StepType t) { return t >= StepType::Receive; }
inline bool sends(StepType t) {
  return t == StepType::Send || t == StepType::ReceiveCopySend ||
         t == StepType::ReceiveReduceSend || t == StepType::ReceiveReduceCopySend;
}
inline bool readsSource(StepType t) {
  return t != StepType::Nop && t != StepType::Receive && t != StepType::ReceiveCopySend;
}
inline bool stores(StepType t) {
  return t != StepType::Nop && t != StepType::Send && t != StepType::ReceiveReduceSend;
}
inline bool reduces(StepType t) {
  return t == StepType::Reduce || t >= StepType::ReceiveReduceSend;
}

struct Step {
  LocationAttr loc;
  int64_t number = 0;
  StepType type = StepType::Nop;
  std::string word; ///< the type as written
  Place source, dest;
  int64_t count = 1;
  std::optional<std::pair<size_t, size_t>> dependency; ///< position of a block, of a step in it
};

struct ThreadBlock {
  LocationAttr loc;
  int64_t id = 0;
  int64_t send = -1, receive = -1, channel = 0;
  std::vector<Step> steps;
};

struct Gpu {
  LocationAttr loc;
  int64_t inputChunks = 0, outputChunks = 0, scratchChunks = 0;
  std::vector<std::tuple<Place, Place>> copies; ///< local, before all steps
  std::vector<ThreadBlock> blocks;
};

/// Sender, receiver, channel.
using Connection = std::tuple<int64_t, int64_t, int64_t>;

struct Algorithm : Shape {
  std::string protocol;
  std::vector<Gpu> gpus;

  /// The connections and how many transfers go over each.
  std::map<Connection, int64_t> connections() const;
};

/// Reads `text`; null after an error. Limits and defaults are warnings.
std::optional<Algorithm> readAlgorithm(StringRef text, StringRef file, MLIRContext *context);

/// What one execution shows; a program whose waits are counted behaves alike in all of them.
struct Play {
  /// (rank; block, step) in an order in which nobody waits for what comes later, with `fifoSlots`
  /// places a FIFO; where there is none, in an order that the dependencies allow.
  std::vector<std::vector<std::pair<size_t, size_t>>> order;
  std::optional<int64_t> fifoSlots; ///< the fewest that suffice; none: it stops for any number
  int64_t hops = 0;                 ///< the longest chain of transfers that one chunk's value took
  int64_t transfers = 0;            ///< chunks that go from rank to rank
  int64_t mostSent = 0;             ///< chunks that the busiest rank sends
};

/// Plays `algorithm` with 1, 2, ... up to `mostSlots` places. Fails, with an error, where the
/// dependencies of a GPU's steps form a cycle.
std::optional<Play> play(const Algorithm &algorithm, int64_t mostSlots);

} // namespace mlir::ncclx::msccl
#endif // NCCLX_LIB_IMPORT_MSCCLALGORITHM_H

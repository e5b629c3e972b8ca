//===- MscclppPlan.h - What an MSCCL++ execution plan says ------------------*- C++ -*-===//
#ifndef NCCLX_LIB_IMPORT_MSCCLPPPLAN_H
#define NCCLX_LIB_IMPORT_MSCCLPPPLAN_H

#include "ChunkProgram.h"

#include <optional>
#include <vector>

namespace mlir::ncclx::msccl {

/// What an op does; the words of a plan are in ReadMscclppJson.cpp.
enum class PlanOpKind {
  Nop,     ///< the block's threads meet; with `deps`, other blocks' steps are awaited
  Signal,  ///< raises its channels at their peers
  Wait,    ///< waits for its channels
  Move,    ///< source k to destination k: put, get, copy and their packet forms
  Reduce,  ///< all sources into all destinations
  Acquire, ///< takes one of a semaphore of the own GPU
  Release,
  Barrier, ///< several blocks of the GPU meet
  Flush    ///< what has been put on its port channels is done
};

/// Chunks that an op reads or writes.
struct PlanOperand {
  int64_t rank = 0; ///< whose
  bool remote = false;
  bool group = false; ///< the same place on every rank of `ranks`, through the switch
  std::vector<int64_t> ranks;
  Place place;
  int64_t count = 1;
  bool packets = false; ///< each chunk of it carries its own flag
};

struct PlanOp {
  LocationAttr loc;
  int64_t number = 0;
  std::string word;
  PlanOpKind kind = PlanOpKind::Nop;
  bool signals = false;         ///< each put is followed by a signal on its channel
  bool flushes = false;         ///< and waits until it is done
  bool port = false;            ///< over port channels: a proxy carries it out, in order by channel
  std::vector<size_t> channels; ///< of the GPU, index into PlanGpu::channels
  std::vector<PlanOperand> sources, dests;
  std::vector<std::pair<size_t, int64_t>> deps; ///< position of a block, steps of it that are over
  std::vector<size_t> semaphores;
  int64_t barrier = -1, participants = 0;
  int64_t meeting = -1; ///< which use of the barrier by its block this is
};

struct PlanBlock {
  LocationAttr loc;
  int64_t id = 0;
  std::vector<PlanOp> ops;
};

struct PlanChannel {
  bool port = false;
  int64_t peer = 0;
  size_t there = 0; ///< the channel at the peer that hears it, index into its channels
};

struct PlanGpu {
  LocationAttr loc;
  std::vector<PlanChannel> channels; ///< memory channels, then port channels
  std::vector<int64_t> semaphores;   ///< initial values
  std::vector<PlanBlock> blocks;
};

struct Plan : Shape {
  std::string protocol;
  bool doubleScratch = false; ///< scratch memory alternates between two copies, by run
  std::vector<PlanGpu> gpus;
};

/// Reads `text`; null after an error. What is missing and has a default is a warning.
std::optional<Plan> readPlan(StringRef text, StringRef file, MLIRContext *context);

/// Joins the two ends of each channel, and checks what all GPUs must agree on: room, counts,
/// packets, meetings. False after an error.
bool checkPlan(Plan &plan);

/// One execution, in which nobody's choice depends on time: so it stands for all.
struct PlanPlay {
  /// By rank: (block, op) in an order in which nobody waits for what comes later; what never gets
  /// its turn follows in the order that the GPU's own dependencies allow.
  std::vector<std::vector<std::pair<size_t, size_t>>> order;
  std::vector<std::string> stopped; ///< who stands where, and for what; empty when all is done
};
/// Fails, with an error, where blocks of a GPU wait for each other in a cycle whatever peers do.
std::optional<PlanPlay> play(const Plan &plan);

} // namespace mlir::ncclx::msccl
#endif // NCCLX_LIB_IMPORT_MSCCLPPPLAN_H

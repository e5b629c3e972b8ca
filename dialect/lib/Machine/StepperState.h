//===- StepperState.h - State of the processes of a Stepper --------*- C++ -*-===//
#ifndef NCCLX_MACHINE_LIB_STEPPERSTATE_H
#define NCCLX_MACHINE_LIB_STEPPERSTATE_H

#include "Stepper.h"

#include "ncclx/Machine/Trace.h"

#include <limits>

namespace mlir::ctran::machine {

/// The generation that run `run` has, which it is the `use`-th run to have.
struct Turn {
  int64_t generation, use;
  Turn(int64_t run, int64_t generations)
      : generation(generations == 1 ? 0 : run % generations),
        use(generations == 1 ? run : run / generations) {}
};

struct Stepper::Queued {
  Op op;
  LaneState *lane = nullptr;
  uint32_t run = 0, step = 0;
};

struct Stepper::LaneState {
  Lane name;
  uint32_t id = 0;
  bool issueOnly = false;
  uint32_t key = 0, done = 0; ///< keys of starts and of local completions
  uint32_t doneCount = 0;
  int64_t steps = 0;
  Clock clock;
  std::deque<std::unique_ptr<Queued>> queue;
};

/// What is known after an op, for those that wait for it.
struct Stepper::Over : TokenState {
  explicit Over(const LaneState &lane) : lane(&lane), clock(lane.clock) {}
  const LaneState *lane;
  Clock clock;
};

struct Stepper::SlotState {
  int64_t perRun = 0;
  int64_t count = 0, acquired = 0;
  uint32_t landed = KeyTable::never; ///< key; see landedKey
  std::deque<Clock> pending;         ///< of signals that no wait has acquired
  struct Writer {
    uint32_t rank, lane;
    int64_t count;
    Who who;
  };
  llvm::SmallVector<Writer, 1> writers;
  LaneState *waiter = nullptr;
  std::deque<std::pair<uint32_t, int64_t>> passed; ///< waits: index on the waiter's lane, value
  int64_t known = 0, lead = 0;
  int64_t smallestWait = std::numeric_limits<int64_t>::max(); ///< relative to the run
  struct Use {
    int64_t signals = 0, waits = 0, lastWait = 0;
  };
  std::vector<Use> uses; ///< per run that uses this generation
};

/// The slots of one declaration, at generation * number + index.
struct Stepper::SlotTable {
  llvm::DenseMap<int64_t, std::unique_ptr<SlotState>> states;
  int64_t lastAt = -1;
  SlotState *last = nullptr; ///< that at lastAt
};

struct Stepper::Process {
  uint32_t rank = 0;
  std::vector<int64_t> point;
  std::vector<std::unique_ptr<LaneState>> lanes;
  LaneState *lastLane = nullptr;
  std::vector<SlotTable> slots;
  std::vector<std::vector<std::unique_ptr<WindowMemory>>> memory; ///< window, generation
  std::unique_ptr<OpStream> stream;
  std::unique_ptr<Queued> pending;
  int64_t run = 0, fetched = 0, queued = 0;
  bool ended = false, done = false, isActive = false, hungry = false;
};

inline Stepper::Process &Stepper::process(uint32_t owner) {
  return *processes[frame.representative ? 0 : owner];
}

/// How a window is written, for S32.
struct Stepper::Packets {
  bool byPacket = false, otherwise = false;
  Who packet, other;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_STEPPERSTATE_H

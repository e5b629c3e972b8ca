//===- Simulator.h - One timed execution of a schedule -------------*- C++ -*-===//
#ifndef NCCLX_MACHINE_LIB_SIMULATOR_H
#define NCCLX_MACHINE_LIB_SIMULATOR_H

#include "Fluid.h"
#include "Stepper.h"

#include "ncclx/Machine/Time.h"

#include "llvm/ADT/DenseMap.h"

#include <queue>

namespace mlir::ctran::machine {

/// Discrete events over fluid resources. All ops are loaded first, and of each only what its time
/// depends on is kept: who it waits for by number, not by token.
class Simulator {
public:
  Simulator(const Schedule &schedule, const CostModel &model, const TimeOptions &options)
      : schedule(schedule), model(model), options(options), frame(schedule, false), fluid(model) {}

  TimeResult run();

private:
  static constexpr uint32_t none = ~0u;

  /// What an op waits for, and what has come of it; its TimedOp has the same number. Lists end
  /// where those of the next instance begin.
  struct Instance {
    double issued = 0, end = 0;
    uint32_t lane = 0;
    uint32_t next = none;               ///< on its lane
    uint32_t after = 0, slots = 0;      ///< begins, in `befores` and `slotUses`
    uint32_t firstWaiter = none;        ///< the first lane that waits for its end
    uint32_t hops = 0;                  ///< of the longest chain that ends with it
    bool waits = false, raises = false; ///< its slots
    bool transfers = false;             ///< between ranks
    bool over = false;
  };
  struct Timing {
    double before = 0, work = 0, after = 0, landing = 0, maxRate = 0;
    uint32_t uses = 0; ///< begin, in `resourceUses`
  };
  struct LaneState {
    uint32_t rank = 0;
    Lane lane;
    uint32_t head = none, tail = none; ///< of the ops that have not left it
    bool busy = false, waiting = false;
    uint32_t nextWaiter = none; ///< of what it waits for
    uint32_t come = 0;          ///< slots of the op at its head, from the first, that have come
    double freeSince = 0;
    int64_t last = -1;
    int64_t steps = 0; ///< of the run that is being loaded
    double least = 0;  ///< seconds that its ops take at least
    uint32_t hops = 0; ///< of what it has waited for
  };
  struct SlotState {
    struct Raise {
      double time;
      uint32_t op, hops; ///< hops: most of this one and those before
    };
    std::vector<Raise> raises;
    uint32_t firstWaiter = none;
  };
  struct SlotUse {
    uint32_t slot = 0;
    int64_t k = 0; ///< of a wait: raises that it needs
  };
  enum class What : uint8_t { Poll, Begin, Finish, Land };
  struct Event {
    double time;
    int64_t order;
    What what;
    uint32_t subject; ///< op; lane for Poll
    bool operator<(const Event &other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };
  /// Of a run's ops while they are loaded.
  struct Loading;

  // SimulatorLoad.cpp
  bool load();
  bool hasRoom(uint32_t processes);
  bool loadOp(Loading &loading);
  bool refuse(const Op &op, const std::string &why);
  int64_t budget() const { return std::min<int64_t>(options.eventBudget, none - 1); }
  std::string query(const Op &op, uint32_t rank, OpCostQuery &out) const;
  Cost costOf(const OpCostQuery &query) const;
  uint32_t laneOf(Loading &loading, const Lane &lane);
  std::string addSlots(const Op &op, uint32_t rank, int64_t run);
  bool isLate(llvm::ArrayRef<double> carried) const;

  // Time.cpp
  bool prepare();
  bool play();
  void tellLate();
  void at(double time, What what, uint32_t subject) {
    events.push({time, nextOrder++, what, subject});
  }
  void poll(uint32_t lane);
  /// Lanes that wait for what has come.
  void wake(uint32_t &firstWaiter);
  /// In the order of their numbers.
  void pollWoken();
  void begin(uint32_t i);
  void finish(uint32_t i);
  void leave(LaneState &lane, uint32_t i);
  void land(uint32_t i);
  std::string whyNoEnd() const;

  // SimulatorReport.cpp
  void report();
  void expose();
  void sortOps();

  llvm::ArrayRef<uint32_t> beforesOf(uint32_t i) const {
    return {befores.data() + instances[i].after, befores.data() + instances[i + 1].after};
  }
  llvm::ArrayRef<SlotUse> slotsOf(uint32_t i) const {
    return {slotUses.data() + instances[i].slots, slotUses.data() + instances[i + 1].slots};
  }
  llvm::ArrayRef<ResourceUse> usesOf(uint32_t i) const {
    return {resourceUses.data() + timings[i].uses, resourceUses.data() + timings[i + 1].uses};
  }

  const Schedule &schedule;
  const CostModel &model;
  const TimeOptions &options;
  Frame frame;
  std::unique_ptr<Frame> own; ///< of the processes: all ranks or one
  Fluid fluid;
  Scan scanned; ///< of one representative, or where several runs need it
  bool one = false;
  double now = 0;
  int64_t nextOrder = 0;
  TimeResult result;
  std::vector<Instance> instances; ///< and one more, which ends the lists of the last
  std::vector<Timing> timings;     ///< likewise
  std::vector<uint32_t> befores;   ///< ops; `none`: what is never over
  std::vector<SlotUse> slotUses;
  std::vector<ResourceUse> resourceUses;
  std::vector<size_t> firstOf; ///< by process: its first op
  std::vector<LaneState> lanes;
  /// By process and declaration, and number with its generation.
  llvm::DenseMap<std::pair<uint64_t, int64_t>, uint32_t> slotNumbers;
  std::vector<SlotState> slots;
  std::vector<uint32_t> woken; ///< lanes
  std::priority_queue<Event> events;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_SIMULATOR_H

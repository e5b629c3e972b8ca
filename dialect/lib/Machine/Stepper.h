//===- Stepper.h - One execution of a schedule over clocks ---------*- C++ -*-===//
#ifndef NCCLX_MACHINE_LIB_STEPPER_H
#define NCCLX_MACHINE_LIB_STEPPER_H

#include "Memory.h"

#include "llvm/ADT/DenseMap.h"

#include <deque>
#include <limits>

namespace mlir::ctran::machine {

/// What is known of a schedule before it is stepped: one pass over the streams of run 0.
struct Scan {
  Verdict verdict = Verdict::Ok; ///< Invalid, or Undecided: asymmetric, or over the budget
  std::string message;
  bool asymmetric = false, overBudget = false;
  int64_t events = 0;
  llvm::DenseSet<uint32_t> peers; ///< displacements, for one representative
  /// Per Schedule::slots, signals of run 0: owner (0 for one representative) and slot -> number.
  std::vector<llvm::DenseMap<uint64_t, int64_t>> signals;
  static uint64_t slotKey(uint32_t owner, int64_t slot) {
    return uint64_t(owner) << 32 | static_cast<uint64_t>(slot);
  }
  /// One representative, in issue order: the op at which the serial form stops; empty when it ends.
  std::string serialFormFailsAt;
};
/// Stops once there are more than `budget` ops.
Scan scan(const Frame &frame, int64_t budget);

/// Number of runs that prove all runs: P+1.
int64_t runsToProve(const Schedule &schedule);

struct StepOptions {
  int64_t runs = 2;
  int64_t eventBudget = 0, clockBudget = 0;
  int64_t runBudget = std::numeric_limits<int64_t>::max(); ///< of runInOrder: ops of run 0
  std::optional<int64_t> depth;
  bool serialForm = false; ///< all lanes of a rank are one, in issue order
  bool ordersOnly = false; ///< only whether it ends: no memory, no clocks
  unsigned widen = 0;
};

/// Steps every process until nothing can move.
class Stepper {
public:
  Stepper(const Frame &frame, const Scan *scan, const StepOptions &options);
  ~Stepper();

  /// False: `verdict`, `message`, `witness`.
  [[nodiscard]] bool run();
  /// One representative, of which nothing is known beforehand: steps each op as its issuer comes to
  /// it, so that what a Scan tells is learned on the way. True: all is proved, and the serial form
  /// holds, as this is it. False: nothing is decided, unless `longRun`; an op could not run in its
  /// turn, a rule does not hold, or the peers were not met early enough.
  [[nodiscard]] bool runInOrder();
  bool longRun = false; ///< run 0 has more ops than its budget

  Verdict verdict = Verdict::Ok;
  std::string message;
  Witness witness;
  int64_t events = 0;
  std::vector<ProofResult::SlotUse> slotUse;
  bool droppedOrder() const { return keys.dropped; }

private:
  struct Over;
  struct Queued;
  struct LaneState;
  struct SlotState;
  struct SlotTable;
  struct Process;
  struct Packets;

  [[nodiscard]] bool fail(Verdict kind, const std::string &text, const Who *op = nullptr,
                          const Who *other = nullptr);
  [[nodiscard]] bool failResolve(Resolve r, const Who &who);
  OpRef ref(const Who &who) const;
  std::string text(const Who &who) const;

  void makeProcesses();
  [[nodiscard]] bool advance(Process &p);
  /// Fetches the next op of `p` into p.pending; p.ended after the last.
  [[nodiscard]] bool fetch(Process &p);
  LaneState &laneOf(Process &p, const Lane &lane);
  enum class Step : uint8_t { Done, Blocked, Failed };
  Step step(Process &p, LaneState &lane, Queued &q);
  [[nodiscard]] bool acquire(Process &p, LaneState &lane, const Queued &q, const Who &who,
                             const SlotRange &range);
  [[nodiscard]] bool moveData(Process &p, LaneState &lane, Queued &q, const Who &who);
  [[nodiscard]] bool fitValue(const Op &op, const Access &to, llvm::ArrayRef<bool> known,
                              Pieces &pieces, const Who &who);
  [[nodiscard]] bool caller(Process &p, LaneState &lane, Queued &q, const Who &who);
  /// Raises `range`, the slots of the op.
  [[nodiscard]] bool deliver(Process &p, LaneState &lane, const Op &op, const Who &who,
                             const SlotRange &range, const Clock &clock, bool landing);
  [[nodiscard]] bool refused(const Refusal &refusal, const Box &box, const Who &who,
                             const char *what);
  void complete(LaneState &lane, Queued &q, bool local);
  void retire(std::unique_ptr<Queued> done);
  void learnPerRun(Process &p);

  Process &process(uint32_t owner);
  SlotState &slotState(Process &p, unsigned slots, int64_t generation, int64_t index);
  /// The Landed key of a slot, as its owner names it.
  uint32_t landedKey(SlotState &slot, uint32_t owner, unsigned slots, int64_t generation,
                     int64_t index);
  int64_t perRun(uint32_t owner, unsigned slots, int64_t index) const;
  WindowMemory &memory(Process &p, unsigned window, int64_t run);
  void wake(Process &p);

  [[nodiscard]] bool deadlock();
  [[nodiscard]] bool balance();
  [[nodiscard]] bool realisations();

  const Frame &frame;
  const Schedule &schedule;
  const Scan *scanned; ///< null: learned on the way
  StepOptions options;
  Values values;
  KeyTable keys;
  std::vector<Lane> laneNames;
  std::vector<std::unique_ptr<Process>> processes;
  std::deque<Process *> active;
  Process *current = nullptr;
  int64_t lookahead = 256;
  int64_t nextTerm = 0;
  std::vector<std::unique_ptr<Queued>> spare;
  std::vector<Packets> packets;              ///< per window, for in-band slots
  llvm::IntrusiveRefCntPtr<TokenState> over; ///< of a token that nobody can wait for
  Clock scratch, shifted;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_STEPPER_H

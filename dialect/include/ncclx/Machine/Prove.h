//===- Prove.h - Whether a schedule is right in every order --------*- C++ -*-===//
//
// One execution of the machine over symbolic values and vector clocks decides for all orders, and
// P+1 runs for all runs (dialect/SPEC.md, "ctran: proof", Theorems 1 to 3).
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_MACHINE_PROVE_H
#define NCCLX_MACHINE_PROVE_H

#include "ncclx/Machine/Schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::ctran::machine {

enum class Verdict : uint8_t {
  Ok,
  Result,    ///< a box holds, or a reduce meets, another value than it must
  Undefined, ///< a read of what was never written
  Race,      ///< two accesses, at least one a write, that nothing orders
  Signal,    ///< writers or waiters of a slot are not those declared, or a count is not determinate
  Balance,   ///< the runs do not add the same number of signals to a slot (S15)
  Deadlock,  ///< a lane waits for ever
  Realisation, ///< a slot's realisation is not legal for the way the program uses it (S32, S33)
  Invalid,     ///< not a schedule: an index out of bounds, an operand that is missing
  Undecided    ///< not proved and not refused: the message says why
};
/// "ok", "result", "undefined", ...
const char *toString(Verdict verdict);

enum class ProofMode : uint8_t {
  Auto,           ///< one representative when the stream is symmetric, else all ranks
  Representative, ///< one rank stands for all (Theorem 1)
  AllRanks
};

struct ProofOptions {
  ProofMode mode = ProofMode::Auto;
  /// Consecutive runs to step; 0: P+1, P the largest number of generations (Theorem 2).
  int64_t runs = 0;
  /// Ops of all runs and processes that may be stepped; beyond it the verdict is Undecided.
  int64_t eventBudget = 16'000'000;
  /// Bytes that clocks may take; beyond it the verdict is Undecided. A direct exchange of n ranks
  /// needs about n^2 of them, whatever the number of ops.
  int64_t clockBudget = int64_t(3) << 30;
  /// Ops that a lane holds before its issuer blocks (S11); none: unbounded. Also what the serial
  /// form's failure is measured against.
  std::optional<int64_t> depth;
  /// Also step the serial form in issue order (Theorem 3).
  bool serialForm = true;
  /// How often the set of displacements that representative clocks keep is widened before giving
  /// up.
  unsigned widenings = 1;
};

/// One executed op, by name.
struct OpRef {
  int64_t rank = -1; ///< -1: the representative, that is every rank
  Lane lane;
  int64_t step = 0; ///< 0-based position among the ops of its lane and run
  int64_t run = 0;
  unsigned location = 0; ///< index into Schedule::locations
};
/// "rank 3 sm0 step 4 of run 1 'all_reduce r: reduce' (layer.mlir:12)".
std::string toString(const Schedule &schedule, const OpRef &op);

struct Witness {
  std::optional<OpRef> op;        ///< the op at which the rule fails
  std::optional<OpRef> other;     ///< the other access of a race
  std::vector<std::string> chain; ///< deadlock: lane <- slot <- lane ...
};

struct ProofResult {
  Verdict verdict = Verdict::Undecided;
  /// One sentence: what fails and where; empty when Ok.
  std::string message;
  Witness witness;

  ProofMode mode = ProofMode::AllRanks; ///< Representative or AllRanks: how it was decided
  std::string modeReason;               ///< why not one representative; empty when it was one
  int64_t processes = 0, runs = 0, events = 0;

  /// Theorem 3. `holds`: no queue depth and no aliasing of lanes can make the program deadlock.
  /// `failsAt`: why the serial form stops; the program then relies on its lanes (and depths).
  enum class SerialForm : uint8_t { NotChecked, Holds, Fails } serialForm = SerialForm::NotChecked;
  std::string serialFormFailsAt;

  /// Per Schedule::slots: signals per run (the largest of its slots) and lead (S20). With one
  /// representative the lead is an upper bound: its clocks forget what far ranks know.
  struct SlotUse {
    int64_t perRun = 0, lead = 0;
  };
  std::vector<SlotUse> slots;

  explicit operator bool() const { return verdict == Verdict::Ok; }
  /// "proved for all 8 ranks by one representative: 178 ops over 2 runs; serial form holds", or
  /// "race: ...".
  std::string str() const;
};

/// Never throws and never hangs; a stream that is not a schedule gives Invalid.
[[nodiscard]] ProofResult prove(const Schedule &schedule, const ProofOptions &options = {});

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_PROVE_H

//===- Prove.cpp - Which processes to step, and what that proves --------------===//

#include "ncclx/Machine/Prove.h"

#include "Stepper.h"

#include "ncclx/Machine/Trace.h"

#include <fmt/format.h>

namespace mlir::ctran::machine {

const char *toString(Verdict verdict) {
  switch (verdict) {
  case Verdict::Ok:
    return "ok";
  case Verdict::Result:
    return "result";
  case Verdict::Undefined:
    return "undefined";
  case Verdict::Race:
    return "race";
  case Verdict::Signal:
    return "signal";
  case Verdict::Balance:
    return "balance";
  case Verdict::Deadlock:
    return "deadlock";
  case Verdict::Realisation:
    return "realisation";
  case Verdict::Invalid:
    return "invalid";
  case Verdict::Undecided:
    return "undecided";
  }
  return "?";
}

std::string toString(const Schedule &schedule, const OpRef &op) {
  std::string out = op.rank < 0 ? "every rank" : fmt::format("rank {}", op.rank);
  out += fmt::format(" {} step {} of run {}", toString(op.lane), op.step, op.run);
  if (op.location < schedule.locations.size()) {
    const Location &at = schedule.locations[op.location];
    out += fmt::format(" '{}'", at.op);
    if (!at.file.empty())
      out += fmt::format(" ({}:{})", at.file, at.line);
  }
  return out;
}

std::string ProofResult::str() const {
  if (verdict != Verdict::Ok)
    return fmt::format("{}: {}", toString(verdict), message);
  std::string out =
      fmt::format("proved {}, {} ops over {} runs",
                  mode == ProofMode::Representative ? "for every rank by one representative"
                                                    : fmt::format("on all {} ranks", processes),
                  events, runs);
  if (!modeReason.empty())
    out += fmt::format(" (no representative: {})", modeReason);
  if (serialForm == SerialForm::Holds)
    out += "; no queue depth can make it deadlock (serial form holds)";
  if (serialForm == SerialForm::Fails)
    out += fmt::format("; it relies on its lanes being apart (serial form stops: {})",
                       serialFormFailsAt);
  return out;
}

static StepOptions howToStep(const ProofOptions &options, int64_t runs) {
  StepOptions how;
  how.runs = runs;
  how.eventBudget = options.eventBudget;
  how.clockBudget = options.clockBudget;
  return how;
}

static void tell(const Stepper &stepper, bool good, ProofResult &result) {
  result.verdict = good ? Verdict::Ok : stepper.verdict;
  result.message = stepper.message;
  result.witness = stepper.witness;
  result.events = stepper.events;
  result.slots = stepper.slotUse;
}

/// The verdict of one way to run the machine.
static void step(const Frame &frame, const Scan &scanned, const ProofOptions &options,
                 unsigned widen, ProofResult &result, bool &dropped) {
  StepOptions how = howToStep(options, result.runs);
  how.widen = widen;
  Stepper stepper(frame, &scanned, how);
  bool good = stepper.run();
  tell(stepper, good, result);
  dropped = stepper.droppedOrder();
}

/// One walk in issue order, which settles most schedules. False: nothing is known.
static bool proveInOrder(const Frame &one, const ProofOptions &options, int64_t runBudget,
                         ProofResult &result) {
  StepOptions how = howToStep(options, result.runs);
  how.runBudget = runBudget;
  Stepper stepper(one, nullptr, how);
  if (stepper.runInOrder()) {
    tell(stepper, true, result);
    if (options.serialForm)
      result.serialForm = ProofResult::SerialForm::Holds;
    return true;
  }
  if (stepper.longRun)
    result.message = stepper.message;
  return stepper.longRun;
}

/// Theorem 3: if one lane in issue order ends, every lane assignment and every depth does. A
/// deadlock shows within one run, since no edge leads to an earlier one.
static void checkSerialForm(const Frame &frame, const Scan &scanned, const ProofOptions &options,
                            ProofResult &result) {
  StepOptions how = howToStep(options, 1);
  how.ordersOnly = true;
  if (frame.representative) {
    result.serialFormFailsAt = scanned.serialFormFailsAt;
  } else {
    how.serialForm = true;
    Stepper serial(frame, &scanned, how);
    if (!serial.run())
      result.serialFormFailsAt = serial.message;
  }
  result.serialForm = result.serialFormFailsAt.empty() ? ProofResult::SerialForm::Holds
                                                       : ProofResult::SerialForm::Fails;
  if (result.serialForm == ProofResult::SerialForm::Holds)
    return;
  if (!options.depth)
    return;
  how.serialForm = false;
  how.runs = result.runs;
  how.depth = std::max<int64_t>(1, *options.depth);
  Stepper lanes(frame, &scanned, how);
  if (lanes.run())
    return;
  result.verdict = lanes.verdict;
  result.message = fmt::format("with {} ops a lane: {}", *how.depth, lanes.message);
  result.witness = lanes.witness;
}

/// One representative, with what a scan tells known beforehand.
static void proveOne(const Frame &one, const ProofOptions &options, int64_t runBudget,
                     ProofResult &result) {
  Scan scanned = scan(one, runBudget);
  result.verdict = scanned.verdict;
  result.message = scanned.message;
  if (scanned.verdict != Verdict::Ok)
    return;
  bool dropped = false;
  for (unsigned widen = 0; widen <= options.widenings; ++widen) {
    step(one, scanned, options, widen, result, dropped);
    // Only a refusal for lack of order may be due to the window of the clocks.
    bool order = result.verdict == Verdict::Race || result.verdict == Verdict::Signal ||
                 result.verdict == Verdict::Realisation;
    if (!dropped || !order)
      dropped = false;
    if (!dropped)
      break;
  }
  if (dropped) {
    result.message = fmt::format("{}: {}; but order with ranks further away than the window "
                                 "of the clocks was not followed",
                                 toString(result.verdict), result.message);
    result.verdict = Verdict::Undecided;
  }
  if (result.verdict == Verdict::Ok && options.serialForm)
    checkSerialForm(one, scanned, options, result);
}

ProofResult prove(const Schedule &schedule, const ProofOptions &options) {
  ProofResult result;
  result.slots.resize(schedule.slots.size());
  result.runs = options.runs > 0 ? options.runs : runsToProve(schedule);
  Frame all(schedule, false);
  if (std::string bad = all.validate(); !bad.empty()) {
    result.verdict = Verdict::Invalid;
    result.message = bad;
    return result;
  }
  int64_t perRun = options.eventBudget / result.runs;

  if (options.mode != ProofMode::AllRanks) {
    Frame one(schedule, true);
    result.mode = ProofMode::Representative;
    result.processes = 1;
    if (!proveInOrder(one, options, perRun, result))
      proveOne(one, options, perRun, result);
    if (result.verdict != Verdict::Undecided || options.mode == ProofMode::Representative)
      return result;
    result.modeReason = result.message;
  }

  std::string whyNotOne = std::move(result.modeReason);
  ProofResult full;
  full.slots.resize(schedule.slots.size());
  full.runs = result.runs;
  full.modeReason = whyNotOne;
  full.mode = ProofMode::AllRanks;
  full.processes = all.numRanks();
  Scan scanned = scan(all, perRun);
  full.verdict = scanned.verdict;
  full.message = scanned.message;
  if (scanned.overBudget)
    full.message =
        fmt::format("all {} ranks have more than the budget of {} ops over {} runs", all.numRanks(),
                    options.eventBudget, full.runs) +
        (whyNotOne.empty() ? "" : fmt::format(", and one representative: {}", whyNotOne));
  if (scanned.verdict != Verdict::Ok)
    return full;
  bool dropped = false;
  step(all, scanned, options, 0, full, dropped);
  if (full.verdict == Verdict::Ok && options.serialForm)
    checkSerialForm(all, scanned, options, full);
  return full;
}

} // namespace mlir::ctran::machine

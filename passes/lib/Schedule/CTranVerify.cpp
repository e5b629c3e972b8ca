//===- CTranVerify.cpp - Prove every ctran.program -----------------------------------===//
#include "ncclx/CTran/Access.h"
#include "ncclx/CTran/Reader.h"
#include "ncclx/Machine/Prove.h"
#include "ncclx/Schedule/Passes.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::ctran {
#define GEN_PASS_DEF_CTRANVERIFY
#include "ncclx/Schedule/Passes.h.inc"
} // namespace mlir::ctran

using namespace mlir;
using namespace mlir::ctran;

namespace {

class CTranVerifyPass : public mlir::ctran::impl::CTranVerifyBase<CTranVerifyPass> {
public:
  using CTranVerifyBase::CTranVerifyBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    bool failed = false;
    getOperation()->walk([&](ProgramOp program) {
      failed |= verify(program).failed();
      return WalkResult::skip();
    });
    if (failed)
      signalPassFailure();
  }

private:
  LogicalResult verify(ProgramOp program);
};

} // namespace

/// "data 1, credit 2": the lead of each slot that is signalled.
static std::string leadsOf(const machine::Schedule &schedule, const machine::ProofResult &proof) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator comma;
  for (auto [slots, use] : llvm::zip(schedule.slots, proof.slots))
    if (use.perRun > 0)
      os << comma << slots.name << ' ' << use.lead;
  return text;
}

LogicalResult CTranVerifyPass::verify(ProgramOp program) {
  SmallVector<Operation *> ops;
  auto read = readSchedule(program, &ops);
  if (failed(read))
    return failure();
  machine::Schedule &schedule = **read;
  for (machine::Slots &slots : schedule.slots)
    if (fifoSlots > 0 && slots.credits > fifoSlots)
      slots.credits = fifoSlots;

  auto options =
      remark::RemarkOpts::name("Proof").category("ctran-verify").function(program.getSymName());
  std::string reason;
  Operation *where = nullptr;
  if (!isSymmetric(program, &reason, &where))
    remark::analysis(where->getLoc(), remark::RemarkOpts::name("Asymmetric")
                                          .category("ctran-verify")
                                          .function(program.getSymName()))
        << remark::add("{0}", reason);

  machine::ProofOptions proofOptions;
  proofOptions.mode = mode;
  proofOptions.eventBudget = budget;
  if (depth > 0)
    proofOptions.depth = depth;
  machine::ProofResult proof = machine::prove(schedule, proofOptions);

  auto opAt = [&](const std::optional<machine::OpRef> &ref) -> Operation * {
    return ref && ref->location < ops.size() ? ops[ref->location] : nullptr;
  };
  if (proof) {
    remark::passed(program.getLoc(), options)
        << remark::add("{0}", proof.str())
        << remark::metric("Mode",
                          proof.mode == machine::ProofMode::Representative ? "class" : "all")
        << remark::metric("Events", proof.events) << remark::metric("Runs", proof.runs)
        << remark::metric("Leads", leadsOf(schedule, proof));
    return success();
  }

  Operation *at = opAt(proof.witness.op);
  Location loc = at ? at->getLoc() : program.getLoc();
  bool isUndecided = proof.verdict == machine::Verdict::Undecided;
  bool isError = !isUndecided || undecided == UndecidedAs::Error;
  InFlightDiagnostic diag = isError ? emitError(loc) : emitWarning(loc);
  diag << "program @" << program.getSymName() << " is ";
  if (isUndecided)
    diag << "undecided: ";
  else
    diag << "refused: " << machine::toString(proof.verdict) << ": ";
  diag << proof.message;
  if (Operation *other = opAt(proof.witness.other))
    diag.attachNote(other->getLoc())
        << "the other is " << machine::toString(schedule, *proof.witness.other);
  for (const std::string &link : proof.witness.chain)
    diag.attachNote(program.getLoc()) << link;
  return failure(isError);
}

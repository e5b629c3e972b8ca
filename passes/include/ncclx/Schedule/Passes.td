//===- Passes.td - Passes over schedules ---------------------------------------------===//
#ifndef NCCLX_SCHEDULE_PASSES
#define NCCLX_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def CTranVerify : Pass<"ctran-verify"> {
  let summary = "Prove every ctran.program: result, races, deadlock, signals, all runs";
  let description = [{
    Reads each program into the abstract machine and proves it, by one representative where the
    program is symmetric, else on all ranks. What is refused is an error at the op that breaks the
    rule, with a note at the other op of a race, or one for each link of a deadlock. What is proved is
    a remark of category `ctran-verify` with the mode, the number of ops stepped and each slot's lead;
    an asymmetric program also gets an analysis remark at the op that makes it so. What is neither is
    "undecided", a warning unless `undecided=error`.

    Before and after are the same: the pass changes nothing.
  }];
  let options = [
    Option<"mode", "mode", "::mlir::ctran::machine::ProofMode",
      /*default=*/"::mlir::ctran::machine::ProofMode::Auto", "how many ranks are stepped",
      [{::llvm::cl::values(
        clEnumValN(::mlir::ctran::machine::ProofMode::Auto, "auto",
                   "one representative where the program is symmetric, else all ranks"),
        clEnumValN(::mlir::ctran::machine::ProofMode::Representative, "class",
                   "one representative, or undecided"),
        clEnumValN(::mlir::ctran::machine::ProofMode::AllRanks, "all", "all ranks"))}]>,
    Option<"depth", "depth", "int64_t", /*default=*/"0",
      "ops that a lane holds before its issuer blocks; 0: unbounded">,
    Option<"fifoSlots", "fifo-slots", "int64_t", /*default=*/"0",
      "places of every queue, that is credits of slots that have some; 0: as declared">,
    Option<"budget", "budget", "int64_t", /*default=*/"16000000",
      "ops stepped before the verdict is undecided">,
    Option<"undecided", "undecided", "::mlir::ctran::UndecidedAs",
      /*default=*/"::mlir::ctran::UndecidedAs::Warning", "what an undecided program is",
      [{::llvm::cl::values(
        clEnumValN(::mlir::ctran::UndecidedAs::Warning, "warning", "a warning"),
        clEnumValN(::mlir::ctran::UndecidedAs::Error, "error", "an error"))}]>
  ];
}

#endif

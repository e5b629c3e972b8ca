//===- ExplainWritten.cpp - A schedule that somebody wrote, beside our choice -------------===//
#include "Explain.h"

#include "ncclx/Analysis/TopologyCost.h"
#include "ncclx/CTran/Reader.h"
#include "ncclx/Conversion/ProgramGrid.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::ncclx;

/// What is chosen for the collective `kind` of `bytes` over all of `ranks`.
static FailureOr<Choice> choiceFor(StringRef kind, int64_t ranks, int64_t bytes, Location loc,
                                   const SelectionTarget &target) {
  OwningOpRef<ModuleOp> module = graphOf(kind, ranks, bytes, loc);
  if (!module)
    return failure();
  auto function = *module->getOps<func::FuncOp>().begin();
  CollectiveOpInterface op = *function.getOps<CollectiveOpInterface>().begin();
  FailureOr<ProgramGrid> grid = ProgramGrid::of(function);
  if (failed(grid))
    return failure();
  return choose(op, grid->axesOf(op).size(), target);
}

LogicalResult mlir::ncclx::explainWritten(ctran::ProgramOp program, const SelectionTarget &target,
                                          llvm::raw_ostream &os) {
  auto schedule = ctran::readSchedule(program);
  if (failed(schedule))
    return failure();
  int64_t ranks = (*schedule)->grid.numRanks();
  const topology::Topology &machine = *target.topology;
  if (ranks > int64_t(machine.numRanks()))
    return program.emitOpError("runs on ") << ranks << " ranks, but the topology '" << machine.name
                                           << "' has " << machine.numRanks();
  ctran::machine::TimeOptions options;
  options.keepOps = false;
  ctran::machine::TimeResult time =
      ctran::machine::simulate(**schedule, TopologyCost(machine, target.rate), options);
  if (!time.ok && !time.apart)
    return program.emitOpError("cannot be timed: ") << time.message;
  // What it is for is known of one collective, of a kind that has a size.
  const auto &all = (*schedule)->collectives;
  bool known = all.size() == 1 && topology::parseCollective(all.front().kind);
  os << "@" << program.getSymName();
  if (known)
    os << ", " << all.front().kind << " of " << sizeText(all.front().bytes) << " ("
       << all.front().bytes << " bytes)";
  os << " over " << ranks << " of " << machine.numRanks() << " ranks on " << machine.name << ", "
     << topology::name(target.rate) << " rates\n";
  double bound = 0;
  FailureOr<Choice> choice = failure();
  if (known) {
    choice = choiceFor(all.front().kind, ranks, all.front().bytes, program.getLoc(), target);
    if (failed(choice))
      return failure();
    bound = secondsOf(choice->bound);
  }
  auto print = [&](double seconds) {
    os << llvm::format("%.2f us", seconds * 1e6);
    if (bound > 0)
      os << llvm::format(", %.3f of the bound", seconds / bound);
  };
  os << "  written  ";
  if (time.apart)
    os << "refused: " << time.message;
  else
    print(time.makespan);
  if (known && choice->algorithm) {
    double seconds = *choice->chosen().seconds;
    os << "\n  runs     " << stringifyAlgorithm(*choice->algorithm) << ": " << choice->reason
       << ", ";
    print(seconds);
    if (time.ok && time.makespan > 0)
      os << llvm::format(", %.3f of the written one", seconds / time.makespan);
  }
  os << "\n";
  return success();
}

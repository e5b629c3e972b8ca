//===- BraidLoops.cpp - Two iterations of a loop, one a stage ahead ---------------------------===//
//
// Card P13 of the survey, and modulo scheduling: the front of an iteration (the forward of a
// micro-batch) runs beside the rest of the one before (its backward), so that the exchanges of one
// are hidden behind the kernels of the other. Where to cut is the solver's answer.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "FunctionProblem.h"
#include "LoopRotation.h"
#include "MachinePass.h"
#include "ncclx/Overlap/Solve.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_BRAIDLOOPS
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

struct BraidLoops : MachinePass<BraidLoops, ncclx::impl::BraidLoopsBase<BraidLoops>> {
  using MachinePass::MachinePass;

  void run(func::FuncOp function, const overlap::CostModel &cost) {
    SmallVector<scf::ForOp> loops; // inner ones first
    function.walk([&](scf::ForOp loop) {
      if (holdsCommunication(loop))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      braid(function, loop, cost);
  }

  /// Why a loop has no iteration that another may run beside; empty if it has.
  static std::string refuses(scf::ForOp loop) {
    if (std::optional<APInt> trips = loop.getStaticTripCount(); trips && trips->ult(2))
      return llvm::formatv("it runs {0} times", trips->getZExtValue());
    for (Operation &op : *loop.getBody())
      if (!isa<CollectiveOpInterface>(op) && (holdsCommunication(&op) || !isMemoryEffectFree(&op)))
        return llvm::formatv("{0} may communicate, and nothing crosses it", op.getName());
    return "";
  }

  void braid(func::FuncOp function, scf::ForOp loop, const overlap::CostModel &cost) {
    auto named = [&](StringRef name) {
      return remark::RemarkOpts::name(name).category(getArgument()).function(function.getSymName());
    };
    Location loc = loop.getLoc();
    auto missed = [&](const std::string &why) {
      remark::missed(loc, named("LoopNotBraided")) << remark::reason("{0}", why);
    };
    std::string why = refuses(loop);
    if (!why.empty())
      return missed(why);
    FailureOr<FunctionProblem> f = FunctionProblem::read(*loop.getBody(), cost, LoopCosts(), why);
    if (failed(f))
      return missed(why);
    overlap::SolveOptions options;
    options.memoryBudget = int64_t(memoryBudget);
    options.margin = 0;
    options.effort = 20'000;
    double communication = 0;
    for (const overlap::Op &op : f->problem.ops)
      communication += op.collective ? op.seconds : 0;
    std::optional<overlap::SteadyState> state =
        overlap::scheduleSteadyState(f->problem, f->given, f->carried(), options);
    if (!state)
      return missed("no cut of an iteration in two is faster than the iteration as it is, within "
                    "the budget");
    std::string gain =
        llvm::formatv("{0:F1} us an iteration, {1:F1} us as it is; {2} bytes are handed on; "
                      "{3:F1} us at least: {4}",
                      state->seconds * 1e6, state->before * 1e6, state->carried,
                      state->floor.seconds * 1e6, state->floor.limit);
    if (state->before - state->seconds < margin * communication)
      return missed(gain);
    llvm::SetVector<Operation *> front;
    for (unsigned i = 0; i < state->cut; ++i)
      front.insert(f->sites[i].op);
    remark::passed(loc, named("LoopBraided"))
        << remark::add("{0} of {1} ops run an iteration ahead: {2}", front.size(), f->sites.size(),
                       gain)
        << remark::metric("CarriedBytes", state->carried);
    rotateFront(loop, front);
  }
};

} // namespace

//===- PipelineLoops.cpp - Collectives from one iteration of a loop to the next ----------===//
//
// Card P12 of the survey. What the schedule of a body is worth is asked of the model, for each
// collective in turn.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "FunctionProblem.h"
#include "LoopRotation.h"
#include "MachinePass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_PIPELINELOOPS
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

class Pipeliner {
public:
  Pipeliner(func::FuncOp function, const overlap::CostModel &cost, StringRef pass, double margin,
            int64_t budget)
      : function(function), cost(cost), pass(pass), margin(margin), budget(budget) {}

  void run() {
    SmallVector<scf::WhileOp> whiles;
    function.walk([&](scf::WhileOp loop) {
      if (holdsCommunication(loop))
        whiles.push_back(loop);
    });
    for (scf::WhileOp loop : whiles)
      if (budget > 0)
        count(loop);
    SmallVector<scf::ForOp> loops;
    function.walk([&](scf::ForOp loop) {
      if (holdsCommunication(loop))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      pipeline(loop);
  }

private:
  func::FuncOp function;
  const overlap::CostModel &cost;
  StringRef pass;
  double margin;
  int64_t budget; ///< bytes

  remark::RemarkOpts named(StringRef name) {
    return remark::RemarkOpts::name(name).category(pass).function(function.getSymName());
  }
  void missed(Location loc, const std::string &what, const std::string &why) {
    remark::missed(loc, named("LoopNotPipelined"))
        << remark::add("{0} stays in its iteration", what) << remark::reason("{0}", why);
  }

  /// One that counts is a loop like others.
  void count(scf::WhileOp loop) {
    Location loc = loop.getLoc();
    IRRewriter rewriter(loop.getContext());
    rewriter.setInsertionPoint(loop);
    if (failed(scf::upliftWhileToForLoop(rewriter, loop)))
      missed(loc, "whatever a loop communicates",
             "whether it goes on is decided by more than a count");
  }

  void pipeline(scf::ForOp loop) {
    std::string why = refuses(loop);
    if (!why.empty())
      return missed(loop.getLoc(), "whatever a loop communicates", why);
    std::optional<Predicted> now = predict(*loop.getBody(), cost, why);
    if (!now)
      return missed(loop.getLoc(), "whatever a loop communicates", why);
    double seconds = now->seconds;
    SmallVector<unsigned> taken;
    SmallVector<std::string> whyNot;
    unsigned count = collectivesOf(loop).size();
    for (unsigned i = 0; i < count; ++i) {
      whyNot.emplace_back();
      SmallVector<unsigned> with(taken);
      with.push_back(i);
      if (tryOut(loop, with, seconds, true, whyNot.back()))
        taken = std::move(with);
    }
    int64_t inFlight = 0;
    for (unsigned i : taken)
      inFlight += note(collectivesOf(loop)[i], "an iteration ahead");
    budget -= inFlight;
    SmallVector<Operation *> rest;
    SmallVector<std::string> reasons;
    // Those that go ahead are gone from the loop made; the others keep their order.
    for (unsigned i = 0; i < count; ++i)
      if (!llvm::is_contained(taken, i))
        reasons.push_back(whyNot[i]);
    if (!taken.empty())
      loop = issueAhead(loop, taken);
    for (unsigned i = 0; i < reasons.size();) {
      CollectiveOpInterface op = collectivesOf(loop)[i];
      std::string behind;
      if (!refuses(loop).empty() || !tryOut(loop, {i}, seconds, false, behind)) {
        missed(op.getLoc(), describe(op),
               "ahead: " + reasons[i] + (behind.empty() ? "" : "; behind: " + behind));
        ++i;
        continue;
      }
      budget -= note(op, "an iteration later");
      std::string ignored;
      loop = rotateBehind(loop, *findBehind(loop, op, ignored));
      reasons.erase(reasons.begin() + i);
    }
  }

  static std::string refuses(scf::ForOp loop) {
    if (std::optional<APInt> trips = loop.getStaticTripCount(); trips && trips->ult(2))
      return llvm::formatv("it runs {0} times", trips->getZExtValue());
    for (Operation &op : *loop.getBody())
      if (!isa<CollectiveOpInterface, StartOp, AwaitOp>(op) &&
          (holdsCommunication(&op) || !isMemoryEffectFree(&op)))
        return llvm::formatv("{0} may communicate, and nothing crosses it", op.getName());
    return "";
  }

  int64_t note(CollectiveOpInterface op, StringRef where) {
    int64_t bytes = getPayloadBytes(op.getOutputType(), op.getOutputType());
    remark::passed(op.getLoc(), named("LoopPipelined"))
        << remark::add("{0} is {1} {2}: {3} bytes more in flight", describe(op),
                       where.contains("ahead") ? "issued" : "awaited", where, bytes);
    return bytes;
  }

  static scf::ForOp issueAhead(scf::ForOp loop, ArrayRef<unsigned> which) {
    SmallVector<CollectiveOpInterface> all = collectivesOf(loop);
    SmallVector<Ahead> list;
    std::string ignored;
    for (unsigned i : which)
      list.push_back(*findAhead(loop, all[i], ignored));
    return rotateAhead(loop, list);
  }

  /// Whether the last of `which` pays, on a copy of the function; `seconds` is then the new body's.
  bool tryOut(scf::ForOp loop, ArrayRef<unsigned> which, double &seconds, bool ahead,
              std::string &why) {
    CollectiveOpInterface op = collectivesOf(loop)[which.back()];
    if (ahead ? !findAhead(loop, op, why) : !findBehind(loop, op, why))
      return false;
    int64_t bytes = 0;
    for (unsigned i : which) {
      ShapedType type = collectivesOf(loop)[i].getOutputType();
      bytes += getPayloadBytes(type, type);
    }
    if (bytes > budget) {
      why = llvm::formatv("{0} bytes more in flight, and the budget leaves {1}", bytes, budget);
      return false;
    }
    auto loopsOf = [](func::FuncOp f) {
      SmallVector<scf::ForOp> list;
      f.walk([&](scf::ForOp l) { list.push_back(l); });
      return list;
    };
    SmallVector<scf::ForOp> all = loopsOf(function);
    size_t index = llvm::find(all, loop) - all.begin();
    OpBuilder b(function);
    auto copy = cast<func::FuncOp>(b.clone(*function));
    scf::ForOp trial = loopsOf(copy)[index];
    std::string ignored;
    trial = ahead ? issueAhead(trial, which)
                  : rotateBehind(trial,
                                 *findBehind(trial, collectivesOf(trial)[which.back()], ignored));
    std::optional<Predicted> then = predict(*trial.getBody(), cost, why);
    copy.erase();
    if (!then)
      return false;
    double alone = costOfCollective(op, cost)->seconds;
    if (seconds - then->seconds < margin * alone || seconds <= then->seconds) {
      why = llvm::formatv("an iteration takes {0:F1} us so, {1:F1} us now", then->seconds * 1e6,
                          seconds * 1e6);
      return false;
    }
    seconds = then->seconds;
    return true;
  }
};

struct PipelineLoops : MachinePass<PipelineLoops, ncclx::impl::PipelineLoopsBase<PipelineLoops>> {
  using MachinePass::MachinePass;

  void run(func::FuncOp function, const overlap::CostModel &cost) {
    Pipeliner(function, cost, getArgument(), margin, memoryBudget).run();
  }
};

} // namespace

//===- SplitHalos.cpp - The interior of a stencil while its halo is exchanged -----------------===//
//
// Card P18 of the survey.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "FunctionProblem.h"
#include "MachinePass.h"
#include "Stencil.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_SPLITHALOS
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

struct SplitHalos : MachinePass<SplitHalos, ncclx::impl::SplitHalosBase<SplitHalos>> {
  using MachinePass::MachinePass;

  void run(func::FuncOp function, const overlap::CostModel &cost) {
    for (Block *block : communicatingBlocks(function))
      split(function, *block, cost);
  }

  /// Whether a local op makes what others than local ops use: a field.
  static bool makesField(Operation *op) {
    auto isLocalOp = [&](Operation *other) {
      auto local = dyn_cast<linalg::LinalgOp>(other);
      return other->getBlock() == op->getBlock() &&
             ((local && isLocal(local)) || isElementwise(other));
    };
    auto type = op->getNumResults() == 1 ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                                         : RankedTensorType();
    return type && type.hasStaticShape() && type.getNumElements() > 0 && isLocalOp(op) &&
           !llvm::all_of(op->getUsers(), isLocalOp);
  }

  void split(func::FuncOp function, Block &block, const overlap::CostModel &cost) {
    auto named = [&](StringRef name) {
      return remark::RemarkOpts::name(name).category(getArgument()).function(function.getSymName());
    };
    DenseSet<Value> done;
    SmallVector<Operation *> ops; // what goes stands in front of what is looked at
    for (Operation &op : block)
      ops.push_back(&op);
    for (Operation *op : ops) {
      if (!makesField(op))
        continue;
      Value root = op->getResult(0);
      Stencil stencil(root, done);
      std::string why, gain;
      bool cut = stencil.plan(why);
      if (cut) {
        gain = llvm::formatv("{0} of {1} do without {2} exchanges, {3} slabs wait for them",
                             toString(stencil.interior), toString(wholeOf(root)),
                             stencil.exchanges.size(), stencil.slabs.size());
        cut = pays(function, root, done, cost, gain, why);
      }
      if (cut)
        remark::passed(op->getLoc(), named("HaloSplit"))
            << remark::add("{0} is cut: {1}", describe(op), gain);
      else if (!why.empty())
        remark::missed(op->getLoc(), named("HaloWhole"))
            << remark::add("{0} stays whole", describe(op)) << remark::reason("{0}", why);
      // A face may be made of what came; whatever else has been looked at is there as it is.
      bool isFace = llvm::any_of(root.getUses(), [](OpOperand &use) {
        return isa<tensor::InsertSliceOp>(use.getOwner()) && use.getOperandNumber() == 0;
      });
      if (cut || !why.empty() || !isFace)
        done.insert(cut ? stencil.rewrite() : root);
    }
  }

  /// The scheduler knows no puts: what they take passes while the interior in front of the wait is
  /// computed. False where no engine carries them.
  static bool addPuts(Stencil &stencil, const overlap::CostModel &cost, Predicted &whole,
                      Predicted &parts, double &alone, std::string &why) {
    const overlap::Engine *carrier = cost.engine("permute");
    if (!carrier) {
      why = llvm::formatv("no engine of machine '{0}' carries permute, which a put is", cost.name);
      return false;
    }
    double puts = 0, early = 0;
    for (Operation *op : stencil.puts)
      puts += cost.collective("put", *carrier, 2,
                              double(bytesOf(cast<PutOp>(op).getSource().getType())))
                  .seconds;
    for (Operation *op : stencil.early)
      if (!isGlue(op))
        if (std::optional<overlap::Op> priced = costOf(op, cost))
          early += priced->seconds;
    alone += puts;
    whole.seconds += puts;
    parts.seconds += std::max(0.0, puts - early);
    return true;
  }

  /// Decides on a copy of the function.
  bool pays(func::FuncOp function, Value root, const DenseSet<Value> &done,
            const overlap::CostModel &cost, std::string &gain, std::string &why) {
    OpBuilder b(function);
    IRMapping map;
    auto copy = cast<func::FuncOp>(b.clone(*function, map));
    DenseSet<Value> doneThere;
    for (Value value : done)
      doneThere.insert(map.lookup(value));
    Stencil stencil(map.lookup(root), doneThere);
    Block &block = *map.lookup(root).getDefiningOp()->getBlock();
    double alone = 0;
    std::string ignored;
    std::optional<Predicted> whole = predict(block, cost, why), parts;
    if (whole && stencil.plan(ignored)) {
      for (Operation *op : stencil.exchanges)
        if (auto collective = dyn_cast<CollectiveOpInterface>(op))
          alone += costOfCollective(collective, cost)->seconds;
      stencil.rewrite();
      parts = predict(block, cost, why);
      if (parts && !stencil.puts.empty() && !addPuts(stencil, cost, *whole, *parts, alone, why))
        parts.reset();
    }
    copy.erase();
    if (!parts)
      return false;
    gain += llvm::formatv("; {0:F1} us so, {1:F1} us whole", parts->seconds * 1e6,
                          whole->seconds * 1e6);
    if (whole->seconds - parts->seconds >= margin * alone && whole->seconds > parts->seconds)
      return true;
    why = gain;
    return false;
  }
};

} // namespace

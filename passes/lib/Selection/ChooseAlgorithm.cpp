//===- ChooseAlgorithm.cpp - Give each collective an algorithm --------------------------===//
#include "ByTiers.h"
#include "ReadTarget.h"
#include "TreeSearch.h"

#include "ncclx/Conversion/Passes.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/NCCLX/Sizes.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_CHOOSEALGORITHM
#include "ncclx/Selection/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

static void setOrder(CollectiveOpInterface op) {
  auto order = op->getAttrOfType<ReductionOrderAttr>("order");
  if (!op.isReduction() || order.getValue() != ReductionOrder::Any)
    return;
  op->setAttr("order", ReductionOrderAttr::get(op->getContext(), orderOf(*op.getAlgorithm())));
}

/// The compiler does not know in which order a written schedule reduces: of `any` there must be one
/// result.
static LogicalResult setOrderOfSchedule(CollectiveOpInterface op) {
  auto order = op->getAttrOfType<ReductionOrderAttr>("order");
  if (!op.isReduction() || order.getValue() != ReductionOrder::Any)
    return success();
  auto kind = op->getAttrOfType<ReductionKindAttr>("kind").getValue();
  bool oneResult = isa<IntegerType>(op.getElementType()) || kind == ReductionKind::Min ||
                   kind == ReductionKind::Max;
  if (!oneResult)
    return op->emitOpError("names a schedule and reduces floats in `any` order, expected the order "
                           "that the schedule has: rank, ring or tree");
  op->setAttr("order", ReductionOrderAttr::get(op->getContext(), ReductionOrder::Rank));
  return success();
}

std::string mlir::ncclx::timingKey(CollectiveOpInterface op) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << op->getName() << op.getInputType() << op.getOutputType() << op->getAttrDictionary();
  return key;
}

/// "; direct 12.00 us; ring refused: ...", and how far the chosen one is from the bound.
static std::string numbersOf(const Choice &choice) {
  std::string text;
  for (const Candidate &candidate : choice.candidates) {
    std::string name = stringifyAlgorithm(candidate.algorithm).str();
    text += candidate.seconds
                ? llvm::formatv("; {0} {1:F2} us", name, *candidate.seconds * 1e6).str()
                : llvm::formatv("; {0} refused: {1}", name, candidate.refused).str();
  }
  const std::optional<topology::LowerBound> *known =
      choice.algorithm ? &choice.boundOf(*choice.algorithm) : nullptr;
  if (!known || !*known)
    return text;
  if ((*known)->unreachable)
    return text + "; bound: a rank cannot be reached";
  double bound = (*known)->seconds.toDouble();
  text += llvm::formatv("; bound {0:F2} us by {1}", bound * 1e6, (*known)->argument);
  if (bound > 0)
    text += llvm::formatv(", ratio {0:F3}", *choice.chosen().seconds / bound);
  return text;
}

/// The grid of a function's program once one of its collectives goes by tiers, or nothing where
/// another names, or has been given, an algorithm that needs its axes whole.
static std::optional<ProgramGrid> cutGrid(FunctionOpInterface function, ProgramGrid grid,
                                          const SelectionTarget &target) {
  ProgramGrid whole = grid;
  grid.cutBy(target.trees->tiers());
  WalkResult walked = function->walk([&](CollectiveOpInterface op) {
    size_t axes = grid.axesOf(op).size();
    bool keeps =
        !op.getAlgorithm() || (!whyNot(op, *op.getAlgorithm(), axes) &&
                               (!goesRound(*op.getAlgorithm()) || axes == whole.axesOf(op).size()));
    return keeps ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return std::nullopt;
  return grid;
}

static bool namesTiers(FunctionOpInterface function) {
  return function
      ->walk([](CollectiveOpInterface op) {
        return op.getAlgorithm() == Algorithm::Hierarchical ? WalkResult::interrupt()
                                                            : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult mlir::ncclx::chooseAlgorithms(ModuleOp module, const SelectionTarget &target) {
  if (failed(requireKnownSizes(module)))
    return failure();
  llvm::StringMap<Choice> known;
  llvm::DenseMap<Operation *, ProgramGrid> grids;
  llvm::DenseMap<Operation *, int64_t> scratch; ///< bytes on a rank that have been given away
  WalkResult walked = module.walk([&](CollectiveOpInterface op) {
    auto function = op->getParentOfType<FunctionOpInterface>();
    if (!grids.contains(function)) {
      FailureOr<ProgramGrid> grid = ProgramGrid::of(function);
      if (failed(grid))
        return WalkResult::interrupt();
      if (target.trees && namesTiers(function))
        grid->cutBy(target.trees->tiers());
      grids.insert({function, std::move(*grid)});
    }
    size_t axes = grids.at(function).axesOf(op).size();
    if (getSchedule(op))
      return failed(setOrderOfSchedule(op)) ? WalkResult::interrupt() : WalkResult::advance();
    auto chooseOn = [&](SelectionTarget machine) -> const Choice * {
      if (target.scratchLimit >= 0) // what those before have left
        machine.scratchLimit = std::max<int64_t>(0, target.scratchLimit - scratch[function]);
      std::string key = timingKey(op) + std::to_string(axes) + (machine.trees ? "" : " no tiers") +
                        std::to_string(machine.scratchLimit);
      auto it = known.find(key);
      if (it == known.end()) {
        FailureOr<Choice> found = choose(op, axes, machine);
        if (failed(found))
          return nullptr;
        it = known.insert({key, std::move(*found)}).first;
      }
      return &it->second;
    };
    if (op.getAlgorithm()) {
      if (std::optional<std::string> why = whyNot(op, *op.getAlgorithm(), axes)) {
        op->emitOpError("asks for ") << stringifyAlgorithm(*op.getAlgorithm()) << ", but " << *why;
        return WalkResult::interrupt();
      }
      if (op.getAlgorithm() == Algorithm::Trees && !op->hasAttr(treesAttrName) &&
          whyNoTrees(op, target).empty()) {
        const Choice *named = chooseOn(target);
        if (!named)
          return WalkResult::interrupt();
        if (const std::optional<NamedAttribute> &hint = named->chosen().hint)
          op->setAttr(hint->getName(), hint->getValue());
        scratch[function] += named->chosen().scratch;
      }
      setOrder(op);
      return WalkResult::advance();
    }
    const Choice *chosen = chooseOn(target);
    if (chosen && chosen->algorithm == Algorithm::Hierarchical) {
      if (std::optional<ProgramGrid> cut = cutGrid(function, grids.at(function), target)) {
        grids.insert_or_assign(function, std::move(*cut));
      } else {
        SelectionTarget without = target;
        without.trees = nullptr;
        chosen = chooseOn(without);
      }
    }
    if (!chosen)
      return WalkResult::interrupt();
    const Choice &choice = *chosen;
    std::string numbers = numbersOf(choice);
    if (!choice.algorithm) {
      op->emitOpError("has no algorithm that can carry it") << numbers;
      return WalkResult::interrupt();
    }
    op.setAlgorithm(*choice.algorithm);
    if (const std::optional<NamedAttribute> &hint = choice.chosen().hint)
      op->setAttr(hint->getName(), hint->getValue());
    scratch[function] += choice.chosen().scratch;
    setOrder(op);
    auto options = [](StringRef name) {
      return remark::RemarkOpts::name(name).category("ncclx-choose-algorithm");
    };
    for (const std::string &rule : choice.overruled)
      remark::missed(op.getLoc(), options("RulePassed")) << remark::add("{0}", rule);
    remark::passed(op.getLoc(), options("AlgorithmChosen"))
        << remark::add("{0} for {1}, {2}{3}", stringifyAlgorithm(*choice.algorithm),
                       op->getName().stripDialect(), choice.reason, numbers)
        << remark::metric("Bytes", op.getPayloadBytes())
        << remark::metric("ScratchBytes", choice.chosen().scratch);
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

namespace {
struct ChooseAlgorithm : ncclx::impl::ChooseAlgorithmBase<ChooseAlgorithm> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<OwnedTarget> target =
        readTarget(getOperation(), "ncclx-choose-algorithm", topologyFile, loadStore, ruleFile);
    if (failed(target))
      return signalPassFailure();
    target->inNetwork = inNetwork;
    // Their lowering packs them, too, and finds the topology in the module alone.
    if (!getOperation()->hasAttr(NCCLXDialect::getTopologyAttrName()))
      target->trees.reset();
    target->scratchLimit = scratchLimit;
    if (failed(chooseAlgorithms(getOperation(), target->get())))
      signalPassFailure();
  }
};
} // namespace

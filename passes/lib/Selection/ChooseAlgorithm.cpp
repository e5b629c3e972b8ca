//===- ChooseAlgorithm.cpp - Give each collective an algorithm --------------------------===//
#include "ReadTarget.h"

#include "ncclx/Conversion/Passes.h"

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
  if (!choice.algorithm || !choice.bound)
    return text;
  if (choice.bound->unreachable)
    return text + "; bound: a rank cannot be reached";
  double bound = choice.bound->seconds.toDouble();
  text += llvm::formatv("; bound {0:F2} us by {1}", bound * 1e6, choice.bound->argument);
  if (bound > 0)
    text += llvm::formatv(", ratio {0:F3}", *choice.chosen().seconds / bound);
  return text;
}

LogicalResult mlir::ncclx::chooseAlgorithms(ModuleOp module, const SelectionTarget &target) {
  llvm::StringMap<Choice> known;
  WalkResult walked = module.walk([&](CollectiveOpInterface op) {
    if (op.getAlgorithm()) {
      if (std::optional<std::string> why = whyNot(op, *op.getAlgorithm())) {
        op->emitOpError("asks for ") << stringifyAlgorithm(*op.getAlgorithm()) << ", but " << *why;
        return WalkResult::interrupt();
      }
      setOrder(op);
      return WalkResult::advance();
    }
    std::string key = timingKey(op);
    auto it = known.find(key);
    if (it == known.end()) {
      FailureOr<Choice> found = choose(op, target);
      if (failed(found))
        return WalkResult::interrupt();
      it = known.insert({key, std::move(*found)}).first;
    }
    const Choice &choice = it->second;
    std::string numbers = numbersOf(choice);
    if (!choice.algorithm) {
      op->emitOpError("has no algorithm that can carry it") << numbers;
      return WalkResult::interrupt();
    }
    op.setAlgorithm(*choice.algorithm);
    setOrder(op);
    auto options = [](StringRef name) {
      return remark::RemarkOpts::name(name).category("ncclx-choose-algorithm");
    };
    for (const std::string &rule : choice.overruled)
      remark::missed(op.getLoc(), options("RulePassed")) << remark::add("{0}", rule);
    remark::passed(op.getLoc(), options("AlgorithmChosen"))
        << remark::add("{0} for {1}, {2}{3}", stringifyAlgorithm(*choice.algorithm),
                       op->getName().stripDialect(), choice.reason, numbers)
        << remark::metric("Bytes", op.getPayloadBytes());
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
    if (failed(target) || failed(chooseAlgorithms(getOperation(), target->get())))
      signalPassFailure();
  }
};
} // namespace

//===- ChooseAlgorithm.cpp - Give each collective an algorithm --------------------------===//
#include "ncclx/Selection/Selection.h"

#include "ncclx/Conversion/Passes.h"
#include "ncclx/Conversion/ProgramGrid.h"
#include "ncclx/NCCLX/Topology.h"

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

LogicalResult mlir::ncclx::chooseAlgorithms(ModuleOp module, const SelectionTarget &target) {
  llvm::StringMap<std::pair<Algorithm, std::string>> known;
  llvm::DenseMap<Operation *, ProgramGrid> grids;
  WalkResult walked = module.walk([&](CollectiveOpInterface op) {
    auto function = op->getParentOfType<FunctionOpInterface>();
    if (!grids.contains(function)) {
      FailureOr<ProgramGrid> grid = ProgramGrid::of(function);
      if (failed(grid))
        return WalkResult::interrupt();
      grids.insert({function, std::move(*grid)});
    }
    size_t axes = grids.at(function).axesOf(op).size();
    if (getSchedule(op))
      return failed(setOrderOfSchedule(op)) ? WalkResult::interrupt() : WalkResult::advance();
    if (op.getAlgorithm()) {
      if (std::optional<std::string> why = whyNot(op, *op.getAlgorithm(), axes)) {
        op->emitOpError("asks for ") << stringifyAlgorithm(*op.getAlgorithm()) << ", but " << *why;
        return WalkResult::interrupt();
      }
      setOrder(op);
      return WalkResult::advance();
    }
    auto [it, isNew] = known.try_emplace(timingKey(op) + std::to_string(axes));
    if (isNew) {
      std::optional<Algorithm> best;
      double bestTime = 0;
      std::string text;
      for (unsigned number = 0; number <= getMaxEnumValForAlgorithm(); ++number) {
        Algorithm algorithm = *symbolizeAlgorithm(number);
        std::string name = stringifyAlgorithm(algorithm).str();
        if (std::optional<std::string> why = whyNot(op, algorithm, axes)) {
          text += llvm::formatv("; {0} refused: {1}", name, *why);
          continue;
        }
        FailureOr<double> seconds = timeAlone(op, algorithm, target);
        if (failed(seconds))
          return WalkResult::interrupt();
        text += llvm::formatv("; {0} {1:F2} us", name, *seconds * 1e6);
        if (!best || *seconds < bestTime) {
          best = algorithm;
          bestTime = *seconds;
        }
      }
      if (!best) {
        op->emitOpError("has no algorithm that can carry it") << text;
        return WalkResult::interrupt();
      }
      it->second = {*best, text};
    }
    auto &[algorithm, text] = it->second;
    op.setAlgorithm(algorithm);
    setOrder(op);
    remark::passed(op.getLoc(),
                   remark::RemarkOpts::name("AlgorithmChosen").category("ncclx-choose-algorithm"))
        << remark::add("{0} for {1}{2}", stringifyAlgorithm(algorithm),
                       op->getName().stripDialect(), text)
        << remark::metric("Bytes", op.getPayloadBytes());
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

namespace {
struct ChooseAlgorithm : ncclx::impl::ChooseAlgorithmBase<ChooseAlgorithm> {
  using Base::Base;

  void runOnOperation() override {
    auto inModule =
        getOperation()->getAttrOfType<TopologyAttr>(NCCLXDialect::getTopologyAttrName());
    if (topologyFile.empty() && !inModule) {
      getOperation().emitError("ncclx-choose-algorithm needs topology=FILE, or the module's "
                               "attribute ncclx.topology");
      return signalPassFailure();
    }
    topology::ReadResult read =
        topologyFile.empty() ? readTopology(inModule) : topology::readTopologyFile(topologyFile);
    if (!read.topology) {
      for (const topology::Diagnostic &diagnostic : read.diagnostics)
        getOperation().emitError(topology::toString(diagnostic, topologyFile));
      return signalPassFailure();
    }
    if (failed(chooseAlgorithms(getOperation(),
                                {&*read.topology, topology::Rate::payload, loadStore})))
      signalPassFailure();
  }
};
} // namespace

//===- SplitBranches.cpp - One function for each way through a graph -------===//

#include "Flow.h"
#include "SplitStages.h"
#include "ncclx/NCCLX/Branches.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Transforms/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_SPLITBRANCHES
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// An scf.if or scf.index_switch: what selects, and the region and the value for each choice.
struct Branch {
  Operation *op = nullptr;
  Value selector;
  SmallVector<Region *> regions;
  SmallVector<std::optional<int64_t>> values; ///< of the selector; nothing: any other

  explicit operator bool() const { return op; }
};

Branch describe(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return {op, branch.getCondition(), {&branch.getThenRegion(), &branch.getElseRegion()}, {1, 0}};
  auto branch = cast<scf::IndexSwitchOp>(op);
  Branch result{op, branch.getArg(), {}, {}};
  for (auto [region, value] : llvm::zip(branch.getCaseRegions(), branch.getCases())) {
    result.regions.push_back(&region);
    result.values.push_back(value);
  }
  result.regions.push_back(&branch.getDefaultRegion());
  result.values.push_back(std::nullopt);
  return result;
}

/// The first branch at the top of the function that communicates.
Branch firstBranch(func::FuncOp function) {
  for (Operation &op : function.getBody().front())
    if (isa<scf::IfOp, scf::IndexSwitchOp>(op) && holdsCommunication(&op))
      return describe(&op);
  return {};
}

/// Puts one region of a branch in the branch's place.
void take(IRRewriter &rewriter, const Branch &branch, unsigned choice) {
  Region &region = *branch.regions[choice];
  if (region.empty()) { // no else
    rewriter.eraseOp(branch.op);
    return;
  }
  Operation *terminator = region.front().getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  rewriter.eraseOp(terminator);
  rewriter.inlineBlockBefore(&region.front(), branch.op);
  rewriter.replaceOp(branch.op, results);
}

/// Resolves the branches whose selectors are constants; gives the first that is left.
FailureOr<Branch> resolve(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  while (true) {
    // Folding alone: a decision may decide others.
    if (failed(applyPatternsGreedily(function, RewritePatternSet(function.getContext()))))
      return function.emitOpError("has constants whose folding does not come to an end");
    Branch branch = firstBranch(function);
    APInt constant;
    if (!branch || !matchPattern(branch.selector, m_ConstantInt(&constant)))
      return branch;
    int64_t value =
        constant.getBitWidth() == 1 ? int64_t(constant.getZExtValue()) : constant.getSExtValue();
    unsigned choice = 0;
    while (branch.values[choice] && *branch.values[choice] != value)
      ++choice;
    rewriter.setInsertionPoint(branch.op);
    take(rewriter, branch, choice);
  }
}

class Splitter {
public:
  Splitter(func::FuncOp function, int64_t maxBranches)
      : function(function), maxBranches(maxBranches) {}

  LogicalResult run();

private:
  func::FuncOp function;
  int64_t maxBranches;
  SmallVector<OwningOpRef<func::FuncOp>> ways;

  FailureOr<Value> decide(OwningOpRef<func::FuncOp> way, OpBuilder &b, ValueRange arguments);
  FailureOr<func::FuncOp> makeChooser(OwningOpRef<func::FuncOp> first, StringRef name);
};

} // namespace

/// Splits `way` at its first branch and so on. What is built at `b` computes the number of the way.
FailureOr<Value> Splitter::decide(OwningOpRef<func::FuncOp> way, OpBuilder &b,
                                  ValueRange arguments) {
  Location loc = function.getLoc();
  FailureOr<Branch> found = resolve(*way);
  if (failed(found))
    return failure();
  if (!*found) {
    if (int64_t(ways.size()) == maxBranches)
      return function.emitOpError("has more than ")
             << maxBranches << " ways through its branches that communicate; each is a schedule of "
             << "its own";
    ways.push_back(std::move(way));
    return Value(arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(int64_t(ways.size()) - 1)));
  }
  // What the selector is computed from, which legality has found uniform.
  IRMapping map;
  map.map(way->getArguments(), arguments);
  if (Operation *computed = found->selector.getDefiningOp()) {
    SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.inclusive = options.omitBlockArguments = true;
    options.omitUsesFromAbove = false;
    if (failed(getBackwardSlice(computed, &slice, options)))
      return found->op->emitOpError("depends on a value that cannot be traced to the arguments");
    for (Operation *op : slice) {
      if (op->getParentOp() != way->getOperation())
        continue; // comes with what it is inside of
      b.clone(*op, map);
    }
  }
  Value selector = map.lookup(found->selector);

  size_t choices = found->regions.size();
  SmallVector<std::optional<int64_t>> values(found->values);
  bool isIf = isa<scf::IfOp>(found->op);
  Operation *made;
  if (isIf) {
    made = scf::IfOp::create(b, loc, TypeRange(b.getI64Type()), selector, /*withElse=*/true);
  } else {
    SmallVector<int64_t> cases;
    for (std::optional<int64_t> value : ArrayRef(values).drop_back())
      cases.push_back(*value);
    auto table = scf::IndexSwitchOp::create(b, loc, b.getI64Type(), selector, cases, cases.size());
    for (Region &region : table->getRegions())
      if (region.empty())
        region.emplaceBlock();
    made = table;
  }
  Branch inChooser = describe(made);
  for (size_t choice = 0; choice < choices; ++choice) {
    OwningOpRef<func::FuncOp> taken = way->clone();
    Branch branch = firstBranch(*taken);
    IRRewriter rewriter(function.getContext());
    rewriter.setInsertionPoint(branch.op);
    if (values[choice]) {
      Value known = arith::ConstantOp::create(
          rewriter, branch.op->getLoc(),
          rewriter.getIntegerAttr(branch.selector.getType(), *values[choice]));
      rewriter.moveOpBefore(known.getDefiningOp(), &taken->getBody().front().front());
      rewriter.replaceAllUsesWith(branch.selector, known);
    }
    take(rewriter, branch, choice);
    OpBuilder inside = OpBuilder::atBlockBegin(&inChooser.regions[choice]->front());
    FailureOr<Value> number = decide(std::move(taken), inside, arguments);
    if (failed(number))
      return failure();
    scf::YieldOp::create(inside, loc, *number);
  }
  return made->getResult(0);
}

FailureOr<func::FuncOp> Splitter::makeChooser(OwningOpRef<func::FuncOp> first, StringRef name) {
  OpBuilder b(function.getContext());
  Location loc = function.getLoc();
  auto result = RankedTensorType::get({}, b.getI64Type());
  OwningOpRef<func::FuncOp> chooser = func::FuncOp::create(
      loc, name, b.getFunctionType(function.getArgumentTypes(), TypeRange(result)));
  b.setInsertionPointToStart(chooser->addEntryBlock());
  FailureOr<Value> number = decide(std::move(first), b, chooser->getArguments());
  if (failed(number))
    return failure();
  Value boxed = tensor::FromElementsOp::create(b, loc, result, *number);
  func::ReturnOp::create(b, loc, boxed);
  IRRewriter rewriter(function.getContext());
  DominanceInfo dominance(*chooser);
  eliminateCommonSubExpressions(rewriter, dominance, *chooser);
  return chooser.release();
}

LogicalResult Splitter::run() {
  OwningOpRef<func::FuncOp> first = function.clone();
  IRRewriter rewriter(function.getContext());
  DominanceInfo dominance(*first);
  eliminateCommonSubExpressions(rewriter, dominance, *first); // what is one condition is one value
  auto module = function->getParentOfType<ModuleOp>();
  std::string base = function.getSymName().str(), name = getChooserName(base);
  FailureOr<func::FuncOp> chooser = makeChooser(std::move(first), name);
  if (failed(chooser))
    return failure();
  if (ways.size() == 1) { // all was decided
    chooser->erase();
    module.insert(function, ways.front().release());
    function.erase();
    return success();
  }
  SmallVector<Attribute> names;
  SmallVector<func::FuncOp> made;
  for (auto [i, way] : llvm::enumerate(ways)) {
    std::string wayName = base + "." + std::to_string(i);
    way->setSymName(wayName);
    names.push_back(FlatSymbolRefAttr::get(function.getContext(), wayName));
    made.push_back(way.release());
  }
  (*chooser)->setAttr(branchesAttrName, ArrayAttr::get(function.getContext(), names));
  made.push_back(*chooser);
  for (func::FuncOp one : made)
    module.insert(function, one);
  for (func::FuncOp one : made)
    if (SymbolTable::lookupSymbolIn(module, one.getSymNameAttr()) != one)
      return function.emitOpError("is split into branches, one of which is to be '")
             << one.getSymName() << "', but the module has another of that name";
  remark::passed(function.getLoc(),
                 remark::RemarkOpts::name("BranchesSplit").category("ncclx-split-branches"))
      << remark::metric("Branches", int64_t(ways.size()));
  function.erase();
  return success();
}

namespace {
struct SplitBranches : ncclx::impl::SplitBranchesBase<SplitBranches> {
  using Base::Base;

  // Here and not in Passes.td, so that its header stays as it is for all who include it.
  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registry.insert<cf::ControlFlowDialect, linalg::LinalgDialect>();
  }

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions, staged;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || !function.getBody().hasOneBlock())
        continue;
      if (needsStages(function))
        staged.push_back(function);
      else if (firstBranch(function))
        functions.push_back(function);
    }
    for (func::FuncOp function : staged)
      if (failed(splitIntoStages(function)))
        return signalPassFailure();
    for (func::FuncOp function : functions)
      if (failed(Splitter(function, maxBranches).run()))
        return signalPassFailure();
  }
};
} // namespace

//===- VerifyLegality.cpp - Uniform control flow, futures awaited once ----===//

#include "Flow.h"
#include "Uniformity.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/NCCLX/Sizes.h"
#include "ncclx/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_VERIFYLEGALITY
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

class Verifier {
public:
  explicit Verifier(ModuleOp module) : module(module), uniformity(module) {}

  LogicalResult run();

private:
  void findCommunicating();
  LogicalResult verifyControlFlow(Operation *op);
  LogicalResult verifyCall(func::CallOp call);
  LogicalResult verifyFutures(Operation *op);
  LogicalResult verifyChunks(StartOp start);
  LogicalResult verifyWindows(Operation *op);

  func::FuncOp getCallee(func::CallOp call) {
    return tables.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  }

  ModuleOp module;
  Uniformity uniformity;
  SymbolTableCollection tables;
  /// The functions in which a collective may run, by their calls too.
  DenseSet<Operation *> communicating;
};

struct VerifyLegality : ncclx::impl::VerifyLegalityBase<VerifyLegality> {
  using VerifyLegalityBase::VerifyLegalityBase;

  void runOnOperation() override {
    if (failed(Verifier(getOperation()).run()))
      signalPassFailure();
  }
};

Use classifyFuture(OpOperand &use) {
  if (auto await = dyn_cast<AwaitOp>(use.getOwner()))
    return await.getChunk() ? Use::Chunk : Use::Whole;
  return getForwarded(use) ? Use::Forward : Use::Illegal;
}

} // namespace

/// legality L1 to L4: `op` communicates, so every rank must reach it, equally often.
LogicalResult Verifier::verifyControlFlow(Operation *op) {
  for (Operation *inner = op; !isa<FunctionOpInterface>(inner); inner = inner->getParentOp()) {
    if (!inner->getParentRegion()->hasOneBlock())
      return op->emitOpError(
          "communicates in unstructured control flow, which may differ between ranks");
    Operation *parent = inner->getParentOp();
    if (isa<FunctionOpInterface, StartOp, scf::ExecuteRegionOp>(parent))
      continue;
    if (!isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp>(parent)) {
      InFlightDiagnostic diag = op->emitOpError("communicates inside '")
                                << parent->getName() << "', which gives its rounds no order";
      diag.attachNote(parent->getLoc()) << "here";
      return diag;
    }
    for (Value decider : getDeciders(parent)) {
      if (uniformity.isUniform(decider))
        continue;
      InFlightDiagnostic diag =
          op->emitOpError("is under control flow that may differ between ranks");
      diag.attachNote(parent->getLoc()) << "this '" << parent->getName() << "' depends on a value";
      uniformity.explain(decider, diag);
      return diag;
    }
  }
  return success();
}

void Verifier::findCommunicating() {
  for (bool changed = true; changed;) {
    changed = false;
    module.walk([&](Operation *op) {
      bool communicates = isCommunication(op);
      if (auto call = dyn_cast<func::CallOp>(op))
        communicates = communicating.contains(getCallee(call));
      if (communicates)
        if (auto function = op->getParentOfType<FunctionOpInterface>())
          changed |= communicating.insert(function).second;
    });
  }
}

/// legality L5: what a callee takes as uniform is uniform.
LogicalResult Verifier::verifyCall(func::CallOp call) {
  func::FuncOp callee = getCallee(call);
  for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
    if (!callee.getArgAttr(i, NCCLXDialect::getUniformAttrName()) || uniformity.isUniform(operand))
      continue;
    InFlightDiagnostic diag = call.emitOpError("passes as argument #")
                              << i << ", which " << call.getCalleeAttr() << " marks {"
                              << NCCLXDialect::getUniformAttrName()
                              << "}, a value that may differ between ranks";
    uniformity.explain(operand, diag);
    return diag;
  }
  return success();
}

/// legality L7 and L8 for all futures that `op` defines.
LogicalResult Verifier::verifyFutures(Operation *op) {
  SmallVector<Value> futures;
  auto collect = [&](ValueRange values) {
    llvm::append_range(futures, llvm::make_filter_range(
                                    values, [](Value v) { return isa<FutureType>(v.getType()); }));
  };
  collect(op->getResults());
  for (Region &region : op->getRegions())
    for (Block &block : region)
      collect(block.getArguments());
  if (futures.empty())
    return success();
  if (isa<FunctionOpInterface>(op))
    return op->emitOpError("takes a future, which cannot leave the function it was started in");
  if (!isa<StartOp, scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp>(op))
    return op->emitOpError(
        "gives a future, but only ncclx.start, scf.if, index_switch, for and while may");
  bool ok = true;
  for (Value future : futures)
    ok &= succeeded(verifyTakenOnce(future, "future", "awaited", classifyFuture));
  return success(ok);
}

/// legality L9: chunks are cut as the collective cuts its result.
LogicalResult Verifier::verifyChunks(StartOp start) {
  CollectiveOpInterface collective = start.getCollective();
  for (Value future : getReached(start.getFuture()))
    for (Operation *user : future.getUsers())
      if (auto await = dyn_cast<AwaitOp>(user); await && await.getChunk())
        if (failed(verifyChunkOf(await, *await.getCount(), *await.getDim(), collective)))
          return failure();
  return success();
}

/// legality L10: who uses a window sees the op that makes it.
LogicalResult Verifier::verifyWindows(Operation *op) {
  auto isWindow = [](Value v) { return isa<WindowType>(v.getType()); };
  bool handsOn = llvm::any_of(op->getOperands(), isWindow) && !isCommunication(op);
  bool gives = llvm::any_of(op->getResults(), isWindow) && !isa<WindowOp>(op);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      gives |= llvm::any_of(block.getArguments(), isWindow);
  if (!handsOn && !gives)
    return success();
  return op->emitOpError("hands on a window, which only put, get, signal and wait may name, in the "
                         "function that makes it");
}

LogicalResult Verifier::run() {
  findCommunicating();
  bool ok = true;
  // sizes C6: of private functions the caller gives the sizes.
  for (auto function : module.getOps<func::FuncOp>())
    if (communicating.contains(function) && function.isPublic())
      ok &= succeeded(verifyAllNamed(function));
  module.walk([&](Operation *op) {
    bool communicates = isCommunication(op);
    if (auto call = dyn_cast<func::CallOp>(op)) {
      ok &= succeeded(verifyCall(call));
      communicates = communicating.contains(getCallee(call));
    }
    if (communicates)
      ok &= succeeded(verifyControlFlow(op));
    if (auto call = dyn_cast<CallOp>(op)) {
      // legality L6
      auto callee = tables.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
      if (communicating.contains(callee)) {
        InFlightDiagnostic diag = call.emitOpError("runs a kernel that communicates");
        diag.attachNote(callee.getLoc()) << "this one";
        ok = false;
      }
      if (callee && callee.isDeclaration()) {
        InFlightDiagnostic diag = call.emitOpError("runs a kernel without a body: ")
                                  << call.getCalleeAttr() << " is only declared";
        diag.attachNote(callee.getLoc()) << "this one";
        ok = false;
      }
    }
    if (auto start = dyn_cast<StartOp>(op))
      ok &= succeeded(verifyChunks(start));
    ok &= succeeded(verifyFutures(op)) && succeeded(verifyWindows(op));
  });
  return success(ok);
}

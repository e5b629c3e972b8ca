//===- ProgramVerify.cpp - The constraints of a whole program ------------------------===//
#include "ncclx/CTran/Access.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::ctran;

LogicalResult ProgramOp::verify() {
  llvm::StringSet<> names;
  int64_t ranks = 1;
  for (auto axis : getGrid().getAsRange<GridAxisAttr>()) {
    if (!names.insert(axis.getName()).second) // program C1
      return emitOpError("has two axes named \"") << axis.getName() << '"';
    ranks *= axis.getSize();
    if (ranks > INT32_MAX) // program C2
      return emitOpError("needs fewer than 2^31 ranks");
  }
  llvm::StringSet<> collectives;
  for (auto collective : getCollectives().getAsRange<CollectiveAttr>()) {
    if (!collectives.insert(collective.getName()).second) // program C3
      return emitOpError("has two collectives named \"") << collective.getName() << '"';
    for (StringAttr axis : collective.getAxes())
      if (!getAxisIndex(axis)) // program C4
        return emitOpError("has collective \"") << collective.getName() << "\" over axis " << axis
                                                << ", which the grid does not have";
  }
  Block &body = getBody().front();
  if (body.getNumArguments() != 1 || !isa<TokenType>(body.getArgument(0).getType())) // program C5
    return emitOpError("needs a body with one argument, the entry token");
  if (body.empty() || !isa<ReturnOp>(body.back())) // program C6
    return emitOpError("needs a body that ends with ctran.return");
  return success();
}

/// Numbers, conditions and tokens are what loops and branches may carry: everything else has one
/// definition, so that it can be resolved.
static bool canCarry(Type type) { return isa<IndexType, TokenType>(type) || type.isInteger(1); }

/// Index arithmetic that has the same meaning to the prover and to the code generator.
static bool isArithmetic(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compare.getLhs().getType().isIndex();
  if (isa<arith::ConstantOp, arith::SelectOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp,
          affine::AffineApplyOp>(op))
    return canCarry(op->getResult(0).getType());
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivSIOp, arith::DivUIOp,
             arith::CeilDivSIOp, arith::FloorDivSIOp, arith::RemSIOp, arith::RemUIOp,
             arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>(op) &&
         op->getResult(0).getType().isIndex();
}

static LogicalResult verifyLoop(scf::ForOp loop) {
  auto step = constantOf(loop.getStep());
  if (!step || *step < 1) { // program C8
    auto diag = loop.emitOpError("in a ctran.program needs a constant step of at least 1");
    if (step)
      diag << ", found " << *step;
    return diag;
  }
  for (Value bound : {loop.getLowerBound(), loop.getUpperBound()})
    if (Operation *source = coordinateSource(bound)) { // program C9
      auto diag =
          loop.emitOpError("in a ctran.program needs bounds that are the same on every rank");
      diag.attachNote(source->getLoc()) << "this value differs between ranks";
      return diag;
    }
  auto lanes = loop.walk([](ScheduleOpInterface) { return WalkResult::interrupt(); });
  if (!lanes.wasInterrupted()) // program C10
    return loop.emitOpError("in a ctran.program holds no op of a lane");
  return success();
}

/// What may stand in a program, and how.
static LogicalResult verifyInside(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (failed(verifyLoop(loop)))
      return failure();
  } else if (!isa<scf::IfOp, scf::YieldOp>(op) && !isa<CTranDialect>(op->getDialect()) &&
             !isArithmetic(op)) { // program C7
    return op->emitOpError(
        "does not belong in a ctran.program: expected ctran ops, scf.for, scf.if "
        "and arithmetic on indices");
  }
  if (isa<scf::ForOp, scf::IfOp>(op))
    for (Type type : op->getResultTypes())
      if (!canCarry(type)) // program C11
        return op->emitOpError("in a ctran.program carries indices, conditions and tokens only, "
                               "found ")
               << type;
  for (Value result : op->getResults())
    if (isa<TokenType>(result.getType()) && result.use_empty()) // program C12
      return op->emitOpError("makes a token that nothing uses: let an op come after it, or return "
                             "it");
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  auto walked = getBody().walk<WalkOrder::PreOrder>([](Operation *op) {
    // A dialect that is not registered has no meaning here.
    if (!op->getDialect()) {
      op->emitOpError("does not belong in a ctran.program");
      return WalkResult::interrupt();
    }
    return WalkResult(verifyInside(op));
  });
  if (walked.wasInterrupted())
    return failure();

  llvm::StringMap<Operation *> names;
  SmallVector<WindowOp> inputs, outputs;
  auto claim = [&](Operation *op, StringRef name) -> LogicalResult { // program C13
    if (auto [it, isNew] = names.try_emplace(name, op); !isNew) {
      auto diag = op->emitOpError("has the name \"") << name << "\" of another";
      diag.attachNote(it->second->getLoc()) << "which is declared here";
      return diag;
    }
    return success();
  };
  for (Operation &op : getBody().front()) {
    if (auto slots = dyn_cast<SlotsOp>(op)) {
      if (failed(claim(slots, slots.getSym())))
        return failure();
    } else if (auto window = dyn_cast<WindowOp>(op)) {
      if (failed(claim(window, window.getSym())))
        return failure();
      if (window.getRole() != WindowRole::Scratch)
        (window.getRole() == WindowRole::Output ? outputs : inputs).push_back(window);
    }
  }
  for (auto &list : {inputs, outputs}) {
    SmallVector<WindowOp> byPosition(list.size());
    for (WindowOp window : list) { // program C14
      uint64_t index = *window.getIndex();
      if (index >= list.size())
        return window.emitOpError("has position ")
               << index << ", but there are " << list.size() << ' '
               << stringifyWindowRole(window.getRole()) << "s";
      if (byPosition[index]) {
        auto diag = window.emitOpError("has position ")
                    << index << " of another " << stringifyWindowRole(window.getRole());
        diag.attachNote(byPosition[index].getLoc()) << "which is declared here";
        return diag;
      }
      byPosition[index] = window;
    }
  }
  return success();
}

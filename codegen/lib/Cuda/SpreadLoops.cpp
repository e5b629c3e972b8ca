//===- SpreadLoops.cpp - A function's iterations over threads -------------------------===//
//
// The parallel iterators of an op go outside, its reductions keep their order, so every element is
// made by one thread, by the operations that the host does, in the same order.
//
//===----------------------------------------------------------------------===//
#include "SpreadLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::ncclx;

static constexpr int64_t kThreads = 256, kMaxBlocks = 1024, kOneBlock = 1024;

/// The iterations that may run at once.
static int64_t parallelPoints(linalg::LinalgOp op) {
  SmallVector<unsigned> dims;
  op.getParallelDims(dims);
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  int64_t points = 1;
  for (unsigned dim : dims)
    if (__builtin_mul_overflow(points, std::max<int64_t>(0, extents[dim]), &points))
      return std::numeric_limits<int64_t>::max();
  return points;
}

static LogicalResult spread(IRRewriter &rewriter, linalg::LinalgOp op, Value thread,
                            Value threads) {
  rewriter.setInsertionPoint(op);
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic) {
    FailureOr<linalg::GenericOp> general = linalg::generalizeNamedOp(rewriter, op);
    if (failed(general))
      return op->emitOpError("has no general form to lower to a kernel");
    generic = *general;
  }
  SmallVector<unsigned> order, reductions;
  generic.getParallelDims(order);
  generic.getReductionDims(reductions);
  unsigned parallel = order.size();
  order.append(reductions);
  if (order.size() != generic.getNumLoops())
    return generic.emitOpError("has iterators that are neither parallel nor of a reduction");
  if (order.size() > 1) {
    FailureOr<linalg::GenericOp> ordered = linalg::interchangeGenericOp(rewriter, generic, order);
    if (failed(ordered))
      return generic.emitOpError("could not be put in the order of a kernel's loops");
    generic = *ordered;
  }
  Location loc = generic.getLoc();
  rewriter.setInsertionPoint(generic);
  if (parallel == 0) { // one thread's work
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    Value first = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, thread, zero);
    auto only = scf::IfOp::create(rewriter, loc, first, /*withElseRegion=*/false);
    rewriter.moveOpBefore(generic, only.thenBlock()->getTerminator());
    rewriter.setInsertionPoint(generic);
  }
  FailureOr<linalg::LinalgLoops> loops =
      linalg::linalgOpToLoops(rewriter, cast<linalg::LinalgOp>(generic.getOperation()));
  if (failed(loops))
    return generic.emitOpError("could not be lowered to a kernel's loops");
  rewriter.eraseOp(generic);
  if (parallel == 0)
    return success();
  SmallVector<scf::ForOp> outer;
  for (unsigned i = 0; i < parallel; ++i)
    outer.push_back(cast<scf::ForOp>((*loops)[i]));
  if (parallel > 1 && failed(coalesceLoops(rewriter, outer)))
    return outer.front().emitOpError("could not become one loop over threads");
  scf::ForOp loop = outer.front();
  loop.setLowerBound(thread);
  loop.setStep(threads);
  return success();
}

/// What a kernel keeps for itself becomes memory that it is given: arguments behind its own, at
/// `offsets` of one block of `bytes`.
static LogicalResult takeScratch(IRRewriter &rewriter, func::FuncOp function,
                                 SmallVectorImpl<int64_t> &offsets, int64_t &bytes) {
  SmallVector<memref::AllocOp> allocs;
  WalkResult walked = function.walk([&](Operation *op) -> WalkResult {
    auto alloc = dyn_cast<memref::AllocOp>(op);
    if (isa<memref::AllocaOp>(op) ||
        (alloc && (alloc->getParentOp() != function || !alloc.getType().hasStaticShape())))
      return WalkResult(op->emitOpError("allocates memory in a branch or loop, or of a size known "
                                        "at run time, which a kernel on a GPU does not"));
    if (alloc)
      allocs.push_back(alloc);
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  for (memref::AllocOp alloc : allocs) {
    MemRefType type = alloc.getType();
    unsigned last = function.getNumArguments();
    if (failed(function.insertArgument(last, type, {}, alloc.getLoc())))
      return failure();
    offsets.push_back(bytes);
    bytes += llvm::alignTo(
        type.getNumElements() *
            llvm::divideCeil(type.getElementType().isIndex() ? 64 : type.getElementTypeBitWidth(),
                             8),
        256);
    rewriter.replaceOp(alloc, function.getArgument(last));
  }
  return success();
}

LogicalResult mlir::ncclx::spreadLoops(func::FuncOp function, SpreadKernel &kernel) {
  auto module = function->getParentOfType<ModuleOp>();
  int64_t &blocks = kernel.blocks, &threads = kernel.threads;
  auto uses = SymbolTable::getSymbolUses(function, module);
  if (!uses || !uses->empty() || !function.getBody().hasOneBlock())
    return function.emitOpError("is called by another kernel, or has branches, which the CUDA "
                                "lowering does not have");
  IRRewriter rewriter(function.getContext());
  if (failed(takeScratch(rewriter, function, kernel.scratchOffsets, kernel.scratchBytes)))
    return failure();
  Block &body = function.getBody().front();
  SmallVector<memref::CopyOp> copies;
  for (auto copy : body.getOps<memref::CopyOp>())
    copies.push_back(copy);
  for (memref::CopyOp copy : copies) {
    rewriter.setInsertionPoint(copy);
    linalg::makeMemRefCopyOp(rewriter, copy.getLoc(), copy.getSource(), copy.getTarget());
    rewriter.eraseOp(copy);
  }
  SmallVector<linalg::LinalgOp> ops;
  bool other = false;
  for (Operation &op : body.without_terminator()) {
    if (auto structured = dyn_cast<linalg::LinalgOp>(op))
      ops.push_back(structured);
    else
      other |= !isMemoryEffectFree(&op) &&
               !isa<ViewLikeOpInterface, memref::GetGlobalOp, memref::LoadOp>(op);
    other |= op.getNumRegions() != 0 && !isa<linalg::LinalgOp>(op);
  }
  Type index = rewriter.getIndexType();
  for (int i = 0; i < 2; ++i)
    if (failed(function.insertArgument(function.getNumArguments(), index, {}, function.getLoc())))
      return failure();
  if (other || ops.empty())
    return success(); // one thread, in the order of the text
  Value thread = body.getArgument(body.getNumArguments() - 2);
  Value all = body.getArgument(body.getNumArguments() - 1);
  int64_t points = 1;
  for (linalg::LinalgOp op : ops)
    points = std::max(points, parallelPoints(op));
  threads = std::min(points, ops.size() == 1 ? kThreads : kOneBlock);
  if (ops.size() == 1)
    blocks = std::min(points / kThreads + (points % kThreads != 0), kMaxBlocks);
  if (ops.size() > 1 && !module.lookupSymbol(kBlockBarrier)) {
    rewriter.setInsertionPointToStart(module.getBody());
    func::FuncOp::create(rewriter, function.getLoc(), kBlockBarrier,
                         rewriter.getFunctionType({}, {}))
        .setPrivate();
  }
  for (linalg::LinalgOp op : ArrayRef(ops).drop_back()) {
    rewriter.setInsertionPointAfter(op); // loads behind it see what it wrote
    func::CallOp::create(rewriter, op.getLoc(), kBlockBarrier, TypeRange(), ValueRange());
  }
  for (linalg::LinalgOp op : ops)
    if (failed(spread(rewriter, op, thread, all)))
      return failure();
  return success();
}

//===- LinalgLoops.cpp - linalg to scf loops, in one order ----------------===//
//
// The order of an op's loops is a function of the op alone, so that the interpreter and a compiled
// schedule add in the same order:
//
//   * reduction dimensions keep their order among themselves and run from 0 up, one after the other
//     for each element of the output: that fixes every float sum;
//   * in a contraction the output's last dimension runs innermost (m, k, n for a matmul), which
//     LLVM vectorises without changing a sum; an operand that is read there more than once is
//     packed first if it would be read with a stride, or is only read to be widened (no value
//     changes);
//   * some rows of the output are worked on together (unroll and jam of a parallel loop): each
//     element still sums in the same order.
//
//===----------------------------------------------------------------------===//
#include "HostLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace {

/// Where `dim` stands among the results of a projected permutation, if it does.
std::optional<unsigned> positionOf(AffineMap map, unsigned dim) {
  for (auto [position, expr] : llvm::enumerate(map.getResults()))
    if (auto d = dyn_cast<AffineDimExpr>(expr); d && d.getPosition() == dim)
      return position;
  return std::nullopt;
}

/// The type that the body widens input `number` to, if it does nothing else with it.
Type widenedType(linalg::GenericOp op, unsigned number) {
  BlockArgument argument = op.getBody()->getArgument(number);
  Type type;
  for (Operation *user : argument.getUsers()) {
    auto extension = dyn_cast<arith::ExtFOp>(user);
    if (!extension || (type && type != extension.getType()))
      return Type();
    type = extension.getType();
  }
  return type;
}

/// How a contraction's loops are ordered.
struct ContractionPlan {
  SmallVector<unsigned> order;  ///< iterators, outermost first
  SmallVector<unsigned> packed; ///< operands to copy with the innermost dimension last
};

/// The plan of an op that multiplies and sums: one output, at least one reduction, and at least one
/// parallel dimension that some input does not use (so that the other one is used again).
std::optional<ContractionPlan> planContraction(linalg::GenericOp op) {
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0 || op.getNumParallelLoops() == 0 ||
      op.hasIndexSemantics())
    return std::nullopt;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (!llvm::all_of(maps, [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  AffineMap output = maps.back();
  if (output.getNumResults() == 0)
    return std::nullopt;
  unsigned inner = output.getDimPosition(output.getNumResults() - 1);

  ContractionPlan plan;
  SmallVector<unsigned> parallel, reduction;
  op.getParallelDims(parallel);
  op.getReductionDims(reduction);
  bool reused = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    reused |= llvm::any_of(parallel, [&](unsigned dim) { return !positionOf(map, dim); });
    std::optional<unsigned> position = positionOf(map, inner);
    if (!position)
      continue;
    bool again =
        llvm::any_of(parallel, [&](unsigned dim) { return !positionOf(map, dim).has_value(); });
    bool strided = *position + 1 != map.getNumResults();
    if (strided && !again)
      return std::nullopt;
    if (strided || (again && widenedType(op, input->getOperandNumber())))
      plan.packed.push_back(input->getOperandNumber());
  }
  if (!reused)
    return std::nullopt;
  for (unsigned dim : parallel)
    if (dim != inner)
      plan.order.push_back(dim);
  plan.order.append(reduction);
  plan.order.push_back(inner);
  return plan;
}

/// Copies operand `number` into a buffer whose last dimension is the iterator `inner`, widened as
/// the body would. Returns the buffer.
Value packOperand(IRRewriter &rewriter, linalg::GenericOp op, unsigned number, unsigned inner) {
  Location loc = op.getLoc();
  OpOperand &operand = op->getOpOperand(number);
  AffineMap map = op.getMatchingIndexingMap(&operand);
  auto type = cast<MemRefType>(operand.get().getType());
  unsigned rank = map.getNumResults(), last = *positionOf(map, inner);

  // Dimension i of the buffer is dimension source(i) of the operand.
  auto source = [&](unsigned i) { return i + 1 == rank ? last : i < last ? i : i + 1; };
  SmallVector<int64_t> shape;
  SmallVector<Value> sizes;
  SmallVector<AffineExpr> results, from(rank);
  for (unsigned i = 0; i < rank; ++i) {
    shape.push_back(type.getDimSize(source(i)));
    if (type.isDynamicDim(source(i)))
      sizes.push_back(memref::DimOp::create(rewriter, loc, operand.get(), source(i)));
    results.push_back(map.getResult(source(i)));
    from[source(i)] = rewriter.getAffineDimExpr(i);
  }
  Type widened = widenedType(op, number);
  Type element = widened ? widened : type.getElementType();
  Value packed = memref::AllocOp::create(rewriter, loc, MemRefType::get(shape, element), sizes);
  auto copy = linalg::GenericOp::create(
      rewriter, loc, operand.get(), packed,
      ArrayRef<AffineMap>{AffineMap::get(rank, 0, from, op.getContext()),
                          rewriter.getMultiDimIdentityMap(rank)},
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [&](OpBuilder &b, Location loc, ValueRange values) {
        Value value = values[0];
        if (widened)
          value = arith::ExtFOp::create(b, loc, widened, value);
        linalg::YieldOp::create(b, loc, value);
      });
  rewriter.setInsertionPoint(copy);
  (void)linalg::linalgOpToLoops(rewriter, cast<linalg::LinalgOp>(copy.getOperation()));
  rewriter.eraseOp(copy);
  rewriter.setInsertionPoint(op);

  operand.set(packed);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps[number] = AffineMap::get(map.getNumDims(), map.getNumSymbols(), results, op.getContext());
  op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  if (widened) {
    BlockArgument argument = op.getBody()->getArgument(number);
    for (Operation *user : llvm::make_early_inc_range(argument.getUsers()))
      rewriter.replaceOp(user, argument);
    argument.setType(widened);
  }
  return packed;
}

/// The largest of 4 and 2 that divides the trip count: unroll-and-jam takes no remainder.
uint64_t jamFactor(int64_t tripCount) {
  return tripCount % 4 == 0 ? 4 : tripCount % 2 == 0 ? 2 : 1;
}

LogicalResult lowerOp(IRRewriter &rewriter, linalg::LinalgOp op) {
  rewriter.setInsertionPoint(op);
  if (!op.hasPureBufferSemantics())
    return op->emitOpError("must be on memrefs before it is lowered to host code");
  linalg::GenericOp generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic && op.getNumReductionLoops() > 0) {
    FailureOr<linalg::GenericOp> general = linalg::generalizeNamedOp(rewriter, op);
    if (failed(general))
      return op->emitOpError("has no general form to lower to host code");
    generic = *general;
    op = cast<linalg::LinalgOp>(generic.getOperation());
  }

  SmallVector<Value> buffers;
  std::optional<ContractionPlan> plan;
  if (generic)
    plan = planContraction(generic);
  if (plan) {
    unsigned inner = plan->order.back();
    rewriter.setInsertionPoint(generic);
    for (unsigned number : plan->packed)
      buffers.push_back(packOperand(rewriter, generic, number, inner));
    FailureOr<linalg::GenericOp> ordered =
        linalg::interchangeGenericOp(rewriter, generic, plan->order);
    if (failed(ordered))
      return op->emitOpError("could not be put in the order of host loops");
    op = cast<linalg::LinalgOp>(ordered->getOperation());
    rewriter.setInsertionPoint(op);
  }
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  unsigned parallel = op.getNumParallelLoops();
  FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, op);
  if (failed(loops))
    return op->emitOpError("could not be lowered to host loops");
  rewriter.setInsertionPoint(op);
  for (Value buffer : buffers)
    memref::DeallocOp::create(rewriter, op.getLoc(), buffer);
  rewriter.eraseOp(op);
  // The last parallel loop outside the reductions: its rows share each load of the other operand.
  if (plan && parallel > 1 && loops->size() == extents.size()) {
    int64_t extent = extents[parallel - 2];
    if (!ShapedType::isDynamic(extent) && extent > 0)
      if (uint64_t factor = jamFactor(extent); factor > 1)
        (void)loopUnrollJamByFactor(cast<scf::ForOp>((*loops)[parallel - 2]), factor);
  }
  return success();
}

} // namespace

LogicalResult mlir::ncclx::lowerLinalgToLoops(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  // memref.copy would become a call to MLIR's own runtime library.
  SmallVector<memref::CopyOp> copies;
  module.walk([&](memref::CopyOp op) { copies.push_back(op); });
  for (memref::CopyOp op : copies) {
    if (!isa<MemRefType>(op.getSource().getType()) || !isa<MemRefType>(op.getTarget().getType()))
      return op.emitOpError("copies memrefs of known rank only on the host");
    rewriter.setInsertionPoint(op);
    linalg::makeMemRefCopyOp(rewriter, op.getLoc(), op.getSource(), op.getTarget());
    rewriter.eraseOp(op);
  }
  SmallVector<linalg::LinalgOp> ops;
  module.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  for (linalg::LinalgOp op : ops)
    if (failed(lowerOp(rewriter, op)))
      return failure();
  return success();
}

//===- Kernels.cpp - Computation becomes functions with declared costs ---------------===//
#include "Kernels.h"
#include "ncclx/Analysis/Products.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::ncclx;

Value mlir::ncclx::rootOf(Value memref) {
  while (Operation *op = memref.getDefiningOp()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(op))
      memref = view.getViewSource();
    else
      break;
  }
  return memref;
}

bool mlir::ncclx::isScaffold(Operation *op) {
  return isPure(op) || isa<memref::GetGlobalOp>(op) ||
         (isa<ViewLikeOpInterface>(op) && !isa<FinishChunkOp>(op));
}

//===--- cost ------------------------------------------------------------------------------===//

static double bytesOf(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasStaticShape() || !shaped.getElementType().isIntOrFloat())
    return 0;
  return double(shaped.getNumElements()) * std::max(1u, shaped.getElementTypeBitWidth() / 8);
}

/// Floating-point operations and bytes to and from memory, from shapes: of a structured op, the
/// arithmetic of its body for each point of its iteration space and each operand once; of a loop
/// with constant bounds, its body as often as it runs.
static void addCost(Operation *op, double times, Kernel &kernel) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    double points = times;
    for (int64_t range : structured.getStaticLoopRanges())
      points *= ShapedType::isDynamic(range) ? 1 : double(range);
    int64_t perPoint = 0;
    structured.getBlock()->walk([&](Operation *inner) {
      perPoint += inner->getNumResults() == 1 && isa<FloatType>(inner->getResult(0).getType()) &&
                  !isa<CastOpInterface>(inner) && inner->getNumOperands() > 0;
    });
    kernel.flops += points * double(perPoint);
    for (Value operand : op->getOperands())
      kernel.bytes += times * bytesOf(operand.getType());
    return;
  }
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op)) {
    std::optional<APInt> trips = loop.getStaticTripCount();
    double inner = times * (trips ? trips->getLimitedValue() : 1);
    for (Region *region : loop.getLoopRegions())
      for (Operation &child : region->getOps())
        addCost(&child, inner, kernel);
    return;
  }
  if (op->getNumRegions()) {
    for (Region &region : op->getRegions())
      for (Operation &child : region.getOps())
        addCost(&child, times, kernel);
    return;
  }
  if (isa<memref::LoadOp, memref::StoreOp>(op)) {
    kernel.bytes += times * 4;
    return;
  }
  if (isa<memref::CopyOp>(op))
    for (Value operand : op->getOperands())
      kernel.bytes += times * bytesOf(operand.getType());
  else if (op->getNumResults() == 1 && isa<FloatType>(op->getResult(0).getType()))
    kernel.flops += times;
}

//===--- what a kernel is --------------------------------------------------------------------===//

static void noteAccess(Value memref, bool write, Kernel &kernel) {
  // Allocations inside the kernel are its own business.
  Value root = rootOf(memref);
  if (Operation *op = root.getDefiningOp())
    if (isa<memref::GetGlobalOp>(op) ||
        llvm::any_of(kernel.ops, [&](Operation *k) { return k->isAncestor(op); }))
      return;
  if (!llvm::is_contained(kernel.args, root))
    kernel.args.push_back(root);
  // A chunk of a collective in flight is read through its view alone.
  Value through = memref;
  while (Operation *op = through.getDefiningOp()) {
    if (isa<FinishChunkOp>(op))
      break;
    auto view = dyn_cast<ViewLikeOpInterface>(op);
    if (!view)
      break;
    through = view.getViewSource();
  }
  if (write)
    kernel.writes.insert(through);
  else if (!kernel.filled.contains(root))
    kernel.reads.insert(through);
}

static void collectAccesses(Operation *op, Kernel &kernel) {
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects = getEffectsRecursively(op);
  if (effects) {
    bool precise = true;
    for (const MemoryEffects::EffectInstance &effect : *effects)
      if (!effect.getValue() && isa<MemoryEffects::Read, MemoryEffects::Write>(effect.getEffect()))
        precise = false;
    if (precise) {
      for (const MemoryEffects::EffectInstance &effect : *effects) {
        Value value = effect.getValue();
        if (!value || !isa<BaseMemRefType>(value.getType()))
          continue;
        if (isa<MemoryEffects::Read>(effect.getEffect()))
          noteAccess(value, false, kernel);
        else if (isa<MemoryEffects::Write>(effect.getEffect()))
          noteAccess(value, true, kernel);
      }
      return;
    }
  }
  // Effects unknown: everything it can reach is read and written.
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<BaseMemRefType>(operand.getType())) {
        noteAccess(operand, false, kernel);
        noteAccess(operand, true, kernel);
      }
  });
}

FailureOr<Kernel> mlir::ncclx::collectKernel(Operation *first,
                                             llvm::function_ref<bool(Operation *)> isBarrier) {
  Kernel kernel;
  Block *block = first->getBlock();
  Operation *last = first;
  DenseSet<Operation *> made; // what the kernel computes, scaffold of its scalars included
  for (Operation *op = first;; op = op->getNextNode()) {
    if (isa<memref::AllocOp>(op) && op != last)
      continue; // a buffer of the schedule, wherever it stands
    if (isBarrier(op))
      return op->emitOpError("stands between the computation of a scalar and its use; scalars are "
                             "not carried across communication")
                 .attachNote(first->getLoc())
             << "the scalar is computed here";
    if (!isScaffold(op)) {
      kernel.ops.push_back(op);
      made.insert(op);
      for (Value result : op->getResults()) {
        if (isa<BaseMemRefType>(result.getType()))
          continue;
        for (Operation *user : result.getUsers()) {
          Operation *top = block->findAncestorOpInBlock(*user);
          if (top && last->isBeforeInBlock(top))
            last = top;
        }
      }
    } else if (op->getNumResults() && llvm::any_of(op->getOperands(), [&](Value v) {
                 return v.getDefiningOp() && made.contains(v.getDefiningOp()) &&
                        !isa<BaseMemRefType>(v.getType());
               })) {
      // Arithmetic on such a scalar, or on what comes of one: its users belong here, too.
      made.insert(op);
      for (Operation *user : op->getUsers()) {
        Operation *top = block->findAncestorOpInBlock(*user);
        if (top && last->isBeforeInBlock(top))
          last = top;
      }
    }
    if (op == last)
      break;
  }
  double best = -1;
  auto count = [&](Operation *op) {
    Kernel alone;
    addCost(op, 1, alone);
    kernel.flops += alone.flops;
    kernel.bytes += alone.bytes;
    if (alone.flops + alone.bytes > best) {
      best = alone.flops + alone.bytes;
      kernel.what = op->getName().stripDialect().str();
    }
    if (auto sms = op->getAttrOfType<IntegerAttr>(kSmsAttrName))
      kernel.sms = sms.getInt();
  };
  auto visit = [&](Operation *op) {
    collectAccesses(op, kernel);
    count(op);
    Value all; // of which every element has been written
    if (auto fill = dyn_cast<linalg::FillOp>(op))
      all = fill.getOutputs().front();
    else if (auto copy = dyn_cast<memref::CopyOp>(op))
      all = copy.getTarget();
    else if (auto structured = dyn_cast<linalg::LinalgOp>(op);
             structured && structured.getNumDpsInits() == 1 &&
             structured.getNumReductionLoops() == 0) {
      OpOperand *init = structured.getDpsInitOperand(0);
      if (!structured.payloadUsesValueFromOperand(init) &&
          structured.getMatchingIndexingMap(init).isPermutation())
        all = init->get();
    }
    if (all && rootOf(all) == all && !kernel.reads.contains(all))
      kernel.filled.insert(all);
  };
  for (Operation *op : kernel.ops)
    if (auto group = dyn_cast<scf::ExecuteRegionOp>(op); group && group.getRegion().hasOneBlock())
      for (Operation &inner : group.getRegion().front().without_terminator())
        visit(&inner);
    else
      visit(op);
  return kernel;
}

//===--- outlining
//-----------------------------------------------------------------------------===//

/// Copies the scaffold that `op` needs and that is not in `map` yet.
static void cloneScaffold(OpBuilder &builder, Operation *op, IRMapping &map) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (!def || map.contains(operand) || op->isAncestor(def))
        continue;
      if (auto chunk = dyn_cast<FinishChunkOp>(def)) {
        // Inside a kernel the chunk is a plain view: the wait stands before the kernel.
        cloneScaffold(builder, def, map);
        auto type = cast<MemRefType>(chunk.getResult().getType());
        auto whole = cast<MemRefType>(chunk.getInFlight().getType());
        int64_t shard = getShardSize(whole.getDimSize(chunk.getDim()), chunk.getCount());
        std::optional<int64_t> at = getConstantIntValue(chunk.getChunk());
        SmallVector<OpFoldResult> offsets, sizes, strides;
        for (auto [d, size] : llvm::enumerate(type.getShape())) {
          bool cutHere = int64_t(d) == int64_t(chunk.getDim());
          int64_t begin = cutHere ? std::min(*at * shard, whole.getDimSize(d)) : 0;
          int64_t length = cutHere ? std::min(begin + shard, whole.getDimSize(d)) - begin : size;
          offsets.push_back(builder.getIndexAttr(begin));
          sizes.push_back(builder.getIndexAttr(length));
          strides.push_back(builder.getIndexAttr(1));
        }
        Value view = memref::SubViewOp::create(
            builder, chunk.getLoc(), map.lookup(chunk.getInFlight()), offsets, sizes, strides);
        if (view.getType() != type)
          view = memref::CastOp::create(builder, chunk.getLoc(), type, view);
        map.map(operand, view);
        continue;
      }
      if (!isScaffold(def))
        continue;
      cloneScaffold(builder, def, map);
      builder.clone(*def, map);
    }
  });
}

func::FuncOp mlir::ncclx::outlineKernel(OpBuilder &builder, const Kernel &kernel, StringRef name) {
  SmallVector<Type> types;
  for (Value arg : kernel.args)
    types.push_back(arg.getType());
  Location loc = kernel.ops.front()->getLoc();
  auto function =
      func::FuncOp::create(builder, loc, name, builder.getFunctionType(types, TypeRange()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(function.addEntryBlock());
  IRMapping map;
  map.map(kernel.args, function.getArguments());
  for (Operation *op : kernel.ops) {
    cloneScaffold(builder, op, map);
    auto group = dyn_cast<scf::ExecuteRegionOp>(op);
    if (!group || !group.getRegion().hasOneBlock() || group.getNumResults()) {
      builder.clone(*op, map);
      continue;
    }
    for (Operation &inner : group.getRegion().front().without_terminator())
      builder.clone(inner, map);
  }
  func::ReturnOp::create(builder, loc);
  return function;
}

//===- WindowLowering.cpp - Windows to memrefs and calls ------------------===//
//
// A window is a buffer of its rank. Members meet at a put to a peer, and each writes what it gets
// into its own window there: so what a put brings is there when its signal would be, and signals
// and waits are nothing. A program without races cannot tell the difference.
//
//===----------------------------------------------------------------------===//
#include "InterpreterLowering.h"

#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::reference;

/// The box that begins at the op's offsets, as a view. An offset known at run time only is checked.
template <typename OpTy>
static Value boxOf(ImplicitLocOpBuilder &b, OpTy op, Value buffer, ShapedType box,
                   llvm::function_ref<void(Value index, int64_t count)> check) {
  SmallVector<OpFoldResult> offsets =
      getMixedValues(op.getStaticOffsets(), op.getOffsets(), op->getContext());
  SmallVector<OpFoldResult> sizes, strides(box.getRank(), b.getIndexAttr(1));
  auto whole = cast<MemRefType>(buffer.getType());
  for (auto [d, size] : llvm::enumerate(box.getShape())) {
    sizes.push_back(b.getIndexAttr(size));
    if (auto offset = dyn_cast<Value>(offsets[d]))
      check(offset, whole.getDimSize(d) - size + 1);
  }
  return memref::SubViewOp::create(b, buffer, offsets, sizes, strides);
}

// Nothing moves then, and upstream has no view of no rows at an end.
static bool isEmpty(Type box) { return cast<ShapedType>(box).getNumElements() == 0; }

void reference::lowerWindows(
    ModuleOp module,
    llvm::function_ref<void(ImplicitLocOpBuilder &, Operation *, Value, int64_t)> check,
    llvm::function_ref<void(ImplicitLocOpBuilder &, Operation *, Value, Value)> meet) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (isa<WindowOp, PutOp, GetOp, SignalOp, WaitOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    auto checked = [&](Value index, int64_t count) { check(b, op, index, count); };
    if (auto window = dyn_cast<WindowOp>(op)) {
      Value buffer = memref::AllocOp::create(b, cast<MemRefType>(window.getWindow().getType()));
      if (window.getInit())
        memref::CopyOp::create(b, window.getInit(), buffer);
      window.getWindow().replaceAllUsesWith(buffer);
    } else if (auto put = dyn_cast<PutOp>(op); put && !isEmpty(put.getSource().getType())) {
      auto type = cast<MemRefType>(put.getSource().getType());
      Value box = boxOf(b, put, put.getWindow(), type, checked);
      if (PeerMap::of(op).isOwn()) {
        memref::CopyOp::create(b, put.getSource(), box);
      } else {
        // Who gets nothing finds what it had.
        Value arrived =
            memref::AllocOp::create(b, MemRefType::get(type.getShape(), type.getElementType()));
        memref::CopyOp::create(b, box, arrived);
        meet(b, op, put.getSource(), arrived);
        memref::CopyOp::create(b, arrived, box);
        memref::DeallocOp::create(b, arrived);
      }
    } else if (auto get = dyn_cast<GetOp>(op); get && !isEmpty(get.getBoxType())) {
      Value box = boxOf(b, get, get.getWindow(), get.getBoxType(), checked);
      memref::CopyOp::create(b, box, get.getDest());
    }
    op->erase();
  }
}

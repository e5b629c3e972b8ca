//===- Buffers.cpp - The memory of a function becomes windows ------------------------------===//
#include "Converter.h"
#include "Kernels.h"

#include "ncclx/Conversion/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::ncclx;

bool ncclx::isWholeBuffer(Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  return type && type.hasStaticShape() && type.getLayout().isIdentity() &&
         rootOf(memref) == memref &&
         (isa<BlockArgument>(memref) || memref.getDefiningOp<memref::AllocOp>());
}

static bool worksInPlace(ctran::ProgramOp written) {
  return llvm::any_of(
      written.getBody().front().getOps<ctran::WindowOp>(),
      [](ctran::WindowOp window) { return window.getRole() == ctran::WindowRole::InOut; });
}

// A collective on part of a buffer, on a reshaped one, or on a global goes through a buffer of its
// own, so that below this point each box of a window is one.
void Converter::stageViews() {
  SmallVector<CollectiveOpInterface> ops;
  function.walk([&](CollectiveOpInterface op) { ops.push_back(op); });
  auto packed = [](Value view) {
    auto type = cast<MemRefType>(view.getType());
    return MemRefType::get(type.getShape(), type.getElementType());
  };
  auto say = [](Operation *op, StringRef which) {
    remark::missed(
        op->getLoc(),
        remark::RemarkOpts::name("CopiedForCollective").category("convert-ncclx-to-ctran"))
        << remark::add("{0} is not a whole buffer: it goes through one of its own", which);
  };
  for (CollectiveOpInterface op : ops) {
    b.setInsertionPoint(op);
    ctran::ProgramOp written = getSchedule(op);
    bool mayAlias = isa<AllReduceOp>(op) && (!written || worksInPlace(written));
    bool aliases = rootOf(op.getInput()) == rootOf(op.getDest()) && !mayAlias;
    if (!isWholeBuffer(op.getInput()) || aliases) {
      Value buffer = memref::AllocOp::create(b, op.getLoc(), packed(op.getInput()));
      memref::CopyOp::create(b, op.getLoc(), op.getInput(), buffer);
      op->setOperand(0, buffer);
      say(op, "the input");
    }
    if (Value sizes = op.getSizes();
        sizes && (!isWholeBuffer(sizes) || rootOf(sizes) == rootOf(op.getDest()))) {
      b.setInsertionPoint(op);
      Value buffer = memref::AllocOp::create(b, op.getLoc(), packed(sizes));
      memref::CopyOp::create(b, op.getLoc(), sizes, buffer);
      op->setOperand(1, buffer);
      say(op, "the tensor of sizes");
    }
    if (!isWholeBuffer(op.getDest())) {
      Value view = op.getDest();
      b.setInsertionPoint(op);
      Value buffer = memref::AllocOp::create(b, op.getLoc(), packed(view));
      op.getDestMutable().assign(buffer);
      say(op, "the destination");
      Operation *behind = op;
      if (Value token = op.getToken())
        for (Operation *user : llvm::make_early_inc_range(token.getUsers())) {
          user->replaceUsesOfWith(view, buffer);
          if (isa<FinishOp>(user))
            behind = user;
        }
      b.setInsertionPointAfter(behind);
      memref::CopyOp::create(b, op.getLoc(), buffer, view);
    }
    if (written && mayAlias && op.getInput() != op.getDest()) {
      b.setInsertionPoint(op);
      memref::CopyOp::create(b, op.getLoc(), op.getInput(), op.getDest());
      op->setOperand(0, op.getDest());
    }
  }
}

LogicalResult Converter::declareBuffers() {
  Operation *terminator = function.getBody().front().getTerminator();
  // What is returned must be a buffer of this function, once: else a copy of it is returned.
  b.setInsertionPoint(terminator);
  SmallVector<Value> outputs;
  for (OpOperand &operand : terminator->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type || !type.hasStaticShape())
      return terminator->emitOpError("returns a ")
             << operand.get().getType() << "; a schedule returns memrefs of static shape";
    Value root = operand.get();
    if (!isWholeBuffer(root) || isa<BlockArgument>(root) || llvm::is_contained(outputs, root)) {
      Value copy = memref::AllocOp::create(b, terminator->getLoc(),
                                           MemRefType::get(type.getShape(), type.getElementType()));
      memref::CopyOp::create(b, terminator->getLoc(), root, copy);
      operand.set(copy);
      root = copy;
    }
    outputs.push_back(root);
  }
  b.setInsertionPointToStart(&program.getBody().front());
  Value entry = program.getEntry();
  auto peers = loadStore ? ctran::PeerAccess::LoadStore : ctran::PeerAccess::Put;
  auto declare = [&](Value root, StringRef name, ctran::WindowRole role,
                     std::optional<int64_t> index) -> LogicalResult {
    auto type = dyn_cast<MemRefType>(root.getType());
    if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
      return emitError(root.getLoc(), "buffer of type ")
             << root.getType() << ", expected a memref of static shape and row-major layout";
    bool remote = windows->isRemote(root) || llvm::any_of(root.getUsers(), [](Operation *user) {
                    return isa<CollectiveOpInterface>(user);
                  });
    Buffer buffer;
    buffer.type = type;
    buffer.window =
        ctran::WindowOp::create(b, root.getLoc(), ctran::WindowType::get(b.getContext()), name,
                                role, index ? b.getI64IntegerAttr(*index) : IntegerAttr(), 1,
                                remote ? peers : ctran::PeerAccess::None, type);
    buffer.writers = {entry};
    buffers.insert({root, buffer});
    return success();
  };
  for (BlockArgument argument : function.getArguments())
    if (failed(declare(argument, "arg" + std::to_string(argument.getArgNumber()),
                       ctran::WindowRole::Input, argument.getArgNumber())))
      return failure();
  int64_t scratch = 0;
  for (Operation &op : function.getBody().front()) {
    auto alloc = dyn_cast<memref::AllocOp>(op);
    if (!alloc)
      continue;
    auto output = llvm::find(outputs, alloc.getResult());
    LogicalResult made = output != outputs.end()
                             ? declare(alloc, "out" + std::to_string(output - outputs.begin()),
                                       ctran::WindowRole::Output, output - outputs.begin())
                             : declare(alloc, "buf" + std::to_string(scratch++),
                                       ctran::WindowRole::Scratch, std::nullopt);
    if (failed(made))
      return failure();
  }
  return success();
}

SmallVector<Value> Converter::readyTokens(Value root) { return buffers[root].writers; }

SmallVector<Value> Converter::freeTokens(Value root) {
  return ctran::joined(buffers[root].writers, buffers[root].readers);
}

//===- Computation.cpp - Computation becomes kernels on the compute lane -------------------===//
#include "Converter.h"
#include "Kernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::ncclx;

bool ncclx::endsKernel(Operation *op) {
  return isCommunication(op) || isa<FinishOp, FinishChunkOp, CallOp>(op) ||
         op->hasTrait<OpTrait::IsTerminator>();
}

void Converter::addCompute(Location loc, StringRef callee, ArrayRef<Value> args, ValueRange reads,
                           ArrayRef<Value> writeRoots, ArrayRef<Value> readRoots, double flops,
                           double bytes, int64_t sms, SmallVector<Value> after, StringRef note) {
  SmallVector<Value> windows, writes, tokens;
  for (Value root : args)
    windows.push_back(buffers[root].window);
  for (Value root : writeRoots)
    writes.push_back(ctran::RangeOp::create(b, loc, ctran::RangeType::get(b.getContext()),
                                            buffers[root].window, ValueRange(), Value(), Value(),
                                            Value()));
  for (Value token : after)
    if (!onComputeLane(token) && !llvm::is_contained(tokens, token))
      tokens.push_back(token);
  Value done = ctran::ComputeOp::create(b, loc, ctran::TokenType::get(b.getContext()), callee,
                                        windows, reads, writes, tokens, ctran::LaneKind::Compute,
                                        Value(), APFloat(flops), APFloat(bytes), sms, StringAttr(),
                                        b.getStringAttr(note));
  for (Value root : readRoots)
    buffers[root].readers.push_back(done);
  for (Value root : writeRoots) {
    buffers[root].writers = {done};
    buffers[root].readers.clear();
  }
}

Value Converter::addZero(ctran::ScheduleBuilder &s, Value root, ValueRange after) {
  auto type = cast<MemRefType>(root.getType());
  std::string name = (function.getSymName() + ".k" + std::to_string(kernels++) + ".zero").str();
  {
    OpBuilder outside(function);
    auto kernel =
        func::FuncOp::create(outside, s.loc, name, outside.getFunctionType(type, TypeRange()));
    kernel.setPrivate();
    OpBuilder inside = OpBuilder::atBlockBegin(kernel.addEntryBlock());
    // Not every element type has constants of its own, but each has the bits of an integer.
    Type element = type.getElementType();
    Type bits = inside.getIntegerType(element.getIntOrFloatBitWidth());
    bool plain = isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(element);
    Value zero =
        arith::ConstantOp::create(inside, s.loc, inside.getZeroAttr(plain ? element : bits));
    if (zero.getType() != element)
      zero = UnrealizedConversionCastOp::create(inside, s.loc, element, zero).getResult(0);
    linalg::FillOp::create(inside, s.loc, zero, kernel.getArgument(0));
    func::ReturnOp::create(inside, s.loc);
  }
  Value window = buffers[root].window;
  return ctran::ComputeOp::create(
      s.builder, s.loc, ctran::TokenType::get(s.builder.getContext()), name, window, ValueRange(),
      s.range(window), after, ctran::LaneKind::Compute, Value(), APFloat(0.0),
      APFloat(double(type.getNumElements() * type.getElementTypeBitWidth() / 8)), 0, s.of,
      s.builder.getStringAttr("zero"));
}

LogicalResult Converter::convertCall(CallOp op) {
  SmallVector<Value> args, readRoots, writeRoots, reads, after;
  for (Value operand : op->getOperands())
    if (!isWholeBuffer(operand))
      return op.emitOpError("takes ")
             << operand.getType() << " that is not a whole buffer; a kernel takes whole buffers";
  for (Value input : op.getInputs()) {
    args.push_back(input);
    readRoots.push_back(input);
    llvm::append_range(after, readyTokens(input));
    reads.push_back(ctran::RangeOp::create(b, op.getLoc(), ctran::RangeType::get(b.getContext()),
                                           buffers[input].window, ValueRange(), Value(), Value(),
                                           Value()));
  }
  for (Value out : op.getOuts()) {
    args.push_back(out);
    writeRoots.push_back(out);
    llvm::append_range(after, freeTokens(out));
  }
  addCompute(op.getLoc(), op.getCallee(), args, reads, writeRoots, readRoots, double(op.getFlops()),
             double(op.getBytes()), op.getSms(), after, op.getCallee());
  return success();
}

LogicalResult Converter::convertKernel(Operation *&op) {
  FailureOr<Kernel> kernel = collectKernel(op, endsKernel);
  if (failed(kernel))
    return failure();
  op = kernel->ops.back();
  for (Value root : kernel->args)
    if (!buffers.contains(root))
      return op->emitOpError("uses a buffer of type ")
             << root.getType() << " that is neither an argument nor allocated in this function";
  std::string name =
      (function.getSymName() + ".k" + std::to_string(kernels++) + "." + kernel->what).str();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(function);
    outlineKernel(b, *kernel, name).setPrivate();
  }
  SmallVector<Value> reads, readRoots, after;
  for (Value memref : kernel->reads) {
    Value root = rootOf(memref);
    readRoots.push_back(root);
    auto chunk = memref.getDefiningOp<FinishChunkOp>();
    Value window = buffers[root].window;
    SmallVector<Value> at;
    if (chunk) {
      // The box of the chunk's member, in the view in which the collective wrote it.
      Started &s = *started[chunk.getToken()];
      ctran::ScheduleBuilder builder(b, op->getLoc(), program);
      window = ctran::makeViews(builder, s.spec).out;
      int64_t rest = *getConstantIntValue(chunk.getChunk());
      at.resize(s.sizes.size());
      for (size_t i = s.sizes.size(); i-- > 0; rest /= s.sizes[i])
        at[i] = builder.constant(rest % s.sizes[i]);
      llvm::append_range(after, buffers[memref].writers);
    } else {
      llvm::append_range(after, readyTokens(root));
    }
    reads.push_back(ctran::RangeOp::create(b, op->getLoc(), ctran::RangeType::get(b.getContext()),
                                           window, at, Value(), Value(), Value()));
  }
  for (Value root : kernel->writes)
    llvm::append_range(after, freeTokens(root));
  addCompute(op->getLoc(), name, kernel->args, reads, kernel->writes.getArrayRef(), readRoots,
             kernel->flops, kernel->bytes, kernel->sms, after, kernel->what);
  return success();
}

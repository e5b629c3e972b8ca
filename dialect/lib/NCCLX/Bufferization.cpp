//===- Bufferization.cpp - How the ops bufferize --------------------------===//
//
// Futures are gone by then (ncclx-expand-futures). What is in flight is an operand
// of its finish, which "reads" it: that is what keeps One-Shot Bufferize, which
// knows order and not time, from writing into it.
//
//===----------------------------------------------------------------------===//

#include "Bufferization.h"
#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::ncclx;

namespace {

/// The buffers of all tensors among `values`; other values stay themselves.
FailureOr<SmallVector<Value>> getBuffers(RewriterBase &rewriter, ValueRange values,
                                         const BufferizationOptions &options,
                                         BufferizationState &state) {
  SmallVector<Value> buffers;
  for (Value value : values) {
    if (isa<TensorType>(value.getType())) {
      FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
      if (failed(buffer))
        return failure();
      value = *buffer;
    }
    buffers.push_back(value);
  }
  return buffers;
}

/// A collective reads its input, and its sizes, and writes its destination, whose old content it
/// does not need.
template <typename OpTy>
struct CollectiveModel : BufferizableOpInterface::ExternalModel<CollectiveModel<OpTy>, OpTy> {
  static bool isInput(OpOperand &operand) {
    auto op = cast<CollectiveOpInterface>(operand.getOwner());
    return operand.getOperandNumber() <= (op.getSizes() ? 1 : 0);
  }

  bool bufferizesToMemoryRead(Operation *, OpOperand &operand, const AnalysisState &) const {
    return isInput(operand);
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &operand, const AnalysisState &) const {
    return !isInput(operand);
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    if (isInput(operand))
      return {};
    return {{cast<OpTy>(op).getResult(), BufferRelation::Equivalent}};
  }

  /// An all_reduce may work in place, on the whole of one buffer.
  bool isNotConflicting(Operation *op, OpOperand *read, OpOperand *write,
                        const AnalysisState &state) const {
    return isa<AllReduceOp>(op) && read->getOwner() == op && write->getOwner() == op &&
           isInput(*read) && !isInput(*write) &&
           state.areEquivalentBufferizedValues(read->get(), write->get());
  }

  LogicalResult bufferize(Operation *operation, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto op = cast<OpTy>(operation);
    if (!op.getDest())
      return op.emitOpError("needs a destination to bufferize: run ncclx-materialize-destinations");
    auto buffers = getBuffers(rewriter, op->getOperands(), options, state);
    if (failed(buffers))
      return failure();
    CollectiveOpInterface onBuffers =
        cloneCollective(rewriter, op, buffers->front(), buffers->back(), op.isAsync(),
                        buffers->size() == 3 ? (*buffers)[1] : Value());
    SmallVector<Value> replacements = {buffers->back()};
    llvm::append_range(replacements, onBuffers->getResults());
    replaceOpWithBufferizedValues(rewriter, op, replacements);
    return success();
  }
};

template <typename... Ops> void attachCollectives(MLIRContext &context) {
  (Ops::template attachInterface<CollectiveModel<Ops>>(context), ...);
}

/// finish and finish_chunk read all they name: it is in flight until then.
template <typename Model, typename OpTy>
struct FinishModelBase : BufferizableOpInterface::ExternalModel<Model, OpTy> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &, const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  bool mustBufferizeInPlace(Operation *op, OpOperand &operand, const AnalysisState &) const {
    return operand.get() == cast<OpTy>(op).getInFlight();
  }
};

struct FinishModel : FinishModelBase<FinishModel, FinishOp> {
  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    auto finish = cast<FinishOp>(op);
    if (operand == finish.getInFlightMutable())
      return {{finish.getResult(), BufferRelation::Equivalent}};
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto finish = cast<FinishOp>(op);
    auto inFlight = getBuffer(rewriter, finish.getInFlight(), options, state);
    auto keeping = getBuffers(rewriter, finish.getKeeping(), options, state);
    if (failed(inFlight) || failed(keeping))
      return failure();
    FinishOp::create(rewriter, op->getLoc(), Type(), finish.getToken(), *inFlight, *keeping);
    replaceOpWithBufferizedValues(rewriter, op, *inFlight);
    return success();
  }
};

struct FinishChunkModel : FinishModelBase<FinishChunkModel, FinishChunkOp> {
  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    return {{op->getResult(0), BufferRelation::Unknown}};
  }
  FailureOr<BufferLikeType> getBufferType(Operation *op, Value, const BufferizationOptions &options,
                                          const BufferizationState &state,
                                          SmallVector<Value> &invocationStack) const {
    auto finish = cast<FinishChunkOp>(op);
    auto whole =
        bufferization::getBufferType(finish.getInFlight(), options, state, invocationStack);
    if (failed(whole))
      return failure();
    return cast<BufferLikeType>(
        getChunkType(cast<ShapedType>(*whole), finish.getCount(), finish.getDim()));
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto finish = cast<FinishChunkOp>(op);
    auto inFlight = getBuffer(rewriter, finish.getInFlight(), options, state);
    if (failed(inFlight))
      return failure();
    Type type =
        getChunkType(cast<ShapedType>(inFlight->getType()), finish.getCount(), finish.getDim());
    auto view = FinishChunkOp::create(rewriter, op->getLoc(), type, finish.getToken(), *inFlight,
                                      finish.getChunk(), finish.getCount(), finish.getDim());
    replaceOpWithBufferizedValues(rewriter, op, view.getResult());
    return success();
  }
};

/// window and put read tensors at once: a window is memory of its own, which no tensor names.
template <typename OpTy>
struct WindowModel : BufferizableOpInterface::ExternalModel<WindowModel<OpTy>, OpTy> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &, const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &, const AnalysisState &) const {
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto buffers = getBuffers(rewriter, op->getOperands(), options, state);
    if (failed(buffers))
      return failure();
    Operation *onBuffers = rewriter.clone(*op);
    onBuffers->setOperands(*buffers);
    replaceOpWithBufferizedValues(rewriter, op, onBuffers->getResults());
    return success();
  }
};

/// A get writes its destination, whose old content it does not need.
struct GetModel : BufferizableOpInterface::ExternalModel<GetModel, GetOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &, const AnalysisState &) const {
    return true;
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &, const AnalysisState &) const {
    return {{cast<GetOp>(op).getResult(), BufferRelation::Equivalent}};
  }
  LogicalResult bufferize(Operation *operation, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto op = cast<GetOp>(operation);
    if (!op.getDest())
      return op.emitOpError("needs a destination to bufferize: run ncclx-materialize-destinations");
    auto dest = getBuffer(rewriter, op.getDest(), options, state);
    if (failed(dest))
      return failure();
    GetOp::create(rewriter, op.getLoc(), Type(), op.getWindow(), op.getOffsets(),
                  op.getStaticOffsets(), op.getShiftAttr(), op.getPairsAttr(), *dest);
    replaceOpWithBufferizedValues(rewriter, op, *dest);
    return success();
  }
};

/// A kernel reads its operands and writes fresh buffers, which the callee takes behind them.
struct CallModel : BufferizableOpInterface::ExternalModel<CallModel, CallOp> {
  bool bufferizesToAllocation(Operation *, Value) const { return true; }
  bool bufferizesToMemoryRead(Operation *, OpOperand &, const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &, const AnalysisState &) const {
    return {};
  }
  FailureOr<BufferLikeType> getBufferType(Operation *, Value value,
                                          const BufferizationOptions &options,
                                          const BufferizationState &, SmallVector<Value> &) const {
    return cast<BufferLikeType>(getIdentityType(value.getType()));
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto call = cast<CallOp>(op);
    auto inputs = getBuffers(rewriter, call.getInputs(), options, state);
    if (failed(inputs))
      return failure();
    // The callee's arguments have the identity layout: a view is copied.
    for (auto [input, old] : llvm::zip_equal(*inputs, call.getInputs())) {
      if (!isa<TensorType>(old.getType()) || input.getType() == getIdentityType(old.getType()))
        continue;
      auto fitting =
          castOrReallocMemRefValue(rewriter, input, getIdentityType(old.getType()), options);
      if (failed(fitting))
        return failure();
      input = *fitting;
    }
    SmallVector<Value> outs;
    for (Type type : call.getResultTypes()) {
      auto out = options.createAlloc(rewriter, op->getLoc(), getIdentityType(type), {});
      if (failed(out))
        return failure();
      outs.push_back(*out);
    }
    CallOp::create(rewriter, op->getLoc(), TypeRange(), call.getCallee(), *inputs, outs,
                   call.getFlops(), call.getBytes(), call.getSms());
    replaceOpWithBufferizedValues(rewriter, op, outs);
    return success();
  }

private:
  static MemRefType getIdentityType(Type tensor) {
    return cast<MemRefType>(getMemRefTypeWithStaticIdentityLayout(cast<TensorType>(tensor)));
  }
};

} // namespace

void ncclx::attachBufferizationModels(MLIRContext &context) {
  attachCollectives<AllGatherOp, ReduceScatterOp, AllReduceOp, AllToAllOp, AllToAllVOp, PermuteOp,
                    BroadcastOp, ReduceOp, GatherOp, ScatterOp>(context);
  FinishOp::attachInterface<FinishModel>(context);
  FinishChunkOp::attachInterface<FinishChunkModel>(context);
  CallOp::attachInterface<CallModel>(context);
  WindowOp::attachInterface<WindowModel<WindowOp>>(context);
  PutOp::attachInterface<WindowModel<PutOp>>(context);
  GetOp::attachInterface<GetModel>(context);
}

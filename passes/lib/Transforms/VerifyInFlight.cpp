//===- VerifyInFlight.cpp - Nobody touches a buffer that is in use --------===//

#include "Flow.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_VERIFYINFLIGHT
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

Use classifyToken(OpOperand &use) {
  if (isa<FinishOp>(use.getOwner()))
    return Use::Whole;
  if (isa<FinishChunkOp>(use.getOwner()))
    return Use::Chunk;
  return getForwarded(use) ? Use::Forward : Use::Illegal;
}

/// Whether two static subviews of one buffer have no element in common.
bool areDisjoint(memref::SubViewOp x, memref::SubViewOp y) {
  if (x.getSource() != y.getSource())
    return false;
  for (unsigned d = 0, rank = x.getSourceType().getRank(); d < rank; ++d) {
    auto getRange = [&](memref::SubViewOp view) -> std::optional<ShardRange> {
      int64_t offset = view.getStaticOffset(d), size = view.getStaticSize(d);
      if (ShapedType::isDynamic(offset) || ShapedType::isDynamic(size) ||
          view.getStaticStride(d) != 1)
        return std::nullopt;
      return ShardRange{offset, offset + size};
    };
    std::optional<ShardRange> first = getRange(x), second = getRange(y);
    if (first && second && (first->end <= second->begin || second->end <= first->begin))
      return true;
  }
  return false;
}

/// The subviews that `buffer` is a view of, itself included.
SmallVector<memref::SubViewOp> getSubviews(Value buffer) {
  SmallVector<memref::SubViewOp> subviews;
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>()) {
    if (auto subview = dyn_cast<memref::SubViewOp>(view.getOperation()))
      subviews.push_back(subview);
    buffer = view.getViewSource();
  }
  return subviews;
}

/// Whether the buffers are views of disjoint parts of one buffer.
bool areDisjointViews(Value a, Value b) {
  SmallVector<memref::SubViewOp> others = getSubviews(b);
  return llvm::any_of(getSubviews(a), [&](memref::SubViewOp x) {
    return llvm::any_of(others, [&](memref::SubViewOp y) { return areDisjoint(x, y); });
  });
}

/// Checks one asynchronous collective.
class FlightCheck {
public:
  FlightCheck(CollectiveOpInterface op, const BufferViewFlowAnalysis &views)
      : op(op), views(views), tokens(getReached(op.getToken())) {}

  LogicalResult run() {
    if (failed(verifyFinishes()))
      return failure();
    if (!op.isBufferForm())
      return verifyUsers();
    for (Value token : tokens)
      if (failed(scan(*token.getParentBlock(), getBirth(token), token)))
        return failure();
    return success();
  }

private:
  LogicalResult verifyFinishes();
  LogicalResult verifyUsers();
  LogicalResult scan(Block &block, Block::iterator from, Value token);
  LogicalResult verifyAccesses(Operation *other);
  LogicalResult verifyAccess(Operation *other, Value buffer, bool write);

  static Block::iterator getBirth(Value token) {
    Operation *def = token.getDefiningOp();
    return def ? std::next(def->getIterator()) : token.getParentBlock()->begin();
  }

  bool mayAlias(Value a, Value b) const {
    if (areDisjointViews(a, b))
      return false;
    auto sources = views.resolveReverse(a), others = views.resolveReverse(b);
    return llvm::any_of(sources, [&](Value v) { return others.contains(v); });
  }

  /// Whether the buffer is a chunk of this collective whose arrival has been waited for.
  bool isFinishedChunk(Value buffer) const {
    return llvm::any_of(views.resolveReverse(buffer), [&](Value v) {
      auto chunk = v.getDefiningOp<FinishChunkOp>();
      return chunk && tokens.contains(chunk.getToken());
    });
  }

  CollectiveOpInterface op;
  const BufferViewFlowAnalysis &views;
  /// All the tokens that stand for this collective.
  llvm::SetVector<Value> tokens;
};

struct VerifyInFlight : ncclx::impl::VerifyInFlightBase<VerifyInFlight> {
  using VerifyInFlightBase::VerifyInFlightBase;

  void runOnOperation() override {
    bool ok = true;
    getOperation().walk([&](FunctionOpInterface function) {
      // in flight F1, for all tokens: only then do their lives have an end to scan to.
      bool once = true;
      for (Type type : function.getArgumentTypes())
        if (isa<TokenType>(type)) {
          function.emitOpError("takes a token, which cannot enter or leave a function");
          once = false;
        }
      auto check = [&](ValueRange values) {
        for (Value value : values)
          if (isa<TokenType>(value.getType()))
            once &= succeeded(verifyTakenOnce(value, "token", "finished", classifyToken));
      };
      function.walk([&](Operation *op) {
        check(op->getResults());
        for (Region &region : op->getRegions())
          for (Block &block : region)
            check(block.getArguments());
      });
      ok &= once;
      if (!once)
        return;
      std::optional<BufferViewFlowAnalysis> views;
      function.walk([&](CollectiveOpInterface op) {
        if (!op.isAsync())
          return;
        if (!views)
          views.emplace(function);
        ok &= succeeded(FlightCheck(op, *views).run());
      });
    });
    if (!ok)
      signalPassFailure();
  }
};

} // namespace

/// in flight F2, and that each finish names what its collective fills and chunks fit.
LogicalResult FlightCheck::verifyFinishes() {
  bool buffers = op.isBufferForm();
  Value filled = buffers ? op.getDest() : op.getResult();
  llvm::SetVector<Value> inputs = getReached(op.getInput()), inFlight = getReached(filled);
  auto isOneOf = [&](Value value, const llvm::SetVector<Value> &values) {
    return values.contains(value) || (buffers && mayAlias(value, values.front()));
  };
  for (Value token : tokens)
    for (Operation *user : token.getUsers()) {
      Value named;
      if (auto chunk = dyn_cast<FinishChunkOp>(user)) {
        named = chunk.getInFlight();
        if (failed(verifyChunkOf(chunk, chunk.getCount(), chunk.getDim(), op)))
          return failure();
      } else if (auto finish = dyn_cast<FinishOp>(user)) {
        named = finish.getInFlight();
        if (llvm::none_of(finish.getKeeping(), [&](Value kept) { return isOneOf(kept, inputs); })) {
          InFlightDiagnostic diag = finish.emitOpError("does not keep what its collective reads");
          diag.attachNote(op.getLoc()) << "the collective";
          return diag;
        }
      }
      if (named && !isOneOf(named, inFlight)) {
        InFlightDiagnostic diag =
            user->emitOpError("names another value than its collective fills");
        diag.attachNote(op.getLoc()) << "the collective";
        return diag;
      }
    }
  return success();
}

/// in flight F3.
LogicalResult FlightCheck::verifyUsers() {
  for (Value value : getReached(op.getResult()))
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      // Operand 0 is the token, operand 1 what is in flight.
      bool finishes = isa<FinishOp, FinishChunkOp>(user) && use.getOperandNumber() == 1 &&
                      tokens.contains(user->getOperand(0));
      if (finishes || getForwarded(use))
        continue;
      InFlightDiagnostic diag = user->emitOpError("uses a tensor that is in flight");
      diag.attachNote(op.getLoc()) << "it has only been started here";
      return diag;
    }
  return success();
}

/// Checks all accesses from `from` to where the token's life ends.
LogicalResult FlightCheck::scan(Block &block, Block::iterator from, Value token) {
  Operation *taker = getTaker(token, block, classifyToken);
  for (auto it = from; it != block.end() && &*it != taker; ++it)
    if (failed(verifyAccesses(&*it)))
      return failure();
  if (!taker || llvm::is_contained(taker->getOperands(), token))
    return success();
  for (Region &region : taker->getRegions())
    if (failed(scan(region.front(), region.front().begin(), token)))
      return failure();
  return success();
}

/// in flight F4, for `root` and all that is in it.
LogicalResult FlightCheck::verifyAccesses(Operation *root) {
  WalkResult result = root->walk([&](Operation *other) -> WalkResult {
    // The accesses that a finish stands for are those of its own collective, checked there.
    if (isa<FinishOp, FinishChunkOp>(other))
      return success();
    if (auto effects = dyn_cast<MemoryEffectOpInterface>(other)) {
      SmallVector<MemoryEffects::EffectInstance> instances;
      effects.getEffects(instances);
      for (auto &instance : instances) {
        Value buffer = instance.getValue();
        if (!buffer || !isa<BaseMemRefType>(buffer.getType()) ||
            isa<MemoryEffects::Allocate>(instance.getEffect()))
          continue;
        if (failed(verifyAccess(other, buffer, !isa<MemoryEffects::Read>(instance.getEffect()))))
          return failure();
      }
      return success();
    }
    if (other->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
        other->hasTrait<OpTrait::IsTerminator>())
      return success();
    for (Value operand : other->getOperands())
      if (isa<BaseMemRefType>(operand.getType()) &&
          failed(verifyAccess(other, operand, /*write=*/true)))
        return failure();
    return success();
  });
  return failure(result.wasInterrupted());
}

LogicalResult FlightCheck::verifyAccess(Operation *other, Value buffer, bool write) {
  StringRef what;
  if (mayAlias(buffer, op.getDest()))
    what = isFinishedChunk(buffer) && !write ? StringRef() : "the destination of";
  else if (write && mayAlias(buffer, op.getInput()))
    what = "the input of";
  if (what.empty())
    return success();
  InFlightDiagnostic diag = other->emitOpError(write ? "may write " : "may read ")
                            << what << " a collective that is in flight";
  diag.attachNote(op.getLoc()) << "started here";
  return diag;
}

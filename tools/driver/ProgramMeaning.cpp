//===- ProgramMeaning.cpp - The graph that a written schedule claims to carry ---------------===//
#include "ProgramMeaning.h"

#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::ncclx;

/// The one dimension in which two windows of equal rank differ.
static std::optional<int64_t> dimBetween(Type a, Type b) {
  ArrayRef<int64_t> one = cast<MemRefType>(a).getShape(), other = cast<MemRefType>(b).getShape();
  if (one.size() != other.size())
    return std::nullopt;
  std::optional<int64_t> found;
  for (auto [d, sizes] : llvm::enumerate(llvm::zip(one, other)))
    if (std::get<0>(sizes) != std::get<1>(sizes)) {
      if (found)
        return std::nullopt;
      found = int64_t(d);
    }
  return found;
}

FailureOr<OwningOpRef<ModuleOp>> mlir::ncclx::meaningOf(ctran::ProgramOp program) {
  auto claims = program.getCollectives().getAsRange<ctran::CollectiveAttr>();
  if (program.getCollectives().size() != 1)
    return program.emitOpError("claims ") << program.getCollectives().size()
                                          << " collectives, expected one: what its outputs must "
                                          << "hold is taken from it";
  ctran::CollectiveAttr claim = *claims.begin();
  ctran::WindowOp input, output;
  for (auto window : program.getBody().front().getOps<ctran::WindowOp>()) {
    ctran::WindowRole role = window.getRole();
    if (role == ctran::WindowRole::Scratch)
      continue;
    bool in = role != ctran::WindowRole::Output, out = role != ctran::WindowRole::Input;
    if ((in && input) || (out && output))
      return window.emitOpError("is a second input or output; a collective has one of each");
    if (in)
      input = window;
    if (out)
      output = window;
  }
  if (!input || !output)
    return program.emitOpError("has no ") << (input ? "output" : "input") << " window";

  MLIRContext *context = program.getContext();
  context->loadDialect<NCCLXDialect, func::FuncDialect>();
  OpBuilder b(context);
  Location loc = program.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  b.setInsertionPointToStart(module->getBody());
  SmallVector<StringRef> names;
  SmallVector<int64_t> sizes;
  int64_t members = 1;
  for (auto axis : program.getGrid().getAsRange<ctran::GridAxisAttr>()) {
    names.push_back(axis.getName());
    sizes.push_back(axis.getSize());
    if (llvm::any_of(claim.getAxes(), [&](StringAttr a) { return a.getValue() == axis.getName(); }))
      members *= axis.getSize();
  }
  GridOp::create(b, loc, "grid", b.getStrArrayAttr(names), sizes, StringAttr());

  // In place, the buffer is the larger side, and a shard is the own part of it.
  StringRef kind = claim.getKind();
  auto flat = [&](ctran::WindowOp window, StringRef shardOf) {
    auto type = cast<MemRefType>(window.getType());
    int64_t count = type.getNumElements();
    return RankedTensorType::get(input == output && kind == shardOf ? count / members : count,
                                 type.getElementType());
  };
  RankedTensorType inType = flat(input, "all_gather"), outType = flat(output, "reduce_scatter");
  // Windows that differ in one dimension say along which; else the larger side is whole shards in a
  // row.
  int64_t dim = 0;
  if (auto along = dimBetween(input.getType(), output.getType()); along && input != output) {
    dim = *along;
    auto shaped = [](Type type) {
      auto memref = cast<MemRefType>(type);
      return RankedTensorType::get(memref.getShape(), memref.getElementType());
    };
    inType = shaped(input.getType());
    outType = shaped(output.getType());
  }
  auto needs = [&](int64_t inTimes, int64_t outTimes) -> LogicalResult {
    if (inType.getNumElements() * inTimes == outType.getNumElements() * outTimes)
      return success();
    return program.emitOpError("carries ")
           << kind << " of " << members << " members from " << inType << " to " << outType
           << ", whose sizes do not fit";
  };
  ctran::ReduceOp reduce;
  // Operands are scaled once, where they come in, and a sum is divided once, where it is whole: not
  // every reduction has either.
  FloatAttr scale;
  IntegerAttr divide;
  WalkResult sums = program.walk([&](ctran::ReduceOp op) {
    auto same = [](auto held, auto found) { return !held || !found || held == found; };
    if ((reduce &&
         (op.getKind() != reduce.getKind() || op.getAccumulate() != reduce.getAccumulate())) ||
        !same(scale, op.getScaleAttr()) || !same(divide, op.getDivideAttr())) {
      op.emitOpError("reduces in another way than the program's first");
      return WalkResult::interrupt();
    }
    reduce = op;
    scale = op.getScaleAttr() ? op.getScaleAttr() : scale;
    divide = op.getDivideAttr() ? op.getDivideAttr() : divide;
    if (divide && divide.getInt() != members) {
      op.emitOpError("divides by ") << divide.getInt() << "; an average of the collective's "
                                    << members << " members divides by their number";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (sums.wasInterrupted())
    return failure();

  auto function =
      func::FuncOp::create(b, loc, program.getSymName(), b.getFunctionType(inType, outType));
  b.setInsertionPointToStart(function.addEntryBlock());
  OperationState state(loc, ("ncclx." + kind).str());
  state.addOperands(function.getArgument(0));
  state.addTypes(outType);
  state.addAttribute("grid", FlatSymbolRefAttr::get(context, "grid"));
  SmallVector<Attribute> axes(claim.getAxes().begin(), claim.getAxes().end());
  state.addAttribute("axes", b.getArrayAttr(axes));
  state.addAttribute("resultSegmentSizes", b.getDenseI32ArrayAttr({1, 0}));
  LogicalResult fits = success();
  if (kind == "all_gather") {
    fits = needs(members, 1);
    state.addAttribute("dim", b.getI64IntegerAttr(dim));
  } else if (kind == "reduce_scatter") {
    fits = needs(1, members);
    state.addAttribute("dim", b.getI64IntegerAttr(dim));
  } else if (kind == "all_to_all") {
    fits = needs(1, 1);
    state.addAttribute("split", b.getI64IntegerAttr(0));
    state.addAttribute("concat", b.getI64IntegerAttr(0));
  } else if (kind == "all_reduce") {
    fits = needs(1, 1);
  } else {
    return program.emitOpError("claims a ")
           << kind << "; what is compared here is all_gather, reduce_scatter, all_reduce and "
           << "all_to_all";
  }
  if (failed(fits))
    return failure();
  if (kind == "reduce_scatter" || kind == "all_reduce") {
    ReductionKind how = reduce ? static_cast<ReductionKind>(reduce.getKind()) : ReductionKind::Sum;
    if (divide)
      how = ReductionKind::Avg;
    if (scale)
      state.addAttribute("scale", scale);
    Type accumulate = reduce ? reduce.getAccumulate() : inType.getElementType();
    state.addAttribute("kind", ReductionKindAttr::get(context, how));
    state.addAttribute("accumulate", TypeAttr::get(accumulate));
    state.addAttribute("order", ReductionOrderAttr::get(context, ReductionOrder::Rank));
  }
  Operation *op = b.create(state);
  func::ReturnOp::create(b, loc, op->getResult(0));
  return module;
}

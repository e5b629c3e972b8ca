//===- TimeAlone.cpp - How long one collective takes by itself -------------------------===//
#include "ByTiers.h"

#include "ncclx/Analysis/TierCost.h"
#include "ncclx/CTran/Access.h"
#include "ncclx/CTran/Reader.h"
#include "ncclx/Conversion/Passes.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/NCCLX/Sizes.h"
#include "ncclx/Selection/Selection.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;

/// Input and output of the same collective over buffers of one dimension and about `bytes`.
static SmallVector<Type> flatTypes(CollectiveOpInterface op, int64_t bytes) {
  Type element = op.getInputType().getElementType();
  int64_t size = std::max<int64_t>(1, llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
  int64_t members = getGroupSize(op), whole = std::max<int64_t>(1, llvm::divideCeil(bytes, size));
  Dataflow flow = op.getDataflow();
  bool cut = flow.inCut || flow.outCut;
  int64_t shard = llvm::divideCeil(whole, members);
  if (cut)
    whole = shard * members;
  int64_t in = flow.outCut && !flow.inCut ? shard : whole;
  int64_t out = flow.inCut && !flow.outCut ? shard : whole;
  return {MemRefType::get({in}, element), MemRefType::get({out}, element)};
}

static constexpr StringLiteral aloneName = "ncclx.alone";

/// Copies a schedule, and the kernels that it calls.
static void cloneSchedule(OpBuilder &b, ctran::ProgramOp program) {
  llvm::SetVector<Operation *> kernels;
  program.walk([&](ctran::ComputeOp compute) {
    if (Operation *kernel = SymbolTable::lookupNearestSymbolFrom(program, compute.getCalleeAttr()))
      kernels.insert(kernel);
  });
  for (Operation *kernel : kernels)
    b.clone(*kernel);
  b.clone(*program);
}

/// A module with one function that executes a memref form of `op` on its arguments, which are of
/// `bytes` where that is given.
static OwningOpRef<ModuleOp> isolate(CollectiveOpInterface op, std::optional<Algorithm> algorithm,
                                     std::optional<int64_t> bytes,
                                     std::optional<NamedAttribute> hint) {
  OpBuilder b(op->getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(op.getLoc());
  b.setInsertionPointToStart(module->getBody());
  b.clone(*lookupGrid(op));
  if (ctran::ProgramOp program = getSchedule(op); program && !algorithm)
    cloneSchedule(b, program);
  auto buffer = [](ShapedType type) -> Type {
    return MemRefType::get(type.getShape(), type.getElementType());
  };
  SmallVector<Type> types =
      bytes ? flatTypes(op, *bytes)
            : SmallVector<Type>{buffer(op.getInputType()), buffer(op.getOutputType())};
  SmallVector<Type> inputs{types[0]};
  if (Value sizes = op.getSizes())
    inputs.push_back(buffer(cast<ShapedType>(sizes.getType())));
  auto function =
      func::FuncOp::create(b, op.getLoc(), aloneName, b.getFunctionType(inputs, types[1]));
  b.setInsertionPointToStart(function.addEntryBlock());
  Value out = memref::AllocOp::create(b, op.getLoc(), cast<MemRefType>(types[1]));
  OperationState state(op.getLoc(), op->getName());
  state.addOperands(function.getArguments());
  state.addOperands(out);
  for (NamedAttribute attribute : op->getAttrs()) {
    StringRef name = attribute.getName();
    if (bytes && (name == "dim" || name == "split" || name == "concat"))
      state.addAttribute(name, b.getI64IntegerAttr(0));
    else if (name == "operandSegmentSizes")
      state.addAttribute(name, b.getDenseI32ArrayAttr({1, int(inputs.size()) - 1, 1}));
    else if (name != "resultSegmentSizes")
      state.addAttribute(name, attribute.getValue());
  }
  state.addAttribute("resultSegmentSizes", b.getDenseI32ArrayAttr({0, 0}));
  auto alone = cast<CollectiveOpInterface>(b.create(state));
  if (algorithm) {
    alone.setAlgorithm(*algorithm);
    alone->removeAttr(NCCLXDialect::getScheduleAttrName());
  }
  if (hint)
    alone->setAttr(hint->getName(), hint->getValue());
  if (alone.isReduction())
    alone->setAttr("order", ReductionOrderAttr::get(b.getContext(), ReductionOrder::Any));
  func::ReturnOp::create(b, op.getLoc(), out);
  return module;
}

int64_t mlir::ncclx::multiprocessorsOf(const topology::Topology &topology) {
  int64_t fewest = 0;
  for (unsigned rank = 0; rank < topology.numRanks(); ++rank)
    if (int model = topology.rankNode(rank).model; model >= 0)
      if (int64_t sms = topology.models[model].sms; sms && (!fewest || sms < fewest))
        fewest = sms;
  return fewest ? fewest : 132;
}

std::unique_ptr<Pass> mlir::ncclx::createLowering(const SelectionTarget &target, bool oneKernel,
                                                  int64_t blocks, bool cutByTiers, bool onlyTimed) {
  ConvertNCCLXToCTranOptions options;
  options.loadStore = target.loadStore;
  options.oneKernel = oneKernel;
  options.blocks = blocks;
  options.mostBlocks = multiprocessorsOf(*target.topology);
  options.cutByTiers = cutByTiers;
  options.scratchLimit = target.scratchLimit;
  return createConvertNCCLXToCTran(options, target.trees, onlyTimed);
}

FailureOr<AloneTime> mlir::ncclx::timeAlone(CollectiveOpInterface op,
                                            std::optional<Algorithm> algorithm,
                                            const SelectionTarget &target,
                                            std::optional<int64_t> bytes, double horizon,
                                            std::optional<NamedAttribute> hint) {
  if (failed(requireKnownSizes(op)))
    return failure();
  int64_t ranks = lookupGrid(op).getNumRanks();
  if (ranks > int64_t(target.topology->numRanks()))
    return op->emitOpError("runs on ")
           << ranks << " ranks, but the topology '" << target.topology->name << "' has "
           << target.topology->numRanks();
  bool byOne = isTimedByOne(op, algorithm, target);
  OwningOpRef<ModuleOp> module = isolate(op, algorithm, bytes, hint);
  PassManager pm(op->getContext());
  pm.addPass(createLowering(target, /*oneKernel=*/false, /*blocks=*/0, byOne && !isFlat(target),
                            /*onlyTimed=*/true));
  if (failed(pm.run(*module)))
    return failure();
  auto program = module->lookupSymbol<ctran::ProgramOp>(aloneName);
  FailureOr<std::unique_ptr<ctran::machine::Schedule>> schedule = ctran::readSchedule(program);
  if (failed(schedule))
    return failure();
  AloneTime alone;
  for (const ctran::machine::Window &window : (*schedule)->windows) {
    int64_t bytes = 0;
    for (const ctran::machine::Space &space : window.spaces)
      bytes = std::max(bytes, space.storageBytes() * window.generations);
    if (window.role == ctran::machine::Window::Role::Scratch)
      alone.scratch += bytes;
  }
  if (target.scratchLimit >= 0 && alone.scratch > target.scratchLimit) {
    alone.cannot =
        llvm::formatv("it takes {0} bytes of scratch memory on a rank, more than the {1} "
                      "allowed",
                      alone.scratch, target.scratchLimit);
    return alone;
  }
  ctran::machine::TimeOptions timeOptions;
  timeOptions.keepOps = false;
  timeOptions.horizon = horizon;
  ctran::machine::TimeResult time;
  if (byOne && ctran::isSymmetric(program))
    time = ctran::machine::simulate(**schedule, TierCost(target.trees->tiers()), timeOptions);
  else
    time = ctran::machine::simulate(**schedule, TopologyCost(*target.topology, target.rate),
                                    timeOptions);
  alone.events = time.events;
  if (time.apart)
    alone.cannot = time.message;
  else if (time.late)
    alone.cannot = llvm::formatv("it takes more than {0:F2} us", horizon * 1e6);
  else if (!time.ok)
    return op->emitOpError("cannot be timed: ") << time.message;
  alone.seconds = time.makespan;
  alone.hops = time.hops;
  return alone;
}

FailureOr<bool> mlir::ncclx::tryHint(CollectiveOpInterface op, const SelectionTarget &target,
                                     std::optional<int64_t> bytes, Candidate &candidate,
                                     NamedAttribute hint, int64_t &events) {
  FailureOr<AloneTime> time =
      timeAlone(op, candidate.algorithm, target, bytes, *candidate.seconds, hint);
  if (failed(time))
    return failure();
  events = time->events;
  if (!time->cannot.empty() || time->seconds >= *candidate.seconds)
    return false;
  candidate.take(*time);
  candidate.hint = hint;
  return true;
}

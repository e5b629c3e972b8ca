//===- TimeAlone.cpp - How long one collective takes by itself -------------------------===//
#include "ncclx/Analysis/TopologyCost.h"
#include "ncclx/CTran/Reader.h"
#include "ncclx/Conversion/Passes.h"
#include "ncclx/Selection/Selection.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ncclx;

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

/// A module with one function that executes a memref form of `op` on its arguments.
static OwningOpRef<ModuleOp> isolate(CollectiveOpInterface op, std::optional<Algorithm> algorithm) {
  OpBuilder b(op->getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(op.getLoc());
  b.setInsertionPointToStart(module->getBody());
  b.clone(*lookupGrid(op));
  if (ctran::ProgramOp program = getSchedule(op); program && !algorithm)
    cloneSchedule(b, program);
  auto buffer = [](ShapedType type) {
    return MemRefType::get(type.getShape(), type.getElementType());
  };
  SmallVector<Type> types{buffer(op.getInputType()), buffer(op.getOutputType())};
  auto function =
      func::FuncOp::create(b, op.getLoc(), aloneName, b.getFunctionType(types[0], types[1]));
  b.setInsertionPointToStart(function.addEntryBlock());
  Value out = memref::AllocOp::create(b, op.getLoc(), cast<MemRefType>(types[1]));
  OperationState state(op.getLoc(), op->getName(), {function.getArgument(0), out}, TypeRange());
  for (NamedAttribute attribute : op->getAttrs())
    if (attribute.getName() != "resultSegmentSizes")
      state.addAttribute(attribute.getName(), attribute.getValue());
  state.addAttribute("resultSegmentSizes", b.getDenseI32ArrayAttr({0, 0}));
  auto alone = cast<CollectiveOpInterface>(b.create(state));
  if (algorithm) {
    alone.setAlgorithm(*algorithm);
    alone->removeAttr(NCCLXDialect::getScheduleAttrName());
  }
  if (alone.isReduction())
    alone->setAttr("order", ReductionOrderAttr::get(b.getContext(), ReductionOrder::Any));
  func::ReturnOp::create(b, op.getLoc(), out);
  return module;
}

FailureOr<double> mlir::ncclx::timeAlone(CollectiveOpInterface op,
                                         std::optional<Algorithm> algorithm,
                                         const SelectionTarget &target) {
  if (!op.getInputType().hasStaticShape() || !op.getOutputType().hasStaticShape())
    return op->emitOpError("has a dynamic shape; its time depends on sizes known at run time");
  int64_t ranks = lookupGrid(op).getNumRanks();
  if (ranks > int64_t(target.topology->numRanks()))
    return op->emitOpError("runs on ")
           << ranks << " ranks, but the topology '" << target.topology->name << "' has "
           << target.topology->numRanks();
  OwningOpRef<ModuleOp> module = isolate(op, algorithm);
  PassManager pm(op->getContext());
  ConvertNCCLXToCTranOptions options;
  options.loadStore = target.loadStore;
  pm.addPass(createConvertNCCLXToCTran(options));
  if (failed(pm.run(*module)))
    return failure();
  auto program = module->lookupSymbol<ctran::ProgramOp>(aloneName);
  FailureOr<std::unique_ptr<ctran::machine::Schedule>> schedule = ctran::readSchedule(program);
  if (failed(schedule))
    return failure();
  TopologyCost cost(*target.topology, target.rate);
  ctran::machine::TimeOptions timeOptions;
  timeOptions.keepOps = false;
  ctran::machine::TimeResult time = ctran::machine::simulate(**schedule, cost, timeOptions);
  if (!time.ok)
    return op->emitOpError("cannot be timed: ") << time.message;
  return time.makespan;
}

//===- OneShotBufferizeModule.cpp - From tensors to memrefs ---------------===//

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Transforms/Passes.h"

#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/AllocationOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_ONESHOTBUFFERIZEMODULE
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

struct OneShotBufferizeModule : ncclx::impl::OneShotBufferizeModuleBase<OneShotBufferizeModule> {
  using OneShotBufferizeModuleBase::OneShotBufferizeModuleBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    OneShotBufferizeModuleBase::getDependentDialects(registry);
    arith::registerBufferizableOpInterfaceExternalModels(registry);
    bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
    linalg::registerBufferizableOpInterfaceExternalModels(registry);
    memref::registerAllocationOpInterfaceExternalModels(
        registry); // kernels' results are hoisted by it
    scf::registerBufferizableOpInterfaceExternalModels(registry);
    tensor::registerBufferizableOpInterfaceExternalModels(registry);
  }

  void runOnOperation() override;

private:
  /// The functions that some ncclx.call runs.
  llvm::DenseSet<Operation *> findKernels();
  void protectArguments(const llvm::DenseSet<Operation *> &kernels);
};

bool communicates(func::FuncOp function) {
  return function.walk([](CollectiveOpInterface) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Whether the function returns some buffer twice: its allocation cannot become two arguments.
bool returnsTwice(func::FuncOp function) {
  return function
      .walk([](func::ReturnOp op) {
        llvm::SmallDenseSet<Value> seen;
        for (Value value : op.getOperands())
          if (!seen.insert(value).second)
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

llvm::DenseSet<Operation *> OneShotBufferizeModule::findKernels() {
  llvm::DenseSet<Operation *> kernels;
  SymbolTableCollection tables;
  getOperation().walk([&](CallOp call) {
    kernels.insert(tables.lookupNearestSymbolFrom(call, call.getCalleeAttr()));
  });
  return kernels;
}

void OneShotBufferizeModule::protectArguments(const llvm::DenseSet<Operation *> &kernels) {
  StringRef writable = bufferization::BufferizationDialect::kWritableAttrName;
  BoolAttr no = BoolAttr::get(&getContext(), false);
  getOperation().walk([&](func::FuncOp function) {
    if (function.isExternal() ||
        !(function.isPublic() || kernels.contains(function) || communicates(function)))
      return;
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
      if (isa<TensorType>(type) &&
          (kernels.contains(function) || !function.getArgAttr(i, writable)))
        function.setArgAttr(i, writable, no);
  });
}

void OneShotBufferizeModule::runOnOperation() {
  llvm::DenseSet<Operation *> kernels = findKernels();
  protectArguments(kernels);

  // Never allowReturnAllocsFromLoops: it would copy a buffer that is in flight.
  bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.setFunctionBoundaryTypeConversion(bufferization::LayoutMapOption::IdentityLayoutMap);
  options.unknownTypeConverterFn = [](TensorType type, Attribute space,
                                      const bufferization::BufferizationOptions &) {
    return bufferization::getMemRefTypeWithStaticIdentityLayout(type, space);
  };
  bufferization::BufferizationState state;
  if (failed(bufferization::runOneShotModuleBufferize(getOperation(), options, state)))
    return signalPassFailure();
  bufferization::removeBufferizationAttributesInModule(getOperation());

  for (bool hoist : {false, true}) {
    bufferization::BufferResultsToOutParamsOpts outParams;
    outParams.filterFn = [&](func::FuncOp *function) {
      return kernels.contains(*function) && returnsTwice(*function) != hoist;
    };
    outParams.hoistStaticAllocs = hoist;
    outParams.modifyPublicFunctions = true;
    if (failed(bufferization::promoteBufferResultsToOutParams(getOperation(), outParams)))
      return signalPassFailure();
  }
}

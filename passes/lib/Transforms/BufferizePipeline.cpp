//===- BufferizePipeline.cpp - ncclx-bufferize ----------------------------===//

#include "ncclx/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void ncclx::buildBufferizePipeline(OpPassManager &pm) {
  pm.addPass(createVerifyLegality());
  // Elementwise arith and math on tensors do not bufferize by themselves.
  pm.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  pm.addPass(createAnswerGets());
  pm.addPass(createMaterializeDestinations());
  pm.addPass(createExpandFutures());
  pm.addPass(createVerifyInFlight());
  pm.addPass(createOneShotBufferizeModule());
  // Copies of a view onto itself are seen only after the first round.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createVerifyInFlight());
}

void ncclx::registerBufferizePipeline() {
  PassPipelineRegistration<>("ncclx-bufferize",
                             "From a graph on tensors to the same graph on memrefs, verified",
                             buildBufferizePipeline);
}

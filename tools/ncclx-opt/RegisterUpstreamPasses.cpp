//===- RegisterUpstreamPasses.cpp - The upstream passes of ncclx-opt ------===//

#include "Registration.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

// promote-buffers-to-stack is left out on purpose: stack memory cannot be a window.
void mlir::ncclx::registerUpstreamPasses() {
  registerCSEPass();
  registerCanonicalizerPass();
  registerControlFlowSinkPass();
  registerInlinerPass();
  registerLoopInvariantCodeMotionPass();
  registerLoopInvariantSubsetHoistingPass();
  registerMem2RegPass();
  registerPrintOpStatsPass();
  registerRemoveDeadValuesPass();
  registerSCCPPass();
  registerSROAPass();
  registerStripDebugInfoPass();
  registerSymbolDCEPass();

  arith::registerArithIntRangeOptsPass();
  bufferization::registerBufferHoistingPassPass();
  bufferization::registerBufferLoopHoistingPassPass();
  bufferization::registerBufferResultsToOutParamsPassPass();
  bufferization::registerDropEquivalentBufferResultsPassPass();
  bufferization::registerEmptyTensorEliminationPassPass();
  bufferization::registerEmptyTensorToAllocTensorPassPass();
  bufferization::registerOneShotBufferizePassPass();
  registerConvertLinalgToLoopsPassPass();
  registerLinalgElementwiseOpFusionPassPass();
  registerLinalgGeneralizeNamedOpsPassPass();
  memref::registerExpandStridedMetadataPassPass();
  memref::registerFoldMemRefAliasOpsPassPass();
  registerSCFForLoopPeelingPass();
  registerSCFForToWhileLoopPass();
}

//===- RegisterProjectPasses.cpp - The project's passes in ncclx-opt ------===//

#include "Registration.h"
#include "ncclx/Conversion/Passes.h"
#include "ncclx/Host/Passes.h"
#include "ncclx/Overlap/Passes.h"
#include "ncclx/Schedule/Passes.h"
#include "ncclx/Selection/Selection.h"
#include "ncclx/Transforms/Passes.h"

void mlir::ncclx::registerProjectPasses() {
  registerNCCLXTransformsPasses();
  registerBufferizePipeline();
  registerConversionPasses();
  registerSelectionPasses();
  registerOverlapPasses();
  registerHostPasses();
  ctran::registerSchedulePasses();
}

//===- RegisterProjectPasses.cpp - The project's passes in ncclx-opt ------===//

#include "Registration.h"
#include "ncclx/Transforms/Passes.h"

void mlir::ncclx::registerProjectPasses() {
  registerNCCLXTransformsPasses();
  registerBufferizePipeline();
}

//===- RegisterProjectPasses.cpp - The project's passes in ncclx-opt ------===//

#include "Registration.h"

void mlir::ncclx::registerProjectPasses() {}

//===- MachinePass.cpp - Passes that ask the model of a machine ----------------------===//
#include "MachinePass.h"

#include "ncclx/NCCLX/Sizes.h"

using namespace mlir;
using namespace mlir::ncclx;

std::optional<overlap::CostModel> mlir::ncclx::machineFor(ModuleOp module, StringRef pass,
                                                          StringRef file, double margin,
                                                          int64_t memoryBudget) {
  if (file.empty()) {
    module.emitError() << pass << " needs machine=FILE";
    return std::nullopt;
  }
  if (failed(requireKnownSizes(module)))
    return std::nullopt;
  overlap::CostModelResult cost = overlap::readCostModelFile(file);
  if (!cost.model)
    module.emitError(cost.error);
  else if (!(margin >= 0))
    module.emitError() << pass << ": margin is at least 0, found " << margin;
  else if (memoryBudget < 0)
    module.emitError() << pass << ": memory-budget is at least 0, found " << memoryBudget;
  else
    return cost.model;
  return std::nullopt;
}

//===- MachinePass.h - Passes that ask the model of a machine -------------------*- C++ -*-===//
#ifndef NCCLX_LIB_OVERLAP_MACHINEPASS_H
#define NCCLX_LIB_OVERLAP_MACHINEPASS_H

#include "Kernels.h"

namespace mlir::ncclx {

/// The model of a machine file for a pass that needs one and has a margin, and perhaps a memory
/// budget, and a module whose sizes are known; null behind an error.
std::optional<overlap::CostModel> machineFor(ModuleOp module, StringRef pass, StringRef file,
                                             double margin, int64_t memoryBudget);

/// A pass over the functions that communicate: `Derived::run` does one, by the model of the machine
/// file. `Base` is what TableGen makes of the pass, with margin and memory budget if it has them.
template <typename Derived, typename Base> struct MachinePass : Base {
  using Base::Base;

  /// What is wrong with the options of this pass alone; empty if nothing is.
  std::string wrongOption() { return ""; }

  void runOnOperation() final {
    ModuleOp module = this->getOperation();
    double margin = 0;
    int64_t budget = 0;
    if constexpr (requires { this->margin; })
      margin = this->margin;
    if constexpr (requires { this->memoryBudget; })
      budget = this->memoryBudget;
    std::optional<overlap::CostModel> cost =
        machineFor(module, this->getArgument(), this->machineFile, margin, budget);
    if (!cost)
      return this->signalPassFailure();
    auto *derived = static_cast<Derived *>(this);
    if (std::string wrong = derived->wrongOption(); !wrong.empty()) {
      module.emitError() << this->getArgument() << ": " << wrong;
      return this->signalPassFailure();
    }
    for (func::FuncOp function : communicatingFunctions(module))
      derived->run(function, *cost);
  }
};

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_MACHINEPASS_H

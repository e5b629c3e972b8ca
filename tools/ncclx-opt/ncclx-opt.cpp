//===- ncclx-opt.cpp - Run passes on a graph or a schedule ----------------===//

#include "../HideLLVMOptions.h"
#include "Registration.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::ncclx::hideLLVMOptions();
  mlir::DialectRegistry registry;
  mlir::ncclx::registerDialects(registry);
  mlir::ncclx::registerUpstreamPasses();
  mlir::ncclx::registerProjectPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "ncclx-opt: run passes on ncclx graphs and ctran schedules\n", registry));
}

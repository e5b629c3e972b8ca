//===- ConvertCTranToHost.cpp - The host lowering as a pass ----------------------===//
#include "ncclx/Host/HostPlan.h"
#include "ncclx/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_CONVERTCTRANTOHOST
#include "ncclx/Host/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {
struct ConvertCTranToHost : ncclx::impl::ConvertCTranToHostBase<ConvertCTranToHost> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<OwningOpRef<ModuleOp>> lowered;
    for (auto program : getOperation().getOps<ctran::ProgramOp>()) {
      lowered.push_back(ModuleOp::create(program.getLoc()));
      if (failed(lowerToHost(program, *lowered.back())))
        return signalPassFailure();
    }
    Block *body = getOperation().getBody();
    body->clear();
    llvm::StringSet<> declared;
    for (OwningOpRef<ModuleOp> &module : lowered)
      for (Operation &op : llvm::make_early_inc_range(*module->getBody()))
        // Programs of one module share the declarations of the runtime.
        if (declared.insert(cast<func::FuncOp>(op).getSymName()).second)
          op.moveBefore(body, body->end());
  }
};
} // namespace

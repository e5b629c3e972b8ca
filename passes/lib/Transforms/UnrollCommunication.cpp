//===- UnrollCommunication.cpp - Straight lines of collectives -------------===//

#include "Flow.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Reference/CountedLoops.h"
#include "ncclx/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/Remarks.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_UNROLLCOMMUNICATION
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

struct UnrollCommunication : ncclx::impl::UnrollCommunicationBase<UnrollCommunication> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      countLoops(function);
    SmallVector<scf::ForOp> loops; // inner ones first
    getOperation().walk([&](scf::ForOp loop) {
      if (holdsCommunication(loop))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      std::optional<APInt> trips = loop.getStaticTripCount();
      auto note = [&](StringRef why) {
        remark::missed(loop.getLoc(), remark::RemarkOpts::name("LoopKept").category(getArgument()))
            << remark::reason("{0}", why);
      };
      if (!trips) {
        note("its bounds are not constants");
        continue;
      }
      if (trips->ugt(uint64_t(maxIterations))) {
        loop.emitError("communicates and runs ")
            << trips->getLimitedValue() << " times; at most " << int64_t(maxIterations)
            << " iterations are unrolled";
        return signalPassFailure();
      }
      Location loc = loop.getLoc();
      uint64_t count = trips->getLimitedValue();
      if (count == 0) {
        loop.replaceAllUsesWith(loop.getInitArgs());
        loop.erase();
      } else if (failed(loopUnrollFull(loop))) {
        emitError(loc, "communicates, but cannot be unrolled");
        return signalPassFailure();
      }
      remark::passed(loc, remark::RemarkOpts::name("LoopUnrolled").category(getArgument()))
          << remark::metric("Iterations", int64_t(count));
    }
  }
};

} // namespace

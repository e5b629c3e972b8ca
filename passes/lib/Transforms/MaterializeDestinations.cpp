//===- MaterializeDestinations.cpp - Explicit destinations ----------------===//

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/NCCLX/Sizes.h"
#include "ncclx/Transforms/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_MATERIALIZEDESTINATIONS
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

struct MaterializeDestinations : ncclx::impl::MaterializeDestinationsBase<MaterializeDestinations> {
  using MaterializeDestinationsBase::MaterializeDestinationsBase;

  void runOnOperation() override {
    if (failed(requireKnownSizes(getOperation())))
      return signalPassFailure();
    getOperation().walk([](CollectiveOpInterface op) {
      if (op.getDest())
        return;
      // The region of a start holds the collective alone.
      auto start = dyn_cast<StartOp>(op->getParentOp());
      OpBuilder builder(start ? start.getOperation() : op.getOperation());
      auto type = cast<RankedTensorType>(op.getOutputType());
      Value empty = tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(),
                                            type.getElementType(), type.getEncoding());
      op.getDestMutable().assign(empty);
      remark::passed(op.getLoc(),
                     remark::RemarkOpts::name("DestinationMaterialized").category("ncclx-buffers"))
          << remark::metric("Bytes", getPayloadBytes(type, type));
    });
  }
};

} // namespace

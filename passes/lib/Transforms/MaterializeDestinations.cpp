//===- MaterializeDestinations.cpp - Explicit destinations ----------------===//

#include "ncclx/NCCLX/NCCLX.h"
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
    auto materialize = [](Operation *at, RankedTensorType type, MutableOperandRange dest) {
      OpBuilder builder(at);
      Value empty = tensor::EmptyOp::create(builder, at->getLoc(), type.getShape(),
                                            type.getElementType(), type.getEncoding());
      dest.assign(empty);
      remark::passed(at->getLoc(),
                     remark::RemarkOpts::name("DestinationMaterialized").category("ncclx-buffers"))
          << remark::metric("Bytes", getPayloadBytes(type, type));
    };
    getOperation().walk([&](Operation *op) {
      if (auto get = dyn_cast<GetOp>(op); get && !get.getDest())
        materialize(op, get.getResult().getType(), get.getDestMutable());
      auto collective = dyn_cast<CollectiveOpInterface>(op);
      if (!collective || collective.getDest())
        return;
      // The region of a start holds the collective alone.
      auto start = dyn_cast<StartOp>(op->getParentOp());
      materialize(start ? start.getOperation() : op,
                  cast<RankedTensorType>(collective.getOutputType()), collective.getDestMutable());
    });
  }
};

} // namespace

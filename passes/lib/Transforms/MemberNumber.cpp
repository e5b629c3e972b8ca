//===- MemberNumber.cpp - Which member of a group this rank is ------------------------------===//
#include "ncclx/Transforms/MemberNumber.h"
#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ncclx;

Value mlir::ncclx::memberNumber(func::FuncOp function, Location loc, FlatSymbolRefAttr grid,
                                ArrayAttr axes, ArrayAttr groups, int64_t size) {
  Block &block = function.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&block);
  Type i64 = b.getI64Type();
  SmallVector<int64_t> numbers(size);
  std::iota(numbers.begin(), numbers.end(), 0);
  auto all = DenseElementsAttr::get(RankedTensorType::get({size}, i64), ArrayRef(numbers));
  for (auto made : block.getOps<ReduceScatterOp>()) {
    auto constant = made.getInput().getDefiningOp<arith::ConstantOp>();
    if (constant && constant.getValue() == all && made.getKind() == ReductionKind::Max &&
        made.getGridAttr() == grid && made.getAxes() == axes && made.getGroupsAttr() == groups)
      return made.getResult();
  }
  Value constant = arith::ConstantOp::create(b, loc, all);
  return ReduceScatterOp::create(b, loc, Type(RankedTensorType::get({1}, i64)), Type(), constant,
                                 b.getI64IntegerAttr(0),
                                 ReductionKindAttr::get(b.getContext(), ReductionKind::Max),
                                 FloatAttr(), TypeAttr::get(i64),
                                 ReductionOrderAttr::get(b.getContext(), ReductionOrder::Any), grid,
                                 axes, groups, Value(), AlgorithmAttr())
      .getResult();
}

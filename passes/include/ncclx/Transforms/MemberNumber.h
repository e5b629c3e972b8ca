//===- MemberNumber.h - Which member of a group this rank is ---------------*- C++ -*-===//
#ifndef NCCLX_TRANSFORMS_MEMBERNUMBER_H
#define NCCLX_TRANSFORMS_MEMBERNUMBER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ncclx {

/// This rank's number in its group of `size` members, over axes or listed (`groups`, else null): a
/// tensor of one i64, made once at the head of the function. A graph is one text for all ranks, so
/// the number comes by a reduce_scatter of [0, 1, ..., size-1], of which every member gets its own.
Value memberNumber(func::FuncOp function, Location loc, FlatSymbolRefAttr grid, ArrayAttr axes,
                   ArrayAttr groups, int64_t size);

} // namespace mlir::ncclx
#endif // NCCLX_TRANSFORMS_MEMBERNUMBER_H

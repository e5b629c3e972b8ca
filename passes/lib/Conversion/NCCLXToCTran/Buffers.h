//===- Buffers.h - The memory of a function, and who touched it last ------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_BUFFERS_H
#define NCCLX_LIB_CONVERSION_BUFFERS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::ncclx {

/// A buffer and who touched it last, in the order of the function.
struct Buffer {
  Value window;
  MemRefType type;
  SmallVector<Value> writers; ///< it holds its value after these
  SmallVector<Value> readers; ///< it may be overwritten after these and the writers
};

/// By the memref of the function.
using Buffers = llvm::MapVector<Value, Buffer>;

/// A whole buffer with the row-major layout of its own type?
bool isWholeBuffer(Value memref);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_CONVERSION_BUFFERS_H

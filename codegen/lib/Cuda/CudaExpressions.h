//===- CudaExpressions.h - C++ text for coordinates, boxes and slots ----*- C++ -*-===//
#ifndef NCCLX_LIB_CUDA_CUDAEXPRESSIONS_H
#define NCCLX_LIB_CUDA_CUDAEXPRESSIONS_H

#include "ncclx/CTran/Access.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include <string>

namespace mlir::ncclx {

/// A box: where it lies at whose memory, and how long it is, as expressions.
struct CudaBox {
  std::string rank;   ///< "a.rank" for own memory
  std::string offset; ///< bytes
  std::string bytes;
  std::optional<int64_t> constantBytes;
  std::string whole; ///< bytes of the box of which a size known at run time is used; else empty
  unsigned window = 0;
  ctran::WindowOp op;
  bool own = true;
  int64_t most = 0;     ///< bytes, wherever the indices point
  bool words = false;   ///< starts on 8 bytes, wherever the indices point
  bool aligned = false; ///< and is of whole words
  bool lines = false;   ///< starts on 64 bytes and has room for as many
};

/// Consecutive slots.
struct CudaSlots {
  std::string rank, first, count;
  unsigned slots = 0;
  ctran::SlotsOp op;
};

class CudaExpressions {
public:
  explicit CudaExpressions(ctran::ProgramOp program) : program(program) {}

  SmallVector<ctran::WindowOp> windows;
  SmallVector<ctran::SlotsOp> slotArrays;
  SmallVector<ctran::TableOp> tables; ///< "table0", "table1", ...
  unsigned indexOf(ctran::WindowOp window);
  unsigned indexOf(ctran::SlotsOp slots);

  void name(Value value, std::string text) { names[value] = std::move(text); }
  /// A number or condition as text; an error at `op` for what has none.
  FailureOr<std::string> number(Operation *op, Value value);
  FailureOr<std::string> coord(Operation *op, Value value);
  FailureOr<std::string> rank(Operation *op, ctran::PeerViewOp view);
  /// With `each`, the range is the interval of a whole dimension, and the box that at place `each`.
  FailureOr<CudaBox> box(Operation *op, Value range, StringRef each = "");
  FailureOr<CudaSlots> slots(Operation *op, Value slot);

private:
  ctran::ProgramOp program;
  DenseMap<Value, std::string> names;
  FailureOr<std::string> index(Operation *op, Value value);
};

} // namespace mlir::ncclx
#endif // NCCLX_LIB_CUDA_CUDAEXPRESSIONS_H

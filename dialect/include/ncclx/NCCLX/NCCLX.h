//===- NCCLX.h - The ncclx dialect ------------------------------*- C++ -*-===//
//
// Collectives and computation as one program for all ranks. The meaning of each
// op, with numbered constraints, is in dialect/SPEC.md.
//
//===----------------------------------------------------------------------===//

#ifndef NCCLX_NCCLX_NCCLX_H
#define NCCLX_NCCLX_NCCLX_H

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::ncclx {

/// What every collective reads and writes: it keeps collectives in order, alive and in place.
struct Communication : SideEffects::Resource::Base<Communication> {
  StringRef getName() override { return "Communication"; }
};

/// The version of the dialect in bytecode. NCCLXDialect::kBytecodeVersion is today's.
struct Version : DialectVersion {
  explicit Version(uint64_t number) : number(number) {}
  uint64_t number;
};

/// Rows that one member holds of a dimension of `size` cut for `numMembers`: ceil(size/numMembers).
int64_t getShardSize(int64_t size, int64_t numMembers);

/// The rows [begin, end) of a dimension of `size` that belong to `member`; empty behind the end.
struct ShardRange {
  int64_t begin, end;
};
ShardRange getShardRange(int64_t size, int64_t numMembers, int64_t member);

/// Bytes of the larger of the two. Both have a static shape.
int64_t getPayloadBytes(ShapedType input, ShapedType output);

/// The type of one of `count` chunks of a tensor or memref cut in `dim`. The size is dynamic where
/// the chunks differ in size; a chunk of a memref is a view at a dynamic offset.
Type getChunkType(ShapedType whole, int64_t count, int64_t dim);

/// Whether a collective may work on elements of this type.
bool isSupportedElementType(Type type);

} // namespace mlir::ncclx

#include "ncclx/NCCLX/NCCLXDialect.h.inc"
#include "ncclx/NCCLX/NCCLXEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ncclx/NCCLX/NCCLXAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ncclx/NCCLX/NCCLXTypes.h.inc"

#include "ncclx/NCCLX/NCCLXInterfaces.h.inc"
#define GET_OP_CLASSES
#include "ncclx/NCCLX/NCCLXOps.h.inc"

namespace mlir::ncclx {

/// The grid that a collective names, or null. One symbol walk each: passes with many look-ups use
/// a SymbolTableCollection.
GridOp lookupGrid(CollectiveOpInterface op);

/// The number of members of the collective's group. The op must have been verified.
int64_t getGroupSize(CollectiveOpInterface op);

/// Builds the same collective over another input and destination; `async` gives it a token. On
/// tensors its result has the type of `op`'s, on memrefs it has none. `dest` may be null on
/// tensors.
CollectiveOpInterface cloneCollective(OpBuilder &builder, CollectiveOpInterface op, Value input,
                                      Value dest, bool async);

} // namespace mlir::ncclx

#endif // NCCLX_NCCLX_NCCLX_H

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

/// Whether elements may be accumulated in this type: their own or a wider one of their kind.
bool accumulates(Type element, Type accumulate);

/// What a collective does, in one description from which its rules, its meaning and its lowering
/// follow: for each member i and each j that it sends to, box (i, j) of i's input becomes, or is
/// combined with the other members' into, box (i, j) of j's output.
struct Dataflow {
  enum class Route : uint8_t {
    All,      ///< every member sends to every member
    FromRoot, ///< the root sends to every member
    ToRoot,   ///< every member sends to the root
    Listed    ///< each member sends to one at most and gets from one at most
  };
  Route route = Route::All;
  /// The dimension in which the input is cut among its receivers. Nothing: they get all of it.
  std::optional<int64_t> inCut = std::nullopt;
  /// The dimension in which the output is cut among its senders. Nothing: each fills all of it.
  std::optional<int64_t> outCut = std::nullopt;
  bool combines = false;
  /// The root's coordinates on the group's axes; empty without one.
  ArrayRef<int64_t> root = {};
  /// The rows of box (i, j), where they are listed. Nothing: the cuts are shards.
  DenseIntElementsAttr counts = {};
  /// Of box (i, j) only the first rows, as many as i's sizes say at run time.
  bool sized = false;

  /// Boxes have as many rows as counts say, known now or at run time.
  bool isCounted() const { return counts || sized; }
  /// Some members may get nothing; their output is zeros then.
  bool fillsZeros() const { return route == Route::ToRoot || route == Route::Listed; }
  std::optional<int64_t> getChunkDim() const {
    return route == Route::All && !combines && !isCounted() ? outCut : std::nullopt;
  }
};

/// The peer of each member of a group, as a permute, put, get, signal or wait names it.
struct PeerMap {
  IntegerAttr shift;
  DenseI64ArrayAttr pairs;

  static PeerMap of(Operation *op);
  /// No peers: the op is on the own window.
  bool isOwn() const { return !shift && !pairs; }
  /// The peer of `member`, in a group of `numMembers`, or nothing.
  std::optional<int64_t> getTarget(int64_t member, int64_t numMembers) const;
  /// The member whose peer `member` is, or nothing.
  std::optional<int64_t> getSource(int64_t member, int64_t numMembers) const;
  /// The same the other way round.
  PeerMap getInverse() const;
  bool operator==(const PeerMap &other) const {
    return shift == other.shift && pairs == other.pairs;
  }
};

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

/// The groups over which a collective, a barrier or a window is.
struct NamedGroups {
  GridOp grid;
  ArrayAttr axes, groups;
};
/// Nothing of any other op.
std::optional<NamedGroups> getNamedGroups(Operation *op);
/// Whether the op itself communicates: it has groups, or works on a window that has.
bool isCommunication(Operation *op);

/// Makes each get of a peer's window under `root`, on tensors, a get of the own one and a permute,
/// by which the peer answers. Fails where a window is not named by the op that makes it.
LogicalResult answerGets(Operation *root);

/// The number of members of the collective's groups, of the largest where they differ. The op must
/// have been verified.
int64_t getGroupSize(CollectiveOpInterface op);
/// Whether all its groups have that many.
bool haveOneSize(CollectiveOpInterface op);

/// The member whose coordinates on the group's axes are the op's root; nothing without a root.
std::optional<int64_t> getRoot(CollectiveOpInterface op);

/// Builds the same collective over another input and destination, and, where it has sizes, other
/// ones; `async` gives it a token. On tensors its result has the type of `op`'s, on memrefs it has
/// none. `dest` may be null on tensors.
CollectiveOpInterface cloneCollective(OpBuilder &builder, CollectiveOpInterface op, Value input,
                                      Value dest, bool async, Value sizes = {});

} // namespace mlir::ncclx

#endif // NCCLX_NCCLX_NCCLX_H

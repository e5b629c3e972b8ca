//===- Converter.h - A function becomes a program -------------------------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_CONVERTER_H
#define NCCLX_LIB_CONVERSION_CONVERTER_H

#include "Algorithms.h"
#include "Windows.h"

#include "ncclx/Conversion/ProgramGrid.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Topology/TreePacking.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ncclx {

/// Does this op end the kernel before it?
bool endsKernel(Operation *op);

/// A collective that has been started and not finished.
struct Started {
  ctran::CollectiveSpec spec;
  ctran::InFlight flight;
  Value inRoot, outRoot;
  SmallVector<int64_t> sizes; ///< of the group's axes
};

/// Hints, by the place of their op, of which one has been told that they are not followed: an op of
/// the graph may be there several times, once for each iteration or branch.
using ToldHints = llvm::DenseSet<std::pair<Attribute, StringRef>>;

/// Makes the program of one bufferized function: collectives (Collectives.cpp) with what they are
/// told of the machine (OnTopology.cpp), computation (Computation.cpp), and the windows of its
/// memory (Buffers.cpp).
class Converter {
public:
  /// `grid` is that of the program, or nothing: then its collectives say.
  Converter(func::FuncOp function, std::optional<ProgramGrid> grid, bool loadStore, bool oneKernel,
            bool cutByTiers, int64_t blocks, int64_t mostBlocks, topology::TreePacker *trees,
            int64_t scratchLimit, bool measured, ToldHints &told)
      : function(function), b(function.getContext()), loadStore(loadStore), oneKernel(oneKernel),
        cutByTiers(cutByTiers), measured(measured), blocks(blocks), mostBlocks(mostBlocks),
        scratchLimit(scratchLimit), told(told), trees(trees), grid(std::move(grid)) {}

  LogicalResult run();

private:
  func::FuncOp function;
  OpBuilder b;
  bool loadStore, oneKernel, cutByTiers, measured;
  int64_t blocks, mostBlocks, scratchLimit;
  ToldHints &told;
  topology::TreePacker *trees; ///< null: there is no topology
  ctran::ProgramOp program;
  std::optional<ProgramGrid> grid;
  std::optional<Windows> windows;
  Buffers buffers;
  DenseMap<Value, std::unique_ptr<Started>> started; ///< by token
  SmallVector<Attribute> collectives;
  /// What copies to peers take the links for, in the order of their starts.
  struct Transfer {
    SmallVector<unsigned> axes;
    int64_t lane;
    Operation *awaited; ///< null: never
    SmallVector<Value> sent;
  };
  SmallVector<Transfer> transfers;
  int64_t kernels = 0, asyncs = 0;
  DenseMap<StringRef, int64_t> numbers;

  LogicalResult check();
  /// Bytes on a rank, by all collectives so far.
  int64_t scratchTaken();
  LogicalResult checkScratch();
  void stageViews();
  LogicalResult declareBuffers();
  LogicalResult convertCollective(CollectiveOpInterface op);
  /// The ranks of a group of all, where the topology has as many; an error where it has not, or
  /// there is none.
  FailureOr<std::vector<unsigned>> groupOnTopology(CollectiveOpInterface op,
                                                   const ctran::CollectiveSpec &spec);
  LogicalResult packTrees(CollectiveOpInterface op, ctran::CollectiveSpec &spec);
  LogicalResult route(CollectiveOpInterface op, ctran::CollectiveSpec &spec);
  LogicalResult layTiers(CollectiveOpInterface op, ctran::CollectiveSpec &spec);
  LogicalResult findSwitch(CollectiveOpInterface op, ctran::CollectiveSpec &spec);
  /// Of the first group, over the distances of rounds.
  std::optional<ctran::LinkOfGroup> slowestLink(CollectiveOpInterface op);
  void describe(CollectiveOpInterface op, ctran::CollectiveSpec &spec);
  /// What of the op's hints nobody can see in the result: a hint, or a word of it, that what has
  /// been written does not follow is a warning, fewer chunks than asked for are a remark.
  void tellUnfollowed(CollectiveOpInterface op, StringRef carriedBy,
                      const ctran::CollectiveSpec &spec, const ctran::ScheduleBuilder &written);
  /// The names of axes of the program.
  SmallVector<StringAttr> namesOf(ArrayRef<unsigned> axes);
  SmallVector<Value> turnOf(const Transfer &transfer) const;
  void finish(Started &s);
  LogicalResult convertChunk(FinishChunkOp op);
  LogicalResult convertCall(CallOp op);
  void convertBarrier(BarrierOp op);
  LogicalResult convertOnWindow(Operation *op);
  LogicalResult convertKernel(Operation *&op);
  void addCompute(Location loc, StringRef callee, ArrayRef<Value> args, ValueRange reads,
                  ArrayRef<Value> writeRoots, ArrayRef<Value> readRoots, double flops, double bytes,
                  int64_t sms, SmallVector<Value> after, StringRef note);

  /// A kernel that fills `root` with zeros, for members that receive nothing.
  Value addZero(ctran::ScheduleBuilder &s, Value root, ValueRange after);
  SmallVector<Value> readyTokens(Value root);
  SmallVector<Value> freeTokens(Value root);
  /// Tokens of the compute lane: it completes in order, so its own ops need none.
  bool onComputeLane(Value token) {
    return isa_and_nonnull<ctran::ComputeOp>(token.getDefiningOp());
  }
};

} // namespace mlir::ncclx
#endif // NCCLX_LIB_CONVERSION_CONVERTER_H

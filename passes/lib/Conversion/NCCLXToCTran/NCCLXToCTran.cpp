//===- NCCLXToCTran.cpp - From a bufferized graph to a program --------------------------===//
#include "Algorithms.h"
#include "Kernels.h"
#include "TakeSized.h"
#include "Windows.h"

#include "ncclx/Conversion/DeviceSizes.h"
#include "ncclx/Conversion/Passes.h"
#include "ncclx/Conversion/ProgramGrid.h"
#include "ncclx/NCCLX/AssumeUniform.h"
#include "ncclx/NCCLX/Branches.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/NCCLX/Topology.h"
#include "ncclx/Topology/IO.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_CONVERTNCCLXTOCTRAN
#include "ncclx/Conversion/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

bool isBarrier(Operation *op) {
  return isCommunication(op) || isa<FinishOp, FinishChunkOp, CallOp>(op) ||
         op->hasTrait<OpTrait::IsTerminator>();
}

/// Does some collective follow the tiers of the machine?
bool isHierarchical(func::FuncOp function) {
  return function
      .walk([](CollectiveOpInterface op) {
        return op.getAlgorithm() == Algorithm::Hierarchical ? WalkResult::interrupt()
                                                            : WalkResult::advance();
      })
      .wasInterrupted();
}

/// A collective that has been started and not finished.
struct Started {
  ctran::CollectiveSpec spec;
  ctran::InFlight flight;
  Value inRoot, outRoot;
  SmallVector<int64_t> sizes; ///< of the group's axes
};

class Converter {
public:
  /// `grid` is that of the program, or nothing: then its collectives say.
  Converter(func::FuncOp function, std::optional<ProgramGrid> grid, bool loadStore, bool oneKernel,
            bool cutByTiers, int64_t blocks, int64_t mostBlocks, topology::TreePacker *trees,
            int64_t scratchLimit, bool measured)
      : function(function), b(function.getContext()), loadStore(loadStore), oneKernel(oneKernel),
        cutByTiers(cutByTiers), measured(measured), blocks(blocks), mostBlocks(mostBlocks),
        scratchLimit(scratchLimit), trees(trees), grid(std::move(grid)) {}

  LogicalResult run();

private:
  func::FuncOp function;
  OpBuilder b;
  bool loadStore, oneKernel, cutByTiers, measured;
  int64_t blocks, mostBlocks, scratchLimit;
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

//===--- what can be converted
//-----------------------------------------------------------------===//

LogicalResult Converter::check() {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("has several blocks; a schedule is made of one");
  Operation *nested = nullptr;
  function.walk([&](Operation *op) {
    if ((isCommunication(op) || isa<FinishOp, FinishChunkOp>(op)) && !nested &&
        op->getParentOp() != function)
      nested = op;
  });
  if (nested)
    return nested->emitOpError("stands under ")
           << nested->getParentOp()->getName()
           << "; loops with constant bounds are unrolled and other control flow split into stages "
              "or branches before this pass";
  for (AssumeUniformOp op : function.getOps<AssumeUniformOp>())
    return op.emitOpError("is checked between stages; run ncclx-split-branches before this pass");
  for (Operation &op : function.getBody().front()) {
    auto isTensor = [](Type type) { return isa<TensorType>(type); };
    if (isCommunication(&op) && (llvm::any_of(op.getOperandTypes(), isTensor) ||
                                 llvm::any_of(op.getResultTypes(), isTensor)))
      return op.emitOpError("works on tensors; run ncclx-bufferize first");
  }
  if (!grid) {
    FailureOr<ProgramGrid> found = ProgramGrid::of(function);
    if (failed(found))
      return failure();
    grid = std::move(*found);
  }
  if (trees && (cutByTiers || isHierarchical(function)))
    grid->cutBy(trees->tiers());
  // Kernels read globals behind the back of windows, which is in order for constants alone.
  WalkResult globals = function.walk([](memref::GetGlobalOp op) {
    auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(op, op.getNameAttr());
    if (!global || global.getConstant())
      return WalkResult::advance();
    op.emitOpError("uses global '")
        << op.getName() << "', which is not constant; a schedule's memory is its arguments, "
        << "results and allocations";
    return WalkResult::interrupt();
  });
  return failure(globals.wasInterrupted());
}

} // namespace

bool ncclx::isWholeBuffer(Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  return type && type.hasStaticShape() && type.getLayout().isIdentity() &&
         rootOf(memref) == memref &&
         (isa<BlockArgument>(memref) || memref.getDefiningOp<memref::AllocOp>());
}

namespace {

static bool worksInPlace(ctran::ProgramOp written) {
  return llvm::any_of(
      written.getBody().front().getOps<ctran::WindowOp>(),
      [](ctran::WindowOp window) { return window.getRole() == ctran::WindowRole::InOut; });
}

// A collective on part of a buffer, on a reshaped one, or on a global goes through a buffer of its
// own, so that below this point each box of a window is one.
void Converter::stageViews() {
  SmallVector<CollectiveOpInterface> ops;
  function.walk([&](CollectiveOpInterface op) { ops.push_back(op); });
  auto packed = [](Value view) {
    auto type = cast<MemRefType>(view.getType());
    return MemRefType::get(type.getShape(), type.getElementType());
  };
  auto say = [](Operation *op, StringRef which) {
    remark::missed(
        op->getLoc(),
        remark::RemarkOpts::name("CopiedForCollective").category("convert-ncclx-to-ctran"))
        << remark::add("{0} is not a whole buffer: it goes through one of its own", which);
  };
  for (CollectiveOpInterface op : ops) {
    b.setInsertionPoint(op);
    ctran::ProgramOp written = getSchedule(op);
    bool mayAlias = isa<AllReduceOp>(op) && (!written || worksInPlace(written));
    bool aliases = rootOf(op.getInput()) == rootOf(op.getDest()) && !mayAlias;
    if (!isWholeBuffer(op.getInput()) || aliases) {
      Value buffer = memref::AllocOp::create(b, op.getLoc(), packed(op.getInput()));
      memref::CopyOp::create(b, op.getLoc(), op.getInput(), buffer);
      op->setOperand(0, buffer);
      say(op, "the input");
    }
    if (Value sizes = op.getSizes();
        sizes && (!isWholeBuffer(sizes) || rootOf(sizes) == rootOf(op.getDest()))) {
      b.setInsertionPoint(op);
      Value buffer = memref::AllocOp::create(b, op.getLoc(), packed(sizes));
      memref::CopyOp::create(b, op.getLoc(), sizes, buffer);
      op->setOperand(1, buffer);
      say(op, "the tensor of sizes");
    }
    if (!isWholeBuffer(op.getDest())) {
      Value view = op.getDest();
      b.setInsertionPoint(op);
      Value buffer = memref::AllocOp::create(b, op.getLoc(), packed(view));
      op.getDestMutable().assign(buffer);
      say(op, "the destination");
      Operation *behind = op;
      if (Value token = op.getToken())
        for (Operation *user : llvm::make_early_inc_range(token.getUsers())) {
          user->replaceUsesOfWith(view, buffer);
          if (isa<FinishOp>(user))
            behind = user;
        }
      b.setInsertionPointAfter(behind);
      memref::CopyOp::create(b, op.getLoc(), buffer, view);
    }
    if (written && mayAlias && op.getInput() != op.getDest()) {
      b.setInsertionPoint(op);
      memref::CopyOp::create(b, op.getLoc(), op.getInput(), op.getDest());
      op->setOperand(0, op.getDest());
    }
  }
}

//===--- buffers ------------------------------------------------------------------------------===//

LogicalResult Converter::declareBuffers() {
  Operation *terminator = function.getBody().front().getTerminator();
  // What is returned must be a buffer of this function, once: else a copy of it is returned.
  b.setInsertionPoint(terminator);
  SmallVector<Value> outputs;
  for (OpOperand &operand : terminator->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type || !type.hasStaticShape())
      return terminator->emitOpError("returns a ")
             << operand.get().getType() << "; a schedule returns memrefs of static shape";
    Value root = operand.get();
    if (!isWholeBuffer(root) || isa<BlockArgument>(root) || llvm::is_contained(outputs, root)) {
      Value copy = memref::AllocOp::create(b, terminator->getLoc(),
                                           MemRefType::get(type.getShape(), type.getElementType()));
      memref::CopyOp::create(b, terminator->getLoc(), root, copy);
      operand.set(copy);
      root = copy;
    }
    outputs.push_back(root);
  }
  b.setInsertionPointToStart(&program.getBody().front());
  Value entry = program.getEntry();
  auto peers = loadStore ? ctran::PeerAccess::LoadStore : ctran::PeerAccess::Put;
  auto declare = [&](Value root, StringRef name, ctran::WindowRole role,
                     std::optional<int64_t> index) -> LogicalResult {
    auto type = dyn_cast<MemRefType>(root.getType());
    if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
      return emitError(root.getLoc(), "buffer of type ")
             << root.getType() << ", expected a memref of static shape and row-major layout";
    bool remote = windows->isRemote(root) || llvm::any_of(root.getUsers(), [](Operation *user) {
                    return isa<CollectiveOpInterface>(user);
                  });
    Buffer buffer;
    buffer.type = type;
    buffer.window =
        ctran::WindowOp::create(b, root.getLoc(), ctran::WindowType::get(b.getContext()), name,
                                role, index ? b.getI64IntegerAttr(*index) : IntegerAttr(), 1,
                                remote ? peers : ctran::PeerAccess::None, type);
    buffer.writers = {entry};
    buffers.insert({root, buffer});
    return success();
  };
  for (BlockArgument argument : function.getArguments())
    if (failed(declare(argument, "arg" + std::to_string(argument.getArgNumber()),
                       ctran::WindowRole::Input, argument.getArgNumber())))
      return failure();
  int64_t scratch = 0;
  for (Operation &op : function.getBody().front()) {
    auto alloc = dyn_cast<memref::AllocOp>(op);
    if (!alloc)
      continue;
    auto output = llvm::find(outputs, alloc.getResult());
    LogicalResult made = output != outputs.end()
                             ? declare(alloc, "out" + std::to_string(output - outputs.begin()),
                                       ctran::WindowRole::Output, output - outputs.begin())
                             : declare(alloc, "buf" + std::to_string(scratch++),
                                       ctran::WindowRole::Scratch, std::nullopt);
    if (failed(made))
      return failure();
  }
  return success();
}

SmallVector<Value> Converter::readyTokens(Value root) { return buffers[root].writers; }

SmallVector<Value> Converter::freeTokens(Value root) {
  return ctran::joined(buffers[root].writers, buffers[root].readers);
}

//===--- collectives
//------------------------------------------------------------------------------===//

static ctran::ReduceKind kindOf(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
  case ReductionKind::Avg: // a sum, divided at the end
    return ctran::ReduceKind::Sum;
  case ReductionKind::Min:
    return ctran::ReduceKind::Min;
  case ReductionKind::Max:
    return ctran::ReduceKind::Max;
  case ReductionKind::Prod:
    return ctran::ReduceKind::Prod;
  }
  llvm_unreachable("all kinds are handled");
}

void Converter::describe(CollectiveOpInterface op, ctran::CollectiveSpec &spec) {
  StringRef word = op->getName().stripDialect();
  spec.name = (word + "." + std::to_string(numbers[word]++)).str();
  spec.axes = grid->axesOf(op);
  if (spec.axes.empty())
    spec.groups = lookupGrid(op).getGroups(op.getAxes(), op.getGroupsAttr());
  spec.inType = cast<MemRefType>(op.getInputType());
  spec.outType = cast<MemRefType>(op.getOutputType());
  spec.flow = op.getDataflow();
  spec.root = getRoot(op).value_or(0);
  if (auto chunks = op->getAttrOfType<IntegerAttr>(chunksAttrName))
    spec.chunks = chunks.getInt();
  if (spec.flow.fillsZeros() || spec.flow.isCounted() || !spec.groups.empty()) {
    Value dest = op.getDest();
    spec.zero = [this, dest](ctran::ScheduleBuilder &s, ValueRange after) {
      return addZero(s, dest, after);
    };
  }
  if (spec.flow.combines) {
    auto kind = op->getAttrOfType<ReductionKindAttr>("kind").getValue();
    spec.combination = {kindOf(kind), op->getAttrOfType<TypeAttr>("accumulate").getValue()};
    if (auto scale = op->getAttrOfType<FloatAttr>("scale"))
      spec.combination.scale = scale.getValueAsDouble();
    if (kind == ReductionKind::Avg)
      spec.combination.divide = getGroupSize(op);
  }
  if (auto permute = dyn_cast<PermuteOp>(*op)) {
    spec.shift = permute.getShift().value_or(0);
    if (permute.getShift() && spec.axes.size() <= 1) {
      spec.zero = nullptr;
    } else if (permute.getShift()) { // along several axes at once
      int64_t n = getGroupSize(op);
      for (int64_t member = 0; member < n; ++member)
        spec.pairs.push_back({member, *permute.getTarget(member, n)});
    } else {
      ArrayRef<int64_t> flat = *permute.getPairs();
      for (size_t i = 0; i + 1 < flat.size(); i += 2)
        spec.pairs.push_back({flat[i], flat[i + 1]});
    }
  }
}

/// What the op's hint says.
static std::optional<ctran::Streaming> getStreaming(CollectiveOpInterface op) {
  auto asked = op->getAttrOfType<DictionaryAttr>(roundsAttrName);
  if (!asked)
    return std::nullopt;
  ctran::Streaming how;
  how.chunks = asked.getAs<IntegerAttr>("chunks").getInt();
  if (auto depth = asked.getAs<IntegerAttr>("depth"))
    how.depth = depth.getInt();
  return how;
}

SmallVector<StringAttr> Converter::namesOf(ArrayRef<unsigned> axes) {
  SmallVector<StringAttr> names;
  for (unsigned axis : axes)
    names.push_back(b.getStringAttr(grid->axes()[axis].name));
  if (axes.empty()) // groups that no axes span reach over all of them
    for (const ProgramGrid::Axis &axis : grid->axes())
      names.push_back(b.getStringAttr(axis.name));
  return names;
}

FailureOr<std::vector<unsigned>> Converter::groupOnTopology(CollectiveOpInterface op,
                                                            const ctran::CollectiveSpec &spec) {
  Algorithm algorithm = *op.getAlgorithm();
  if (!trees)
    return op->emitOpError("asks for ")
           << stringifyAlgorithm(algorithm)
           << (algorithm == Algorithm::Trees ? ", which are packed into a topology: "
                                             : ", which is for a topology: ")
           << "there is neither the pass's topology=FILE nor the module's ncclx.topology";
  std::vector<unsigned> group;
  int64_t members = 1;
  for (unsigned axis : spec.axes)
    members *= grid->axes()[axis].size;
  for (int64_t member = 0; member < members; ++member) {
    int64_t rank = 0, rest = member;
    for (unsigned axis : llvm::reverse(spec.axes)) {
      rank += rest % grid->axes()[axis].size * grid->axes()[axis].stride;
      rest /= grid->axes()[axis].size;
    }
    group.push_back(unsigned(rank));
  }
  if (group.size() > trees->numRanks())
    return op->emitOpError("runs on ")
           << group.size() << " ranks, but the topology has " << trees->numRanks();
  return group;
}

LogicalResult Converter::route(CollectiveOpInterface op, ctran::CollectiveSpec &spec) {
  FailureOr<std::vector<unsigned>> group = groupOnTopology(op, spec);
  if (failed(group))
    return failure();
  spec.routing =
      trees->route(*group, ctran::routedAmounts(spec, group->size()), ctran::routedShares(spec));
  if (!spec.routing)
    return op->emitOpError("asks for routed, but on this topology some member has no way to "
                           "another");
  const topology::Routing &routing = *spec.routing;
  remark::analysis(op->getLoc(),
                   remark::RemarkOpts::name("Routed").category("convert-ncclx-to-ctran"))
      << remark::add("{0} paths between {1} members, up to {2} hops, in {3} shares: the busiest "
                     "resource takes {4:F3} of the least that is known of any routing",
                     routing.paths.size(), group->size(), routing.depth, routing.shares,
                     routing.leastSeconds > 0 ? routing.seconds / routing.leastSeconds : 0.0);
  return success();
}

LogicalResult Converter::packTrees(CollectiveOpInterface op, ctran::CollectiveSpec &spec) {
  FailureOr<std::vector<unsigned>> found = groupOnTopology(op, spec);
  if (failed(found))
    return failure();
  const std::vector<unsigned> &group = *found;
  spec.trees = trees->pack(group, treeFlowOf(op));
  if (!spec.trees)
    return op->emitOpError("asks for trees, but on this topology none reach every member");
  remark::analysis(op->getLoc(),
                   remark::RemarkOpts::name("TreesPacked").category("convert-ncclx-to-ctran"))
      << remark::add(
             "{0} trees of {1} members, {2} edges deep, in {3} shares: the busiest resource "
             "takes {4:F3} of the least that any trees can",
             spec.trees->trees.size(), group.size(), spec.trees->depth, spec.trees->shares,
             spec.trees->leastSecondsPerByte > 0
                 ? spec.trees->secondsPerByte / spec.trees->leastSecondsPerByte
                 : 0.0);
  return success();
}

/// Each group hangs off one switch.
LogicalResult Converter::findSwitch(CollectiveOpInterface op, ctran::CollectiveSpec &spec) {
  if (oneKernel)
    return op->emitOpError("asks for switch, which no kernel of one GPU's ops is made for yet");
  if (!loadStore)
    return op->emitOpError("asks for switch, but ") << whyNoSwitch(op, nullptr);
  if (!trees)
    return op->emitOpError("asks for switch, which is for a topology: there is neither the pass's "
                           "topology=FILE nor the module's ncclx.topology");
  double bytesPerSecond = 0;
  if (std::string why = whyNoSwitch(op, trees, &bytesPerSecond); !why.empty())
    return op->emitOpError("asks for switch, but ") << why;
  spec.tiers.push_back({spec.axes, bytesPerSecond});
  return success();
}

std::optional<ctran::LinkOfGroup> Converter::slowestLink(CollectiveOpInterface op) {
  constexpr int64_t mostRanks = 4096; // that are looked at for it
  if (!trees || trees->numRanks() > mostRanks || grid->numRanks() > int64_t(trees->numRanks()))
    return std::nullopt;
  SmallVector<int64_t> group = lookupGrid(op).getGroups(op.getAxes(), op.getGroupsAttr()).front();
  double slowest = 0;
  for (size_t d = 1; d < group.size(); d *= 2) {
    std::optional<topology::Route> route =
        trees->way(unsigned(group.front()), unsigned(group[group.size() - d]));
    if (!route)
      return std::nullopt;
    double cap = route->cap.toDouble();
    slowest = slowest > 0 ? std::min(slowest, cap) : cap;
  }
  if (slowest <= 0)
    return std::nullopt;
  ctran::LinkOfGroup link{slowest};
  if (auto own = trees->way(unsigned(group.front()), unsigned(group.front())))
    if (double cap = own->cap.toDouble(); cap > 0)
      link.copySecondsPerByte = 1 / cap;
  return link;
}

LogicalResult Converter::layTiers(CollectiveOpInterface op, ctran::CollectiveSpec &spec) {
  if (!trees)
    return op->emitOpError("asks for hierarchical, which follows a topology's tiers: there is "
                           "neither the pass's topology=FILE nor the module's ncclx.topology");
  if (grid->numRanks() > int64_t(trees->numRanks()))
    return op->emitOpError("runs on ")
           << grid->numRanks() << " ranks, but the topology has " << trees->numRanks();
  SmallVector<ProgramGrid::OfTier> found;
  if (std::optional<std::string> why = grid->axesByTier(op, trees->tiers(), found))
    return op->emitOpError("asks for hierarchical, but ") << *why;
  for (const ProgramGrid::OfTier &of : found)
    spec.tiers.push_back({of.axes, of.tier->bytesPerSecond, of.tier->latency});
  return success();
}

static ctran::InFlight emit(Algorithm algorithm, ctran::ScheduleBuilder &s,
                            const ctran::CollectiveSpec &spec) {
  switch (algorithm) {
  case Algorithm::Direct:
    return ctran::emitDirect(s, spec);
  case Algorithm::Ring:
    return ctran::emitRing(s, spec);
  case Algorithm::Bruck:
    return ctran::emitBruck(s, spec);
  case Algorithm::Binomial:
    return ctran::emitBinomial(s, spec);
  case Algorithm::Eager:
    return ctran::emitEager(s, spec);
  case Algorithm::Trees:
    return ctran::emitTrees(s, spec);
  case Algorithm::Routed:
    return ctran::emitRouted(s, spec);
  case Algorithm::Hierarchical:
    return ctran::emitHierarchical(s, spec);
  case Algorithm::Switch:
    return ctran::emitSwitch(s, spec);
  }
  llvm_unreachable("all algorithms are handled");
}

/// Where the result is first needed as a whole.
static Operation *awaitOf(CollectiveOpInterface op) {
  if (!op.isAsync())
    return op;
  for (Operation *user : op.getToken().getUsers())
    if (isa<FinishOp>(user))
      return user;
  return nullptr;
}

/// Whether a kernel of the graph stands between the start of a collective and its await.
static bool runsBesideKernel(CollectiveOpInterface op) {
  Operation *end = awaitOf(op);
  for (Operation *next = op->getNextNode(); end && next && next != end; next = next->getNextNode())
    if (isa<CallOp>(next) ||
        (!isBarrier(next) && !isScaffold(next) && !isa<memref::AllocOp, memref::DeallocOp>(next)))
      return op.isAsync();
  return false;
}

/// Two collectives of one group that are under way together would each get half of the links, and
/// the one that is needed first would come as late as the other. So it has them to itself, and the
/// other asks its peers meanwhile. Where what starts later is needed first, they share.
SmallVector<Value> Converter::turnOf(const Transfer &transfer) const {
  for (const Transfer &before : llvm::reverse(transfers)) {
    if (before.axes != transfer.axes || !before.awaited)
      continue;
    if (before.lane == transfer.lane) // which completes in order
      return {};
    if (!transfer.awaited || before.awaited->isBeforeInBlock(transfer.awaited))
      return before.sent;
  }
  return {};
}

LogicalResult Converter::convertCollective(CollectiveOpInterface op) {
  ctran::ProgramOp written = getSchedule(op);
  Algorithm algorithm = op.getAlgorithm().value_or(Algorithm::Direct);
  auto s = std::make_unique<Started>();
  describe(op, s->spec);
  if (std::optional<std::string> why =
          written ? std::nullopt : whyNot(op, algorithm, s->spec.axes.size()))
    return op->emitOpError("asks for ") << stringifyAlgorithm(algorithm) << ", but " << *why;
  if (!written && algorithm == Algorithm::Trees && failed(packTrees(op, s->spec)))
    return failure();
  if (!written && algorithm == Algorithm::Routed && failed(route(op, s->spec)))
    return failure();
  if (!written && algorithm == Algorithm::Switch && failed(findSwitch(op, s->spec)))
    return failure();
  if (!written && algorithm == Algorithm::Hierarchical && failed(layTiers(op, s->spec)))
    return failure();
  bool streams = algorithm == Algorithm::Bruck || (algorithm == Algorithm::Ring && getRoot(op));
  if (!written && streams) {
    s->spec.streaming = getStreaming(op);
    if (!s->spec.streaming)
      s->spec.link = slowestLink(op);
  }
  s->inRoot = op.getInput();
  s->outRoot = op.getDest();
  s->spec.in = buffers[s->inRoot].window;
  s->spec.out = buffers[s->outRoot].window;
  s->spec.inReady = readyTokens(s->inRoot);
  Value sizes = op.getSizes();
  if (sizes) {
    s->spec.sizes = buffers[sizes].window;
    s->spec.inReady = ctran::joined(s->spec.inReady, readyTokens(sizes));
  }
  s->spec.outFree = freeTokens(s->outRoot);
  if (scratchLimit >= 0)
    s->spec.scratchLeft = std::max<int64_t>(0, scratchLimit - scratchTaken());
  ctran::Carrier carrier{loadStore, op.isAsync() ? 1 + asyncs++ % 4 : 0, oneKernel};
  if (trees && loadStore && !oneKernel) {
    carrier.lanes = trees->copyLanes();
    carrier.sumSecondsPerByte = trees->sumSecondsPerByte();
  }
  ctran::ScheduleBuilder builder(b, op.getLoc(), program, carrier, s->spec.name);
  if (s->spec.flow.combines)
    builder.demanded = s->spec.combination;
  builder.unrolled = !s->spec.groups.empty();
  for (unsigned axis : s->spec.axes)
    s->sizes.push_back(program.getAxisSize(axis));
  Transfer transfer{s->spec.axes, carrier.index, awaitOf(op), {}};
  // Links are slower than memory, and what takes them no longer than another lane takes to start
  // needs no turn.
  bool takesTurns = false;
  if (carrier.sumSecondsPerByte > 0 && s->spec.groups.empty()) {
    int64_t bytes = ctran::capacityOf(builder, s->spec) *
                    llvm::divideCeil(s->spec.inType.getElementTypeBitWidth(), 8);
    takesTurns = 2 * double(bytes) * carrier.sumSecondsPerByte > ctran::stepSeconds;
  }
  if (takesTurns)
    s->spec.turn = turnOf(transfer);
  // The blocks of a kernel beside it keep their multiprocessors to its end (as products on H200 do,
  // test/Bench/cuda), and sums run behind it: one takes less than several.
  if (s->spec.flow.combines && s->spec.flow.inCut && runsBesideKernel(op))
    builder.carrier.sumSecondsPerByte = 0;
  if (written) {
    FailureOr<ctran::InFlight> flight = ctran::emitWritten(builder, s->spec, op, written);
    if (failed(flight))
      return failure();
    s->flight = std::move(*flight);
  } else if (oneKernel && algorithm == Algorithm::Direct && isAlone(op) && !whyNotInBlocks(op)) {
    // Fewer bytes of a piece are not worth a block (as measured on H200, test/Bench/cuda), and each
    // has a multiprocessor of its own.
    constexpr int64_t bytesOfBlock = 16 << 10;
    int64_t bytes = ctran::capacityOf(builder, s->spec) *
                    llvm::divideCeil(s->spec.inType.getElementTypeBitWidth(), 8);
    builder.carrier.blocks = blocks ? blocks
                                    : std::clamp<int64_t>(llvm::divideCeil(bytes, bytesOfBlock), 1,
                                                          std::max<int64_t>(1, mostBlocks));
    s->flight = ctran::emitInBlocks(builder, s->spec);
  } else if (s->spec.flow.sized && s->spec.groups.empty() && loadStore &&
             (oneKernel ||
              function->getParentOfType<ModuleOp>()->hasAttr(ctran::deviceSizesAttrName))) {
    s->flight = ctran::takeSized(builder, s->spec);
  } else {
    s->flight = emit(algorithm, builder, s->spec);
  }

  transfer.sent = s->flight.sent;
  if (takesTurns && !transfer.sent.empty())
    transfers.push_back(std::move(transfer));

  SmallVector<StringAttr> axes = namesOf(s->spec.axes);
  collectives.push_back(ctran::CollectiveAttr::get(
      b.getContext(), s->spec.name, op->getName().stripDialect(),
      written ? written.getSymName() : stringifyAlgorithm(algorithm), axes, op.getPayloadBytes()));
  Buffer &in = buffers[s->inRoot];
  in.readers = ctran::joined(in.readers, s->flight.inFree);
  if (sizes) // read before what they are the sizes of is sent
    buffers[sizes].readers = ctran::joined(buffers[sizes].readers, s->flight.inFree);
  if (!op.isAsync()) {
    finish(*s);
    return success();
  }
  started[op.getToken()] = std::move(s);
  return success();
}

void Converter::finish(Started &s) {
  Buffer &out = buffers[s.outRoot];
  out.writers = s.flight.finish();
  // The output's own part may still be on its way to the other members.
  out.readers = s.flight.others;
  // What the input's readers were is still so; in place, the output's new value follows them.
  if (s.inRoot == s.outRoot)
    out.readers = ctran::joined(out.readers, s.flight.inFree);
}

LogicalResult Converter::convertChunk(FinishChunkOp op) {
  Started &s = *started[op.getToken()];
  std::optional<int64_t> chunk = getConstantIntValue(op.getChunk());
  if (!chunk)
    return op.emitOpError(
        "waits for a chunk whose number is not a constant, which is not lowered yet");
  Value ready;
  if (s.flight.chunk) {
    SmallVector<int64_t> member(s.sizes.size());
    int64_t rest = *chunk;
    for (size_t i = s.sizes.size(); i-- > 0; rest /= s.sizes[i])
      member[i] = rest % s.sizes[i];
    ready = s.flight.chunk(member);
  }
  if (!ready)
    return op.emitOpError("waits for a chunk that arrives with the whole; `direct` brings each "
                          "chunk by itself");
  // The view is read after this token, and the whole of the buffer after its own.
  Buffer view;
  view.type = MemRefType();
  view.writers = {ready};
  buffers.insert({op.getResult(), view});
  return success();
}

// A rank has come when all that it did before is done, and everything behind it follows the others.
void Converter::convertBarrier(BarrierOp op) {
  std::string name = "barrier." + std::to_string(numbers["barrier"]++);
  ctran::ScheduleBuilder s(b, op.getLoc(), program, {loadStore, 0, oneKernel}, name);
  SmallVector<unsigned> axes = grid->axesOf(op);
  SmallVector<StringAttr> names = namesOf(axes);
  collectives.push_back(ctran::CollectiveAttr::get(
      b.getContext(), name, "barrier", ctran::barrierGoesInRounds(s, axes) ? "bruck" : "direct",
      names, 0));
  SmallVector<Value> before;
  for (auto &[root, buffer] : buffers)
    before = ctran::joined(ctran::joined(before, buffer.writers), buffer.readers);
  if (before.empty())
    before.push_back(program.getEntry());
  auto named = SymbolTable::lookupNearestSymbolFrom<GridOp>(op, op.getGridAttr());
  Value done = axes.empty()
                   ? ctran::emitListedBarrier(
                         s, name, named.getGroups(op.getAxes(), op.getGroupsAttr()), before)
                   : ctran::emitBarrier(s, name, axes, before);
  for (auto &[root, buffer] : buffers)
    buffer.writers = ctran::joined(buffer.writers, done);
}

LogicalResult Converter::convertOnWindow(Operation *op) {
  std::string name;
  if (isa<WindowOp>(op))
    name = "window." + std::to_string(numbers["window"]++);
  ctran::ScheduleBuilder s(b, op->getLoc(), program, {loadStore, 0, oneKernel}, name);
  return windows->convert(op, s, buffers);
}

//===--- computation
//------------------------------------------------------------------------------===//

void Converter::addCompute(Location loc, StringRef callee, ArrayRef<Value> args, ValueRange reads,
                           ArrayRef<Value> writeRoots, ArrayRef<Value> readRoots, double flops,
                           double bytes, int64_t sms, SmallVector<Value> after, StringRef note) {
  SmallVector<Value> windows, writes, tokens;
  for (Value root : args)
    windows.push_back(buffers[root].window);
  for (Value root : writeRoots)
    writes.push_back(ctran::RangeOp::create(b, loc, ctran::RangeType::get(b.getContext()),
                                            buffers[root].window, ValueRange(), Value(), Value(),
                                            Value()));
  for (Value token : after)
    if (!onComputeLane(token) && !llvm::is_contained(tokens, token))
      tokens.push_back(token);
  Value done = ctran::ComputeOp::create(b, loc, ctran::TokenType::get(b.getContext()), callee,
                                        windows, reads, writes, tokens, ctran::LaneKind::Compute,
                                        Value(), APFloat(flops), APFloat(bytes), sms, StringAttr(),
                                        b.getStringAttr(note));
  for (Value root : readRoots)
    buffers[root].readers.push_back(done);
  for (Value root : writeRoots) {
    buffers[root].writers = {done};
    buffers[root].readers.clear();
  }
}

Value Converter::addZero(ctran::ScheduleBuilder &s, Value root, ValueRange after) {
  auto type = cast<MemRefType>(root.getType());
  std::string name = (function.getSymName() + ".k" + std::to_string(kernels++) + ".zero").str();
  {
    OpBuilder outside(function);
    auto kernel =
        func::FuncOp::create(outside, s.loc, name, outside.getFunctionType(type, TypeRange()));
    kernel.setPrivate();
    OpBuilder inside = OpBuilder::atBlockBegin(kernel.addEntryBlock());
    // Not every element type has constants of its own, but each has the bits of an integer.
    Type element = type.getElementType();
    Type bits = inside.getIntegerType(element.getIntOrFloatBitWidth());
    bool plain = isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(element);
    Value zero =
        arith::ConstantOp::create(inside, s.loc, inside.getZeroAttr(plain ? element : bits));
    if (zero.getType() != element)
      zero = UnrealizedConversionCastOp::create(inside, s.loc, element, zero).getResult(0);
    linalg::FillOp::create(inside, s.loc, zero, kernel.getArgument(0));
    func::ReturnOp::create(inside, s.loc);
  }
  Value window = buffers[root].window;
  return ctran::ComputeOp::create(
      s.builder, s.loc, ctran::TokenType::get(s.builder.getContext()), name, window, ValueRange(),
      s.range(window), after, ctran::LaneKind::Compute, Value(), APFloat(0.0),
      APFloat(double(type.getNumElements() * type.getElementTypeBitWidth() / 8)), 0, s.of,
      s.builder.getStringAttr("zero"));
}

LogicalResult Converter::convertCall(CallOp op) {
  SmallVector<Value> args, readRoots, writeRoots, reads, after;
  for (Value operand : op->getOperands())
    if (!isWholeBuffer(operand))
      return op.emitOpError("takes ")
             << operand.getType() << " that is not a whole buffer; a kernel takes whole buffers";
  for (Value input : op.getInputs()) {
    args.push_back(input);
    readRoots.push_back(input);
    llvm::append_range(after, readyTokens(input));
    reads.push_back(ctran::RangeOp::create(b, op.getLoc(), ctran::RangeType::get(b.getContext()),
                                           buffers[input].window, ValueRange(), Value(), Value(),
                                           Value()));
  }
  for (Value out : op.getOuts()) {
    args.push_back(out);
    writeRoots.push_back(out);
    llvm::append_range(after, freeTokens(out));
  }
  addCompute(op.getLoc(), op.getCallee(), args, reads, writeRoots, readRoots, double(op.getFlops()),
             double(op.getBytes()), op.getSms(), after, op.getCallee());
  return success();
}

LogicalResult Converter::convertKernel(Operation *&op) {
  FailureOr<Kernel> kernel = collectKernel(op, isBarrier);
  if (failed(kernel))
    return failure();
  op = kernel->ops.back();
  for (Value root : kernel->args)
    if (!buffers.contains(root))
      return op->emitOpError("uses a buffer of type ")
             << root.getType() << " that is neither an argument nor allocated in this function";
  std::string name =
      (function.getSymName() + ".k" + std::to_string(kernels++) + "." + kernel->what).str();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(function);
    outlineKernel(b, *kernel, name).setPrivate();
  }
  SmallVector<Value> reads, readRoots, after;
  for (Value memref : kernel->reads) {
    Value root = rootOf(memref);
    readRoots.push_back(root);
    auto chunk = memref.getDefiningOp<FinishChunkOp>();
    Value window = buffers[root].window;
    SmallVector<Value> at;
    if (chunk) {
      // The box of the chunk's member, in the view in which the collective wrote it.
      Started &s = *started[chunk.getToken()];
      ctran::ScheduleBuilder builder(b, op->getLoc(), program);
      window = ctran::makeViews(builder, s.spec).out;
      int64_t rest = *getConstantIntValue(chunk.getChunk());
      at.resize(s.sizes.size());
      for (size_t i = s.sizes.size(); i-- > 0; rest /= s.sizes[i])
        at[i] = builder.constant(rest % s.sizes[i]);
      llvm::append_range(after, buffers[memref].writers);
    } else {
      llvm::append_range(after, readyTokens(root));
    }
    reads.push_back(ctran::RangeOp::create(b, op->getLoc(), ctran::RangeType::get(b.getContext()),
                                           window, at, Value(), Value(), Value()));
  }
  for (Value root : kernel->writes)
    llvm::append_range(after, freeTokens(root));
  addCompute(op->getLoc(), name, kernel->args, reads, kernel->writes.getArrayRef(), readRoots,
             kernel->flops, kernel->bytes, kernel->sms, after, kernel->what);
  return success();
}

/// Bytes of scratch memory that a rank has for `collective`.
static int64_t scratchOf(ctran::ProgramOp program, ctran::CollectiveAttr collective) {
  int64_t bytes = 0;
  for (auto window : program.getOps<ctran::WindowOp>()) {
    auto type = cast<MemRefType>(window.getType());
    if (window.getRole() == ctran::WindowRole::Scratch &&
        window.getSym().starts_with((collective.getName() + ".").str()))
      bytes += type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8) *
               window.getGenerations();
  }
  return bytes;
}

int64_t Converter::scratchTaken() {
  int64_t bytes = 0;
  for (Attribute collective : collectives)
    bytes += scratchOf(program, cast<ctran::CollectiveAttr>(collective));
  return bytes;
}

LogicalResult Converter::checkScratch() {
  int64_t bytes = scratchLimit < 0 || measured ? 0 : scratchTaken();
  if (bytes <= std::max<int64_t>(0, scratchLimit))
    return success();
  InFlightDiagnostic diag = function.emitOpError("has collectives that take ")
                            << bytes << " bytes of scratch memory on a rank, more than the "
                            << scratchLimit << " allowed";
  for (Attribute attribute : collectives) {
    auto collective = cast<ctran::CollectiveAttr>(attribute);
    diag.attachNote() << collective.getName() << ", " << collective.getAlgorithm() << ", takes "
                      << scratchOf(program, collective);
  }
  return failure();
}

LogicalResult Converter::run() {
  if (failed(check()))
    return failure();
  stageViews();
  windows.emplace(*grid, [this](StringRef name, StringRef kind, WindowOp window, ShapedType type) {
    collectives.push_back(ctran::CollectiveAttr::get(b.getContext(), name, kind, "direct",
                                                     namesOf(grid->axesOf(window)),
                                                     getPayloadBytes(type, type)));
  });
  if (failed(windows->layOut(function)))
    return failure();
  b.setInsertionPoint(function);
  SmallVector<Attribute> axes;
  for (const ProgramGrid::Axis &axis : grid->axes())
    axes.push_back(ctran::GridAxisAttr::get(b.getContext(), axis.name, axis.size));
  program = ctran::ProgramOp::create(b, function.getLoc(), function.getSymNameAttr(), StringAttr(),
                                     b.getArrayAttr(axes), b.getArrayAttr({}));
  Block &block = program.getBody().emplaceBlock();
  block.addArgument(ctran::TokenType::get(b.getContext()), function.getLoc());
  if (failed(declareBuffers()))
    return failure();

  b.setInsertionPointToEnd(&block);
  Operation *terminator = function.getBody().front().getTerminator();
  for (Operation *op = &function.getBody().front().front(); op != terminator;
       op = op->getNextNode()) {
    LogicalResult done = success();
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      done = convertCollective(collective);
    else if (auto chunk = dyn_cast<FinishChunkOp>(op))
      done = convertChunk(chunk);
    else if (auto wait = dyn_cast<FinishOp>(op))
      finish(*started[wait.getToken()]);
    else if (auto barrier = dyn_cast<BarrierOp>(op))
      convertBarrier(barrier);
    else if (Windows::isOnWindow(op))
      done = convertOnWindow(op);
    else if (auto call = dyn_cast<CallOp>(op))
      done = convertCall(call);
    else if (!isa<memref::AllocOp, memref::DeallocOp>(op) && !isScaffold(op))
      done = convertKernel(op);
    if (failed(done))
      return failure();
  }
  windows->close();
  if (failed(checkScratch()))
    return failure();
  // The exit needs every token that nothing else waits for.
  SmallVector<Value> unused;
  for (Operation &op : block)
    for (Value result : op.getResults())
      if (isa<ctran::TokenType>(result.getType()) && result.use_empty())
        unused.push_back(result);
  for (auto &[root, buffer] : buffers)
    if (buffer.window)
      // A branch may be all that waits for a token, and another rank not take it.
      for (Value token : ctran::joined(buffer.writers, buffer.readers))
        if (!llvm::is_contained(unused, token) && token != program.getEntry())
          unused.push_back(token);
  ctran::ReturnOp::create(b, terminator->getLoc(), unused);
  program.setCollectivesAttr(b.getArrayAttr(collectives));
  function.erase();
  return success();
}

bool communicates(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return isCommunication(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The branches of `chooser` in which nothing is communicated are programs, too, on the ranks of
/// the others.
LogicalResult addQuietBranches(func::FuncOp chooser, SmallVectorImpl<func::FuncOp> &functions,
                               DenseMap<Operation *, ProgramGrid> &grids) {
  SmallVector<func::FuncOp> quiet;
  std::optional<ProgramGrid> grid;
  for (auto name :
       chooser->getAttrOfType<ArrayAttr>(branchesAttrName).getAsRange<SymbolRefAttr>()) {
    auto branch = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(chooser, name);
    if (!branch)
      return chooser.emitOpError("has a branch ") << name << ", which is no function";
    if (!communicates(branch)) {
      quiet.push_back(branch);
      continue;
    }
    FailureOr<ProgramGrid> found = ProgramGrid::of(branch);
    if (failed(found))
      return failure();
    if (grid && grid->numRanks() != found->numRanks())
      return branch.emitOpError("runs on ")
             << found->numRanks() << " ranks, but another branch on " << grid->numRanks();
    grid = *found;
  }
  for (func::FuncOp branch : quiet) {
    if (!grid)
      return chooser.emitOpError("has branches of which none communicates");
    functions.push_back(branch);
    grids.try_emplace(branch, *grid);
  }
  return success();
}

struct ConvertNCCLXToCTran : ncclx::impl::ConvertNCCLXToCTranBase<ConvertNCCLXToCTran> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (communicates(function))
        functions.push_back(function);
    DenseMap<Operation *, ProgramGrid> grids;
    for (auto chooser : getOperation().getOps<func::FuncOp>())
      if (chooser->hasAttr(branchesAttrName) && failed(addQuietBranches(chooser, functions, grids)))
        return signalPassFailure();
    // Trees need a topology, and nothing else does.
    topology::ReadResult read;
    std::optional<topology::TreePacker> own;
    auto inModule =
        getOperation()->getAttrOfType<TopologyAttr>(NCCLXDialect::getTopologyAttrName());
    if (!trees && (!topologyFile.empty() || inModule)) {
      read =
          topologyFile.empty() ? readTopology(inModule) : topology::readTopologyFile(topologyFile);
      if (!read.topology) {
        for (const topology::Diagnostic &diagnostic : read.diagnostics)
          getOperation().emitError(topology::toString(diagnostic, topologyFile));
        return signalPassFailure();
      }
      own.emplace(*read.topology, topology::Rate::payload);
    }
    for (func::FuncOp function : functions) {
      auto known = grids.find(function);
      std::optional<ProgramGrid> grid;
      if (known != grids.end())
        grid = known->second;
      if (failed(Converter(function, grid, loadStore, oneKernel, cutByTiers, blocks, mostBlocks,
                           own ? &*own : trees, scratchLimit, measured)
                     .run()))
        return signalPassFailure();
    }
  }

  topology::TreePacker *trees = nullptr;
  bool measured = false;
};

} // namespace

std::unique_ptr<Pass>
mlir::ncclx::createConvertNCCLXToCTran(const ConvertNCCLXToCTranOptions &options,
                                       topology::TreePacker *trees, bool measured) {
  auto pass = std::make_unique<ConvertNCCLXToCTran>(options);
  pass->trees = trees;
  pass->measured = measured;
  return pass;
}

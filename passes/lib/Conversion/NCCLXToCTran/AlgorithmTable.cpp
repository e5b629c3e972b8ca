//===- AlgorithmTable.cpp - Which algorithm carries what ----------------------===//
#include "ncclx/CTran/Access.h"
#include "ncclx/Conversion/Passes.h"
#include "ncclx/Topology/TierTrees.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ncclx;
using Route = Dataflow::Route;

ctran::ProgramOp mlir::ncclx::getSchedule(CollectiveOpInterface op) {
  auto name = op->getAttrOfType<FlatSymbolRefAttr>(NCCLXDialect::getScheduleAttrName());
  return name ? SymbolTable::lookupNearestSymbolFrom<ctran::ProgramOp>(op, name)
              : ctran::ProgramOp();
}

ReductionOrder mlir::ncclx::orderOf(Algorithm algorithm) {
  switch (algorithm) {
  case Algorithm::Direct:
  case Algorithm::Eager:
  case Algorithm::Routed:
    return ReductionOrder::Rank;
  case Algorithm::Ring:
    return ReductionOrder::Ring;
  case Algorithm::Bruck:
  case Algorithm::Binomial:
    return ReductionOrder::Tree;
  case Algorithm::Trees:
  case Algorithm::Hierarchical:
  case Algorithm::Switch: // its own
    return ReductionOrder::Any;
  }
  llvm_unreachable("all algorithms are handled");
}

topology::TreeFlow mlir::ncclx::treeFlowOf(CollectiveOpInterface op) {
  if (!op.isReduction())
    return topology::TreeFlow::spread;
  return op.getDataflow().inCut ? topology::TreeFlow::sum : topology::TreeFlow::sumAndSpread;
}

std::string mlir::ncclx::whyNoSwitch(CollectiveOpInterface op, const topology::TreePacker *trees,
                                     double *bytesPerSecond) {
  if (!trees)
    return "a switch is reached by load and store, and peers are reached by puts alone";
  double narrowest = 0;
  for (ArrayRef<int64_t> group : lookupGrid(op).getGroups(op.getAxes(), op.getGroupsAttr())) {
    std::vector<unsigned> ranks(group.begin(), group.end());
    if (llvm::any_of(ranks, [&](unsigned rank) { return rank >= trees->numRanks(); }))
      return llvm::formatv("the topology has {0} ranks", trees->numRanks());
    std::optional<topology::CommonSwitch> common = trees->commonSwitch(ranks);
    if (!common)
      return llvm::formatv("no switch that multicasts and reduces has all members of rank {0}'s "
                           "group at its ports",
                           group.front());
    double cap = common->cap.toDouble();
    narrowest = narrowest > 0 ? std::min(narrowest, cap) : cap;
  }
  if (bytesPerSecond)
    *bytesPerSecond = narrowest;
  return "";
}

/// Is some chunk of the result awaited by itself?
static bool isAwaitedByChunk(CollectiveOpInterface op) {
  auto start = op->getParentOfType<StartOp>();
  return start && llvm::any_of(start.getFuture().getUsers(), [](Operation *user) {
           auto await = dyn_cast<AwaitOp>(user);
           return await && await.getChunk();
         });
}

std::optional<std::string> mlir::ncclx::whyNotInBlocks(CollectiveOpInterface op) {
  Dataflow flow = op.getDataflow();
  int64_t members = getGroupSize(op);
  auto permute = dyn_cast<PermuteOp>(*op);
  bool shifts = permute && permute.getShift() && int64_t(*permute.getShift()) % members;
  if ((flow.route != Route::All && flow.route != Route::FromRoot && !shifts) || flow.isCounted())
    return llvm::formatv("this {0} has no form by blocks", op->getName().stripDialect()).str();
  if (members < 2)
    return "it is for groups of more than one";
  if (op.getGroupsAttr())
    return "its groups are listed";
  if (op.getInput() == op.getDest() && (flow.inCut || flow.outCut || shifts))
    return "it moves pieces in place";
  if (isAwaitedByChunk(op))
    return "its result is awaited by chunk";
  for (auto [dim, type] :
       {std::pair(flow.inCut, op.getInputType()), {flow.outCut, op.getOutputType()}}) {
    if (!dim)
      continue;
    for (int64_t size : type.getShape().take_front(*dim))
      if (size != 1)
        return llvm::formatv("pieces along dimension {0} are not in one place", *dim).str();
    if (type.getDimSize(*dim) % members)
      return llvm::formatv("{0} rows are not cut evenly by {1}", type.getDimSize(*dim), members)
          .str();
  }
  return std::nullopt;
}

bool mlir::ncclx::isAlone(CollectiveOpInterface op) {
  WalkResult walked = op->getParentOfType<func::FuncOp>().walk([&](CollectiveOpInterface other) {
    return other == op ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walked.wasInterrupted();
}

Algorithm mlir::ncclx::algorithmInKernel(CollectiveOpInterface op) {
  // Packets take twice the room and the wire of what they carry, and those of a root are the work
  // of one block; as measured on H200 (test/Bench/cuda).
  Dataflow flow = op.getDataflow();
  if (flow.sized && !op.getGroupsAttr()) // who gets something takes it
    return Algorithm::Direct;
  int64_t longMessage = flow.route == Route::All ? 4 << 20 : 16 << 10;
  int64_t message = op.getPayloadBytes();
  if (flow.inCut || flow.outCut)
    message /= std::max<int64_t>(1, getGroupSize(op));
  bool packets = !whyNot(op, Algorithm::Eager, 1) && message <= longMessage;
  return !packets && isAlone(op) && !whyNotInBlocks(op) && !whyNot(op, Algorithm::Direct, 1)
             ? Algorithm::Direct
             : Algorithm::Eager;
}

/// Of groups that no axes span.
static std::optional<std::string> whyNotListed(CollectiveOpInterface op, Algorithm algorithm) {
  bool byPlace = algorithm == Algorithm::Direct || algorithm == Algorithm::Ring ||
                 algorithm == Algorithm::Bruck || algorithm == Algorithm::Binomial ||
                 algorithm == Algorithm::Eager;
  if (!byPlace)
    return "no axes span its groups";
  if (isAwaitedByChunk(op))
    return "no axes span its groups, and its result is awaited by chunk";
  return std::nullopt;
}

/// Of what is made for a topology.
static std::optional<std::string> whyNotAll(CollectiveOpInterface op, int64_t most) {
  int64_t members = getGroupSize(op);
  if (members != lookupGrid(op).getNumRanks())
    return llvm::formatv("it is for groups of all ranks, not of {0} of {1}", members,
                         lookupGrid(op).getNumRanks())
        .str();
  if (members < 2 || members > most)
    return llvm::formatv("it is for 2 to {0} members, not {1}", most, members).str();
  return std::nullopt;
}

std::optional<std::string> mlir::ncclx::whyNotByUnequalTiers(CollectiveOpInterface op,
                                                             topology::TreePacker &trees) {
  Dataflow flow = op.getDataflow();
  const std::string &alike = trees.tiers().why;
  auto no = [&](StringRef why) {
    std::string all = "the machine has no tiers: " + alike;
    return StringRef(alike).contains(why) ? all : all + ", and " + why.str();
  };
  if (flow.route != Route::All)
    return no((op->getName().stripDialect() + " needs blocks that are alike").str());
  if (std::optional<std::string> why = whyNotAll(op, topology::maxTierMembers))
    return no(*why);
  if (getGroupSize(op) > int64_t(trees.numRanks()))
    return no(llvm::formatv("the topology has {0} ranks", trees.numRanks()).str());
  SmallVector<int64_t> ranks = lookupGrid(op).getGroups(op.getAxes(), op.getGroupsAttr()).front();
  std::vector<unsigned> group(ranks.begin(), ranks.end());
  // Who reaches whom is the same for all flows.
  std::string why;
  trees.packByTiers(group, flow.inCut && flow.outCut ? topology::TreeFlow::spread : treeFlowOf(op),
                    &why);
  return why.empty() ? std::nullopt : std::optional(no(why));
}

static bool isBroadcast(const Dataflow &flow) {
  return flow.route == Route::FromRoot && !flow.inCut && !flow.outCut;
}

/// What switches do: multicast, and sums on their way.
static std::optional<std::string> whyNotBySwitch(CollectiveOpInterface op) {
  Dataflow flow = op.getDataflow();
  if ((flow.route != Route::All && !isBroadcast(flow)) || flow.isCounted() ||
      (flow.inCut && flow.outCut))
    return llvm::formatv("a switch carries no {0}", op->getName().stripDialect()).str();
  if (int64_t members = getGroupSize(op); members > ctran::mostMembers)
    return llvm::formatv("{0} members are more than a switch has ports", members).str();
  if (flow.combines) {
    auto kind = op->getAttrOfType<ReductionKindAttr>("kind").getValue();
    if (kind == ReductionKind::Avg || op->hasAttr("scale"))
      return "a switch neither scales nor divides";
    ctran::ReduceKind as = kind == ReductionKind::Sum   ? ctran::ReduceKind::Sum
                           : kind == ReductionKind::Min ? ctran::ReduceKind::Min
                           : kind == ReductionKind::Max ? ctran::ReduceKind::Max
                                                        : ctran::ReduceKind::Prod;
    Type accumulate = op->getAttrOfType<TypeAttr>("accumulate").getValue();
    if (auto why = ctran::whyNotInNetwork(as, op.getElementType(), accumulate))
      return why;
  }
  // Pieces of a flat tensor begin at multiples of 16 bytes, shards where their rows do.
  ShapedType whole = flow.inCut ? op.getInputType() : op.getOutputType();
  if (std::optional<int64_t> dim = flow.inCut ? flow.inCut : flow.outCut) {
    int64_t below = llvm::divideCeil(op.getElementType().getIntOrFloatBitWidth(), 8);
    for (int64_t size : whole.getShape().drop_front(*dim + 1))
      below *= size;
    int64_t extent = whole.getDimSize(*dim), outer = 1;
    for (int64_t size : whole.getShape().take_front(*dim))
      outer *= size;
    int64_t step = int64_t(llvm::divideCeil(extent, getGroupSize(op))) * below;
    if (step % ctran::networkAlignment || (outer > 1 && extent * below % ctran::networkAlignment))
      return llvm::formatv("its shards do not begin at multiples of {0} bytes (network N7)",
                           ctran::networkAlignment)
          .str();
  }
  return std::nullopt;
}

/// The form of collective that `algorithm` is made for.
static std::optional<std::string> whyNotForm(CollectiveOpInterface op, Algorithm algorithm,
                                             size_t axes) {
  Dataflow flow = op.getDataflow();
  bool rooted = flow.route == Route::FromRoot || flow.route == Route::ToRoot;
  if (axes == 0)
    if (std::optional<std::string> why = whyNotListed(op, algorithm))
      return why;
  switch (algorithm) {
  case Algorithm::Direct:
    return std::nullopt;
  case Algorithm::Ring:
    if (auto permute = dyn_cast<PermuteOp>(*op); permute && !permute.getShift())
      return "a ring carries a shift and not listed pairs";
    if (flow.sized)
      return "a ring passes on rows of others, and sizes known at run time only are known to their "
             "senders alone";
    return std::nullopt;
  case Algorithm::Bruck:
    if (flow.route != Route::All || flow.isCounted())
      return llvm::formatv("there are no rounds for {0}", op->getName().stripDialect()).str();
    return std::nullopt;
  case Algorithm::Eager:
    if (flow.route == Route::Listed || flow.isCounted())
      return llvm::formatv("{0} has no eager form", op->getName().stripDialect()).str();
    return std::nullopt;
  case Algorithm::Trees: {
    if (flow.route != Route::All || flow.isCounted() || (flow.inCut && flow.outCut))
      return llvm::formatv("there are no trees for {0}", op->getName().stripDialect()).str();
    return whyNotAll(op, topology::maxTreeMembers);
  }
  case Algorithm::Routed: {
    if (rooted || flow.sized || (flow.route == Route::All && !(flow.inCut && flow.outCut)))
      return llvm::formatv("there are no routes for {0}", op->getName().stripDialect()).str();
    if (flow.counts && axes != 1)
      return llvm::formatv("counts are looked up along one axis, not {0}", axes).str();
    return whyNotAll(op, topology::maxRoutedMembers);
  }
  case Algorithm::Hierarchical:
    if ((flow.route != Route::All && !isBroadcast(flow)) || flow.isCounted())
      return llvm::formatv("there is no hierarchy for {0}", op->getName().stripDialect()).str();
    return std::nullopt;
  case Algorithm::Switch:
    return whyNotBySwitch(op);
  case Algorithm::Binomial:
    if (!rooted)
      return llvm::formatv("{0} has no root", op->getName().stripDialect()).str();
    return std::nullopt;
  }
  llvm_unreachable("all algorithms are handled");
}

std::optional<std::string> mlir::ncclx::whyNot(CollectiveOpInterface op, Algorithm algorithm,
                                               size_t axes) {
  if (std::optional<std::string> why = whyNotForm(op, algorithm, axes))
    return why;
  if (op.isReduction()) {
    // Partial results travel as elements.
    if (orderOf(algorithm) != ReductionOrder::Rank && algorithm != Algorithm::Switch &&
        op->getAttrOfType<TypeAttr>("accumulate").getValue() != op.getElementType())
      return (algorithm == Algorithm::Ring ? "a ring" : "it") +
             std::string(" accumulates in the element type");
    ReductionOrder asked = op->getAttrOfType<ReductionOrderAttr>("order").getValue();
    if (asked != ReductionOrder::Any && asked != orderOf(algorithm))
      return llvm::formatv("it reduces in {0} order, not in {1} order",
                           stringifyReductionOrder(orderOf(algorithm)),
                           stringifyReductionOrder(asked))
          .str();
  }
  // A chunk may be awaited by itself only where each member's piece has a signal of its own.
  if (algorithm != Algorithm::Direct && isAwaitedByChunk(op))
    return "its result is awaited by chunk";
  return std::nullopt;
}

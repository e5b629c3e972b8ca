//===- Trees.cpp - Trees packed into a topology ------------------------------------------===//
//
// Data moves along trees that topology::packTrees packs, cut into pieces of one size, of which each
// tree has as many. A piece of an all_gather goes from its root down a tree, every edge a put
// straight between outputs. One of a reduce_scatter goes up a tree: a member adds what its children
// sent to its own contribution and passes the sum on, through scratch slots of each edge with a
// credit for each. One of an all_reduce goes up one tree and from its root, as soon as it is
// summed, down another. In a round every tree moves a piece, in the order that planTrees makes.
// Which edges a member has is told rank by rank: the program is asymmetric.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"
#include "TreeChoice.h"
#include "TreeWriter.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::ctran;

int64_t CollectiveSpec::rankOf(ScheduleBuilder &s, int64_t member) const {
  SmallVector<int64_t> at(s.program.getGrid().size(), 0);
  for (unsigned axis : llvm::reverse(axes)) {
    at[axis] = member % s.size(axis);
    member /= s.size(axis);
  }
  int64_t rank = 0;
  for (unsigned axis = 0; axis < at.size(); ++axis)
    rank = rank * s.size(axis) + at[axis];
  return rank;
}

InFlight ctran::emitTrees(ScheduleBuilder &s, const CollectiveSpec &given) {
  CollectiveSpec c = given;
  int64_t n = c.groupSize(s);
  bool all = c.flow.combines && !c.flow.inCut; // all_reduce: roots share all of it
  MemRefType whole = c.flow.outCut ? c.outType : c.inType;
  std::optional<int64_t> dim = c.flow.inCut ? c.flow.inCut : c.flow.outCut;
  int64_t width = int64_t(llvm::divideCeil(whole.getElementTypeBitWidth(), 8));
  double bytes = double(whole.getNumElements()) * double(width) / double(all ? 1 : n);
  int64_t granule = dim ? 1 : flatGranule(c.inType), inner = 1;
  if (dim)
    inner =
        std::max<int64_t>(1, whole.getNumElements() / std::max<int64_t>(1, whole.getDimSize(*dim)));
  bool even = dim && whole.getDimSize(*dim) % n == 0;
  // Operands are scaled once, before they are summed. Where the buffer is one and nothing but a
  // landing is known of a put, what is put must not be what peers overwrite.
  bool apart = all && c.in == c.out && !s.carrier.loadStore;
  bool copies = c.flow.combines && (c.combination.scale || apart);
  TreeCosts costs;
  costs.sumSecondsPerByte = s.carrier.sumSecondsPerByte;
  TreeScratch scratch{c.scratchLeft, double(inner * granule * width)};
  if (c.scratchLeft >= 0) // beside whole copies
    scratch.most = std::max<int64_t>(
        0, c.scratchLeft - (int64_t(copies) + int64_t(c.flow.combines && !all && !even)) *
                               c.inType.getNumElements() * width);
  TreeChoice choice = chooseTrees(*c.trees, costs, bytes, c.treeSetting, scratch);
  if (!c.tiers.empty()) // what is hierarchical follows the hint
    s.pipelined = ncclx::Pipeline{choice.rounds};
  int64_t pieces = choice.packing.shares * choice.rounds;
  TreeWriter writer(s, c, choice.packing.trees, choice.plan, choice.rounds);

  // A window cut by member and then by piece; a shard, and what is anybody's, by piece alone. A
  // shard is, where all have as much.
  auto cut = [&](Value window) -> TreeWriter::View {
    SmallVector<DimAttr> dims;
    if (dim)
      dims = chunkDims(s, c.axes, whole.getDimSize(*dim));
    dims.push_back(s.freeDim(pieces, granule));
    return {s.reindex(window, dim, dims), dim.has_value()};
  };
  auto shard = [&](Value window) -> TreeWriter::View {
    return {s.reindex(window, dim, s.freeDim(pieces, granule)), false};
  };
  SmallVector<Value> own = ownPoint(s, c.axes);
  InFlight flight;
  auto finishWith = [&](SmallVector<Value> done, Value demanded) {
    done.push_back(demanded);
    flight.finishWith(done);
    return flight;
  };
  if (!c.flow.combines) {
    writer.out = cut(c.out);
    writer.outFree = c.outFree;
    writer.in = even ? shard(c.in) : writer.out;
    Value from = even ? writer.in.window : makeViews(s, c).in;
    Value mine = even ? s.range(from) : s.range(from, own);
    Value start = s.source(mine, c.name, own, {}, c.inReady);
    // Not on the lane whose signals peers wait for.
    ScheduleBuilder keeper = s;
    keeper.carrier.index = s.carrier.lane(lanesOfOne - 1);
    Value kept = s.copy(mine, s.range(writer.out.window, own), Value(), joined(start, c.outFree),
                        keeper.controlLane(), "keep own");
    writer.have = {even ? start : kept};
    SmallVector<Value> done = writer.write();
    done.push_back(kept);
    flight.inFree = done;
    return finishWith(done, s.sink(s.range(writer.out.window), c.name, {}, {}, done));
  }

  writer.in = cut(c.in);
  Value start = s.source(s.range(writer.in.window), c.name, {}, c.axes, c.inReady);
  if (copies) {
    TreeWriter::View copied = cut(s.scratch(c.name + ".scaled", c.inType));
    Value from = s.range(writer.in.window), to = s.range(copied.window);
    start = c.combination.scale
                ? s.reduce({c.combination.kind, c.combination.accumulate, c.combination.scale},
                           from, to, start, "scale")
                : s.copy(from, to, Value(), start, s.controlLane(), "set apart");
    c.combination.scale = std::nullopt;
    writer.in = copied;
    if (c.in == c.out)
      c.outFree = joined(c.outFree, start);
  }
  // Elements of the largest piece.
  int64_t units = dim ? llvm::divideCeil(whole.getDimSize(*dim), n)
                      : llvm::divideCeil(c.inType.getNumElements(), granule);
  writer.capacity = std::min(units, units / pieces + 1) * inner * granule;
  writer.have = {start};
  writer.outFree = c.outFree;
  writer.out = all ? cut(c.out) : even ? shard(c.out) : cut(s.scratch(c.name + ".sum", c.inType));
  if (!all && !even)
    writer.outFree = {s.program.getEntry()};
  SmallVector<Value> done = writer.write();
  flight.inFree = done;
  Value result = writer.out.window;
  if (all)
    return finishWith(done, s.sink(s.range(result), c.name, {}, c.axes, done));
  if (even)
    return finishWith(done, s.sink(s.range(result), c.name, own, c.axes, done));
  Views v = makeViews(s, c);
  Value moved = s.copy(s.range(result, own), s.range(v.out, own), Value(), joined(done, c.outFree),
                       s.controlLane(), "keep own");
  return finishWith({moved}, s.sink(s.range(v.out, own), c.name, own, c.axes, moved));
}

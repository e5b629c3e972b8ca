//===- PairBlocks.cpp - What each member sends to each ----------------------------------------===//
#include "PairBlocks.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;
using Route = ncclx::Dataflow::Route;

PairBlocks::Cutting PairBlocks::cuttingOf(const CollectiveSpec &c) {
  if (c.flow.counts)
    return Cutting::Counts;
  if (c.flow.route == Route::Listed)
    return Cutting::Whole;
  auto leads = [](MemRefType type, int64_t dim) {
    return llvm::all_of(type.getShape().take_front(dim), [](int64_t size) { return size == 1; });
  };
  if (leads(c.inType, *c.flow.inCut) && leads(c.outType, *c.flow.outCut))
    return Cutting::Flat;
  return c.flow.inCut == c.flow.outCut ? Cutting::Rows : Cutting::None;
}

std::vector<int64_t> PairBlocks::targetsOf(const CollectiveSpec &c, int64_t n) {
  std::vector<int64_t> targets(n, -1);
  if (c.zero)
    for (auto [from, to] : c.pairs)
      targets[from] = to;
  else
    for (int64_t from = 0; from < n; ++from)
      targets[from] = ((from + c.shift) % n + n) % n;
  return targets;
}

PairBlocks::PairBlocks(ScheduleBuilder &s, const CollectiveSpec &c, Members &members)
    : s(s), c(c), members(members), n(members.size()), cutting(cuttingOf(c)) {
  if (cutting == Cutting::Counts)
    counted.emplace(s, c, /*cutFurther=*/true);
}

int64_t PairBlocks::blockElements() const {
  int64_t all = c.inType.getNumElements();
  return cutting == Cutting::Counts  ? counted->mostRows() * counted->unitElements()
         : cutting == Cutting::Whole ? all
                                     : all / n;
}

int64_t PairBlocks::unitElements() const {
  int64_t least = 1;
  switch (cutting) {
  case Cutting::Counts:
    return std::max(least, counted->unitElements());
  case Cutting::Whole:
  case Cutting::Flat:
    return flatGranule(c.inType);
  case Cutting::Rows:
    return std::max(least, c.inType.getNumElements() /
                               std::max(least, c.inType.getDimSize(*c.flow.inCut)));
  case Cutting::None:
    return std::max(least, blockElements());
  }
  llvm_unreachable("all cuttings are handled");
}

int64_t PairBlocks::mostUnits() const {
  return int64_t(llvm::divideCeil(blockElements(), unitElements()));
}

double PairBlocks::bytesOfAmount() const {
  if (cutting != Cutting::Counts)
    return double(blockElements()) * double(elementBytes());
  return double(counted->unitElements()) / double(counted->unit) * double(elementBytes());
}

void PairBlocks::cut(int64_t morePieces, int64_t moreParts) {
  pieces = morePieces;
  parts = moreParts;
  if (counted) {
    in = counted->in;
    out = counted->out;
    return;
  }
  auto view = [&](Value window, MemRefType type, std::optional<int64_t> dim) {
    bool flat = cutting == Cutting::Flat || cutting == Cutting::Whole;
    SmallVector<DimAttr> dims;
    if (cutting != Cutting::Whole)
      dims = chunkDims(s, c.axes, flat ? type.getNumElements() : type.getDimSize(*dim));
    int64_t granule = flat ? flatGranule(type) : 1;
    if (cutting != Cutting::None)
      dims.push_back(s.freeDim(pieces, granule));
    if (parts > 1)
      dims.push_back(s.freeDim(parts, granule));
    return s.reindex(window, flat ? std::nullopt : dim, dims);
  };
  in = view(c.in, c.inType, c.flow.inCut);
  out = view(c.out, c.outType, c.flow.outCut);
}

Value PairBlocks::unitOf(unsigned from, unsigned to, Value part) {
  return s.div(s.mul(part, counted->rows(from, to)), pieces * parts);
}

std::pair<Value, Value> PairBlocks::unitsOf(unsigned from, unsigned to, Index index) {
  Value first = s.mul(index.piece, parts);
  if (index.part)
    first = s.add(first, index.part);
  Value begin = unitOf(from, to, first);
  return {begin, s.sub(unitOf(from, to, s.add(first, index.part ? 1 : parts)), begin)};
}

SmallVector<Value> PairBlocks::prefix(unsigned from, unsigned to, bool input) {
  return cutting == Cutting::Whole ? SmallVector<Value>()
                                   : members.point(s.constant(input ? to : from));
}

Value PairBlocks::box(Value view, unsigned from, unsigned to, bool input, Index index) {
  if (counted) {
    int64_t base = input ? counted->sentFrom(from, to) : counted->landsAt(from, to);
    auto [first, count] = unitsOf(from, to, index);
    return s.interval(view, s.add(first, base), count);
  }
  SmallVector<Value> indices = prefix(from, to, input);
  if (cutting != Cutting::None)
    indices.push_back(index.piece);
  if (index.part)
    indices.push_back(index.part);
  return s.range(view, indices);
}

Value PairBlocks::box(Value view, unsigned from, unsigned to, bool input, int64_t first,
                      int64_t count) {
  if (counted) {
    int64_t base = input ? counted->sentFrom(from, to) : counted->landsAt(from, to);
    int64_t rows = counted->rows(from, to);
    int64_t begin = first * rows / pieces, end = (first + count) * rows / pieces;
    return s.interval(view, s.constant(base + begin), s.constant(end - begin));
  }
  SmallVector<Value> indices = prefix(from, to, input);
  if (count == pieces)
    return s.range(view, indices);
  return RangeOp::create(s.builder, s.loc, RangeType::get(s.builder.getContext()), view, indices,
                         s.constant(first), s.constant(count), Value());
}

Value PairBlocks::scratch(StringRef name, int64_t places) {
  if (counted)
    return slotWindow(s, c, name, places * placeUnits(), counted->unitElements());
  // As a piece, it is cut into parts, each with room for the largest.
  int64_t part = placeUnits() / parts * unitElements();
  Value window = s.scratch((c.name + "." + name).str(),
                           MemRefType::get({places * parts * part}, c.inType.getElementType()));
  SmallVector<DimAttr> dims{s.freeDim(places, std::max<int64_t>(1, part * parts))};
  if (parts > 1)
    dims.push_back(s.freeDim(parts, std::max<int64_t>(1, part)));
  return s.reindex(window, std::nullopt, dims);
}

int64_t PairBlocks::placeUnits() const {
  return int64_t(llvm::divideCeil(mostUnits(), pieces * parts)) * parts;
}

Value PairBlocks::place(Value memory, unsigned from, unsigned to, Value number, Index index) {
  if (counted)
    return s.interval(memory, s.mul(number, placeUnits()), unitsOf(from, to, index).second);
  SmallVector<Value> indices{number};
  if (index.part)
    indices.push_back(index.part);
  return s.range(memory, indices);
}

void PairBlocks::start() {
  if (counted) {
    counted->start();
    given = counted->given;
    outFree = counted->outFree;
    return;
  }
  outFree = c.outFree;
  // Members of a permute are numbers, so the value is named by numbers.
  given = cutting == Cutting::Whole
              ? s.source(s.range(in), c.name, members.point(members.own()), {}, c.inReady, c.axes)
              : s.source(s.range(in), c.name, ownPoint(s, c.axes), {}, c.inReady);
}

Value PairBlocks::keepOwn(ScheduleBuilder &keeper) {
  if (counted)
    return counted->keepOwn(keeper);
  auto keep = [&](ValueRange at) {
    return keeper.copy(s.range(in, at), s.range(out, at), Value(), joined(given, outFree),
                       keeper.controlLane(), "keep own");
  };
  if (cutting != Cutting::Whole)
    return keep(ownPoint(s, c.axes));
  Value kept;
  for (auto [from, to] : llvm::enumerate(targetsOf(c, n)))
    if (int64_t(from) == to) {
      Value before = kept ? kept : given;
      kept = s.branch(
          s.equal(members.own(), s.constant(from)), [&] { return keep({}); },
          [&] { return before; });
    }
  return kept;
}

SmallVector<Value> PairBlocks::demand(ValueRange ready) {
  if (counted)
    return {counted->demand(ready)};
  if (cutting != Cutting::Whole)
    return {demandExchanged(s, c, out, ready)};
  SmallVector<std::pair<int64_t, int64_t>> back;
  for (auto [from, to] : llvm::enumerate(targetsOf(c, n)))
    if (to >= 0)
      back.push_back({to, int64_t(from)});
  Value source = members.partner(back);
  auto holds = [&] {
    return s.sink(s.range(out), c.name, members.point(source), {}, ready, c.axes);
  };
  if (!c.zero)
    return {holds()};
  return {s.branch(s.less(s.constant(-1), source), holds, [&] { return c.zero(s, outFree); })};
}

std::vector<uint64_t> ctran::routedAmounts(const CollectiveSpec &c, size_t n) {
  std::vector<uint64_t> amounts(n * n, 1);
  switch (PairBlocks::cuttingOf(c)) {
  case PairBlocks::Cutting::Counts:
    for (auto [amount, count] : llvm::zip(amounts, c.flow.counts.getValues<int64_t>()))
      amount = uint64_t(count);
    break;
  case PairBlocks::Cutting::Whole:
    std::fill(amounts.begin(), amounts.end(), 0);
    for (auto [from, to] : llvm::enumerate(PairBlocks::targetsOf(c, int64_t(n))))
      if (to >= 0)
        amounts[from * n + size_t(to)] = 1;
    break;
  default:
    break;
  }
  return amounts;
}

unsigned ctran::routedShares(const CollectiveSpec &c) {
  return PairBlocks::cuttingOf(c) == PairBlocks::Cutting::None ? 1 : topology::maxRoutedShares;
}

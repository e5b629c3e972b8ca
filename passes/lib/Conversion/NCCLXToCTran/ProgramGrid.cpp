//===- ProgramGrid.cpp - The axes of a function's program -------------------------------------===//
//
// A group is a set of digits of the rank number, in mixed radix: an axis is one of them, and listed
// groups are taken apart into such digits. Digits that begin or end at different places cut each
// other; as long as every place divides the next, the pieces between them are the program's axes. A
// collective whose digits would cross those before it gets none; listed groups come last.
//
//===----------------------------------------------------------------------------------------===//
#include "ncclx/Conversion/ProgramGrid.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace mlir::ncclx;

namespace {

struct Digit {
  int64_t size, stride;
};
using Digits = SmallVector<Digit, 2>;

SmallVector<ProgramGrid::Axis> axesOfGrid(GridOp grid) {
  SmallVector<ProgramGrid::Axis> axes;
  int64_t stride = grid.getNumRanks();
  for (auto [name, size] : llvm::zip(grid.getAxes().getAsValueRange<StringAttr>(), grid.getSizes()))
    axes.push_back({name.str(), size, stride /= size});
  return axes;
}

/// The digits, outermost first, whose values are what `ranks` are behind their first one.
std::optional<Digits> digitsOfOffsets(ArrayRef<int64_t> offsets) {
  Digits inner;
  SmallVector<int64_t> rest(offsets);
  while (rest.size() > 1) {
    int64_t stride = rest[1];
    size_t run = 1;
    while (run < rest.size() && rest[run] == int64_t(run) * stride)
      ++run;
    if (stride <= 0 || rest.size() % run)
      return std::nullopt;
    SmallVector<int64_t> outer;
    for (size_t i = 0; i < rest.size(); i += run) {
      for (size_t j = 0; j < run; ++j)
        if (rest[i + j] != rest[i] + int64_t(j) * stride)
          return std::nullopt;
      outer.push_back(rest[i]);
    }
    inner.push_back({int64_t(run), stride});
    rest = std::move(outer);
  }
  std::reverse(inner.begin(), inner.end());
  return inner;
}

/// Nothing where the groups are not those of digits. Neighbours are one digit, but where a written
/// schedule has the axes one by one.
std::optional<Digits> digitsOf(Operation *op, const NamedGroups &named) {
  Digits digits;
  bool apart = op->hasAttr(NCCLXDialect::getScheduleAttrName());
  if (!named.groups) {
    SmallVector<ProgramGrid::Axis> axes = axesOfGrid(named.grid);
    for (StringRef name : named.axes.getAsValueRange<StringAttr>())
      for (const ProgramGrid::Axis &axis : axes) {
        if (axis.name != name || axis.size == 1)
          continue;
        if (!apart && !digits.empty() && digits.back().stride == axis.stride * axis.size)
          digits.back() = {digits.back().size * axis.size, axis.stride};
        else
          digits.push_back({axis.size, axis.stride});
      }
    return digits;
  }
  SmallVector<int64_t> first;
  for (auto group : named.groups.getAsRange<DenseI64ArrayAttr>()) {
    SmallVector<int64_t> offsets;
    for (int64_t rank : group.asArrayRef())
      offsets.push_back(rank - group[0]);
    if (first.empty()) {
      std::optional<Digits> found = digitsOfOffsets(offsets);
      if (!found)
        return std::nullopt;
      digits = *found;
      first = offsets;
    }
    if (offsets != first)
      return std::nullopt;
    for (const Digit &digit : digits)
      if (group[0] / digit.stride % digit.size)
        return std::nullopt;
  }
  return digits;
}

bool goesRoundSeveral(Operation *op, const NamedGroups &named) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective && !named.groups && named.axes.size() > 1 && collective.getAlgorithm() &&
         goesRound(*collective.getAlgorithm()) && !getRoot(collective);
}

} // namespace

bool mlir::ncclx::goesRound(Algorithm algorithm) {
  return algorithm == Algorithm::Ring || algorithm == Algorithm::Bruck;
}

FailureOr<ProgramGrid> ProgramGrid::of(FunctionOpInterface function) {
  ProgramGrid result;
  llvm::SetVector<GridOp> grids;
  SmallVector<std::optional<Digits>> spanned, listed;
  Operation *first = nullptr;
  bool isOwn = true;
  WalkResult walked = function->walk([&](Operation *op) {
    std::optional<NamedGroups> named = getNamedGroups(op);
    if (!named)
      return WalkResult::advance();
    if (!first) {
      first = op;
      result.ranks = named->grid.getNumRanks();
    }
    if (named->grid.getNumRanks() != result.ranks) {
      InFlightDiagnostic diag = op->emitOpError("runs on ")
                                << named->grid.getNumRanks() << " ranks, but another collective of "
                                << "this function on " << result.ranks;
      diag.attachNote(first->getLoc()) << "the other is here";
      return WalkResult::interrupt();
    }
    grids.insert(named->grid);
    (named->groups ? listed : spanned).push_back(digitsOf(op, *named));
    isOwn &= !goesRoundSeveral(op, *named);
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  if (grids.size() == 1 && listed.empty() && isOwn) {
    result.list = axesOfGrid(grids.front());
    return result;
  }
  std::set<int64_t> places = {1, result.ranks};
  bool hasEmpty = false;
  for (const auto &digits : llvm::concat<std::optional<Digits>>(spanned, listed)) {
    if (!digits)
      continue;
    std::set<int64_t> more = places;
    for (const Digit &digit : *digits)
      more.insert({digit.stride, digit.stride * digit.size});
    auto cross = [](int64_t a, int64_t b) { return b % a != 0; };
    if (std::adjacent_find(more.begin(), more.end(), cross) != more.end())
      continue;
    hasEmpty |= digits->empty();
    places = std::move(more);
  }
  auto nameOf = [&](int64_t size, int64_t stride) {
    for (GridOp grid : grids)
      for (const Axis &axis : axesOfGrid(grid))
        if (axis.size == size && axis.stride == stride &&
            llvm::none_of(result.list, [&](const Axis &a) { return a.name == axis.name; }))
          return axis.name;
    return "ranks by " + std::to_string(stride);
  };
  if (hasEmpty || places.size() == 1) // a group of one has an axis, too
    result.list.push_back({"alone", 1, result.ranks});
  for (auto it = places.rbegin(); it != places.rend() && std::next(it) != places.rend(); ++it) {
    int64_t stride = *std::next(it), size = *it / stride;
    result.list.push_back({nameOf(size, stride), size, stride});
  }
  return result;
}

SmallVector<unsigned> ProgramGrid::axesOf(Operation *op) const {
  std::optional<NamedGroups> named = getNamedGroups(op);
  SmallVector<unsigned> axes;
  auto add = [&](int64_t size, int64_t stride) {
    for (auto [i, axis] : llvm::enumerate(list))
      if (axis.size > 1 && axis.stride >= stride && axis.stride < stride * size)
        axes.push_back(i);
  };
  // The function's own grid keeps its axes of size one, which span nothing but a group of one.
  if (!named->groups &&
      llvm::equal(list, axesOfGrid(named->grid), [](const Axis &a, const Axis &b) {
        return a.name == b.name && a.size == b.size;
      })) {
    for (StringRef name : named->axes.getAsValueRange<StringAttr>())
      axes.push_back(llvm::find_if(list, [&](const Axis &a) { return a.name == name; }) -
                     list.begin());
    unsigned one = axes.front();
    llvm::erase_if(axes, [&](unsigned axis) { return list[axis].size == 1; });
    return axes.empty() ? SmallVector<unsigned>{one} : axes;
  }
  std::optional<Digits> digits = digitsOf(op, *named);
  if (!digits)
    return {};
  auto isPlace = [&](int64_t place) {
    return place == ranks ||
           llvm::any_of(list, [&](const Axis &a) { return a.size > 1 && a.stride == place; });
  };
  for (const Digit &digit : *digits) {
    if (!isPlace(digit.stride) || !isPlace(digit.stride * digit.size))
      return {};
    add(digit.size, digit.stride);
  }
  if (axes.empty())
    axes.push_back(0);
  return axes;
}

/// Members of one level, where a tier is large and its size has such a divisor: a member then has
/// few peers, and moves as much.
static constexpr int64_t mostOfLevel = 16;

void ProgramGrid::cutBy(const topology::Tiers &tiers) {
  if (tiers.list.size() < 2) // ranks are told one by one
    return;
  SmallVector<Axis> cut;
  auto add = [&](Axis axis) {
    SmallVector<Axis> inner; // innermost first
    std::string name = axis.name;
    while (axis.size > mostOfLevel) {
      int64_t size = mostOfLevel;
      while (axis.size % size)
        --size;
      if (size == 1)
        break;
      inner.push_back({axis.name, size, axis.stride});
      axis.size /= size;
      axis.stride *= size;
      axis.name = name + " / " + std::to_string(axis.stride);
    }
    cut.push_back(axis);
    cut.append(inner.rbegin(), inner.rend());
  };
  for (Axis axis : list) {
    std::string name = axis.name;
    for (const topology::Tier &tier : tiers.list)
      if (tier.stride > axis.stride && tier.stride < axis.stride * axis.size &&
          tier.stride % axis.stride == 0 && axis.stride * axis.size % tier.stride == 0) {
        add({name + " by " + tier.name, axis.stride * axis.size / tier.stride, tier.stride});
        axis.size = tier.stride / axis.stride;
      }
    add(axis);
  }
  list = std::move(cut);
}

std::optional<std::string> ProgramGrid::axesByTier(Operation *op, const topology::Tiers &tiers,
                                                   SmallVectorImpl<OfTier> &result) const {
  if (tiers.list.size() < 2)
    return "the machine has no tiers: " + tiers.why;
  int64_t members = 1; // of the last level
  for (unsigned number : axesOf(op)) {
    const Axis &axis = list[number];
    auto tier = llvm::find_if(tiers.list, [&](const topology::Tier &t) {
      return axis.stride >= t.stride && axis.stride * axis.size <= t.stride * t.size;
    });
    if (tier == tiers.list.end())
      return llvm::formatv("axis '{0}' of {1} ranks, {2} apart, is not cut by blocks of the tiers",
                           axis.name, axis.size, axis.stride)
          .str();
    bool isNew = result.empty() || result.back().tier < &*tier;
    if (!isNew && result.back().tier != &*tier)
      return llvm::formatv("its groups list {0}s before {1}s", result.back().tier->name, tier->name)
          .str();
    members = isNew ? axis.size : members * axis.size;
    if (isNew || members > mostOfLevel) {
      result.push_back({&*tier, {}});
      members = axis.size;
    }
    result.back().axes.push_back(number);
  }
  if (result.empty() || result.front().tier == result.back().tier)
    return std::string("its groups lie on one tier");
  return std::nullopt;
}

//===- Frame.cpp - Boxes and slots of a schedule, as numbers ------------------===//

#include "Frame.h"

#include "ncclx/Machine/Trace.h"

#include <fmt/format.h>

namespace mlir::ctran::machine {

/// Most ranks, slots of one declaration, or indices of a window's dimension.
static constexpr int64_t limit = int64_t(1) << 31;

static std::string checkDims(const std::vector<Dim> &dims, const Grid &grid) {
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim &dim = dims[i];
    if (dim.size < 1 || dim.size >= limit)
      return fmt::format("dimension {} has size {}, expected 1 to {}", i, dim.size, limit - 1);
    if (dim.granule < 1)
      return fmt::format("dimension {} has granule {}, expected at least 1", i, dim.granule);
    if (dim.axis && *dim.axis >= grid.sizes.size())
      return fmt::format("dimension {} is bound to axis {}, but the grid has {} axes", i, *dim.axis,
                         grid.sizes.size());
    if (dim.axis && grid.sizes[*dim.axis] != dim.size)
      return fmt::format("dimension {} has size {}, but its axis {} has size {}", i, dim.size,
                         *dim.axis, grid.sizes[*dim.axis]);
  }
  return {};
}

Frame::Frame(const Schedule &schedule, bool representative)
    : schedule(schedule), representative(representative) {
  const Grid &grid = schedule.grid;
  int64_t n = 1;
  strides.assign(grid.sizes.size(), 1);
  for (size_t i = grid.sizes.size(); i-- > 0;) {
    if (grid.sizes[i] < 1 || grid.sizes[i] >= limit || (n *= grid.sizes[i]) >= limit) {
      invalid = fmt::format("axis {} of the grid has size {}: the grid has to have 1 to {} ranks",
                            i, grid.sizes[i], limit - 1);
      return;
    }
    if (i > 0)
      strides[i - 1] = static_cast<uint32_t>(n);
  }
  ranks = static_cast<uint32_t>(n);
  points.resize(knownPoints * strides.size());
  pointRank.assign(knownPoints, ~0u);

  for (const CollectiveInfo &collective : schedule.collectives) {
    auto name = llvm::find(schedule.valueNames, collective.name);
    collectiveValue.push_back(
        name == schedule.valueNames.end() ? -1 : name - schedule.valueNames.begin());
  }
  std::map<std::tuple<int64_t, Partition, int64_t>, uint32_t> ids;
  for (const Window &window : schedule.windows) {
    if (window.spaces.empty() || window.generations < 1) {
      invalid = fmt::format("window '{}' needs a space and at least one generation", window.name);
      return;
    }
    auto &perSpace = layoutIds.emplace_back();
    for (const Space &space : window.spaces) {
      if (std::string bad = checkDims(space.dims, grid); !bad.empty()) {
        invalid = fmt::format("window '{}': {}", window.name, bad);
        return;
      }
      if (space.resident && (space.dims.empty() || !space.dims.front().axis)) {
        invalid = fmt::format("window '{}': a resident space needs a first dimension bound to an "
                              "axis",
                              window.name);
        return;
      }
      auto &perDim = perSpace.emplace_back();
      for (const Dim &dim : space.dims)
        perDim.push_back(
            ids.try_emplace({dim.size, dim.partition, dim.granule}, ids.size() + 1).first->second);
    }
  }
  for (const Slots &slots : schedule.slots) {
    std::string bad = checkDims(slots.dims, grid);
    int64_t count = 1;
    for (const Dim &dim : slots.dims)
      if (bad.empty() && (count *= dim.size) >= limit)
        bad = fmt::format("there are more than {} of them", limit - 1);
    if (bad.empty() && (slots.writers < 1 || slots.generations < 1))
      bad = "they need at least one writer and one generation";
    if (!bad.empty()) {
      invalid = fmt::format("slots '{}': {}", slots.name, bad);
      return;
    }
    slotCount.push_back(count);
  }
}

std::string Frame::validate() const { return invalid; }

void Frame::fillPoint(uint32_t rank) const {
  size_t place = rank % knownPoints;
  pointRank[place] = rank;
  for (size_t i = 0; i < strides.size(); ++i)
    points[place * strides.size() + i] =
        rank / strides[i] % static_cast<uint32_t>(schedule.grid.sizes[i]);
}

uint32_t Frame::minus(uint32_t a, uint32_t b) const {
  if (b == 0)
    return a;
  uint32_t out = 0;
  for (size_t i = 0; i < strides.size(); ++i)
    out += static_cast<uint32_t>(
               wrapped(coordinate(a, i) - coordinate(b, i), schedule.grid.sizes[i])) *
           strides[i];
  return out;
}

uint32_t Frame::target(const Peer &peer, uint32_t me) const {
  if (!peer.remote)
    return me;
  if (peer.absolute)
    return static_cast<uint32_t>(peer.rank);
  uint32_t out = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    int64_t n = schedule.grid.sizes[i], x = coordinate(me, i);
    if (int64_t by = peer.shift[i])
      x = wrapped(x + wrapped(by, n), n);
    out += static_cast<uint32_t>(x) * strides[i];
  }
  return out;
}

Resolve Frame::index(const Index &index, const Dim &dim, uint32_t me, uint32_t owner,
                     int64_t &out) const {
  if (!index.own) {
    if (representative && dim.axis) {
      why = "a constant index in a dimension that is bound to an axis";
      return Resolve::Asymmetric;
    }
    out = index.value;
  } else {
    if (representative && (!dim.axis || *dim.axis != index.axis)) {
      why = "the value of a coordinate is used as an index, in a dimension that is not bound to "
            "its axis";
      return Resolve::Asymmetric;
    }
    int64_t n = schedule.grid.sizes[index.axis];
    int64_t base = coordinate(me, index.axis);
    if (representative)
      base -= coordinate(owner, index.axis);
    out = wrapped(base + index.value, n);
  }
  if (out < 0 || out >= dim.size) {
    why = fmt::format("index {} is outside a dimension of size {}", out, dim.size);
    return Resolve::Invalid;
  }
  return Resolve::Ok;
}

Resolve Frame::resolve(const Access &access, uint32_t me, Box &box) const {
  if (representative && access.peer.remote && access.peer.absolute) {
    why = "a peer given as a rank number";
    return Resolve::Asymmetric;
  }
  box.owner = target(access.peer, me);
  box.window = access.window;
  box.space = access.space;
  box.path.clear();
  box.first = 0;
  box.count = -1;
  box.ownPiece = false;
  const Space &space = schedule.windows[access.window].spaces[access.space];
  for (size_t i = 0; i < access.path.size(); ++i)
    if (Resolve r = index(access.path[i], space.dims[i], me, box.owner, box.path.emplace_back(0));
        r != Resolve::Ok)
      return r;
  if (access.count == 0) {
    box.count = 0;
    return Resolve::Ok;
  }
  if (access.count > 0) {
    const Dim &dim = space.dims[access.path.size()];
    if (Resolve r = index(access.first, dim, me, box.owner, box.first); r != Resolve::Ok)
      return r;
    if (access.count == 1) {
      box.path.push_back(box.first);
      box.first = 0;
    } else if (access.count != dim.size) {
      // Somewhere an interval that starts at the own coordinate wraps around.
      if (representative && dim.axis) {
        why = fmt::format("an interval of {} indices from the own coordinate leaves a dimension of "
                          "size {} on some ranks",
                          access.count, dim.size);
        return Resolve::Invalid;
      }
      if (box.first + access.count > dim.size) {
        why = fmt::format("the interval [{}, {}) leaves a dimension of size {}", box.first,
                          box.first + access.count, dim.size);
        return Resolve::Invalid;
      }
      box.count = access.count;
    } else {
      box.first = 0;
    }
  }
  if (!space.resident)
    return Resolve::Ok;
  // What a rank stores of a resident space is its own piece and fills the window: the box is the
  // whole window, so that an access through another space meets the same bytes.
  bool whole = box.path.empty() && access.count < 0;
  bool own = whole || (box.path.size() == space.dims.size() && box.count < 0);
  for (size_t i = 0; i < box.path.size() && own; ++i)
    own = box.path[i] == (representative ? 0 : coordinate(box.owner, *space.dims[i].axis));
  if (!own) {
    why = "only the own piece of a resident window has storage";
    return Resolve::Invalid;
  }
  box.ownPiece = whole;
  box.residentSpace = access.space;
  box.space = 0;
  box.path.clear();
  return Resolve::Ok;
}

Resolve Frame::resolve(const SlotRef &ref, uint32_t me, SlotRange &range) const {
  if (representative && ref.peer.remote && ref.peer.absolute) {
    why = "a peer given as a rank number";
    return Resolve::Asymmetric;
  }
  range.owner = target(ref.peer, me);
  range.slots = ref.slots;
  range.begin = 0;
  range.count = 1;
  const std::vector<Dim> &dims = schedule.slots[ref.slots].dims;
  size_t depth = 0;
  for (; depth < ref.path.size(); ++depth) {
    int64_t i = 0;
    if (Resolve r = index(ref.path[depth], dims[depth], me, range.owner, i); r != Resolve::Ok)
      return r;
    range.begin = range.begin * dims[depth].size + i;
  }
  if (ref.count >= 0) {
    const Dim &dim = dims[depth++];
    int64_t first = 0;
    if (ref.count > 0 && ref.count < dim.size) {
      if (Resolve r = index(ref.first, dim, me, range.owner, first); r != Resolve::Ok)
        return r;
      if (representative && dim.axis && ref.count > 1) {
        why = "a range of slots that starts at the own coordinate";
        return Resolve::Invalid;
      }
    }
    if (first + ref.count > dim.size) {
      why = fmt::format("the slots [{}, {}) leave a dimension of size {}", first, first + ref.count,
                        dim.size);
      return Resolve::Invalid;
    }
    range.begin = range.begin * dim.size + first;
    range.count = ref.count;
  }
  for (; depth < dims.size(); ++depth) {
    range.begin *= dims[depth].size;
    range.count *= dims[depth].size;
  }
  return Resolve::Ok;
}

int64_t Frame::shiftSlot(unsigned slots, int64_t index, uint32_t d) const {
  const std::vector<Dim> &dims = schedule.slots[slots].dims;
  int64_t out = 0, stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    int64_t n = dims[i].size, x = index % n;
    index /= n;
    if (dims[i].axis)
      x = wrapped(x - coordinate(d, *dims[i].axis), n);
    out += x * stride;
    stride *= n;
  }
  return out + index * stride;
}

// Every op of every run is checked, so what is good costs no string.

template <typename... T>
static bool refuse(std::string &bad, fmt::format_string<T...> text, T &&...parts) {
  bad = fmt::format(text, std::forward<T>(parts)...);
  return false;
}

bool Frame::checkPeer(const Peer &peer, std::string &bad) const {
  if (!peer.remote)
    return true;
  if (peer.absolute && (peer.rank < 0 || peer.rank >= ranks))
    return refuse(bad, "peer {} is not a rank of {}", peer.rank, ranks);
  if (!peer.absolute && peer.shift.size() != strides.size())
    return refuse(bad, "a peer has {} displacements, but the grid has {} axes", peer.shift.size(),
                  strides.size());
  return true;
}

static bool checkIndices(llvm::ArrayRef<Index> path, size_t axes, std::string &bad) {
  for (const Index &index : path)
    if (index.own && index.axis >= axes)
      return refuse(bad, "an index uses axis {}, but the grid has {} axes", index.axis, axes);
  return true;
}

bool Frame::checkAccess(const Access &access, std::string &bad) const {
  if (access.window >= schedule.windows.size())
    return refuse(bad, "window {} of {}", access.window, schedule.windows.size());
  const Window &window = schedule.windows[access.window];
  if (access.space >= window.spaces.size())
    return refuse(bad, "space {} of window '{}', which has {}", access.space, window.name,
                  window.spaces.size());
  const std::vector<Dim> &dims = window.spaces[access.space].dims;
  bool interval = access.count >= 0;
  if (access.path.size() + interval > dims.size())
    return refuse(bad, "a box of window '{}' has {} indices, but the space has {} dimensions",
                  window.name, access.path.size() + interval, dims.size());
  if (!checkIndices(access.path, strides.size(), bad) ||
      (interval && !checkIndices(access.first, strides.size(), bad)))
    return false;
  if (interval && access.count > dims[access.path.size()].size)
    return refuse(bad, "an interval of {} indices is longer than its dimension of window '{}'",
                  access.count, window.name);
  if (access.peer.remote && window.peers == Window::Peers::None)
    return refuse(bad, "window '{}' is accessed in a peer's memory, but no peer may view it",
                  window.name);
  return checkPeer(access.peer, bad);
}

bool Frame::checkSlot(const SlotRef &ref, std::string &bad) const {
  if (ref.slots >= schedule.slots.size())
    return refuse(bad, "slots {} of {}", ref.slots, schedule.slots.size());
  const Slots &slots = schedule.slots[ref.slots];
  bool interval = ref.count >= 0;
  if (ref.path.size() + interval > slots.dims.size())
    return refuse(bad, "slots '{}' have {} dimensions, but {} indices are given", slots.name,
                  slots.dims.size(), ref.path.size() + interval);
  return checkIndices(ref.path, strides.size(), bad) &&
         (!interval || checkIndices(ref.first, strides.size(), bad)) && checkPeer(ref.peer, bad);
}

std::string Frame::check(const Op &op) const {
  std::string bad;
  (void)checkOp(op, bad);
  return bad;
}

bool Frame::checkOp(const Op &op, std::string &bad) const {
  if (!op.token)
    return refuse(bad, "the op has no token");
  for (const TokenRef &token : op.after)
    if (!token)
      return refuse(bad, "the op waits for no token");
  for (const auto *list : {&op.reads, &op.writes})
    for (const Access &access : *list)
      if (!checkAccess(access, bad))
        return false;
  if (op.slot && !checkSlot(*op.slot, bad))
    return false;
  size_t reads = op.reads.size(), writes = op.writes.size();
  auto expect = [&](bool good, const char *what) {
    return good || refuse(bad, "a {} needs {}", toString(op.kind), what);
  };
  switch (op.kind) {
  case OpKind::Copy:
    return expect(reads == 1 && writes >= 1, "one source and a destination");
  case OpKind::Reduce:
    return expect(reads >= 1 && writes >= 1, "a source and a destination");
  case OpKind::Signal:
    return expect(op.slot.has_value() && !reads && !writes, "a slot and no memory");
  case OpKind::Wait:
    return expect(op.slot.has_value() && !op.slot->peer.remote && !reads && !writes,
                  "a slot of its own rank and no memory");
  case OpKind::Count:
    return expect(reads == 1 && !writes && op.countMax >= 0 && !op.slot,
                  "one source, no destination and a maximum");
  case OpKind::Source:
  case OpKind::Sink:
    if (!expect(reads == 1 && !writes && !op.slot && !op.reads[0].peer.remote,
                "one box of its own rank"))
      return false;
    if (op.label.name >= schedule.valueNames.size())
      return refuse(bad, "value name {} of {}", op.label.name, schedule.valueNames.size());
    for (const auto *axes : {&op.label.summed, &op.label.shared})
      for (unsigned axis : *axes)
        if (axis >= strides.size() || axis >= 32)
          return refuse(bad, "a label names axis {}, but the grid has {} axes", axis,
                        strides.size());
    if (!op.label.among.empty() && (representative || op.label.summed.size() != strides.size()))
      return refuse(bad, "contributors are listed by rank, but one rank stands for all or not all "
                         "axes are summed");
    return checkIndices(op.label.path, strides.size(), bad);
  case OpKind::Compute:
    return expect(!op.slot || !op.writes.empty(), "a destination, as it has a notify");
  case OpKind::Flush:
  case OpKind::Entry:
  case OpKind::Exit:
  case OpKind::Nop:
    return expect(!reads && !writes && !op.slot, "neither memory nor a slot");
  }
  return refuse(bad, "unknown kind of op");
}

std::string Frame::describe(const Box &box) const {
  const Window &window = schedule.windows[box.window];
  std::string out = window.name + "[";
  const std::vector<Dim> &all = dims(box);
  for (size_t i = 0; i < box.path.size(); ++i) {
    out += i ? ", " : "";
    bool relative = representative && i < all.size() && all[i].axis;
    out += relative ? fmt::format("own+{}", box.path[i]) : fmt::format("{}", box.path[i]);
  }
  if (box.count >= 0)
    out += fmt::format("{}{}..{}", box.path.empty() ? "" : ", ", box.first, box.first + box.count);
  return out + "]";
}

std::string Frame::describeSlot(unsigned slots, int64_t index) const {
  const std::vector<Dim> &dims = schedule.slots[slots].dims;
  std::string out;
  for (size_t i = dims.size(); i-- > 0;) {
    bool relative = representative && dims[i].axis;
    out = fmt::format("{}{}{}{}", relative ? "own+" : "", index % dims[i].size,
                      out.empty() ? "" : ", ", out);
    index /= dims[i].size;
  }
  return schedule.slots[slots].name + "[" + out + "]";
}

} // namespace mlir::ctran::machine

//===- Memory.cpp - The memory of one process, as boxes -----------------------===//

#include "Memory.h"

namespace mlir::ctran::machine {

static void keepLatest(std::vector<End> &ends, const End &end) {
  for (End &known : ends)
    if (known.key == end.key && end.key != KeyTable::never) {
      if (known.count < end.count)
        known = end;
      return;
    }
  ends.push_back(end);
}

/// Keeps the latest read of each key.
template <typename Ends> static void record(Ends &ends, const End &end) {
  for (End &known : ends)
    if (known.key == end.key) {
      known = end;
      return;
    }
  ends.push_back(end);
}

static bool before(const End &end, const Clock &clock) {
  return end.key != KeyTable::never && clock[end.key] >= end.count;
}

WindowMemory::Node &WindowMemory::find(Node &from, const Box &box, size_t depth,
                                       llvm::ArrayRef<int64_t> path) {
  Node *node = &from;
  for (int64_t index : path) {
    if (!node->kids) {
      node->kids = std::make_unique<Kids>();
      node->kids->at.resize(frame.dims(box)[depth].size);
    }
    std::unique_ptr<Node> &kid = node->kids->at[index];
    if (!kid) {
      kid = std::make_unique<Node>();
      kid->value = values.child(node->value, box, depth, index);
      kid->write = node->write;
      kid->written = node->written;
      kid->reads = node->reads;
      ++node->kids->present;
    }
    node = kid.get();
    ++depth;
  }
  return *node;
}

template <typename Fn> bool WindowMemory::leaves(Node &node, Path &sub, Fn visit) {
  if (!node.kids)
    return visit(sub, node, false);
  for (size_t i = 0; i < node.kids->at.size(); ++i) {
    if (!node.kids->at[i])
      continue;
    sub.push_back(i);
    bool more = leaves(*node.kids->at[i], sub, visit);
    sub.pop_back();
    if (!more)
      return false;
  }
  if (node.kids->present < static_cast<int64_t>(node.kids->at.size()))
    return visit(sub, node, true);
  return true;
}

ValueRef WindowMemory::collapse(const Node &node, const Box &box, size_t depth) const {
  if (!node.kids)
    return node.value;
  const Dim &dim = frame.dims(box)[depth];
  // A node that was only split, by reads, still is what it was.
  bool same = node.value != nullptr;
  for (int64_t i = 0; i < dim.size && same; ++i)
    if (const auto &kid = node.kids->at[i]) {
      ValueRef value = collapse(*kid, box, depth + 1);
      same = value && sameValue(*value, *values.child(node.value, box, depth, i));
    }
  if (same)
    return node.value;
  if (node.kids->present < dim.size)
    return nullptr;
  Component last{frame.representative && dim.axis ? static_cast<int32_t>(*dim.axis) : -1,
                 frame.layoutOf(box.window, box.space, depth), 0};
  Value *whole = nullptr;
  ValueRef owner;
  for (int64_t i = 0; i < dim.size; ++i) {
    ValueRef value = collapse(*node.kids->at[i], box, depth + 1);
    last.index = i;
    if (!value || value->startOnly || value->label.empty() || !(value->label.back() == last))
      return nullptr;
    if (!whole) {
      whole = new Value(*value);
      owner = whole;
      whole->label.pop_back();
      continue;
    }
    if (value->run != whole->run || value->name != whole->name || value->summed != whole->summed ||
        value->contributors != whole->contributors || !sameCombination(*value, *whole) ||
        value->label.size() != whole->label.size() + 1 ||
        !std::equal(whole->label.begin(), whole->label.end(), value->label.begin()))
      return nullptr;
  }
  return owner;
}

bool WindowMemory::allWritten(const Node &node) const {
  if (!node.kids)
    return node.value != nullptr;
  for (const auto &kid : node.kids->at)
    if (kid ? !allWritten(*kid) : !node.value)
      return false;
  return true;
}

void WindowMemory::enter(const Box &box) {
  if (!entered) {
    entered = true;
    space = box.space;
    return;
  }
  if (box.space == space)
    return;
  // The whole of the window is the same box in every index space.
  Path sub;
  Box whole;
  whole.window = box.window;
  whole.space = space;
  ValueRef value = collapse(root, whole, 0);
  bool defined = value || allWritten(root) || mixed;
  bool scattered = !value && (root.kids || mixed);
  leaves(root, sub, [&](const Path &, Node &leaf, bool) {
    if (leaf.written)
      keepLatest(foreignWrites, leaf.write);
    for (const End &end : leaf.reads)
      keepLatest(foreignReads, end);
    return true;
  });
  root = Node();
  root.value = value;
  mixed = scattered && defined;
  space = box.space;
}

static bool isWhole(const Box &box) { return box.path.empty() && box.count < 0; }

/// `box` in the index space in use, which becomes its own unless it is the whole window; `whole`
/// holds that.
const Box &WindowMemory::inSpace(const Box &box, Box &whole) {
  if (!entered || !isWhole(box)) {
    enter(box);
    return box;
  }
  if (box.space == space)
    return box;
  whole = box;
  whole.space = space;
  return whole;
}

template <typename Fn> bool WindowMemory::eachNode(const Box &box, Fn visit) {
  if (box.count == 0)
    return true;
  Node &node = find(root, box, 0, box.path);
  if (box.count < 0)
    return visit(node, -1);
  for (int64_t i = 0; i < box.count; ++i)
    if (!visit(find(node, box, box.path.size(), {box.first + i}), i))
      return false;
  return true;
}

/// The cell `sub` below the node that eachNode calls `i`.
static Path cellOf(const Box &box, int64_t i, llvm::ArrayRef<int64_t> sub = {}) {
  Path path(box.path);
  if (i >= 0)
    path.push_back(box.first + i);
  path.append(sub.begin(), sub.end());
  return path;
}

bool WindowMemory::readNode(Node &node, const Box &box, int64_t i, const Clock &clock,
                            const End &end, bool needsValue, Refusal &refusal) {
  if (!checked)
    return true;
  Path below;
  return leaves(node, below, [&](const Path &sub, Node &leaf, bool) {
    if (needsValue && !leaf.value && !mixed && !frame.isEmpty(box)) {
      refusal = {Verdict::Undefined, cellOf(box, i, sub), {}, false, ""};
      return false;
    }
    if (leaf.written && !before(leaf.write, clock)) {
      refusal = {Verdict::Race, cellOf(box, i, sub), leaf.write.who, true, ""};
      return false;
    }
    record(leaf.reads, end);
    return true;
  });
}

bool WindowMemory::foreignOver(const Clock &clock, Refusal &refusal) const {
  for (const End &write : foreignWrites)
    if (!before(write, clock)) {
      refusal = {Verdict::Race, {}, write.who, true, " (through another index space)"};
      return false;
    }
  return true;
}

void WindowMemory::relabel(Node &node, const ValueRef &value, const Box &box, size_t depth) {
  node.value = value;
  if (!node.kids)
    return;
  for (size_t i = 0; i < node.kids->at.size(); ++i)
    if (node.kids->at[i])
      relabel(*node.kids->at[i], values.child(value, box, depth, i), box, depth + 1);
}

bool WindowMemory::label(const Box &box, const Clock &clock, const End &end, const ValueRef &value,
                         Refusal &refusal) {
  if (!read(box, clock, end, nullptr, refusal))
    return false;
  Box other;
  const Box &at = inSpace(box, other);
  Node &node = find(root, at, 0, at.path);
  ValueRef old = mixed ? nullptr : collapse(node, at, at.path.size());
  if (old && old->name >= 0 && old->name != value->name) {
    std::unique_ptr<WindowMemory> &alias = aliases[old->name];
    if (!alias)
      alias = std::make_unique<WindowMemory>(frame, values, /*checked=*/false);
    Refusal none;
    (void)alias->write(box, {}, {}, KeyTable::never, 0, {{{}, old, false}}, none);
  }
  relabel(node, value, at, at.path.size());
  if (isWhole(box))
    mixed = false;
  return true;
}

bool WindowMemory::read(const Box &box, const Clock &clock, const End &end, Pieces *out,
                        Refusal &refusal, int64_t wanted) {
  if (auto alias = out && wanted >= 0 ? aliases.find(wanted) : aliases.end();
      alias != aliases.end()) {
    // The storage's order is what the checks below are about; the value is the one of that name.
    Pieces named;
    Refusal none;
    bool known = alias->second->read(box, {}, {}, &named, none) &&
                 llvm::all_of(named, [](const Piece &piece) { return piece.value != nullptr; });
    if (known) {
      *out = std::move(named);
      out = nullptr;
    }
  }
  Box whole;
  const Box &at = inSpace(box, whole);
  if (checked && box.count != 0 && !foreignOver(clock, refusal))
    return false;
  return eachNode(at, [&](Node &node, int64_t i) {
    if (!readNode(node, at, i, clock, end, true, refusal))
      return false;
    if (!out)
      return true;
    Path below;
    // What has been written again since then is known.
    if (mixed &&
        !leaves(node, below, [](const Path &, Node &leaf, bool) { return bool(leaf.value); })) {
      refusal = {Verdict::Undecided,
                 cellOf(at, i),
                 {},
                 false,
                 ", which was written in pieces through another index space"};
      return false;
    }
    below.clear();
    if (i >= 0)
      below.push_back(i);
    if (ValueRef value = collapse(node, at, at.path.size() + below.size())) {
      out->push_back({below, value, false});
      return true;
    }
    return leaves(node, below, [&](const Path &path, Node &leaf, bool rest) {
      out->push_back({path, leaf.value, rest});
      return true;
    });
  });
}

bool WindowMemory::touch(const Box &box, const Clock &clock, const End &end, Refusal &refusal) {
  Box whole;
  const Box &at = inSpace(box, whole);
  return foreignOver(clock, refusal) && readNode(root, at, -1, clock, end, false, refusal);
}

/// The index of an interval that a piece belongs to; -1: it covers them all.
static int64_t indexOf(const Piece &piece) { return piece.sub.empty() ? -1 : piece.sub[0]; }
static bool byIndex(const Piece &a, const Piece &b) { return indexOf(a) < indexOf(b); }

/// Those of the i-th of an interval, and those that cover it all, of pieces in order.
static llvm::ArrayRef<Piece> piecesOf(llvm::ArrayRef<Piece> sorted, int64_t i) {
  if (!sorted.empty() && indexOf(sorted.front()) < 0)
    return sorted;
  auto from = llvm::partition_point(sorted, [&](const Piece &p) { return indexOf(p) < i; });
  auto to = std::find_if(from, sorted.end(), [&](const Piece &p) { return indexOf(p) != i; });
  return {from, to};
}

bool WindowMemory::write(const Box &box, const Clock &clock, const End &end, uint32_t readKey,
                         uint32_t readCount, const Pieces &pieces, Refusal &refusal) {
  Box whole;
  const Box &at = inSpace(box, whole);
  auto ownRead = [&](const End &read) { return read.key == readKey && read.count == readCount; };
  if (checked && box.count != 0) {
    if (!foreignOver(clock, refusal))
      return false;
    for (const End &read : foreignReads)
      if (!ownRead(read) && !before(read, clock)) {
        refusal = {Verdict::Race, {}, read.who, false, " (through another index space)"};
        return false;
      }
  }
  // An interval may have many: those of an index stand together, which is how a read gives them.
  Pieces sorted;
  llvm::ArrayRef<Piece> all = pieces;
  if (at.count >= 0 && !llvm::is_sorted(all, byIndex)) {
    sorted.assign(all.begin(), all.end());
    llvm::stable_sort(sorted, byIndex);
    all = sorted;
  }
  bool good = eachNode(at, [&](Node &node, int64_t i) {
    Path below;
    bool ordered = !checked || leaves(node, below, [&](const Path &sub, Node &leaf, bool) {
      if (leaf.written && !before(leaf.write, clock)) {
        refusal = {Verdict::Race, cellOf(at, i, sub), leaf.write.who, true, ""};
        return false;
      }
      for (const End &read : leaf.reads)
        if (!ownRead(read) && !before(read, clock)) {
          refusal = {Verdict::Race, cellOf(at, i, sub), read.who, false, ""};
          return false;
        }
      return true;
    });
    if (!ordered)
      return false;
    node.kids.reset();
    node.reads.clear();
    node.write = end;
    node.written = true;
    node.value = nullptr;
    return fill(node, at, i, i < 0 ? all : piecesOf(all, i), refusal);
  });
  if (good)
    aliases.clear();
  if (good && isWhole(box)) {
    foreignWrites.clear();
    foreignReads.clear();
    mixed = false;
  }
  return good;
}

/// Puts what a write brings into its node, which has just been emptied.
bool WindowMemory::fill(Node &node, const Box &box, int64_t i, llvm::ArrayRef<Piece> pieces,
                        Refusal &refusal) {
  size_t depth = box.path.size() + (i >= 0);
  const std::vector<Dim> &dims = frame.dims(box);
  for (bool rest : {true, false})
    for (const Piece &piece : pieces) {
      if (piece.rest != rest)
        continue;
      llvm::ArrayRef<int64_t> below(piece.sub);
      if (i >= 0) { // a piece belongs to one index of the interval, or covers it all
        if (below.empty()) {
          refusal = {Verdict::Undecided,
                     cellOf(box, i),
                     {},
                     false,
                     ", which is an interval and gets a value that has no pieces"};
          return false;
        }
        if (below[0] != i)
          continue;
        below = below.drop_front();
      }
      bool fits = depth + below.size() <= dims.size();
      for (size_t j = 0; fits && j < below.size(); ++j)
        fits = below[j] < dims[depth + j].size;
      if (!fits) {
        refusal = {Verdict::Undecided,
                   cellOf(box, i),
                   {},
                   false,
                   ", whose index space has no boxes for the pieces it is given"};
        return false;
      }
      find(node, box, depth, below).value = piece.value;
    }
  return true;
}

} // namespace mlir::ctran::machine

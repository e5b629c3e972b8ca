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
        value->contributors != whole->contributors ||
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

template <typename Fn> bool WindowMemory::eachNode(const Box &box, Fn visit) {
  if (box.count == 0)
    return true;
  Node &node = find(root, box, 0, box.path);
  if (box.count < 0)
    return visit(node, Path());
  for (int64_t i = 0; i < box.count; ++i)
    if (!visit(find(node, box, box.path.size(), {box.first + i}), Path{i}))
      return false;
  return true;
}

bool WindowMemory::readNode(Node &node, const Box &box, Path where, const Clock &clock,
                            const End &end, bool needsValue, Refusal &refusal) {
  return leaves(node, where, [&](const Path &at, Node &leaf, bool) {
    if (!checked)
      return true;
    if (needsValue && !leaf.value && !mixed) {
      refusal = {Verdict::Undefined, at, {}, false, ""};
      return false;
    }
    if (leaf.written && !before(leaf.write, clock)) {
      refusal = {Verdict::Race, at, leaf.write.who, true, ""};
      return false;
    }
    record(leaf.reads, end);
    return true;
  });
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
  Box at = box;
  bool whole = box.path.empty() && box.count < 0;
  if (whole && entered)
    at.space = space;
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
  if (whole)
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
  Box at = box;
  if (box.path.empty() && box.count < 0 && entered)
    at.space = space;
  else
    enter(box);
  if (checked && box.count != 0)
    for (const End &write : foreignWrites)
      if (!before(write, clock)) {
        refusal = {Verdict::Race, {}, write.who, true, " (through another index space)"};
        return false;
      }
  return eachNode(at, [&](Node &node, const Path &sub) {
    Path where = at.path;
    if (!sub.empty())
      where.push_back(at.first + sub[0]);
    if (!readNode(node, at, where, clock, end, true, refusal))
      return false;
    if (!out)
      return true;
    if (mixed) {
      refusal = {Verdict::Undecided,
                 where,
                 {},
                 false,
                 ", which was written in pieces through another index space"};
      return false;
    }
    if (ValueRef value = collapse(node, at, where.size())) {
      out->push_back({sub, value, false});
      return true;
    }
    Path below = sub;
    return leaves(node, below, [&](const Path &path, Node &leaf, bool rest) {
      out->push_back({path, leaf.value, rest});
      return true;
    });
  });
}

bool WindowMemory::touch(const Box &box, const Clock &clock, const End &end, Refusal &refusal) {
  Box at = box;
  if (entered)
    at.space = space;
  else
    enter(box);
  for (const End &write : foreignWrites)
    if (!before(write, clock)) {
      refusal = {Verdict::Race, {}, write.who, true, " (through another index space)"};
      return false;
    }
  return readNode(root, at, {}, clock, end, false, refusal);
}

bool WindowMemory::write(const Box &box, const Clock &clock, const End &end, uint32_t readKey,
                         uint32_t readCount, const Pieces &pieces, Refusal &refusal) {
  Box at = box;
  bool whole = box.path.empty() && box.count < 0;
  if (whole && entered)
    at.space = space;
  else
    enter(box);
  auto ownRead = [&](const End &read) { return read.key == readKey && read.count == readCount; };
  if (checked && box.count != 0) {
    for (const End &write : foreignWrites)
      if (!before(write, clock)) {
        refusal = {Verdict::Race, {}, write.who, true, " (through another index space)"};
        return false;
      }
    for (const End &read : foreignReads)
      if (!ownRead(read) && !before(read, clock)) {
        refusal = {Verdict::Race, {}, read.who, false, " (through another index space)"};
        return false;
      }
  }
  bool good = eachNode(at, [&](Node &node, const Path &sub) {
    Path where = at.path;
    if (!sub.empty())
      where.push_back(at.first + sub[0]);
    Path leafPath = where;
    bool ordered = leaves(node, leafPath, [&](const Path &path, Node &leaf, bool) {
      if (!checked)
        return true;
      if (leaf.written && !before(leaf.write, clock)) {
        refusal = {Verdict::Race, path, leaf.write.who, true, ""};
        return false;
      }
      for (const End &read : leaf.reads)
        if (!ownRead(read) && !before(read, clock)) {
          refusal = {Verdict::Race, path, read.who, false, ""};
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
    for (bool rest : {true, false})
      for (const Piece &piece : pieces) {
        if (piece.rest != rest)
          continue;
        llvm::ArrayRef<int64_t> below(piece.sub);
        if (!sub.empty()) { // a piece belongs to one index of the interval, or covers it all
          if (below.empty()) {
            refusal = {Verdict::Undecided,
                       where,
                       {},
                       false,
                       ", which is an interval and gets a value that has no pieces"};
            return false;
          }
          if (below[0] != sub[0])
            continue;
          below = below.drop_front();
        }
        const std::vector<Dim> &dims = frame.dims(at);
        bool fits = where.size() + below.size() <= dims.size();
        for (size_t i = 0; fits && i < below.size(); ++i)
          fits = below[i] < dims[where.size() + i].size;
        if (!fits) {
          refusal = {Verdict::Undecided,
                     where,
                     {},
                     false,
                     ", whose index space has no boxes for the pieces it is given"};
          return false;
        }
        find(node, at, where.size(), below).value = piece.value;
      }
    return true;
  });
  if (good)
    aliases.clear();
  if (good && whole) {
    foreignWrites.clear();
    foreignReads.clear();
    mixed = false;
  }
  return good;
}

} // namespace mlir::ctran::machine

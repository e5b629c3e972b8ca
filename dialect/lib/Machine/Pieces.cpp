//===- Pieces.cpp - Arithmetic on what boxes hold -----------------------------===//

#include "Memory.h"

#include <fmt/format.h>

namespace mlir::ctran::machine {

bool splitPieces(const Frame &frame, const Values &values, const Box &source, int64_t count,
                 Pieces &pieces) {
  Pieces out;
  for (Piece &piece : pieces) {
    if (!piece.sub.empty() && !piece.rest) {
      out.push_back(std::move(piece));
      continue;
    }
    size_t depth = source.path.size();
    if (piece.rest || depth >= frame.dims(source).size())
      return false;
    for (int64_t i = 0; i < count; ++i)
      out.push_back({Path{i}, values.child(piece.value, source, depth, i), false});
  }
  pieces = std::move(out);
  return true;
}

bool combinePieces(const Frame &frame, const Values &values, const Combination &how,
                   llvm::MutableArrayRef<Pieces> sources, llvm::ArrayRef<Box> boxes, Pieces &out,
                   std::string &why) {
  auto each = [&](Pieces &pieces, auto change) {
    for (Piece &piece : pieces)
      if (!(piece.value = change(piece.value)))
        return false;
    return true;
  };
  for (Pieces &pieces : sources)
    if (how.scale &&
        !each(pieces, [&](ValueRef &value) { return values.scaled(value, *how.scale, why); }))
      return false;
  auto less = [](const Piece &a, const Piece &b) {
    return std::lexicographical_compare(a.sub.begin(), a.sub.end(), b.sub.begin(), b.sub.end());
  };
  size_t finest = 0;
  for (size_t i = 1; i < sources.size(); ++i)
    if (sources[i].size() > sources[finest].size())
      finest = i;
  for (size_t i = 0; i < sources.size(); ++i) {
    // A box that holds one value holds its parts.
    if (sources[i].size() == 1 && sources[i][0].sub.empty() && sources[finest].size() > 1) {
      Pieces split;
      for (const Piece &piece : sources[finest]) {
        ValueRef value = sources[i][0].value;
        size_t depth = boxes[i].path.size();
        for (int64_t index : piece.sub) {
          if (depth >= frame.dims(boxes[i]).size())
            return false;
          value = values.child(value, boxes[i], depth++, index);
        }
        split.push_back({piece.sub, value, piece.rest});
      }
      sources[i] = std::move(split);
    }
    llvm::sort(sources[i], less);
  }
  out = std::move(sources[0]);
  for (size_t i = 1; i < sources.size(); ++i) {
    if (sources[i].size() != out.size())
      return false;
    for (size_t j = 0; j < out.size(); ++j) {
      const Piece &more = sources[i][j];
      if (more.sub != out[j].sub || more.rest != out[j].rest)
        return false;
      ValueRef both = values.combined(out[j].value, more.value, how.kind, why);
      if (!both)
        return false;
      out[j].value = both;
    }
  }
  return each(out, [&](ValueRef &value) { return values.divided(value, how.divide, why); });
}

/// The ranks whose contributions are in a value that is summed over all axes, in order.
static std::vector<int64_t> contributingRanks(const Frame &frame, const Value &value) {
  const std::vector<int64_t> &sizes = frame.schedule.grid.sizes;
  std::vector<int64_t> ranks;
  for (size_t at = 0; at + sizes.size() <= value.contributors.size(); at += sizes.size()) {
    std::vector<int64_t> part{0};
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      Arc arc = value.contributors[at + axis];
      std::vector<int64_t> next;
      for (int64_t rank : part)
        for (uint32_t i = 0; i < arc.length; ++i)
          next.push_back(rank * sizes[axis] + (arc.start + i) % sizes[axis]);
      part = std::move(next);
    }
    ranks.insert(ranks.end(), part.begin(), part.end());
  }
  llvm::sort(ranks);
  return ranks;
}

/// Is `has` what is wanted? One contribution alone has no kind.
static bool satisfies(const Frame &frame, const Value &has, const Value &want,
                      const ValueLabel &label) {
  Value wanted(want);
  bool anyHow = !label.how;
  if (!label.among.empty()) {
    std::vector<int64_t> among(label.among);
    llvm::sort(among);
    if (has.summed != want.summed || contributingRanks(frame, has) != among)
      return false;
    wanted.contributors = has.contributors;
  }
  if (anyHow || !has.kind)
    wanted.kind = has.kind;
  if (anyHow) {
    wanted.scale = has.scale;
    wanted.divide = has.divide;
  }
  return sameValue(has, wanted);
}

std::string checkLabel(const Frame &frame, const Values &values, const Pieces &pieces,
                       const ValueLabel &label, const Box &box, uint32_t me, int64_t run) {
  ValueRef want = values.of(label, box, me, run, /*sink=*/true);
  for (const Piece &piece : pieces) {
    ValueRef expected = want;
    Box cell = box;
    cell.count = -1;
    for (size_t i = 0; i < piece.sub.size(); ++i) {
      int64_t index = piece.sub[i] + (i == 0 && box.count >= 0 ? box.first : 0);
      expected = values.child(expected, box, cell.path.size(), index);
      cell.path.push_back(index);
    }
    if (!piece.value || !satisfies(frame, *piece.value, *expected, label))
      return fmt::format("{} holds {}, expected {}", frame.describe(cell),
                         values.describe(piece.value), values.describe(expected));
  }
  return {};
}

} // namespace mlir::ctran::machine

//===- Layout.h - Index spaces and where their boxes lie in bytes --*- C++ -*-===//
#ifndef NCCLX_MACHINE_LAYOUT_H
#define NCCLX_MACHINE_LAYOUT_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace mlir::ctran::machine {

/// How a dimension of size n cuts an interval of `extent` units.
enum class Partition : uint8_t {
  /// piece i = [floor(i*g/n)*granule, floor((i+1)*g/n)*granule) cut at extent, g =
  /// ceil(extent/granule):
  /// sizes differ by at most one granule.
  Balanced,
  /// piece i = [min(i*c, extent), min((i+1)*c, extent)), c = ceil(g/n)*granule, g as above: the
  /// last
  /// pieces may be short or empty (with granule 1: torch.chunk, GSPMD).
  Chunked
};

/// A dimension of an index space: bound to a grid axis, or free (S5).
struct Dim {
  std::optional<unsigned> axis;
  int64_t size = 1;
  Partition partition = Partition::Balanced;
  int64_t granule = 1; ///< in units of the extent
  friend bool operator==(const Dim &, const Dim &) = default;
};

/// `rows` pieces of `rowBytes`, `stride` bytes apart, the first at `offset` (all in bytes).
struct ByteBox {
  int64_t offset = 0, rows = 0, stride = 0, rowBytes = 0;
  int64_t bytes() const { return rows * rowBytes; }
  friend bool operator==(const ByteBox &, const ByteBox &) = default;
};

/// An index space over a window's bytes: a tensor seen as [rows][extent][unitBytes], whose middle
/// dimension is cut by `dims`, each inside the piece of the one before.
/// `resident`: only the piece at the rank's own point in all dimensions has storage, at offset 0
/// (the shard of a tensor that a group holds together); storage then has room for the largest
/// piece.
struct Space {
  std::vector<Dim> dims;
  int64_t rows = 1, extent = 0, unitBytes = 1;
  bool resident = false;

  /// The interval [begin, end) of the extent that the path names (indices as numbers).
  void interval(llvm::ArrayRef<int64_t> path, int64_t &begin, int64_t &end) const;
  /// The bytes of the box at `path`; with `count` >= 0, of the indices [first, first+count) of the
  /// next dimension.
  ByteBox locate(llvm::ArrayRef<int64_t> path, int64_t first = 0, int64_t count = -1) const;
  /// Units of the largest piece that all dimensions together can cut.
  int64_t residentWidth() const;
  /// Bytes of storage a window needs for this space.
  int64_t storageBytes() const;
  friend bool operator==(const Space &, const Space &) = default;
};

/// Piece `index` of `n` of an interval of `extent` units.
void cut(Partition partition, int64_t extent, int64_t n, int64_t granule, int64_t index,
         int64_t &begin, int64_t &end);

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LAYOUT_H

//===- Layout.cpp - Where the boxes of an index space lie in bytes ------------===//

#include "ncclx/Machine/Layout.h"

#include <algorithm>

namespace mlir::ctran::machine {

static int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// floor(a * b / c) without overflow of the product. A division of 128 bits is a call.
static int64_t mulDiv(int64_t a, int64_t b, int64_t c) {
  if (int64_t product; !__builtin_mul_overflow(a, b, &product))
    return product / c;
  return static_cast<int64_t>(static_cast<__int128>(a) * b / c);
}

void cut(Partition partition, int64_t extent, int64_t n, int64_t granule, int64_t index,
         int64_t &begin, int64_t &end) {
  if (partition == Partition::Chunked) {
    int64_t chunk = ceilDiv(ceilDiv(extent, granule), n) * granule;
    begin = std::min<int64_t>(mulDiv(index, chunk, 1), extent);
    end = std::min<int64_t>(begin + chunk, extent);
    return;
  }
  int64_t granules = ceilDiv(extent, granule);
  auto at = [&](int64_t i) {
    return std::min<int64_t>(mulDiv(mulDiv(i, granules, n), granule, 1), extent);
  };
  begin = at(index);
  end = at(index + 1);
}

/// Size of the largest piece that `dim` cuts from `extent` units.
static int64_t largestPiece(const Dim &dim, int64_t extent) {
  if (dim.partition == Partition::Chunked)
    return std::min(extent, ceilDiv(ceilDiv(extent, dim.granule), dim.size) * dim.granule);
  // Pieces have floor(g/n) or ceil(g/n) granules; the last has ceil(g/n) and may be cut short.
  int64_t granules = ceilDiv(extent, dim.granule), more = ceilDiv(granules, dim.size);
  int64_t begin, end;
  cut(dim.partition, extent, dim.size, dim.granule, dim.size - 1, begin, end);
  int64_t withMore = granules % dim.size == 0 ? dim.size : granules % dim.size;
  int64_t others = withMore > 1 ? more : granules / dim.size;
  return dim.size == 1 ? extent : std::max(end - begin, others * dim.granule);
}

/// Piece `index` of what is left of an interval.
static void narrow(const Dim &dim, int64_t index, int64_t &begin, int64_t &end) {
  int64_t low, high;
  cut(dim.partition, end - begin, dim.size, dim.granule, index, low, high);
  end = begin + high;
  begin += low;
}

void Space::interval(llvm::ArrayRef<int64_t> path, int64_t &begin, int64_t &end) const {
  begin = 0;
  end = extent;
  for (size_t i = 0; i < path.size() && i < dims.size(); ++i)
    narrow(dims[i], path[i], begin, end);
}

ByteBox Space::locate(llvm::ArrayRef<int64_t> path, int64_t first, int64_t count) const {
  int64_t begin, end;
  interval(path, begin, end);
  if (count >= 0 && path.size() < dims.size()) {
    const Dim &dim = dims[path.size()];
    int64_t whole = begin, last = end;
    narrow(dim, first, begin, end);
    if (count > 1) {
      narrow(dim, first + count - 1, whole, last);
      end = last;
    }
  }
  if (count == 0)
    end = begin;
  int64_t width = extent;
  if (resident && !dims.empty()) {
    width = residentWidth();
    if (path.empty() && count < 0)
      end = width;
    else
      end -= begin; // whatever piece it is, it is stored from the start
    begin = 0;
  }
  return {begin * unitBytes, rows, width * unitBytes, (end - begin) * unitBytes};
}

int64_t Space::residentWidth() const {
  int64_t width = extent;
  for (const Dim &dim : dims)
    width = largestPiece(dim, width);
  return width;
}

int64_t Space::storageBytes() const {
  int64_t width = resident && !dims.empty() ? residentWidth() : extent;
  return rows * width * unitBytes;
}

} // namespace mlir::ctran::machine

//===- Range.h - Pieces of memory -------------------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_RANGE_H
#define NCCLXRT_LIB_RANGE_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ncclxrt {

/// A range of six numbers as a program gives it.
struct Where {
  int64_t window, peer, offset, rows, stride, rowBytes;
};

/// `rows` pieces of `rowBytes`, `stride` bytes apart, from a place in a segment.
struct Range {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t stride = 0;
  int64_t rowBytes = 0;

  int64_t bytes() const { return rows * rowBytes; }
  /// The same bytes in as few pieces as can be; an empty range has none.
  Range canonical() const {
    if (rows == 0 || rowBytes == 0)
      return {offset, 0, 0, 0};
    if (rows == 1 || stride == rowBytes)
      return {offset, 1, rows * rowBytes, rows * rowBytes};
    return *this;
  }
};

/// Walks over a range: where the next bytes lie and how many of them are in one piece.
class Cursor {
public:
  Cursor() = default;
  Cursor(std::byte *base, const Range &range)
      : at(base + range.offset), stride(range.stride), rowBytes(range.rowBytes),
        rowsLeft(range.rows), inRow(range.rowBytes) {}
  bool done() const { return rowsLeft == 0; }
  std::byte *data() const { return at; }
  int64_t contiguous() const { return inRow; }
  /// At most contiguous().
  void advance(int64_t n) {
    at += n;
    inRow -= n;
    if (inRow == 0 && --rowsLeft > 0) {
      at += stride - rowBytes;
      inRow = rowBytes;
    }
  }

private:
  std::byte *at = nullptr;
  int64_t stride = 0, rowBytes = 0, rowsLeft = 0, inRow = 0;
};

/// The byte stream of src into that of dst; both have the same total.
inline void copyRange(std::byte *dstBase, const Range &dst, const std::byte *srcBase,
                      const Range &src) {
  if (dst.rows == 1 && src.rows == 1 && dst.rowBytes > 0) { // most are
    std::memmove(dstBase + dst.offset, srcBase + src.offset, size_t(dst.rowBytes));
    return;
  }
  Range d = dst.canonical(), s = src.canonical();
  if (d.rows == 0)
    return;
  if (d.rows == 1 && s.rows == 1) {
    std::memmove(dstBase + d.offset, srcBase + s.offset, size_t(d.rowBytes));
    return;
  }
  Cursor to(dstBase, d), from(const_cast<std::byte *>(srcBase), s);
  while (!to.done()) {
    int64_t n = to.contiguous() < from.contiguous() ? to.contiguous() : from.contiguous();
    std::memmove(to.data(), from.data(), size_t(n));
    to.advance(n);
    from.advance(n);
  }
}

} // namespace ncclxrt

#endif // NCCLXRT_LIB_RANGE_H

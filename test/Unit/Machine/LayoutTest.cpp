#include "ncclx/Machine/Layout.h"

#include <gtest/gtest.h>

using namespace mlir::ctran::machine;

namespace {

/// Pieces follow one another and cover the extent.
void expectCovers(Partition partition, int64_t extent, int64_t n, int64_t granule) {
  int64_t at = 0, smallest = extent, largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t begin, end;
    cut(partition, extent, n, granule, i, begin, end);
    EXPECT_EQ(begin, at) << extent << " in " << n << " granule " << granule << " piece " << i;
    EXPECT_LE(begin, end);
    at = end;
    smallest = std::min(smallest, end - begin);
    largest = std::max(largest, end - begin);
  }
  EXPECT_EQ(at, extent);
  if (partition == Partition::Balanced && granule == 1) {
    EXPECT_LE(largest - smallest, 1);
  }
  Space space;
  space.dims = {Dim{0u, n, partition, granule}};
  space.extent = extent;
  space.resident = true;
  EXPECT_EQ(space.storageBytes(), largest) << extent << " in " << n << " granule " << granule;
}

TEST(Layout, PiecesCoverEveryExtent) {
  for (int64_t extent = 0; extent <= 20; ++extent)
    for (int64_t n = 1; n <= 9; ++n) {
      expectCovers(Partition::Chunked, extent, n, 1);
      for (int64_t granule = 1; granule <= 5; ++granule)
        expectCovers(Partition::Balanced, extent, n, granule);
    }
}

TEST(Layout, ChunkedLeavesTheLastPiecesShortOrEmpty) {
  int64_t begin, end;
  cut(Partition::Chunked, 5, 4, 1, 2, begin, end);
  EXPECT_EQ(begin, 4);
  EXPECT_EQ(end, 5);
  cut(Partition::Chunked, 5, 4, 1, 3, begin, end);
  EXPECT_EQ(begin, end);
}

TEST(Layout, ProductsDoNotOverflow) {
  int64_t extent = int64_t(1) << 60, begin, end;
  cut(Partition::Balanced, extent, 131072, 1, 131071, begin, end);
  EXPECT_EQ(end, extent);
  EXPECT_EQ(end - begin, extent / 131072);
}

TEST(Layout, NestedDimensionsCutInsideTheOuterPiece) {
  Space space;
  space.dims = {Dim{0u, 2}, Dim{std::nullopt, 3}};
  space.rows = 4;
  space.extent = 10;
  space.unitBytes = 2;
  EXPECT_EQ(space.locate({}), (ByteBox{0, 4, 20, 20}));
  EXPECT_EQ(space.locate({1}), (ByteBox{10, 4, 20, 10}));
  EXPECT_EQ(space.locate({1, 0}), (ByteBox{10, 4, 20, 2}));
  EXPECT_EQ(space.locate({1, 2}), (ByteBox{16, 4, 20, 4}));
  EXPECT_EQ(space.locate({1}, 1, 2), (ByteBox{12, 4, 20, 8}));
  EXPECT_EQ(space.locate({1}, 1, 0).bytes(), 0);
  EXPECT_EQ(space.storageBytes(), 80);
}

TEST(Layout, ResidentHoldsTheOwnPieceAtItsStart) {
  Space space;
  space.dims = {Dim{0u, 3}, Dim{1u, 2}};
  space.extent = 10; // pieces of 3, 3 and 4, and of these 1, 2, 1, 2, 2 and 2
  space.resident = true;
  EXPECT_EQ(space.residentWidth(), 2);
  EXPECT_EQ(space.storageBytes(), 2);
  EXPECT_EQ(space.locate({1, 0}), (ByteBox{0, 1, 2, 1}));
  EXPECT_EQ(space.locate({2, 1}), (ByteBox{0, 1, 2, 2}));
  EXPECT_EQ(space.locate({}).bytes(), 2);
}

// A group over two axes cuts as the row-major group of their product does.
TEST(Layout, ChunksByGranuleNest) {
  for (int64_t extent : {0, 1, 5, 6, 7, 12, 13}) {
    int64_t chunk = std::max<int64_t>(1, (extent + 5) / 6);
    Space flat, nested;
    flat.dims = {Dim{0u, 6, Partition::Chunked, chunk}};
    nested.dims = {Dim{0u, 2, Partition::Chunked, 3 * chunk},
                   Dim{1u, 3, Partition::Chunked, chunk}};
    flat.extent = nested.extent = extent;
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_EQ(nested.locate({i / 3, i % 3}).bytes(), flat.locate({i}).bytes())
          << extent << " " << i;
  }
}

TEST(Layout, NothingIsALayoutToo) {
  Space space;
  space.dims = {Dim{0u, 3}};
  EXPECT_EQ(space.locate({2}).bytes(), 0);
  EXPECT_EQ(space.storageBytes(), 0);
}

} // namespace

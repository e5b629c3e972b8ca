// Who owns which bytes: every byte, and every word of a packet, has one owner, for any size, any
// number of blocks and any alignment; and the owner is the one that the prover's cut names.
#include "ncclxrt/device/partition.h"

#include "ncclx/Machine/Layout.h"
#include "gtest/gtest.h"

#include <vector>

using namespace ncclxrt::device;
namespace machine = mlir::ctran::machine;

TEST(Partition, SharesCoverWithoutOverlap) {
  for (int64_t total : {0, 1, 15, 16, 17, 127, 4096, 4097, 131073, 1000003})
    for (int64_t granule : {1, 3, 8, 16})
      for (int64_t n : {1, 2, 3, 7, 32, 132}) {
        int64_t at = 0, least = total, most = 0;
        for (int64_t i = 0; i < n; ++i) {
          Share s = shareOf(total, granule, n, i);
          EXPECT_EQ(s.begin, at);
          EXPECT_LE(s.begin, s.end);
          EXPECT_TRUE(s.begin % granule == 0 || s.begin == total);
          at = s.end;
          least = std::min(least, s.size());
          most = std::max(most, s.size());
        }
        EXPECT_EQ(at, total);
        EXPECT_LE(most - least, 2 * granule);
      }
}

TEST(Partition, SharesAreTheProversBalancedCut) {
  for (int64_t total : {0, 1, 16, 100, 4097, 131073})
    for (int64_t granule : {1, 16})
      for (int64_t n : {1, 2, 5, 132})
        for (int64_t i = 0; i < n; ++i) {
          int64_t begin, end;
          machine::cut(machine::Partition::Balanced, total, n, granule, i, begin, end);
          Share s = shareOf(total, granule, n, i);
          EXPECT_EQ(s.begin, begin);
          EXPECT_EQ(s.end, end);
        }
}

TEST(Partition, PiecesAreTheProversPieces) {
  for (int64_t begin : {0, 5})
    for (int64_t size : {0, 1, 16, 100, 4097})
      for (int64_t granule : {1, 16})
        for (int64_t n : {1, 2, 5, 32})
          for (int64_t i = 0; i < n; ++i)
            for (auto partition : {machine::Partition::Balanced, machine::Partition::Chunked}) {
              int64_t from, to;
              machine::cut(partition, size, n, granule, i, from, to);
              Share of{begin, begin + size};
              Share s = partition == machine::Partition::Balanced ? balancedPiece(of, granule, n, i)
                                                                  : chunkedPiece(of, granule, n, i);
              EXPECT_EQ(s.begin, begin + from);
              EXPECT_EQ(s.end, begin + to);
            }
}

TEST(Partition, ShiftsAreCyclic) {
  for (int64_t n : {1, 2, 5})
    for (int64_t at = 0; at < n; ++at)
      for (int64_t by = -12; by <= 12; ++by)
        EXPECT_EQ(shifted(at, by, n), (((at + by) % n) + n) % n);
}

TEST(Partition, LargeSizesDoNotOverflow) {
  int64_t total = (int64_t(1) << 60) + 5;
  Share last = shareOf(total, 16, 132, 131);
  EXPECT_EQ(last.end, total);
  EXPECT_GT(last.begin, 0);
  EXPECT_EQ(shareOf(total, 16, 132, 130).end, last.begin);
}

template <class Packet> static void everyWordOnce() {
  for (int64_t bytes : {0, 1, 7, 8, 9, 119, 120, 121, 240, 1024, 4099, 65537})
    for (int64_t blocks : {1, 2, 7, 64}) {
      int64_t words = (bytes + 7) / 8, units = packetUnits<Packet>(bytes);
      EXPECT_EQ(units % Packet::group, 0);
      EXPECT_GT(units, 0) << "a packet without data still tells that its sender is here";
      EXPECT_LE(units * 16, packetBytes<Packet>(bytes));
      EXPECT_EQ(packetBytes<Packet>(bytes) % 128, 0);
      std::vector<int> carried(words), owned(units);
      PacketSpan span = packetSpan<Packet>(bytes);
      EXPECT_EQ(span.bytes, bytes);
      EXPECT_EQ(span.words, words);
      EXPECT_EQ(span.units, units);
      for (int64_t b = 0; b < blocks; ++b)
        for (int64_t t = 0; t < 32; ++t) {
          Workers w = workersOfGrid(b, blocks, t, 32);
          EXPECT_EQ(w.index % 32, t) << "lanes of a warp work side by side";
          for (int64_t u = w.index; u < units; u += w.count) {
            owned[u]++;
            int64_t word = Packet::firstWord(u);
            if (word < words)
              carried[word]++;
            if (Packet::hasSecond(u) && word + 1 < words)
              carried[word + 1]++;
          }
        }
      for (int n : carried)
        EXPECT_EQ(n, 1);
      for (int n : owned)
        EXPECT_EQ(n, 1);
      // Each group has one flag, and it takes no word's place.
      for (int64_t u = 0; u < units; u += Packet::group) {
        int flags = 0;
        for (int64_t k = 0; k < Packet::group; ++k) {
          flags += Packet::hasFlag(u + k);
          EXPECT_FALSE(Packet::hasFlag(u + k) && Packet::hasSecond(u + k));
        }
        EXPECT_EQ(flags, 1);
      }
    }
}
TEST(Packets, Packet16CarriesEveryWordOnce) { everyWordOnce<Packet16>(); }
TEST(Packets, Packet128CarriesEveryWordOnce) { everyWordOnce<Packet128>(); }

TEST(Packets, AGroupIsAlignedForOneStore) {
  // Group g is at 128 * g of an aligned scratch memory: 8 lanes of one warp, since a block's
  // threads begin at a multiple of 8.
  for (int64_t u = 0; u < 64; u += Packet128::group)
    EXPECT_EQ(u * 16 % 128, 0);
}

TEST(Alignment, WidestCommonUnit) {
  for (uint64_t a : {0x1000, 0x1001, 0x1002, 0x1004, 0x1008, 0x1005})
    for (uint64_t b = 0x2000; b < 0x2020; ++b) {
      int64_t unit = commonAlignment(a, b);
      EXPECT_TRUE(unit == 1 || unit == 2 || unit == 4 || unit == 8 || unit == 16);
      EXPECT_EQ(a % unit, b % unit) << "one shift aligns both";
      if (unit < 16) {
        EXPECT_NE(a % (2 * unit), b % (2 * unit)) << "and no wider unit does";
      }
    }
}

TEST(Alignment, HeadBodyAndTail) {
  for (uint64_t at = 0x1000; at < 0x1010; ++at)
    for (int64_t bytes = 0; bytes < 80; ++bytes)
      for (int64_t wide : {1, 2, 4, 8, 16}) {
        Split s = splitAt(at, bytes, wide);
        EXPECT_GE(s.head, 0);
        EXPECT_LT(s.head, wide);
        EXPECT_EQ(s.body % wide, 0);
        EXPECT_LE(s.head + s.body, bytes);
        EXPECT_LT(bytes - s.head - s.body, wide);
        if (s.body) {
          EXPECT_EQ((at + s.head) % wide, 0u);
        }
      }
}

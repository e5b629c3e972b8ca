//===- partition.h - Who owns which bytes, on host and device ---*- C++ -*-===//
//
// The index maps of the device library, as plain C++: a kernel, the kernel at the peer that
// consumes its bytes, the host that launches both, and the tests that run without a GPU all use
// these.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_DEVICE_PARTITION_H
#define NCCLXRT_DEVICE_PARTITION_H

#include <cstdint>

#ifdef __CUDACC__
#define NCCLXRT_HD __host__ __device__ __forceinline__
#else
#define NCCLXRT_HD inline
#endif

namespace ncclxrt::device {

/// The interval [begin, end) of something.
struct Share {
  int64_t begin, end;
  NCCLXRT_HD int64_t size() const { return end - begin; }
};

/// Piece `index` of `n` of [0, total): as many whole granules as the others, or one more. Block b
/// of a kernel owns piece b of its bytes; so does block b at the peer. The same cut as the
/// `balanced` dimension of an index space (dialect/SPEC.md, S5).
NCCLXRT_HD Share shareOf(int64_t total, int64_t granule, int64_t n, int64_t index) {
  int64_t granules = total / granule + (total % granule != 0);
  // Divisions of 64 bits cost a kernel tenths of a microsecond; sizes that need them do not notice.
  bool small = granules <= 0x7fffffff && n <= 0x7fff;
  int64_t each = small ? int64_t(uint32_t(granules) / uint32_t(n)) : granules / n;
  int64_t more = granules - each * n;
  // floor(i * granules / n) without the product of two large numbers.
  auto part = [&](int64_t i) {
    return i * each + (small ? int64_t(uint32_t(i * more) / uint32_t(n)) : i * more / n);
  };
  int64_t from = part(index) * granule;
  int64_t to = part(index + 1) * granule;
  return {from < total ? from : total, to < total ? to : total};
}

NCCLXRT_HD int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/// Pieces of pieces, as a generated kernel names a box of an index space (dialect/SPEC.md, S5).
NCCLXRT_HD Share balancedPiece(Share of, int64_t granule, int64_t n, int64_t index) {
  Share s = shareOf(of.size(), granule, n, index);
  return {of.begin + s.begin, of.begin + s.end};
}
NCCLXRT_HD Share chunkedPiece(Share of, int64_t granule, int64_t n, int64_t index) {
  int64_t granules = of.size() / granule + (of.size() % granule != 0);
  int64_t each = (granules / n + (granules % n != 0)) * granule;
  int64_t from = index * each, to = (index + 1) * each;
  return {of.begin + (from < of.size() ? from : of.size()),
          of.begin + (to < of.size() ? to : of.size())};
}
/// A coordinate moved by `amount` along a cyclic axis of size n (S2).
NCCLXRT_HD int64_t shifted(int64_t coordinate, int64_t amount, int64_t n) {
  int64_t at = (coordinate + amount % n) % n;
  return at < 0 ? at + n : at;
}

/// Cuts of memory that several ranks share fall on 16 bytes, the width of one access.
constexpr int64_t ownershipGranule = 16;

/// Who works on a piece of memory together: unit i (16 bytes, or what the alignment leaves) is of
/// worker i mod count. The threads of all blocks, with blocks * threads of them side by side, make
/// the longest runs on the wire and spread them over all of memory; the threads of one block keep
/// a block's share to itself. Block b owns the same units at the peer, where the kernel has the
/// same shape.
struct Workers {
  int64_t index, count;
};
NCCLXRT_HD Workers workersOfGrid(int64_t block, int64_t blocks, int64_t thread, int64_t threads) {
  return {block * threads + thread, blocks * threads};
}

/// Packets: data that carries its own flag, in units of 16 bytes that are stored at once. The flag
/// is the number of the run, 64 bits wide, at a place of its own: no payload can look like it, and
/// it does not come round again.
///
/// Packet16: a word of 8 bytes and the flag. Needs 16-byte stores that arrive whole, which the
/// memory model of PTX gives (.b128).
struct Packet16 {
  static constexpr int unroll = 1;    ///< units a thread has under way at once
  static constexpr int64_t group = 1; ///< units that are stored together
  /// Words of data in a group.
  static constexpr int64_t wordsPerGroup = 1;
  /// Words that unit `u` carries: `first` and, when `second`, the one after it.
  static NCCLXRT_HD int64_t firstWord(int64_t u) { return u; }
  static NCCLXRT_HD bool hasSecond(int64_t) { return false; }
  static NCCLXRT_HD bool hasFlag(int64_t) { return true; }
};

/// Packet128: 15 words and the flag in 8 units that 8 lanes of one warp store at once. Needs 128
/// aligned bytes, stored and loaded by one instruction of a warp, to arrive whole; NVLink and the
/// L2 of compute capability 7.0 and later keep that, no document promises it.
struct Packet128 {
  static constexpr int unroll = 4;
  static constexpr int64_t group = 8;
  static constexpr int64_t wordsPerGroup = 15;
  static NCCLXRT_HD int64_t firstWord(int64_t u) { return u / 8 * 15 + u % 8 * 2; }
  static NCCLXRT_HD bool hasSecond(int64_t u) { return u % 8 != 7; }
  static NCCLXRT_HD bool hasFlag(int64_t u) { return u % 8 == 7; }
};

/// Units that `bytes` of data take, a whole number of groups. At least one group, since a packet
/// without data still tells that the sender has come this far.
template <class Packet> NCCLXRT_HD int64_t packetUnits(int64_t bytes) {
  int64_t words = bytes / 8 + (bytes % 8 != 0);
  int64_t groups = words / Packet::wordsPerGroup + (words % Packet::wordsPerGroup != 0);
  return (groups ? groups : 1) * Packet::group;
}

/// Bytes of scratch memory that packets of `bytes` of data take.
template <class Packet> NCCLXRT_HD int64_t packetBytes(int64_t bytes) {
  return (packetUnits<Packet>(bytes) * 16 + 127) / 128 * 128;
}

/// A message as packets see it, worked out once, by the host: `words` of 8 bytes, the last of which
/// may be a part of one, in `units`.
struct PacketSpan {
  int64_t bytes, words, units;
};
template <class Packet> NCCLXRT_HD PacketSpan packetSpan(int64_t bytes) {
  return {bytes, bytes / 8 + (bytes % 8 != 0), packetUnits<Packet>(bytes)};
}

/// Address bits that two pointers have in common at the low end: the widest unit, up to 16 bytes,
/// in which both can be aligned at once.
NCCLXRT_HD int64_t commonAlignment(uint64_t a, uint64_t b) {
  uint64_t differ = (a ^ b) | 16;
  return int64_t(differ & -differ);
}

/// How [0, bytes) at address `at` splits into single units before, wide units, and single units
/// after, where `wide` divides into addresses from head on.
struct Split {
  int64_t head, body; ///< bytes; the tail is what is left
};
NCCLXRT_HD Split splitAt(uint64_t at, int64_t bytes, int64_t wide) {
  int64_t head = int64_t(-at & uint64_t(wide - 1));
  head = head < bytes ? head : bytes;
  return {head, (bytes - head) / wide * wide};
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_PARTITION_H

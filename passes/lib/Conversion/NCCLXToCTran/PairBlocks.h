//===- PairBlocks.h - What each member sends to each ----------------------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_PAIRBLOCKS_H
#define NCCLX_LIB_CONVERSION_PAIRBLOCKS_H

#include "Counts.h"

namespace mlir::ctran {

/// The blocks that go from member to member in an all_to_all, an all_to_all_v by counts or a
/// permute, cut into pieces of about one size.
class PairBlocks {
public:
  PairBlocks(ScheduleBuilder &s, const CollectiveSpec &c, Members &members);

  /// Pieces that the largest block can be cut into, and the bytes for one of routedAmounts.
  int64_t mostUnits() const;
  double bytesOfAmount() const;
  /// Cuts each block into so many pieces, and these into parts, of which some may be empty.
  void cut(int64_t pieces, int64_t parts);
  /// A piece of a block, or a part of a piece.
  struct Index {
    Value piece, part = Value();
  };
  /// It, or pieces [first, first + count), in a view of the own input or of an output.
  Value box(Value view, unsigned from, unsigned to, bool input, Index index);
  Value box(Value view, unsigned from, unsigned to, bool input, int64_t first, int64_t count);
  /// Scratch memory of places, each for a piece of any block; and what a piece, or a part, takes of
  /// one of them.
  Value scratch(StringRef name, int64_t places);
  Value place(Value memory, unsigned from, unsigned to, Value number, Index index);

  /// Says what the input holds, before anything else is written.
  void start();
  /// Copies what stays where it is; gives the token, or null.
  Value keepOwn(ScheduleBuilder &keeper);
  /// Demands what the output holds after `ready`; gives tokens.
  SmallVector<Value> demand(ValueRange ready);

  Value in, out;              ///< views by block and piece
  Value given;                ///< the input may be read after this
  SmallVector<Value> outFree; ///< the output may be written after these

  /// How a block can be cut.
  enum class Cutting {
    Counts, ///< by units of rows, of which each block has its own number
    Whole,  ///< a permute: a block is a whole buffer, by its elements
    Flat,   ///< a block is contiguous: by its elements
    Rows,   ///< by rows of the dimension that cuts the blocks
    None    ///< input and output are cut in different dimensions, and have no piece in common
  };
  static Cutting cuttingOf(const CollectiveSpec &c);
  /// The member that gets the buffer of each of n members of a permute, or -1.
  static std::vector<int64_t> targetsOf(const CollectiveSpec &c, int64_t n);

private:
  ScheduleBuilder &s;
  const CollectiveSpec &c;
  Members &members;
  int64_t n;
  Cutting cutting;
  int64_t pieces = 1, parts = 1;
  std::optional<CountedBlocks> counted;

  /// Elements of a block, and of the smallest that it is cut into.
  int64_t blockElements() const;
  int64_t unitElements() const;
  /// Units that a scratch place has room for.
  int64_t placeUnits() const;
  int64_t elementBytes() const {
    return int64_t(llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8));
  }
  SmallVector<Value> prefix(unsigned from, unsigned to, bool input);
  /// Of a counted block: the first unit of a part, counted through all pieces; and how many units
  /// there are between two of them.
  Value unitOf(unsigned from, unsigned to, Value part);
  std::pair<Value, Value> unitsOf(unsigned from, unsigned to, Index index);
};

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_PAIRBLOCKS_H

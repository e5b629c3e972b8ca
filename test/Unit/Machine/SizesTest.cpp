//===- SizesTest.cpp - How the two ends of a move are cut ---------------------===//

#include "Orders.h"
#include "Small.h"
#include "ncclx/Machine/Machine.h"

#include <gtest/gtest.h>

using namespace mlir::ctran::machine;
using namespace mlir::ctran::machine::small;

namespace {

Dim pieces(int64_t n, Partition partition = Partition::Balanced, int64_t granule = 1) {
  return {std::nullopt, n, partition, granule};
}
Dim perRank(int64_t n, Partition partition = Partition::Balanced) { return {0u, n, partition, 1}; }

/// One lane on the caller's stream: op after op.
class Script {
public:
  explicit Script(int64_t n, std::vector<Window> windows) : s(empty(n)) {
    s.windows = std::move(windows);
  }
  Op &add(OpKind kind) { return s.ops[s.add(kind, user())]; }
  Script &source(unsigned window, Indices path, std::vector<unsigned> summed = {}) {
    Op &op = add(OpKind::Source);
    op.reads = {box(window, path)};
    op.label.path = path;
    op.label.summed = summed;
    return *this;
  }
  Script &sink(unsigned window, Indices path, std::vector<unsigned> summed = {}) {
    Op &op = add(OpKind::Sink);
    op.reads = {box(window, path)};
    op.label.path = path;
    op.label.summed = summed;
    return *this;
  }
  Script &copy(Access from, Access to) {
    Op &op = add(OpKind::Copy);
    op.reads = {from};
    op.writes = {to};
    return *this;
  }
  Small s;
};

Verdict verdictOf(const Small &s, ProofMode mode = ProofMode::AllRanks) {
  ProofOptions options;
  options.mode = mode;
  options.runs = 1;
  return prove(s, options).verdict;
}

constexpr auto Input = Window::Role::Input, Output = Window::Role::Output,
               Scratch = Window::Role::Scratch;

TEST(Sizes, BoxesOfOtherSizesAreNoCopy) {
  for (int64_t to : {10, 12}) {
    Script script(1, {window("a", Input, 10, {pieces(3)}), window("b", Output, to, {pieces(3)})});
    script.source(0, {});
    for (int64_t i = 0; i < 3; ++i)
      script.copy(box(0, {at(i)}), box(1, {at(i)}));
    script.sink(1, {});
    EXPECT_EQ(verdictOf(script.s), to == 10 ? Verdict::Ok : Verdict::Invalid);
    EXPECT_EQ(tryAllOrders(script.s, {.runs = 1}).right(), to == 10);
  }
}

TEST(Sizes, WhatIsKnownByPiecesKeepsThemOnlyWhereTheyAreCutAlike) {
  // Of 5 in 4: 1, 1, 1, 2 and 2, 2, 1, 0: the third pieces have one size, in other places.
  for (Partition cut : {Partition::Balanced, Partition::Chunked}) {
    Script script(1,
                  {window("a", Input, 5, {pieces(4)}), window("b", Scratch, 5, {pieces(4, cut)})});
    script.s.valueNames = {"v", "w"};
    script.source(0, {});
    Op &other = script.add(OpKind::Source); // so that a is no whole
    other.reads = {box(0, {at(0)})};
    other.label.name = 1;
    script.copy(box(0), box(1)).copy(box(1, {at(2)}), box(0, {at(2)}));
    script.sink(0, {at(2)});
    EXPECT_EQ(verdictOf(script.s), cut == Partition::Balanced ? Verdict::Ok : Verdict::Invalid);
    EXPECT_EQ(tryAllOrders(script.s, {.runs = 1}).right(), cut == Partition::Balanced);
  }
}

TEST(Sizes, ALargerSlotOfScratchMemoryIsUsedFromItsStart) {
  // Pieces of 3, 3 and 4 through slots of 4.
  std::vector<Window> windows{window("a", Input, 10, {pieces(3)}),
                              window("t", Scratch, 12, {pieces(3)}),
                              window("b", Output, 10, {pieces(3)})};
  Script script(1, windows);
  script.source(0, {});
  for (int64_t i = 0; i < 3; ++i)
    script.copy(box(0, {at(i)}), box(1, {at(i)}));
  Script whole(script);
  for (int64_t i = 0; i < 3; ++i)
    script.copy(box(1, {at(i)}), box(2, {at(i)}));
  script.sink(2, {});
  EXPECT_EQ(verdictOf(script.s), Verdict::Ok) << prove(script.s).str();
  EXPECT_TRUE(tryAllOrders(script.s, {.runs = 1}).right());
  // All slots together are no array: there are gaps.
  whole.copy(box(1), box(2)).sink(2, {});
  EXPECT_NE(verdictOf(whole.s), Verdict::Ok);
  EXPECT_FALSE(tryAllOrders(whole.s, {.runs = 1}).right());
}

TEST(Sizes, ASlotThatIsFilledDoesNotGoIntoASmallerBox) {
  Script script(1, {window("a", Input, 8, {pieces(2)}), window("t", Scratch, 8, {pieces(2)}),
                    window("b", Output, 6, {pieces(2)})});
  script.source(0, {});
  for (int64_t i = 0; i < 2; ++i)
    script.copy(box(0, {at(i)}), box(1, {at(i)})).copy(box(1, {at(i)}), box(2, {at(i)}));
  script.sink(2, {});
  EXPECT_EQ(verdictOf(script.s), Verdict::Invalid);
}

TEST(Sizes, PartsOfALargerSlotAreNotPartsOfTheValue) {
  // A piece of 3, cut in halves, in a slot of 4, cut in halves.
  std::vector<Window> windows{window("a", Input, 6, {pieces(2), pieces(2)}),
                              window("t", Scratch, 8, {pieces(2), pieces(2)}),
                              window("b", Scratch, 8, {pieces(2), pieces(2)})};
  Script script(1, windows);
  script.source(0, {}).copy(box(0, {at(1)}), box(1, {at(1)}));
  script.copy(box(1, {at(1), at(0)}), box(2, {at(1), at(0)})).sink(2, {at(1), at(0)});
  EXPECT_EQ(verdictOf(script.s), Verdict::Result) << prove(script.s).str();
}

TEST(Sizes, OneRankStandsForAllWhereEveryRankCutsAlike) {
  for (int64_t to : {10, 12, 11}) {
    Script script(3, {window("a", Input, 10, {perRank(3)}), window("b", Output, to, {perRank(3)})});
    script.source(0, {own(0)}).copy(box(0, {own(0)}), box(1, {own(0)})).sink(1, {own(0)});
    // Of 11 in 3: 3, 4, 4. The pieces of 10 are 3, 3, 4: the last rank would not see it.
    EXPECT_EQ(verdictOf(script.s), to == 10 ? Verdict::Ok : Verdict::Invalid);
    EXPECT_EQ(verdictOf(script.s, ProofMode::Representative),
              to == 10 ? Verdict::Ok : Verdict::Undecided);
    EXPECT_EQ(tryAllOrders(script.s, {.runs = 1}).right(), to == 10);
  }
  // Slots with room for the largest piece need no rank.
  Script slots(3, {window("a", Input, 10, {perRank(3)}), window("t", Scratch, 4, {}),
                   window("b", Output, 10, {perRank(3)})});
  slots.source(0, {own(0)}).copy(box(0, {own(0)}), box(1)).copy(box(1), box(2, {own(0)}));
  slots.sink(2, {own(0)});
  for (ProofMode mode : {ProofMode::AllRanks, ProofMode::Representative})
    EXPECT_EQ(verdictOf(slots.s, mode), Verdict::Ok) << prove(slots.s).str();
}

TEST(Sizes, IntervalsAreComparedPieceByPiece) {
  // Pieces 0, 1 of 4 become pieces 2, 3.
  for (int64_t extent : {8, 9}) {
    Script script(1, {window("a", Scratch, extent, {pieces(4)})});
    script.s.windows[0].role = Input;
    script.source(0, {at(0)}).source(0, {at(1)});
    Op &op = script.add(OpKind::Copy);
    op.reads = {box(0)};
    op.writes = {box(0)};
    op.reads[0].first = at(0);
    op.writes[0].first = at(2);
    op.reads[0].count = op.writes[0].count = 2;
    Op &sink = script.add(OpKind::Sink);
    sink.reads = {box(0, {at(2)})};
    sink.label.path = {at(0)};
    EXPECT_EQ(verdictOf(script.s), extent == 8 ? Verdict::Ok : Verdict::Invalid)
        << prove(script.s).str();
  }
}

} // namespace

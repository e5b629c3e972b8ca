//===- AccessTest.cpp - What the values of a schedule stand for --------------------===//
#include "Programs.h"

#include "ncclx/CTran/Access.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {
class Access : public ProgramTest {};

constexpr const char *window = "%w = ctran.window \"w\" scratch peers put : memref<6x10x3xf16>\n"
                               "%r = ctran.reindex %w along 1 [\"x\" = 4 chunked, 3 granule 2]\n";

TEST_F(Access, FollowsShiftsOfACoordinate) {
  auto program = parse(R"(
    %n = ctran.window "n" scratch : memref<4xf32>
    %v = ctran.coord_value %y : !ctran.coord<"y">
    %minus = arith.constant -6 : index
    %a = ctran.shift %x by %c3 : !ctran.coord<"x">
    %b = ctran.shift %a by %v : !ctran.coord<"x">
    %c = ctran.shift %b by %minus : !ctran.coord<"x">
    ctran.return)");
  auto ref = resolveCoord(find<ShiftOp>(program, 2));
  ASSERT_TRUE(succeeded(ref));
  EXPECT_EQ(ref->axis, 0u);
  EXPECT_EQ(ref->constant, -3);
  ASSERT_EQ(ref->amounts.size(), 1u);
  EXPECT_EQ(ref->amounts[0], find<CoordValueOp>(program).getResult());
  EXPECT_FALSE(ref->isOwn());
  EXPECT_TRUE(resolveCoord(find<CoordOp>(program, 1))->isOwn());
}

TEST_F(Access, ResolvesABoxToWindowSpaceAndView) {
  auto program = parse(std::string(window) + R"(
    %p = ctran.shift %x by %c1 : !ctran.coord<"x">
    %v = ctran.peer_view %r at (%p : "x", %y : "y") : !ctran.window
    %b = ctran.range %v[%x : "x", %c2]
    ctran.return)");
  auto box = resolveRange(find<RangeOp>(program));
  ASSERT_TRUE(succeeded(box));
  EXPECT_EQ(box->window, find<WindowOp>(program));
  EXPECT_EQ(box->reindex, find<ReindexOp>(program));
  EXPECT_EQ(box->view, find<PeerViewOp>(program));
  EXPECT_EQ(box->space.rows, 6);
  EXPECT_EQ(box->space.extent, 10);
  EXPECT_EQ(box->space.unitBytes, 6);
  ASSERT_EQ(box->space.dims.size(), 2u);
  EXPECT_EQ(box->space.dims[0].axis, 0u);
  EXPECT_EQ(box->space.dims[0].partition, machine::Partition::Chunked);
  EXPECT_FALSE(box->space.dims[1].axis);
  EXPECT_EQ(box->space.dims[1].granule, 2);
}

TEST_F(Access, TakesViewsAndSpacesInEitherOrder) {
  auto program = parse(R"(
    %w = ctran.window "w" scratch peers put : memref<8xf32>
    %v = ctran.peer_view %w at (%x : "x", %y : "y") : !ctran.window
    %r = ctran.reindex %v ["x" = 4]
    %b = ctran.range %r[%x : "x"]
    ctran.return)");
  auto box = resolveRange(find<RangeOp>(program));
  ASSERT_TRUE(succeeded(box));
  EXPECT_TRUE(box->view);
  EXPECT_EQ(box->space.dims.size(), 1u);
}

// The bounds of a box are those of the layout, whatever divides what.
TEST_F(Access, BoundsAgreeWithTheLayout) {
  for (auto partition : {machine::Partition::Balanced, machine::Partition::Chunked})
    for (int64_t extent = 0; extent < 30; ++extent)
      for (int64_t size = 1; size < 9; ++size)
        for (int64_t granule = 1; granule < 6; ++granule) {
          machine::Dim dim{std::nullopt, size, partition, granule};
          int64_t least = extent, most = 0;
          for (int64_t i = 0; i < size; ++i) {
            int64_t begin, end;
            machine::cut(partition, extent, size, granule, i, begin, end);
            least = std::min(least, end - begin);
            most = std::max(most, end - begin);
          }
          int64_t gotLeast, gotMost;
          pieceBounds(dim, extent, gotLeast, gotMost);
          ASSERT_EQ(gotLeast, least)
              << int(partition) << " " << extent << " " << size << " " << granule;
          ASSERT_EQ(gotMost, most)
              << int(partition) << " " << extent << " " << size << " " << granule;
        }
}

TEST_F(Access, KnowsEqualValuesByTheirDefinitions) {
  auto program = parse(R"(
    %v = ctran.coord_value %x : !ctran.coord<"x">
    %a = arith.addi %v, %c1 : index
    %b = arith.addi %v, %c1 : index
    %c = arith.addi %v, %c2 : index
    %d = arith.subi %v, %c1 : index
    %p = ctran.shift %x by %a : !ctran.coord<"x">
    %q = ctran.shift %x by %b : !ctran.coord<"x">
    %r = ctran.shift %x by %c : !ctran.coord<"x">
    %five = arith.constant 5 : index
    %s = ctran.shift %x by %c1 : !ctran.coord<"x">
    %t = ctran.shift %x by %five : !ctran.coord<"x">
    ctran.return)");
  auto add = [&](unsigned i) { return find<arith::AddIOp>(program, i).getResult(); };
  auto shift = [&](unsigned i) { return find<ShiftOp>(program, i).getResult(); };
  EXPECT_TRUE(sameValue(add(0), add(1)));
  EXPECT_FALSE(sameValue(add(0), add(2)));
  EXPECT_FALSE(sameValue(add(0), find<arith::SubIOp>(program).getResult()));
  EXPECT_TRUE(sameValue(shift(0), shift(1)));
  EXPECT_FALSE(sameValue(shift(0), shift(2)));
  EXPECT_TRUE(sameValue(shift(3), shift(4))); // 5 = 1 modulo 4
}

struct Symmetry {
  const char *body, *reason;
};
class Symmetric : public ProgramTest, public ::testing::WithParamInterface<Symmetry> {};

TEST_P(Symmetric, IsDecidedByUse) {
  auto program = parse(std::string(window) + GetParam().body + "\nctran.return");
  std::string reason;
  Operation *where = nullptr;
  EXPECT_EQ(isSymmetric(program, &reason, &where), *GetParam().reason == 0) << reason;
  EXPECT_NE(reason.find(GetParam().reason), std::string::npos) << reason;
  EXPECT_EQ(where != nullptr, *GetParam().reason != 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, Symmetric,
    ::testing::Values(
        Symmetry{"%p = ctran.shift %x by %c3 : !ctran.coord<\"x\">\n"
                 "%b = ctran.range %r[%p : \"x\", %c2]",
                 ""},
        Symmetry{"%v = ctran.coord_value %x : !ctran.coord<\"x\">", ""}, // nothing uses it
        Symmetry{"%v = ctran.coord_value %x : !ctran.coord<\"x\">\n"
                 "%b = ctran.range %r[%x : \"x\", %v]",
                 "the coordinate on axis \"x\" is used as a number"},
        Symmetry{"%v = ctran.table %y [0, 1] : !ctran.coord<\"y\">\n"
                 "%b = ctran.range %r[%x : \"x\", %v]",
                 "a table is indexed by the coordinate on axis \"y\""},
        Symmetry{"%v = ctran.peer_view %w at rank %c3 : !ctran.window",
                 "a peer is named by its rank number"},
        Symmetry{"%b = ctran.range %r[%c0]",
                 "a number indexes dimension 0 of window \"w\", which is bound to axis \"x\""},
        Symmetry{"%b = ctran.range %r from %c0 size %c2", "a number indexes dimension 0"},
        Symmetry{"%b = ctran.range %r from %c0 size %c4", ""},
        Symmetry{"%b = ctran.range %r from %x : \"x\" size %c4", ""},
        Symmetry{"%b = ctran.range %r[%x : \"x\"] from %c0 size %c2", ""},
        Symmetry{"%s = ctran.slots \"s\" [2, \"y\" = 2] per_run 1\n"
                 "%b = ctran.slot %s[%c0, %c1]",
                 "a number indexes dimension 1 of slots \"s\", which is bound to axis \"y\""},
        Symmetry{"%s = ctran.slots \"s\" [2, \"y\" = 2] per_run 1\n%b = ctran.slot %s[%c0]", ""}));

} // namespace

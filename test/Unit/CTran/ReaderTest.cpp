//===- ReaderTest.cpp - From a ctran.program to the abstract machine ----------------===//
#include "Programs.h"

#include "ncclx/CTran/Reader.h"
#include "ncclx/Machine/Prove.h"

using namespace mlir;
using namespace mlir::ctran;
using machine::OpKind;

namespace {

class Reader : public ProgramTest {
protected:
  /// The ops of one run; `why` when it did not end.
  std::vector<machine::Op> ops(const machine::Schedule &schedule,
                               const std::vector<int64_t> *point = nullptr) {
    std::vector<machine::Op> list;
    auto stream = schedule.open(point, 0);
    machine::Op op;
    machine::OpStream::Result result;
    while ((result = stream->next(op)) == machine::OpStream::Result::Op)
      list.push_back(op);
    why = result == machine::OpStream::Result::End ? "" : stream->why;
    return list;
  }
  std::unique_ptr<machine::Schedule> read(const std::string &text) {
    auto program = parse(text);
    auto schedule = readSchedule(program, &where);
    EXPECT_TRUE(succeeded(schedule));
    return std::move(*schedule);
  }
  SmallVector<Operation *> where;
  std::string why;
};

TEST_F(Reader, TellsTheDeclarations) {
  auto schedule = read(R"(
    %in = ctran.window "in" input 0 : memref<8x3xbf16>
    %w = ctran.window "w" scratch generations 3 peers load_store : memref<8xi64>
    %s = ctran.slots "s" ["x" = 4, 2] per_run 5 writers 2 generations 2 realisation consume
    ctran.return)");
  EXPECT_EQ(schedule->name, "p");
  EXPECT_EQ(schedule->grid.names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(schedule->grid.sizes, (std::vector<int64_t>{4, 2}));
  ASSERT_EQ(schedule->windows.size(), 2u);
  EXPECT_EQ(schedule->windows[0].role, machine::Window::Role::Input);
  EXPECT_EQ(schedule->windows[0].elementBytes, 2);
  EXPECT_EQ(schedule->windows[0].spaces[0].extent, 24);
  EXPECT_EQ(schedule->windows[1].peers, machine::Window::Peers::LoadStore);
  EXPECT_EQ(schedule->windows[1].generations, 3);
  ASSERT_EQ(schedule->slots.size(), 1u);
  EXPECT_EQ(schedule->slots[0].perRun, 5);
  EXPECT_EQ(schedule->slots[0].writers, 2);
  EXPECT_EQ(schedule->slots[0].dims.size(), 2u);
  EXPECT_EQ(schedule->slots[0].realisation, machine::Slots::Realisation::Consume);
}

TEST_F(Reader, EachRunBeginsWithEntryAndEndsWithExit) {
  auto schedule = read(R"(
    %f = ctran.flush after %entry on host
    ctran.return %f, %entry : !ctran.token, !ctran.token)");
  auto list = ops(*schedule);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].kind, OpKind::Entry);
  EXPECT_EQ(list[0].lane.kind, machine::LaneKind::User);
  EXPECT_EQ(list[1].after, std::vector{list[0].token});
  EXPECT_EQ(list[2].kind, OpKind::Exit);
  EXPECT_EQ(list[2].lane.kind, machine::LaneKind::User);
  EXPECT_EQ(list[2].after, (std::vector{list[1].token, list[0].token}));
}

TEST_F(Reader, CarriesTokensAndNumbersThroughLoops) {
  // Two carried values change places: moves must happen at once.
  auto schedule = read(R"(
    %s = ctran.slots "s" [] per_run 0
    %slot = ctran.slot %s
    %r:3 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %c1, %b = %c2, %t = %entry) -> (index, index, !ctran.token) {
      %sum = arith.muli %a, %c4 : index
      %v = arith.addi %sum, %b : index
      %w = ctran.wait %slot >= %v after %t on sm[%i]
      scf.yield %b, %a, %w : index, index, !ctran.token
    }
    %z = arith.subi %r#0, %r#1 : index
    %e = ctran.wait %slot >= %z after %r#2 on host
    ctran.return %e : !ctran.token)");
  auto list = ops(*schedule);
  ASSERT_EQ(list.size(), 6u);
  std::vector<int64_t> ks, lanes;
  for (auto &op : list) {
    ks.push_back(op.k);
    lanes.push_back(op.lane.index);
  }
  EXPECT_EQ(ks, (std::vector<int64_t>{0, 6, 9, 6, 1, 0}));
  EXPECT_EQ(lanes, (std::vector<int64_t>{0, 0, 1, 2, 0, 0}));
  for (size_t i = 1; i < list.size(); ++i)
    EXPECT_EQ(list[i].after, std::vector{list[i - 1].token});
}

TEST_F(Reader, LoopsThatDoNotRunKeepWhatEntered) {
  auto schedule = read(R"(
    %t = scf.for %i = %c3 to %c1 step %c1 iter_args(%a = %entry) -> (!ctran.token) {
      %f = ctran.flush after %a on host
      scf.yield %f : !ctran.token
    }
    ctran.return %t : !ctran.token)");
  auto list = ops(*schedule);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1].after, std::vector{list[0].token});
}

TEST_F(Reader, TellsCoordinatesAsDisplacements) {
  auto schedule = read(R"(
    %w = ctran.window "w" scratch peers put : memref<8xf32>
    %r = ctran.reindex %w ["x" = 4, 2]
    %again = ctran.reindex %w ["x" = 4, 2]
    %t = scf.for %i = %c1 to %c4 step %c2 iter_args(%a = %entry) -> (!ctran.token) {
      %minus = arith.subi %c0, %i : index
      %p = ctran.shift %x by %minus : !ctran.coord<"x">
      %v = ctran.peer_view %again at (%p : "x", %y : "y") : !ctran.window
      %from = ctran.range %r[%p : "x", %c1]
      %to = ctran.range %v[%x : "x", %c1]
      %c = ctran.copy %from to %to after %a on nic {note = "put"}
      scf.yield %c : !ctran.token
    }
    ctran.return %t : !ctran.token)");
  // Equal spaces of a window are one.
  EXPECT_EQ(schedule->windows[0].spaces.size(), 2u);
  std::vector<int64_t> point{2, 1};
  const std::vector<int64_t> *points[] = {nullptr, &point};
  for (const std::vector<int64_t> *at : points) {
    auto list = ops(*schedule, at);
    ASSERT_EQ(list.size(), 4u);
    const machine::Op &put = list[1];
    EXPECT_TRUE(put.reads[0].path[0].own);
    EXPECT_EQ(put.reads[0].path[0].value, 3);
    EXPECT_FALSE(put.reads[0].peer.remote);
    EXPECT_FALSE(put.reads[0].path[1].own);
    EXPECT_EQ(put.reads[0].path[1].value, 1);
    EXPECT_TRUE(put.writes[0].peer.remote);
    EXPECT_EQ(put.writes[0].peer.shift, (llvm::SmallVector<int64_t, 4>{3, 0}));
    EXPECT_EQ(put.writes[0].path[0].value, 0);
    EXPECT_EQ(put.reads[0].space, put.writes[0].space);
    EXPECT_EQ(list[2].writes[0].peer.shift, (llvm::SmallVector<int64_t, 4>{1, 0}));
    EXPECT_EQ(schedule->locations[put.location].op, "put");
    EXPECT_EQ(where[put.location]->getName().getStringRef(), "ctran.copy");
  }
}

TEST_F(Reader, BranchesByRankAndOnlyThenIsAsymmetric) {
  auto schedule = read(R"(
    %f = ctran.flush after %entry on host
    %v = ctran.coord_value %x : !ctran.coord<"x">
    %k = ctran.table %x [7, 5, 3, 1] : !ctran.coord<"x">
    %is = arith.cmpi uge, %v, %c2 : index
    %s = ctran.slots "s" [] per_run 0
    %slot = ctran.slot %s
    %t = scf.if %is -> !ctran.token {
      %w = ctran.wait %slot >= %k after %f on sm
      scf.yield %w : !ctran.token
    } else {
      scf.yield %f : !ctran.token
    }
    ctran.return %t : !ctran.token)");
  auto symmetric = ops(*schedule);
  EXPECT_EQ(symmetric.size(), 2u); // up to the first use
  EXPECT_EQ(why, "the coordinate on axis \"x\" is used as a number");
  std::vector<int64_t> low{1, 0}, high{3, 1};
  auto list = ops(*schedule, &low);
  EXPECT_EQ(why, "");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[2].after, std::vector{list[1].token});
  list = ops(*schedule, &high);
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[2].k, 1);
  EXPECT_EQ(list[3].after, std::vector{list[2].token});
}

TEST_F(Reader, ReduceTakesAnIntervalApart) {
  auto schedule = read(R"(
    %w = ctran.window "w" scratch : memref<8xf32>
    %r = ctran.reindex %w ["x" = 4]
    %f = ctran.reindex %w [4]
    %all = ctran.range %r from %c0 size %c4
    %two = ctran.range %f from %c1 size %c2
    %none = ctran.range %f from %c4 size %c0
    %mine = ctran.range %r[%x : "x"]
    %t = ctran.reduce sum accumulate f32 %all, %two, %none into %mine after %entry on sm
    %u = ctran.copy %two to %two after %t on ce
    %v = ctran.copy %all to %all after %u on ce
    ctran.return %v : !ctran.token)");
  auto list = ops(*schedule);
  ASSERT_EQ(list.size(), 5u);
  ASSERT_EQ(list[1].reads.size(), 6u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(list[1].reads[i].path[0].own);
    EXPECT_EQ(list[1].reads[i].path[0].value, i);
    EXPECT_EQ(list[1].reads[i].count, -1);
  }
  EXPECT_EQ(list[1].reads[5].path[0].value, 2);
  EXPECT_EQ(list[2].reads[0].count, 2);
  EXPECT_EQ(list[2].reads[0].first.value, 1);
  EXPECT_EQ(list[3].reads[0].count, -1); // all of a dimension is the box above it
  EXPECT_TRUE(list[3].reads[0].path.empty());
  // On a rank the order is that of the numbers.
  std::vector<int64_t> point{2, 0};
  list = ops(*schedule, &point);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(list[1].reads[i].path[0].own);
    EXPECT_EQ(list[1].reads[i].path[0].value, i);
  }
}

TEST_F(Reader, ReduceTakesAnIntervalApartDownToTheLastDimension) {
  auto schedule = read(R"(
    %w = ctran.window "w" scratch : memref<24xf32>
    %r = ctran.reindex %w ["x" = 4, "y" = 2, 3]
    %all = ctran.range %r from %c0 size %c4
    %some = ctran.range %r[%x : "x", %y : "y"] from %c1 size %c1
    %one = ctran.range %r[%x : "x", %y : "y", %c0]
    %t = ctran.reduce sum accumulate f32 %all into %one after %entry on sm
    %u = ctran.reduce sum accumulate f32 %some into %one after %t on sm
    ctran.return %u : !ctran.token)");
  auto check = [](const machine::Op &op, bool own) {
    ASSERT_EQ(op.reads.size(), 24u);
    for (int i = 0; i < 24; ++i) {
      const machine::Indices &path = op.reads[i].path;
      ASSERT_EQ(path.size(), 3u);
      EXPECT_EQ(path[0].value, i / 6);
      EXPECT_EQ(path[1].value, i / 3 % 2);
      EXPECT_EQ(path[2].value, i % 3);
      EXPECT_EQ(path[0].own, own);
      EXPECT_EQ(path[1].own, own);
      EXPECT_FALSE(path[2].own);
      EXPECT_EQ(op.reads[i].count, -1);
    }
  };
  check(ops(*schedule)[1], true);
  std::vector<int64_t> point{2, 1};
  auto list = ops(*schedule, &point);
  check(list[1], false);
  ASSERT_EQ(list[2].reads.size(), 1u);
  EXPECT_EQ(list[2].reads[0].path[2].value, 1);
}

struct Sum {
  const char *op;
  int64_t a, b, value;
};
class Arithmetic : public ProgramTest, public ::testing::WithParamInterface<Sum> {};

TEST_P(Arithmetic, IsThatOfTheCode) {
  const Sum &sum = GetParam();
  auto program = parse("%a = arith.constant " + std::to_string(sum.a) + " : index\n" +
                       "%b = arith.constant " + std::to_string(sum.b) + " : index\n%v = " + sum.op +
                       "\n%s = ctran.slots \"s\" [] per_run 0\n%slot = ctran.slot %s\n"
                       "%t = ctran.wait %slot >= %v after %entry on host\n"
                       "ctran.return %t : !ctran.token");
  auto schedule = readSchedule(program);
  ASSERT_TRUE(succeeded(schedule));
  auto stream = (*schedule)->open(nullptr, 0);
  machine::Op op;
  ASSERT_EQ(stream->next(op), machine::OpStream::Result::Op);
  ASSERT_EQ(stream->next(op), machine::OpStream::Result::Op) << stream->why;
  EXPECT_EQ(op.k, sum.value) << sum.op;
}

INSTANTIATE_TEST_SUITE_P(
    All, Arithmetic,
    ::testing::Values(
        Sum{"arith.addi %a, %b : index", 5, -7, -2}, Sum{"arith.subi %a, %b : index", 5, 7, -2},
        Sum{"arith.muli %a, %b : index", -5, 7, -35}, Sum{"arith.divsi %a, %b : index", -7, 2, -3},
        Sum{"arith.floordivsi %a, %b : index", -7, 2, -4},
        Sum{"arith.ceildivsi %a, %b : index", -7, 2, -3},
        Sum{"arith.ceildivsi %a, %b : index", 7, 2, 4},
        Sum{"arith.remsi %a, %b : index", -7, 3, -1}, Sum{"arith.remui %a, %b : index", 7, 3, 1},
        Sum{"arith.divui %a, %b : index", -1, 2, INT64_MAX},
        Sum{"arith.minsi %a, %b : index", -1, 2, -1}, Sum{"arith.minui %a, %b : index", -1, 2, 2},
        Sum{"arith.maxsi %a, %b : index", -1, 2, 2}, Sum{"arith.maxui %a, %b : index", -1, 2, -1},
        Sum{"arith.xori %a, %b : index", 6, 3, 5},
        Sum{"affine.apply affine_map<(d0)[s0] -> ((d0 - 1) mod 4 + s0 floordiv 2)>(%a)[%b]", -2, 7,
            4},
        Sum{"affine.apply affine_map<(d0, d1) -> (d0 * 3 - d1 ceildiv 2)>(%a, %b)", 2, 7, 2}));

TEST_F(Reader, ComparesAndSelects) {
  const char *predicates[] = {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"};
  bool expected[][3] = {{0, 1, 0}, {1, 0, 1}, {1, 0, 0}, {1, 1, 0}, {0, 0, 1},
                        {0, 1, 1}, {0, 0, 0}, {0, 1, 0}, {1, 0, 1}, {1, 1, 1}};
  int64_t lefts[] = {-1, 2, 3};
  for (int p = 0; p < 10; ++p)
    for (int l = 0; l < 3; ++l) {
      auto schedule =
          read("%a = arith.constant " + std::to_string(lefts[l]) + " : index\n%q = arith.cmpi " +
               predicates[p] + ", %a, %c2 : index\n%v = arith.select %q, %c1, %c0 : index\n" + R"(
        %s = ctran.slots "s" [] per_run 0
        %slot = ctran.slot %s
        %t = ctran.wait %slot >= %v after %entry on host
        %no = arith.constant false
        %u = arith.select %no, %t, %entry : !ctran.token
        ctran.return %t, %u : !ctran.token, !ctran.token)");
      auto list = ops(*schedule);
      ASSERT_EQ(list.size(), 3u);
      EXPECT_EQ(list[1].k, expected[p][l]) << predicates[p] << " " << lefts[l];
      EXPECT_EQ(list[2].after, (std::vector{list[1].token, list[0].token}));
    }
}

// What has no meaning ends the stream with a reason, on every rank.
TEST_F(Reader, RefusesWhatHasNoValue) {
  struct Case {
    const char *text, *reason;
  } cases[] = {
      {"%q = arith.divsi %i, %c0 : index", "an index is divided by zero"},
      {"%m = arith.constant -1 : index\n%l = arith.constant -9223372036854775808 : index\n"
       "%q = arith.remsi %l, %m : index",
       "an index is divided by zero"},
  };
  std::vector<int64_t> point{0, 0};
  for (auto &test : cases) {
    auto schedule = read(R"(
      %s = ctran.slots "s" [] per_run 0
      %slot = ctran.slot %s
      %t = scf.for %i = %c1 to %c2 step %c1 iter_args(%a = %entry) -> (!ctran.token) {
    )" + std::string(test.text) +
                         R"(
        %w = ctran.wait %slot >= %q after %a on host
        scf.yield %w : !ctran.token
      }
      ctran.return %t : !ctran.token)");
    ops(*schedule);
    EXPECT_EQ(why, test.reason);
    ops(*schedule, &point);
    EXPECT_EQ(why, test.reason);
    EXPECT_NE(machine::prove(*schedule).verdict, machine::Verdict::Ok);
  }
}

TEST_F(Reader, RefusesNegativeIntervalsAndLanes) {
  auto schedule = read(R"(
    %w = ctran.window "w" scratch : memref<8xf32>
    %f = ctran.reindex %w [4]
    %t = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %entry) -> (!ctran.token) {
      %n = arith.subi %c1, %i : index
      %r = ctran.range %f from %c1 size %n
      %c = ctran.copy %r to %r after %a on ce
      scf.yield %c : !ctran.token
    }
    ctran.return %t : !ctran.token)");
  EXPECT_EQ(ops(*schedule).size(), 3u); // entry, one place, none
  EXPECT_EQ(why, "an interval is shorter than nothing or longer than its dimension");
  schedule = read(R"(
    %t = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %entry) -> (!ctran.token) {
      %n = arith.subi %c1, %i : index
      %c = ctran.flush after %a on sm[%n]
      scf.yield %c : !ctran.token
    }
    ctran.return %t : !ctran.token)");
  EXPECT_EQ(ops(*schedule).size(), 3u);
  EXPECT_EQ(why, "a lane has a negative index");
}

TEST_F(Reader, ScheduleOutlivesTheModule) {
  auto schedule = read(R"(
    %f = ctran.flush after %entry on host
    ctran.return %f : !ctran.token)");
  module = {};
  EXPECT_EQ(ops(*schedule).size(), 3u);
}

} // namespace

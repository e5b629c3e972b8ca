#include "Examples.h"
#include "Small.h"
#include "ncclx/Machine/Machine.h"

#include <gtest/gtest.h>

using namespace mlir::ctran::machine;
using namespace mlir::ctran::machine::examples;

namespace {

ProofOptions in(ProofMode mode) {
  ProofOptions options;
  options.mode = mode;
  return options;
}

ProofResult proveAll(const Schedule &s) { return prove(s, in(ProofMode::AllRanks)); }
ProofResult proveOne(const Schedule &s) { return prove(s, in(ProofMode::Representative)); }

TEST(Prove, RightSchedulesInBothModes) {
  for (const char *name : {"direct 1",
                           "direct 2",
                           "direct 5",
                           "direct 4 counted",
                           "doubling 1",
                           "doubling 4",
                           "two-shot 1",
                           "two-shot 5",
                           "one-shot 5",
                           "ring 1",
                           "ring 2",
                           "ring 7",
                           "ring 7 pieces=3",
                           "ring 64",
                           "ring 2,3",
                           "ring 3,1,2",
                           "ring 2,2,3 pieces=3",
                           "ring 4,4,4",
                           "bruck 1",
                           "bruck 6",
                           "bruck 13",
                           "bruck-intervals 7",
                           "bruck-intervals 13"}) {
    ExampleRef s = byName(name);
    ProofResult all = proveAll(*s), one = proveOne(*s);
    EXPECT_TRUE(all) << name << ": " << all.str();
    EXPECT_TRUE(one) << name << ": " << one.str();
    EXPECT_EQ(all.serialForm, ProofResult::SerialForm::Holds) << name << all.serialFormFailsAt;
    EXPECT_EQ(one.serialForm, ProofResult::SerialForm::Holds) << name << one.serialFormFailsAt;
    for (size_t i = 0; i < s->slots.size(); ++i)
      EXPECT_LE(all.slots[i].lead, one.slots[i].lead) << name << " " << s->slots[i].name;
    EXPECT_EQ(prove(*s).mode, ProofMode::Representative);
  }
}

TEST(Prove, ManyRanksByOneRepresentative) {
  for (const ExampleRef &s : {ringAllReduce({8, 16, 32, 32}), ringAllReduce({8, 16, 32, 32}, 4),
                              recursiveDoubling(17), ringAllReduce({1024})}) {
    ProofResult result = prove(*s);
    EXPECT_TRUE(result) << s->name << ": " << result.str();
    EXPECT_EQ(result.mode, ProofMode::Representative);
  }
}

TEST(Prove, AsymmetricProgramsTakeAllRanks) {
  ExampleRef s = pipelineSendRecv(6);
  ProofResult result = prove(*s);
  EXPECT_TRUE(result) << result.str();
  EXPECT_EQ(result.mode, ProofMode::AllRanks);
  EXPECT_NE(result.modeReason.find("compared"), std::string::npos);
  EXPECT_EQ(proveOne(*s).verdict, Verdict::Undecided);
}

TEST(Prove, OverTheBudgetIsSaid) {
  ProofOptions options;
  options.eventBudget = 100;
  ProofResult result = prove(*pipelineSendRecv(64), options);
  EXPECT_EQ(result.verdict, Verdict::Undecided);
  EXPECT_NE(result.message.find("budget of 100 ops"), std::string::npos) << result.message;
  EXPECT_EQ(prove(*ringAllReduce({64}), options).verdict, Verdict::Undecided);
  // Half of it for each of two runs, whoever finds it.
  ProofResult one = proveOne(*ringAllReduce({64}));
  EXPECT_TRUE(one);
  options.mode = ProofMode::Representative;
  one = prove(*ringAllReduce({64}), options);
  EXPECT_EQ(one.verdict, Verdict::Undecided);
  EXPECT_EQ(one.message, "a run has more than 50 ops");
}

TEST(Prove, PeersThatComeLateAreFollowedAllTheSame) {
  // The second tier's peers are met when the first has already lost order with ranks far away.
  for (std::vector<int64_t> grid : {std::vector<int64_t>{5, 7}, {7, 5}, {3, 4, 5}}) {
    ExampleRef s = ringAllReduce(grid, 2);
    ProofResult one = proveOne(*s), all = proveAll(*s);
    EXPECT_TRUE(one) << one.str();
    EXPECT_EQ(one.events * all.processes, all.events);
    for (size_t i = 0; i < s->slots.size(); ++i)
      EXPECT_EQ(one.slots[i].perRun, all.slots[i].perRun);
  }
}

TEST(Prove, WhatARunSignalsNeedNotBeDeclared) {
  for (const ExampleRef &s : {ringAllReduce({5}, 3), directAllGather(5)}) {
    std::vector<int64_t> declared;
    for (Slots &slots : s->slots)
      declared.push_back(std::exchange(slots.perRun, -1));
    for (ProofResult r : {proveOne(*s), proveAll(*s)}) {
      EXPECT_TRUE(r) << r.str();
      for (size_t i = 0; i < declared.size(); ++i)
        EXPECT_EQ(r.slots[i].perRun, declared[i]);
    }
  }
}

TEST(Prove, LeadsOfTheDirectGatherAllowConsuming) {
  ExampleRef s = directAllGather(4);
  ProofResult result = prove(*s);
  EXPECT_EQ(result.slots[0].lead, 1);
  EXPECT_EQ(result.slots[1].lead, 1);
  s->slots[0].realisation = s->slots[1].realisation = Slots::Realisation::Consume;
  EXPECT_TRUE(prove(*s)) << prove(*s).str();
  ExampleRef ring = ringAllReduce({4});
  ring->slots[1].realisation = Slots::Realisation::Consume; // data: two scratch slots, lead 2
  for (ProofMode mode : {ProofMode::AllRanks, ProofMode::Representative})
    EXPECT_EQ(prove(*ring, in(mode)).verdict, Verdict::Realisation);
  ExampleRef event = directAllGather(3);
  event->slots[0].realisation = Slots::Realisation::Event;
  EXPECT_EQ(prove(*event).verdict, Verdict::Realisation);
  ExampleRef packets = oneShotPackets(3);
  packets->slots[0].realisation = Slots::Realisation::Counter;
  EXPECT_TRUE(prove(*packets));
  ExampleRef inband = directAllGather(3);
  inband->slots[1].realisation = Slots::Realisation::Inband;
  EXPECT_EQ(prove(*inband).verdict, Verdict::Realisation);
}

//===- Entry, exit, compute, count --------------------------------------------===//

TEST(Prove, EntryAndExitArePartOfTheSchedule) {
  for (int64_t n : {1, 2, 3, 8}) {
    Small s = small::allReduceTwoShot(n, 10);
    EXPECT_TRUE(proveAll(s)) << proveAll(s).str();
    EXPECT_TRUE(proveOne(s)) << proveOne(s).str();
  }
  // A source that peers still pull from when the caller writes the next run's input.
  Small s = small::allReduceTwoShot(3, 10);
  for (size_t i = 0; i < s.ops.size(); ++i)
    if (s.ops[i].kind == OpKind::Sink)
      s.after[i].clear();
  for (ProofResult r : {proveAll(s), proveOne(s)}) {
    EXPECT_TRUE(r.verdict == Verdict::Undefined || r.verdict == Verdict::Race) << r.str();
  }
}

/// y = f(x) on the compute lane; an all-reduce of y follows it when `ordered`.
Small computeThenReduce(bool ordered, bool sourceAfter) {
  Small s = small::allReduceTwoShot(2, 8);
  s.windows[0].role = Window::Role::Scratch;
  s.windows.push_back(small::window("x", Window::Role::Input, 8, {}));
  Op compute;
  compute.kind = OpKind::Compute;
  compute.lane = small::compute();
  compute.reads = {small::box(2)};
  compute.writes = {small::box(0)};
  // Placed after entry; later indices of tokens move by one.
  s.ops.insert(s.ops.begin() + 1, compute);
  for (auto &tokens : s.after)
    for (size_t &t : tokens)
      t += t >= 1;
  s.after.insert(s.after.begin() + 1, ordered ? std::vector<size_t>{0} : std::vector<size_t>{});
  if (sourceAfter)
    s.after[2].push_back(1);
  return s;
}

TEST(Prove, ComputeMakesAValueThatASourceNames) {
  Small s = computeThenReduce(true, true);
  // The next run's compute waits for entry, hence for this run's readers.
  EXPECT_TRUE(prove(s)) << prove(s).str();
  Verdict verdict = prove(computeThenReduce(false, true)).verdict;
  EXPECT_TRUE(verdict == Verdict::Race || verdict == Verdict::Undefined);
  EXPECT_EQ(prove(computeThenReduce(true, false)).verdict, Verdict::Race);
}

TEST(Prove, CountNeedsItsBoxWrittenAndOrdered) {
  Small s = small::empty(1);
  s.windows = {small::window("n", Window::Role::Input, 1, {})};
  size_t entry = s.add(OpKind::Entry, small::user());
  size_t count = s.add(OpKind::Count, small::sm(), {entry});
  s.ops[count].reads = {small::box(0)};
  s.ops[count].countMax = 4;
  size_t exit = s.add(OpKind::Exit, small::user(), {count});
  EXPECT_TRUE(prove(s)) << prove(s).str();
  s.after[exit].clear(); // the next entry writes what count may still be reading
  EXPECT_EQ(prove(s).verdict, Verdict::Race);
  s.after[count].clear();
  EXPECT_NE(prove(s).verdict, Verdict::Ok);
  s.windows[0].role = Window::Role::Scratch;
  EXPECT_EQ(prove(s).verdict, Verdict::Undefined);
}

//===- Index spaces -----------------------------------------------------------===//

/// Writes halves through one space, reads thirds through another.
TEST(Prove, OtherSpacesOfAWindowOverlapEverywhere) {
  Small s = small::empty(1);
  s.windows = {small::window("w", Window::Role::Input, 6, {}),
               small::window("t", Window::Role::Scratch, 6, {Dim{std::nullopt, 3}})};
  Space halves = s.windows[0].spaces[0];
  halves.dims = {Dim{std::nullopt, 2}};
  s.windows[0].spaces.push_back(halves);
  Space thirds = halves;
  thirds.dims = {Dim{std::nullopt, 3}};
  s.windows[0].spaces.push_back(thirds);
  using namespace small;
  size_t entry = s.add(OpKind::Entry, user());
  size_t write = s.add(OpKind::Compute, compute(0), {entry});
  s.ops[write].writes = {box(0, {at(0)}, {}, 1)};
  size_t copy = s.add(OpKind::Copy, compute(1), {entry});
  s.ops[copy].reads = {box(0, {at(2)}, {}, 2)};
  s.ops[copy].writes = {box(1, {at(2)})};
  size_t exit = s.add(OpKind::Exit, user(), {write, copy});
  EXPECT_EQ(prove(s).verdict, Verdict::Race) << prove(s).str();
  s.after[copy].push_back(write); // in order: but of which values a third is made nobody knows
  EXPECT_EQ(prove(s).verdict, Verdict::Undecided) << prove(s).str();
  s.ops[copy].kind = OpKind::Compute; // a compute may read any mix
  EXPECT_TRUE(prove(s)) << prove(s).str();
  s.ops[copy].reads[0] = box(0, {}, {}, 2); // the whole is the whole in every space
  EXPECT_TRUE(prove(s)) << prove(s).str();
  (void)exit;
}

TEST(Prove, TooLargeForMemoryIsUndecided) {
  ExampleRef s = directAllGather(64);
  ProofOptions options;
  options.clockBudget = 1 << 10;
  ProofResult result = prove(*s, options);
  EXPECT_EQ(result.verdict, Verdict::Undecided) << result.str();
  EXPECT_NE(result.message.find("takes more than"), std::string::npos) << result.message;
}

TEST(Prove, PiecesAreAsTheSpaceOfTheBoxCutsThem) {
  // Gathered in pieces of one cut, claimed by a piece of another: of a whole array that is what the
  // other cut makes of it, in every run.
  ExampleRef s = directAllGather(2);
  EXPECT_TRUE(prove(*s));
  Space chunked = s->windows[0].spaces[0];
  chunked.dims[0].partition = Partition::Chunked;
  s->windows[0].spaces.push_back(chunked);
  auto m = std::make_shared<Mutant>(s, find(*s, "use"), [](Op &op, const Where &) {
    op.reads[0].space = 1;
    op.reads[0].path = {Index{true, 0, 0}};
    op.label.path = {Index{true, 0, 0}};
    return true;
  });
  EXPECT_TRUE(prove(*m)) << prove(*m).str();
  // Where a piece is missing there is no whole.
  Mutant partial(m, find(*s, "put"), [](Op &op, const Where &) {
    op.writes.front() = op.reads.front();
    return true;
  });
  EXPECT_NE(prove(partial).verdict, Verdict::Ok);
}

TEST(Prove, ResidentWindowsHoldTheOwnPieceOnly) {
  Small s = small::empty(3);
  s.windows = {small::window("shard", Window::Role::Input, 7, {Dim{0u, 3}})};
  s.windows[0].spaces[0].resident = true;
  using namespace small;
  size_t entry = s.add(OpKind::Entry, user());
  size_t source = s.add(OpKind::Source, user(), {entry});
  s.ops[source].reads = {box(0, {own(0)})};
  s.ops[source].label.path = {own(0)};
  size_t sink = s.add(OpKind::Sink, user());
  s.ops[sink].reads = {box(0)};
  EXPECT_TRUE(proveAll(s)) << proveAll(s).str();
  EXPECT_TRUE(proveOne(s)) << proveOne(s).str();
  s.ops[source].reads = {box(0, {own(0, 1)})};
  EXPECT_EQ(proveAll(s).verdict, Verdict::Invalid);
  EXPECT_EQ(proveOne(s).verdict, Verdict::Invalid);
}

//===- Sides of Theorem 1 -----------------------------------------------------===//

TEST(Prove, AConstantInABoundDimensionIsNoRepresentative) {
  ExampleRef s = directAllGather(3);
  Mutant m(s, find(*s, "put"), [](Op &op, const Where &) {
    op.writes[0].path[0] = {false, 0, 1};
    return true;
  });
  EXPECT_EQ(proveOne(m).verdict, Verdict::Undecided);
  ProofResult result = prove(m);
  EXPECT_EQ(result.mode, ProofMode::AllRanks);
  EXPECT_NE(result.verdict, Verdict::Ok);
  EXPECT_FALSE(result.modeReason.empty());
}

TEST(Prove, OneRankAloneMayBeWrong) {
  ExampleRef s = ringAllReduce({8});
  Mutant m(s, find(*s, "wait rs", 2), mutators()[0].second, 3);
  EXPECT_EQ(proveOne(m).verdict, Verdict::Undecided);
  ProofResult result = proveAll(m);
  EXPECT_TRUE(result.verdict == Verdict::Race || result.verdict == Verdict::Undefined ||
              result.verdict == Verdict::Result)
      << result.str();
  ASSERT_TRUE(result.witness.op);
  EXPECT_EQ(result.witness.op->rank, 3);
}

TEST(Prove, OrderBeyondTheWindowIsUndecidedNotARace) {
  // Rank x writes its block at x+1 .. and knows of it only through a chain of 8 signals.
  Small s = small::empty(64);
  using namespace small;
  s.windows = {window("w", Window::Role::Scratch, 64, {})};
  s.slots = {{"s", {Dim{std::nullopt, 9}}}};
  size_t write = s.add(OpKind::Compute, sm());
  s.ops[write].writes = {box(0)};
  for (int64_t hop = 0; hop < 8; ++hop) {
    size_t signal = s.add(OpKind::Signal, sm());
    s.ops[signal].slot = SlotRef{0, peer(1), {at(hop)}, {}, -1};
    size_t wait = s.add(OpKind::Wait, sm());
    s.ops[wait].slot = SlotRef{0, {}, {at(hop)}, {}, -1};
    s.ops[wait].k = 1;
  }
  size_t read = s.add(OpKind::Compute, sm());
  s.ops[read].reads = {box(0, {}, peer(-8))};
  ProofOptions one = in(ProofMode::Representative);
  one.runs = 1;
  one.widenings = 0;
  // The window is made from the peers +1 and -8: it holds -8, but not all that leads there.
  ProofResult narrow = prove(s, one);
  one.widenings = 3;
  ProofResult wide = prove(s, one);
  EXPECT_TRUE(wide) << wide.str();
  EXPECT_EQ(narrow.verdict, Verdict::Undecided) << narrow.str();
  ProofOptions automatic;
  automatic.runs = 1;
  automatic.widenings = 0;
  ProofResult all = prove(s, automatic); // falls back on all ranks
  EXPECT_TRUE(all) << all.str();
  EXPECT_EQ(all.mode, ProofMode::AllRanks);
}

//===- Deadlock and witness ---------------------------------------------------===//

/// Two lanes that only work because they are two.
Small crossed() {
  Small s = small::empty(2);
  using namespace small;
  s.slots = {{"a", {}}, {"b", {}}};
  auto signal = [&](Lane lane, unsigned slot) {
    size_t i = s.add(OpKind::Signal, lane);
    s.ops[i].slot = SlotRef{slot, peer(1), {}, {}, -1};
  };
  auto wait = [&](Lane lane, unsigned slot) {
    size_t i = s.add(OpKind::Wait, lane);
    s.ops[i].slot = SlotRef{slot, {}, {}, {}, -1};
    s.ops[i].k = 1;
  };
  wait(sm(0), 0);
  signal(sm(0), 1);
  signal(sm(1), 0);
  wait(sm(1), 1);
  return s;
}

TEST(Prove, SerialFormSaysWhatReliesOnItsLanes) {
  Small s = crossed();
  for (ProofMode mode : {ProofMode::AllRanks, ProofMode::Representative}) {
    ProofResult result = prove(s, in(mode));
    EXPECT_TRUE(result) << result.str();
    EXPECT_EQ(result.serialForm, ProofResult::SerialForm::Fails);
    EXPECT_NE(result.serialFormFailsAt.find("a["), std::string::npos) << result.serialFormFailsAt;
  }
}

TEST(Prove, AShrunkQueueDeadlocks) {
  Small s = crossed();
  // Three ops on sm0 before the signal on sm1 that the first of them needs.
  for (int i = 0; i < 2; ++i)
    s.add(OpKind::Nop, small::sm(0));
  std::rotate(s.ops.begin() + 2, s.ops.begin() + 4, s.ops.end());
  ProofOptions options;
  options.depth = 8;
  EXPECT_TRUE(prove(s, options)) << prove(s, options).str();
  options.depth = 2;
  ProofResult result = prove(s, options);
  EXPECT_EQ(result.verdict, Verdict::Deadlock) << result.str();
  EXPECT_NE(result.message.find("full"), std::string::npos) << result.message;
}

TEST(Prove, DeadlockNamesTheCycle) {
  ExampleRef s = ringAllReduce({4}, 1, 1);
  Mutant m(s, find(*s, "credit"), mutators()[0].second);
  ProofResult result = proveAll(m);
  EXPECT_EQ(result.verdict, Verdict::Deadlock);
  EXPECT_GE(result.witness.chain.size(), 3u);
  EXPECT_NE(result.message.find("nic0"), std::string::npos) << result.message;
  EXPECT_NE(result.message.find("waits for c0[]"), std::string::npos) << result.message;
}

TEST(Prove, WitnessNamesRankLaneStepRunAndSource) {
  Small s = small::allReduceTwoShot(3, 9);
  size_t wait = 0;
  for (size_t i = 0; i < s.ops.size(); ++i)
    if (s.ops[i].kind == OpKind::Wait && !wait)
      wait = i;
  s.ops[wait].kind = OpKind::Nop;
  s.ops[wait].slot.reset();
  ProofResult result = proveAll(s);
  ASSERT_TRUE(result.witness.op);
  EXPECT_EQ(result.witness.op->lane, small::sm());
  EXPECT_EQ(result.witness.op->run, 0);
  EXPECT_EQ(result.witness.op->step, 4);
  EXPECT_NE(result.message.find("sm0 step 4 of run 0"), std::string::npos) << result.message;
  EXPECT_NE(result.message.find("small.mlir:"), std::string::npos) << result.message;
}

TEST(Prove, OneLaneWaitsForASlot) {
  Small s = crossed();
  size_t i = s.add(OpKind::Wait, small::sm(2));
  s.ops[i].slot = SlotRef{0, {}, {}, {}, -1};
  s.ops[i].k = 1;
  EXPECT_EQ(prove(s).verdict, Verdict::Signal);
}

/// Two puts of a nic lane, which land in any order, and a receiver that waits for the notes of
/// those in `notified`.
Small twoPuts(std::vector<bool> notified) {
  using namespace small;
  Small s = empty(2);
  s.rxVisible = true;
  s.windows = {window("in", Window::Role::Input, 4, {Dim{std::nullopt, 2}}),
               window("out", Window::Role::Output, 4, {Dim{std::nullopt, 2}})};
  s.slots = {{"free", {}}, {"came", {Dim{std::nullopt, 2}}}};
  size_t entry = s.add(OpKind::Entry, user());
  size_t source = s.add(OpKind::Source, user(), {entry});
  s.ops[source].reads = {box(0)};
  s.ops[source].label.path = {own(0)};
  size_t told = s.add(OpKind::Signal, sm(), {source});
  s.ops[told].slot = SlotRef{0, peer(1), {}, {}, -1};
  size_t free = s.add(OpKind::Wait, nic(), {source});
  s.ops[free].slot = SlotRef{0, {}, {}, {}, -1};
  s.ops[free].k = 1;
  std::vector<size_t> done;
  for (int64_t i = 0; i < 2; ++i) {
    size_t put = s.add(OpKind::Copy, nic(), {free});
    s.ops[put].reads = {box(0, {at(i)})};
    s.ops[put].writes = {box(1, {at(i)}, peer(1))};
    if (notified[i])
      s.ops[put].slot = SlotRef{1, peer(1), {at(i)}, {}, -1};
    done.push_back(put);
  }
  for (int64_t i = 0; i < 2; ++i)
    if (notified[i]) {
      size_t wait = s.add(OpKind::Wait, sm());
      s.ops[wait].slot = SlotRef{1, {}, {at(i)}, {}, -1};
      s.ops[wait].k = 1;
      done.push_back(wait);
    }
  size_t sink = s.add(OpKind::Sink, user(), done);
  s.ops[sink].reads = {box(1)};
  s.ops[sink].label.path = {own(0, 1)};
  s.add(OpKind::Exit, user(), {sink});
  return s;
}

// A note of the last put says nothing of the one before, which may be late.
TEST(Prove, EachPutNeedsItsOwnNote) {
  EXPECT_TRUE(prove(twoPuts({true, true}))) << prove(twoPuts({true, true})).str();
  for (const auto &notified : {std::vector<bool>{false, true}, {true, false}})
    for (ProofMode mode : {ProofMode::AllRanks, ProofMode::Representative}) {
      ProofResult result = prove(twoPuts(notified), in(mode));
      EXPECT_EQ(result.verdict, Verdict::Race) << result.str();
    }
}

//===- What is not a schedule -------------------------------------------------===//

TEST(Prove, BadSchedulesAreRefusedNotFollowed) {
  auto change = [](std::function<void(Small &)> fn) {
    Small s = small::allReduceTwoShot(2, 8);
    fn(s);
    for (ProofMode mode : {ProofMode::AllRanks, ProofMode::Representative, ProofMode::Auto}) {
      ProofResult result = prove(s, in(mode));
      EXPECT_EQ(result.verdict, Verdict::Invalid) << result.str();
      EXPECT_FALSE(result.message.empty());
    }
    EXPECT_EQ(run(s).outcome, DataResult::Outcome::Invalid);
  };
  auto first = [](Small &s, OpKind kind) -> Op & {
    for (Op &op : s.ops)
      if (op.kind == kind)
        return op;
    return s.ops[0];
  };
  change([](Small &s) { s.grid.sizes = {0}; });
  change([](Small &s) { s.grid.sizes = {int64_t(1) << 40}; });
  change([](Small &s) { s.windows[0].spaces.clear(); });
  change([](Small &s) { s.windows[0].generations = 0; });
  change([](Small &s) { s.windows[0].spaces[0].dims[0].size = 3; });
  change([](Small &s) { s.slots[0].dims[0].axis = 4; });
  change([&](Small &s) { first(s, OpKind::Copy).reads[0].window = 9; });
  change([&](Small &s) { first(s, OpKind::Copy).reads[0].space = 9; });
  change([&](Small &s) { first(s, OpKind::Copy).reads[0].path.resize(5); });
  change([&](Small &s) { first(s, OpKind::Copy).writes.clear(); });
  change([&](Small &s) { first(s, OpKind::Copy).writes[0].peer.shift.clear(); });
  change([&](Small &s) { first(s, OpKind::Copy).writes[0].path[0].axis = 7; });
  change([&](Small &s) { first(s, OpKind::Wait).slot.reset(); });
  change([&](Small &s) { first(s, OpKind::Wait).slot->slots = 9; });
  change([&](Small &s) { first(s, OpKind::Wait).slot->count = 100; });
  change([&](Small &s) { first(s, OpKind::Signal).slot->path.resize(4); });
  change([&](Small &s) { first(s, OpKind::Sink).label.name = 5; });
  change([&](Small &s) { first(s, OpKind::Sink).label.summed = {40}; });
  change([](Small &s) { s.windows[1].peers = Window::Peers::None; });
}

} // namespace

//===- CombinationTest.cpp - By which kind, scale and divisor ---------------===//

#include "Small.h"
#include "ncclx/Machine/Machine.h"

#include <gtest/gtest.h>

using namespace mlir::ctran::machine;

namespace {

/// A two-shot all-reduce of three ranks whose sink demands `wanted`, and whose reduce is `made`.
Small reduction(Combination made, std::optional<Combination> wanted) {
  Small s = small::allReduceTwoShot(3, 9);
  for (Op &op : s.ops) {
    if (op.kind == OpKind::Reduce)
      op.combination = made;
    if (op.kind == OpKind::Sink)
      op.label.how = wanted;
  }
  return s;
}

ProofResult proveIn(ProofMode mode, const Schedule &s) {
  ProofOptions options;
  options.mode = mode;
  return prove(s, options);
}

void expectRefused(const Schedule &s, const std::string &says) {
  for (ProofMode mode : {ProofMode::AllRanks, ProofMode::Representative}) {
    ProofResult result = proveIn(mode, s);
    EXPECT_EQ(result.verdict, Verdict::Result) << result.str();
    EXPECT_NE(result.message.find(says), std::string::npos) << result.message;
  }
  EXPECT_EQ(run(s).outcome, DataResult::Outcome::Wrong);
}

void expectProved(const Schedule &s) {
  for (ProofMode mode : {ProofMode::AllRanks, ProofMode::Representative}) {
    ProofResult result = proveIn(mode, s);
    EXPECT_TRUE(result) << result.str();
  }
  EXPECT_TRUE(run(s)) << run(s).message;
}

TEST(Combination, IsWhatTheSinkDemands) {
  const Combination all[] = {{ReduceKind::Sum},      {ReduceKind::Min},
                             {ReduceKind::Max},      {ReduceKind::Prod},
                             {ReduceKind::Sum, 0.5}, {ReduceKind::Sum, std::nullopt, 3},
                             {ReduceKind::Sum, 2.0}, {ReduceKind::Sum, 0.5, 3}};
  for (const Combination &made : all) {
    expectProved(reduction(made, std::nullopt)); // any one way
    for (const Combination &wanted : all) {
      bool same =
          made.kind == wanted.kind && made.scale == wanted.scale && made.divide == wanted.divide;
      if (same)
        expectProved(reduction(made, wanted));
      else
        expectRefused(reduction(made, wanted), "expected");
    }
  }
}

// One rank alone combines nothing: it has no kind.
TEST(Combination, OfOneContributionHasNoKind) {
  Small s = small::allReduceTwoShot(1, 9);
  for (Op &op : s.ops)
    if (op.kind == OpKind::Sink)
      op.label.how = Combination{ReduceKind::Max};
  expectProved(s);
}

// Of what is summed over all ranks a sink may demand some, by their numbers.
TEST(Combination, AmongListedRanks) {
  for (auto [among, isRight] :
       {std::pair<std::vector<int64_t>, bool>{{2, 0, 1}, true}, {{0, 1}, false}, {{1}, false}}) {
    Small s = small::allReduceTwoShot(3, 9);
    for (Op &op : s.ops)
      if (op.kind == OpKind::Sink)
        op.label.among = among;
    ProofResult result = proveIn(ProofMode::AllRanks, s);
    EXPECT_EQ(result.verdict, isRight ? Verdict::Ok : Verdict::Result) << result.str();
    EXPECT_EQ(bool(run(s)), isRight);
    EXPECT_EQ(proveIn(ProofMode::Representative, s).verdict, Verdict::Invalid);
  }
}

/// The own contribution goes through `steps`, one after another, each over what the step before
/// left; with `also`, together with the other rank's input.
Small steps(const std::vector<std::pair<Combination, bool>> &list, Combination wanted) {
  Small s = small::empty(2);
  s.windows = {small::window("in", Window::Role::Input, 4, {}),
               small::window("acc", Window::Role::Scratch, 4, {})};
  s.collectives = {{"r", "all_reduce", "steps", {0}, 16, 0}};
  size_t entry = s.add(OpKind::Entry, small::user());
  size_t last = s.add(OpKind::Source, small::user(), {entry});
  s.ops[last].reads = {small::box(0)};
  s.ops[last].label.summed = {0};
  s.slots = {{"there", {}}, {"done", {}}};
  auto meet = [&](unsigned slots) {
    size_t told = s.add(OpKind::Signal, small::sm(), {last});
    s.ops[told].slot = SlotRef{slots, small::peer(1), {}, {}, -1};
    last = s.add(OpKind::Wait, small::sm());
    s.ops[last].slot = SlotRef{slots, {}, {}, {}, -1};
    s.ops[last].k = 1;
  };
  meet(0);
  bool first = true;
  for (const auto &[how, also] : list) {
    size_t i = s.add(OpKind::Reduce, small::sm(), {last});
    s.ops[i].combination = how;
    s.ops[i].reads = {small::box(first ? 0 : 1)};
    if (also)
      s.ops[i].reads.push_back(small::box(0, {}, small::peer(1)));
    s.ops[i].writes = {small::box(1)};
    last = i;
    first = false;
  }
  meet(1);
  size_t sink = s.add(OpKind::Sink, small::user(), {last});
  s.ops[sink].reads = {small::box(1)};
  s.ops[sink].label.summed = {0};
  s.ops[sink].label.how = wanted;
  s.add(OpKind::Exit, small::user(), {last});
  return s;
}

TEST(Combination, IsMadeOnce) {
  const Combination sum, max{ReduceKind::Max}, half{ReduceKind::Sum, 0.5},
      third{ReduceKind::Sum, std::nullopt, 3}, both{ReduceKind::Sum, std::nullopt, 2};
  expectProved(steps({{sum, true}}, sum));
  expectProved(steps({{sum, true}, {both, false}}, both));
  expectProved(steps({{sum, false}, {max, true}}, max));
  expectRefused(steps({{half, false}, {sum, true}}, half), "combines"); // one side alone is scaled
  expectRefused(steps({{half, false}, {half, false}}, half), "no single, plain contribution");
  expectRefused(steps({{sum, true}, {half, false}}, half), "no single, plain contribution");
  expectRefused(steps({{both, true}, {both, false}}, both), "divided already");
  expectRefused(steps({{max, true}, {third, false}}, max), "no sum");
  expectRefused(steps({{both, false}, {sum, true}}, sum), "combines"); // divided too early
}

} // namespace

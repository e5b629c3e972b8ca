//===- MutantTest.cpp - Broken schedules, and what the machine says -----------===//

#include "Examples.h"
#include "ncclx/Machine/Machine.h"

#include <gtest/gtest.h>

using namespace mlir::ctran::machine;
using namespace mlir::ctran::machine::examples;

namespace {

ProofResult proveIn(ProofMode mode, const Schedule &s) {
  ProofOptions options;
  options.mode = mode;
  options.serialForm = false;
  return prove(s, options);
}

Mutator mutator(const std::string &wanted) {
  for (const auto &[name, change] : mutators())
    if (name == wanted)
      return change;
  return nullptr;
}

//===- The reference's table --------------------------------------------------===//

struct Named {
  const char *what, *schedule, *note;
  int64_t nth;
  const char *change;
  std::vector<Verdict> expected; ///< on all ranks
};

class NamedMutants : public testing::TestWithParam<Named> {};

TEST_P(NamedMutants, AreRefused) {
  const Named &c = GetParam();
  ExampleRef base = byName(c.schedule);
  ASSERT_TRUE(base);
  std::string change = c.change;
  std::shared_ptr<Schedule> broken = base;
  if (change == "one generation")
    broken = oneShotPackets(4, 1);
  else if (change == "one way")
    broken = oneShotPackets(4, 2, true);
  else if (change == "swap")
    broken = twoShotAllReduce(4, 2, true);
  else {
    int64_t at = find(*base, c.note, c.nth);
    ASSERT_GE(at, 0);
    broken = std::make_shared<Mutant>(
        base, at, change == "own puts" ? Mutator(forgetOwnPuts) : mutator(change));
  }
  ProofResult all = proveIn(ProofMode::AllRanks, *broken);
  EXPECT_NE(std::find(c.expected.begin(), c.expected.end(), all.verdict), c.expected.end())
      << all.str();
  EXPECT_FALSE(all.message.empty());
  ProofResult one = proveIn(ProofMode::Representative, *broken);
  EXPECT_TRUE(one.verdict == Verdict::Race || one.verdict == Verdict::Result ||
              std::find(c.expected.begin(), c.expected.end(), one.verdict) != c.expected.end())
      << one.str();
}

constexpr Verdict race = Verdict::Race, undefined = Verdict::Undefined, result = Verdict::Result,
                  deadlock = Verdict::Deadlock, signal = Verdict::Signal;

INSTANTIATE_TEST_SUITE_P(
    Reference, NamedMutants,
    testing::Values(
        Named{"wait for data dropped", "ring 4", "wait rs", 1, "drop", {race, undefined}},
        Named{"notification of a put dropped", "ring 4", "ag put", 1, "notify", {deadlock}},
        Named{"credit signal dropped", "ring 4 slots=1", "credit", 0, "drop", {deadlock}},
        Named{"wrong peer, data and signal", "ring 5", "rs put", 1, "peer", {signal}},
        Named{"wrong peer, data only", "ring 5", "ag put", 1, "data_peer", {race}},
        Named{"destination offset shifted", "ring 4", "ag put", 0, "dst", {race}},
        Named{"source offset shifted", "two-shot 4", "pull", 0, "src", {result}},
        Named{"ready token not awaited", "direct 4", "wait rtr", 0, "drop", {race}},
        Named{"missing flush", "doubling 3", "flush", 0, "drop", {race}},
        Named{"source reused early", "ring 4", "exit", 0, "own puts", {race}},
        Named{"ready before own puts complete", "ring 4", "rtr ag", 0, "token", {race}},
        Named{"forwarded before received", "ring 4", "ag put", 1, "token", {race}},
        Named{"one credit too early", "ring 6", "wait credit", 3, "value", {race}},
        Named{"copy for sum", "ring 4", "reduce", 1, "copy", {result}},
        Named{"contribution twice", "ring 4", "reduce", 1, "twice", {result}},
        Named{"wait for one more than sent", "direct 4", "wait data", 0, "early", {deadlock}},
        Named{"packets: one generation", "one-shot 4", "", 0, "one generation", {race}},
        Named{"packets: no way back", "one-shot 4", "", 0, "one way", {race}},
        Named{"another block's bytes", "two-shot 4", "", 0, "swap", {undefined}},
        Named{"counted slot without back-pressure",
              "direct 4 counted",
              "wait rtr",
              0,
              "drop",
              {race, signal}}),
    [](const testing::TestParamInfo<Named> &info) { return "case" + std::to_string(info.index); });

//===- Every mutator on every schedule ----------------------------------------===//

/// Runs every order of the effects on memory; -1: still going after `limit` executions.
struct Orders {
  int64_t tried = 0;
  bool all = false;
  std::string wrong;
};

Orders tryAllOrders(const Schedule &s, int64_t runs, int64_t limit) {
  Orders out;
  std::vector<std::pair<size_t, size_t>> path; // chosen, of how many
  while (out.tried < limit) {
    size_t depth = 0;
    DataOptions options;
    options.runs = runs;
    options.choose = [&](size_t n) {
      if (depth == path.size())
        path.push_back({0, n});
      return path[depth++].first;
    };
    DataResult result = run(s, options);
    ++out.tried;
    if (!result) {
      out.wrong = result.message;
      return out;
    }
    while (!path.empty() && path.back().first + 1 == path.back().second)
      path.pop_back();
    if (path.empty()) {
      out.all = true;
      return out;
    }
    ++path.back().first;
  }
  return out;
}

TEST(Mutants, AllOrdersOfARightScheduleAreRight) {
  Orders orders = tryAllOrders(*directAllGather(2), 1, 20000);
  EXPECT_TRUE(orders.all) << orders.tried;
  EXPECT_GT(orders.tried, 20);
  EXPECT_EQ(orders.wrong, "");
}

TEST(Mutants, SomeOrderOfAWrongScheduleIsWrong) {
  ExampleRef base = recursiveDoubling(1);
  Mutant noFlush(base, find(*base, "flush"), mutator("drop"));
  Orders orders = tryAllOrders(noFlush, 1, 20000);
  EXPECT_NE(orders.wrong, "");
}

struct Tally {
  int mutants = 0, survivors = 0;
};

/// Where a change applies, at most `most` places, spread over the program.
std::vector<int64_t> places(const ExampleRef &base, const Mutator &change, size_t most) {
  std::vector<int64_t> all;
  std::vector<Op> ops = firstRun(*base);
  for (size_t i = 0; i < ops.size(); ++i)
    if (change(ops[i], ops[i].k))
      all.push_back(static_cast<int64_t>(i));
  std::vector<int64_t> out;
  for (size_t i = 0; i < std::min(most, all.size()); ++i)
    out.push_back(all[(i + 1) * all.size() / (std::min(most, all.size()) + 1)]);
  return out;
}

/// One and all ranks agree on every mutant, and a survivor is never wrong: in 100 random orders,
/// nor in the first orders of a systematic walk through all of them.
Tally sweep(bool mayBeEquivalent) {
  Tally tally;
  for (const char *name :
       {"direct 3", "direct 4 counted", "ring 3", "ring 4 slots=1", "ring 2,2", "ring 3 pieces=2",
        "doubling 2", "two-shot 3", "one-shot 3", "bruck 4"}) {
    ExampleRef base = byName(name);
    for (const auto &[kind, change] : mutators()) {
      // A token may repeat an order that is there anyway, and a stricter wait may hold as well.
      if (mayBeEquivalent != (kind == "token" || kind == "early"))
        continue;
      for (int64_t index : places(base, change, 2)) {
        Mutant broken(base, index, change);
        ProofResult all = proveIn(ProofMode::AllRanks, broken);
        ProofResult one = proveIn(ProofMode::Representative, broken);
        std::string what = std::string(name) + " " + kind + "@" + std::to_string(index);
        EXPECT_EQ(bool(all), bool(one)) << what << ": " << all.str() << " / " << one.str();
        ++tally.mutants;
        if (!all)
          continue;
        ++tally.survivors;
        for (uint64_t seed = 1; seed <= 100; ++seed) {
          DataResult data = run(broken, {.seed = seed});
          EXPECT_TRUE(data) << what << " seed " << seed << ": " << data.message;
        }
        Orders orders = tryAllOrders(broken, 2, 200);
        EXPECT_EQ(orders.wrong, "") << what;
        testing::Test::RecordProperty(what, base->locations[firstRun(*base)[index].location].op);
      }
    }
  }
  return tally;
}

TEST(Mutants, FewSurviveAndThoseAreNeverWrong) {
  Tally tally = sweep(false);
  EXPECT_GE(tally.mutants, 60);
  EXPECT_LE(tally.survivors * 20, tally.mutants) << tally.survivors << " of " << tally.mutants;
  RecordProperty("mutants", tally.mutants);
  RecordProperty("survivors", tally.survivors);
}

TEST(Mutants, ChangesThatMayBeHarmlessAreJudgedRight) {
  Tally tally = sweep(true);
  EXPECT_GE(tally.mutants, 30);
  EXPECT_LT(tally.survivors * 2, tally.mutants) << tally.survivors << " of " << tally.mutants;
}

/// What the prover refuses as a wrong result, undefined or deadlock does go wrong in an execution.
TEST(Mutants, WhatIsRefusedDoesGoWrong) {
  int refused = 0;
  for (const char *name : {"direct 3", "ring 3", "two-shot 3", "doubling 2"}) {
    ExampleRef base = byName(name);
    for (const auto &[kind, change] : mutators())
      for (int64_t index : places(base, change, 1)) {
        Mutant broken(base, index, change);
        Verdict verdict = proveIn(ProofMode::AllRanks, broken).verdict;
        if (verdict != Verdict::Result && verdict != Verdict::Undefined &&
            verdict != Verdict::Deadlock)
          continue;
        ++refused;
        bool bad = false;
        for (uint64_t seed = 1; seed <= 60 && !bad; ++seed)
          bad = !run(broken, {.seed = seed});
        EXPECT_TRUE(bad) << name << " " << kind << "@" << index << " " << toString(verdict);
      }
  }
  EXPECT_GE(refused, 10);
}

} // namespace

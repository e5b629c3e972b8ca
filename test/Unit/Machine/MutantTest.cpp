//===- MutantTest.cpp - Broken schedules, and what the machine says -----------===//

#include "Examples.h"
#include "Orders.h"
#include "ncclx/Machine/Machine.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>

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

//===- Every kind of mutation on every schedule -------------------------------===//

constexpr const char *schedules[] = {"direct 3",
                                     "direct 5",
                                     "direct 4 counted",
                                     "ring 3",
                                     "ring 4 slots=1",
                                     "ring 5",
                                     "ring 2,2",
                                     "ring 3 pieces=2",
                                     "doubling 2",
                                     "doubling 3",
                                     "two-shot 3",
                                     "two-shot 4",
                                     "one-shot 3",
                                     "one-shot 5",
                                     "bruck 4",
                                     "bruck-intervals 7",
                                     "alltoall 4",
                                     "alltoall 7 lanes=2",
                                     "permute 5",
                                     "permute 3 shift=2",
                                     "bidirectional 4",
                                     "bidirectional 5",
                                     "binomial 4",
                                     "binomial 7",
                                     "halving 2",
                                     "halving 3",
                                     "chunked 3 pieces=3",
                                     "stream 3",
                                     "stream 4 pieces=2 slots=3",
                                     "handoff 3",
                                     "pipeline 3"};

struct Tally {
  int schedules = 0, mutants = 0, survivors = 0, harmless = 0, open = 0;
  std::map<std::string, int> kinds;
  std::map<Verdict, int> verdicts;
  int64_t steps = 0, orders = 0;
};

/// One and all ranks agree on every mutation. Those that are proved are right in all orders, and
/// nothing in them is left to chance. Those that are refused and are right in all orders are
/// counted.
void judge(const ExampleRef &base, const Broken &broken, Tally &tally, bool explore) {
  std::string what = base->name + " " + broken.what;
  ProofOptions options;
  options.serialForm = broken.depth.has_value();
  options.depth = broken.depth;
  options.mode = ProofMode::AllRanks;
  ProofResult all = prove(*broken.schedule, options);
  options.mode = ProofMode::Representative;
  ProofResult one = prove(*broken.schedule, options);
  if (base->asymmetric || broken.asymmetric) {
    EXPECT_EQ(one.verdict, Verdict::Undecided) << what << ": " << one.str();
    options.mode = ProofMode::Auto;
    ProofResult automatic = prove(*broken.schedule, options);
    EXPECT_EQ(automatic.verdict, all.verdict) << what;
    EXPECT_EQ(automatic.mode, ProofMode::AllRanks) << what;
  } else {
    EXPECT_EQ(bool(all), bool(one)) << what << ": " << all.str() << " / " << one.str();
  }
  ++tally.mutants;
  ++tally.kinds[broken.kind];
  ++tally.verdicts[all.verdict];
  tally.survivors += bool(all);
  if (!explore)
    return;
  Orders orders =
      tryAllOrders(*broken.schedule, {.limit = all ? 1000 : 200, .depth = broken.depth});
  if (all) {
    EXPECT_TRUE(orders.right()) << what << ": " << orders.str();
    EXPECT_EQ(orders.races, 0) << what << ": " << orders.str();
    tally.steps += orders.steps;
    tally.orders += orders.tried;
    std::printf("survives: %-24s %-36s %s\n", base->name.c_str(), broken.what.c_str(),
                orders.str().c_str());
    return;
  }
  tally.harmless += orders.right();
  // A race may have no effect, and a rule of signals be broken without one; these may not.
  if (all.verdict == Verdict::Result || all.verdict == Verdict::Undefined ||
      all.verdict == Verdict::Deadlock)
    EXPECT_FALSE(orders.right()) << what << ": " << all.str() << "; " << orders.str();
  tally.open += !orders.all && orders.wrong.empty();
  // The executor is another account of the same rules.
  for (uint64_t seed = 1; seed <= 5 && orders.right() && !broken.depth; ++seed) {
    DataResult data = run(*broken.schedule, {.seed = seed});
    EXPECT_TRUE(data) << what << " seed " << seed << ": " << data.message << "; " << orders.str();
  }
}

void print(const Tally &tally) {
  std::printf("%d schedules, %d mutants, %d survive (%.1f %%)\n", tally.schedules, tally.mutants,
              tally.survivors, 100.0 * tally.survivors / std::max(1, tally.mutants));
  for (auto [verdict, count] : tally.verdicts)
    std::printf("  %-12s %d\n", toString(verdict), count);
  for (auto &[kind, count] : tally.kinds)
    std::printf("  of kind '%s': %d\n", kind.c_str(), count);
  if (!tally.orders)
    return;
  std::printf("survivors: %lld steps, %lld orders, all tried\n",
              static_cast<long long>(tally.steps), static_cast<long long>(tally.orders));
  std::printf("refused, but right in all orders: %d; not all orders tried, none wrong: %d\n",
              tally.harmless, tally.open);
}

TEST(Mutants, FewSurviveAndThoseAreRightInAllOrders) {
  Tally tally;
  for (const char *name : schedules) {
    ExampleRef base = byName(name);
    ProofOptions options;
    options.mode = ProofMode::AllRanks;
    options.depth = base->depth;
    ProofResult proof = prove(*base, options);
    EXPECT_TRUE(proof) << name << ": " << proof.str();
    Orders orders = tryAllOrders(*base, {.depth = base->depth});
    EXPECT_TRUE(orders.right() && orders.tried == 1) << name << ": " << orders.str();
    base->name = name;
    ++tally.schedules;
    for (const Broken &broken : mutations(base, SIZE_MAX))
      judge(base, broken, tally, true);
  }
  EXPECT_GE(tally.schedules, 20);
  EXPECT_GE(tally.mutants, 200);
  EXPECT_LE(tally.survivors * 20, tally.mutants) << tally.survivors << " of " << tally.mutants;
  print(tally);
}

/// Too many steps for all orders; what the same mutations come to on few ranks, is above.
TEST(Mutants, OneRankAndAllAgreeOnManyRanks) {
  Tally tally;
  for (const char *name :
       {"direct 24", "ring 64", "ring 4,4,4", "doubling 6", "bruck 32", "alltoall 16", "permute 64",
        "bidirectional 64", "halving 6", "chunked 16", "stream 64", "two-shot 16", "one-shot 24"}) {
    ExampleRef base = byName(name);
    for (ProofMode mode : {ProofMode::AllRanks, ProofMode::Representative})
      EXPECT_TRUE(proveIn(mode, *base)) << name << ": " << proveIn(mode, *base).str();
    ++tally.schedules;
    for (const Broken &broken : mutations(base, 1))
      judge(base, broken, tally, false);
  }
  print(tally);
}

/// What the prover refuses as a wrong result, undefined or deadlock does go wrong in an execution.
TEST(Mutants, WhatIsRefusedDoesGoWrong) {
  int refused = 0;
  for (const char *name : {"direct 3", "ring 3", "two-shot 3", "doubling 2"}) {
    ExampleRef base = byName(name);
    for (const Broken &broken : mutations(base, 1)) {
      Verdict verdict = proveIn(ProofMode::AllRanks, *broken.schedule).verdict;
      if (verdict != Verdict::Result && verdict != Verdict::Undefined &&
          verdict != Verdict::Deadlock)
        continue;
      ++refused;
      bool bad = false;
      for (uint64_t seed = 1; seed <= 60 && !bad; ++seed)
        bad = !run(*broken.schedule, {.seed = seed});
      EXPECT_TRUE(bad) << name << " " << broken.what << " " << toString(verdict);
    }
  }
  EXPECT_GE(refused, 10);
}

} // namespace

//===- MutantTest.cpp - Schedules that the compiler makes, broken ----------------------===//
//
// Of each form every op of every rank is broken in every way that test/Unit/Machine knows: a wait
// dropped, a peer or a place that is another, a token forgotten. What the prover accepts all the
// same, because something else keeps that order, goes right in adversarial orders on data.
//
//===----------------------------------------------------------------------===//
#include "Equivalence.h"

#include "../Machine/Examples.h"
#include "ncclx/Machine/Machine.h"

#include <gtest/gtest.h>
#include <map>

using namespace equivalence;
namespace machine = mlir::ctran::machine;
namespace examples = mlir::ctran::machine::examples;

namespace {

struct Tally {
  int mutants = 0, survivors = 0;
  std::map<std::string, int> verdicts;
};

std::vector<machine::Op> opsOf(const machine::Schedule &schedule, int64_t rank) {
  std::vector<int64_t> point = schedule.grid.pointOf(rank);
  auto stream = schedule.open(&point, 0);
  std::vector<machine::Op> ops;
  for (machine::Op op; stream->next(op) == machine::OpStream::Result::Op;)
    ops.push_back(op);
  return ops;
}

/// Those of test/Unit/Machine, and of peers that are told by rank.
std::vector<std::pair<std::string, examples::Mutator>> mutatorsFor(int64_t ranks) {
  auto turn = [ranks](machine::Peer &peer) {
    bool applies = peer.remote && peer.absolute;
    if (applies)
      peer.rank = (peer.rank + 1) % ranks;
    return applies;
  };
  auto all = examples::mutators();
  all.push_back({"rank", [turn](machine::Op &op, const examples::Where &) {
                   bool applies = op.slot && turn(op.slot->peer);
                   for (machine::Access &write : op.writes)
                     applies |= turn(write.peer);
                   return applies;
                 }});
  all.push_back({"data rank", [turn](machine::Op &op, const examples::Where &) {
                   return op.slot && !op.writes.empty() && turn(op.writes[0].peer);
                 }});
  all.push_back({"interval", [](machine::Op &op, const examples::Where &) {
                   bool applies =
                       !op.reads.empty() && op.reads[0].count > 0 && op.reads[0].first.value > 0;
                   if (applies)
                     --op.reads[0].first.value;
                   return applies;
                 }});
  return all;
}

/// What a source names is there before it is named: for the bytes it makes no difference which of
/// the two a read comes behind.
bool readsGiven(const std::vector<machine::Op> &ops, const machine::Op &op) {
  for (const machine::Op &source : ops)
    for (const machine::Access &read : op.reads)
      if (source.kind == machine::OpKind::Source && source.reads[0].window == read.window)
        return true;
  return false;
}

void breakEach(const machine::Schedule &schedule, Tally &tally) {
  // It outlives what is made of it.
  std::shared_ptr<const machine::Schedule> base(&schedule, [](const machine::Schedule *) {});
  int64_t ranks = schedule.grid.numRanks();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<machine::Op> ops = opsOf(schedule, rank);
    for (size_t op = 0; op < ops.size(); ++op)
      for (const auto &[kind, mutator] : mutatorsFor(ranks)) {
        bool byRank = ops[op].slot ? ops[op].slot->peer.absolute
                                   : !ops[op].writes.empty() && ops[op].writes[0].peer.absolute;
        if ((kind == "peer" || kind == "data_peer") && byRank)
          continue; // it is no shift
        if (kind == "token" && readsGiven(ops, ops[op]))
          continue;
        examples::Mutant mutant(base, int64_t(op), mutator, rank);
        machine::ProofOptions options;
        options.mode = machine::ProofMode::AllRanks;
        options.serialForm = false;
        machine::ProofResult proof = machine::prove(mutant, options);
        if (mutant.hits == 0)
          continue;
        ++tally.mutants;
        ++tally.verdicts[machine::toString(proof.verdict)];
        if (!proof) {
          EXPECT_FALSE(proof.message.empty());
          EXPECT_NE(proof.verdict, machine::Verdict::Undecided) << proof.str();
          continue;
        }
        ++tally.survivors;
        for (uint64_t seed = 1; seed <= 4; ++seed) {
          machine::DataResult data = machine::run(mutant, {.seed = seed});
          EXPECT_TRUE(data) << kind << " of op " << op << " of rank " << rank << ": "
                            << data.message;
        }
      }
  }
}

using Make = std::function<void(GraphText &)>;
struct Form {
  std::string name;
  Grid grid;
  Make make;
};
Axes listed(std::vector<Shape> groups) {
  Axes axes;
  axes.groups = std::move(groups);
  return axes;
}
const std::string sumF32 = "sum accumulate f32 order any";

/// Small ones: each is proved some hundred times.
const std::vector<Form> &forms() {
  static const Axes some = listed({{2, 0, 3}, {1, 4}}), even = listed({{0, 2}, {3, 1}});
  static const std::vector<Form> all = {
      {"gather ring",
       {{"x", 4}},
       [](GraphText &g) {
         g.algorithm = "ring";
         g.result(g.gather(g.argument({1}, "f32"), 0, 4, 1, {"x"}));
       }},
      {"scatter ring",
       {{"x", 4}},
       [](GraphText &g) {
         g.algorithm = "ring";
         g.result(g.scatter(g.argument({3}, "f32"), 0, 2, {"x"}));
       }},
      {"all_to_all_v ring",
       {{"x", 3}},
       [](GraphText &g) {
         g.algorithm = "ring";
         g.result(g.allToAllV(g.argument({6}, "f32"), 0, {{1, 0, 2}, {1, 1, 1}, {2, 3, 0}}, {"x"}));
       }},
      {"all_to_all streamed",
       {{"x", 3}},
       [](GraphText &g) {
         g.algorithm = "bruck";
         g.pipeline = "chunks = 2, depth = 2";
         g.result(g.allToAll(g.argument({6, 2}, "f32"), 0, 0, {"x"}));
       }},
      {"reduce_scatter streamed, uneven",
       {{"x", 3}},
       [](GraphText &g) {
         g.algorithm = "bruck";
         g.pipeline = "chunks = 2, depth = 1";
         g.result(g.reduceScatter(g.argument({5}, "f32"), 0, sumF32, {"x"}));
       }},
      {"all_gather eager, listed",
       {{"x", 4}},
       [](GraphText &g) {
         g.algorithm = "eager";
         g.result(g.allGather(g.argument({2}, "f32"), 0, 3, even));
       }},
      {"broadcast eager, of two sizes",
       {{"x", 5}},
       [](GraphText &g) {
         g.algorithm = "eager";
         g.result(g.broadcast(g.argument({20000}, "f32"), 1, some));
       }},
      {"gather eager, listed",
       {{"x", 4}},
       [](GraphText &g) {
         g.algorithm = "eager";
         g.result(g.gather(g.argument({20000}, "f32"), 0, 40000, 1, even));
       }},
      {"all_reduce ring, of two sizes",
       {{"x", 5}},
       [](GraphText &g) {
         g.algorithm = "ring";
         g.result(g.allReduce(g.argument({9}, "f32"), sumF32, some));
       }},
      {"all_reduce bruck, of two sizes",
       {{"x", 5}},
       [](GraphText &g) {
         g.algorithm = "bruck";
         g.result(g.allReduce(g.argument({9}, "f32"), sumF32, some));
       }},
  };
  return all;
}

void expectBroken(const Form &form, const std::string &transport) {
  SCOPED_TRACE(form.name + " over " + transport);
  GraphText g(form.grid);
  form.make(g);
  Tally tally;
  std::string wrong = inspect(g, transport, [&](mlir::ncclx::Compilation &compilation) {
    breakEach(compilation.machine(), tally);
  });
  EXPECT_EQ(wrong, "");
  EXPECT_GE(tally.mutants, 40);
  EXPECT_LT(2 * tally.survivors, tally.mutants);
  printf("%-32s %s: %d mutants, %d survive;", form.name.c_str(), transport.c_str(), tally.mutants,
         tally.survivors);
  for (auto &[verdict, count] : tally.verdicts)
    printf(" %s %d", verdict.c_str(), count);
  printf("\n");
}

TEST(SlowCompiledMutants, WhatIsProvedGoesRight) {
  for (const Form &form : forms())
    for (const char *transport : {"shm", "tcp"})
      expectBroken(form, transport);
}
TEST(CompiledMutants, OfAGatherRoundARing) { expectBroken(forms().front(), "tcp"); }

} // namespace

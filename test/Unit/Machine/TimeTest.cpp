#include "Examples.h"
#include "Small.h"
#include "ncclx/Machine/Machine.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace mlir::ctran::machine;
using namespace mlir::ctran::machine::examples;

namespace {

/// Every rank has one link out and one link in of `bandwidth` bytes a second; a signal takes
/// `latency`; compute takes its flops as seconds.
class Links : public CostModel {
public:
  Links(int64_t ranks, double bandwidth, double latency, bool orbit = false)
      : ranks(ranks), bandwidth(bandwidth), latency(latency), orbit(orbit) {}
  unsigned numResources() const override { return static_cast<unsigned>(2 * ranks); }
  double capacity(unsigned) const override { return bandwidth; }
  Cost move(const OpCostQuery &q) const {
    Cost cost;
    for (const Part &read : q.reads)
      use(cost, read.rank, q.rank, read.bytes);
    for (const Part &write : q.writes)
      use(cost, q.rank, write.rank, write.bytes);
    return cost;
  }
  Cost copy(const OpCostQuery &q) const override { return move(q); }
  Cost reduce(const OpCostQuery &q) const override { return move(q); }
  Cost compute(const OpCostQuery &q) const override {
    Cost cost;
    cost.before = q.op->flops;
    return cost;
  }
  Cost signal(const OpCostQuery &q) const override {
    Cost cost;
    cost.landing = q.signalled == q.rank ? 0 : latency;
    return cost;
  }
  bool symmetric() const override { return orbit; }

private:
  void use(Cost &cost, int64_t from, int64_t to, int64_t bytes) const {
    if (from == to || bytes == 0)
      return;
    cost.work = std::max(cost.work, static_cast<double>(bytes));
    cost.uses.push_back({static_cast<unsigned>(orbit ? 0 : 2 * from), 1});
    cost.uses.push_back({static_cast<unsigned>(orbit ? 1 : 2 * to + 1), 1});
  }
  int64_t ranks;
  double bandwidth, latency;
  bool orbit;
};

TEST(Time, ADirectGatherTakesTheBytesThatAPortSends) {
  // 3 puts of 100 elements of 4 bytes, one after the other on one copy engine.
  ExampleRef s = directAllGather(4);
  s->windows[0].spaces[0].extent = 400;
  Links links(4, 1e6, 1e-5);
  TimeResult result = simulate(*s, links);
  ASSERT_TRUE(result.ok) << result.message;
  // The ready tokens travel once, the puts take 3 * 400 us, the last signal travels.
  EXPECT_NEAR(result.makespan, 1e-5 + 3 * 400e-6 + 1e-5, 1e-9);
  EXPECT_EQ(result.windowBytes[0], 1600);
  EXPECT_EQ(result.processes, 4);
}

TEST(Time, WhatTakesLongerThanAskedForIsGivenUp) {
  ExampleRef s = ringAllReduce({4});
  for (Window &w : s->windows)
    w.spaces[0].extent *= 240;
  Links links(4, 1e6, 1e-5);
  TimeResult result = simulate(*s, links);
  ASSERT_TRUE(result.ok) << result.message;
  TimeOptions options;
  options.horizon = result.makespan;
  TimeResult again = simulate(*s, links, options);
  ASSERT_TRUE(again.ok) << again.message;
  EXPECT_EQ(again.makespan, result.makespan);
  // Below what its links have to carry, and a little below what it takes.
  for (double part : {0.1, 0.99}) {
    options.horizon = part * result.makespan;
    TimeResult late = simulate(*s, links, options);
    EXPECT_TRUE(late.late && !late.ok) << part;
  }
}

TEST(Time, TransfersThatFollowEachOtherAreCounted) {
  Links links(4, 1e6, 1e-5);
  EXPECT_EQ(simulate(*directAllGather(4), links).hops, 1);
  EXPECT_EQ(simulate(*recursiveDoubling(2), links).hops, 2);
  EXPECT_EQ(simulate(*ringAllReduce({4}), links).hops, 6);
}

TEST(Time, OneRepresentativeKeepsTheSameClock) {
  for (const char *name : {"direct 4", "ring 4", "ring 2,3", "two-shot 4"}) {
    ExampleRef s = byName(name);
    int64_t n = s->grid.numRanks();
    for (Window &w : s->windows)
      w.spaces[0].extent *= 240;
    TimeResult all = simulate(*s, Links(n, 1e6, 1e-5));
    TimeResult one = simulate(*s, Links(n, 1e6, 1e-5, true));
    ASSERT_TRUE(all.ok) << all.message;
    ASSERT_TRUE(one.ok) << one.message;
    EXPECT_EQ(one.processes, 1);
    EXPECT_NEAR(all.makespan, one.makespan, all.makespan * 1e-6) << name;
  }
}

/// Two copies at once, from lanes of their own.
Small twoCopies(int64_t firstTo, int64_t secondTo) {
  using namespace small;
  Small s = empty(3);
  s.windows = {window("a", Window::Role::Scratch, 1000, {}),
               window("b", Window::Role::Scratch, 250, {})};
  for (int64_t i : {0, 1}) {
    size_t copy = s.add(OpKind::Copy, {LaneKind::CE, i});
    s.ops[copy].reads = {box(i)};
    s.ops[copy].writes = {box(i, {}, peer(i ? secondTo : firstTo))};
  }
  s.has = [](int64_t rank, size_t) { return rank == 0; };
  return s;
}

TEST(Time, FlowsShareALinkMaxMinFairly) {
  Links links(3, 1000, 0);
  // 4000 and 1000 bytes out of one link: halves until the short one ends at 2 s.
  TimeResult result = simulate(twoCopies(1, 2), links);
  ASSERT_TRUE(result.ok) << result.message;
  ASSERT_EQ(result.ops.size(), 2u);
  EXPECT_NEAR(result.ops[1].end, 2.0, 1e-9);
  EXPECT_NEAR(result.ops[0].end, 5.0, 1e-9);
}

TEST(Time, ACapacityOfZeroIsSaid) {
  TimeResult result = simulate(twoCopies(1, 2), Links(3, 0, 0));
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.message.find("capacity"), std::string::npos) << result.message;
}

TEST(Time, AScheduleThatDoesNotEndIsSaid) {
  ExampleRef s = ringAllReduce({4}, 1, 1);
  Mutant m(s, find(*s, "credit"), mutators()[0].second);
  TimeResult result = simulate(m, Links(4, 1e6, 1e-5));
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.message.find("never gets past"), std::string::npos) << result.message;
}

/// compute a (2 s); copy on ce (4 s); compute b after both; compute c independent of the copy (1
/// s).
Small overlapped() {
  using namespace small;
  Small s = empty(2);
  s.collectives = {{"p", "permute", "direct", {0}, 4000, 0}};
  s.windows = {window("w", Window::Role::Scratch, 1000, {})};
  s.windows.push_back(window("v", Window::Role::Scratch, 1000, {}));
  s.slots = {{"d", {}}};
  size_t a = s.add(OpKind::Compute, compute());
  s.ops[a].flops = 2;
  size_t copy = s.add(OpKind::Copy, {LaneKind::CE, 0});
  s.ops[copy].reads = {box(0)};
  s.ops[copy].writes = {box(1, {}, peer(1))};
  size_t signal = s.add(OpKind::Signal, {LaneKind::CE, 0});
  s.ops[signal].slot = SlotRef{0, peer(1), {}, {}, -1};
  size_t wait = s.add(OpKind::Wait, {LaneKind::CE, 0});
  s.ops[wait].slot = SlotRef{0, {}, {}, {}, -1};
  s.ops[wait].k = 1;
  for (size_t i : {copy, signal, wait})
    s.ops[i].collective = 0;
  size_t c = s.add(OpKind::Compute, compute());
  s.ops[c].flops = 1;
  size_t b = s.add(OpKind::Compute, compute(), {wait});
  s.ops[b].flops = 3;
  return s;
}

TEST(Time, ExposedIsWhatTheComputeWaitsFor) {
  // The copy takes 4 s from 0; compute fills 0 to 3; b waits from 3 to 4 + latency.
  TimeResult result = simulate(overlapped(), Links(2, 1000, 0.25));
  ASSERT_TRUE(result.ok) << result.message;
  EXPECT_NEAR(result.makespan, 7.25, 1e-9);
  EXPECT_NEAR(result.collectives[0].exposedMax, 1.25, 1e-9);
  EXPECT_NEAR(result.collectives[0].exposedMean, 1.25, 1e-9);
  EXPECT_NEAR(result.exposedOtherMax, 0, 1e-9);
  EXPECT_NEAR(result.computeMax, 6, 1e-9);
  EXPECT_NEAR(result.collectives[0].firstIssue, 0, 1e-9);
  EXPECT_NEAR(result.collectives[0].lastCompletion, 4.25, 1e-9);
}

TEST(Time, TraceIsAnArrayOfEventsWithNamedLanes) {
  Small s = overlapped();
  s.locations[0].op = "a \"quoted\" name";
  TimeResult result = simulate(s, Links(2, 1000, 0.25));
  std::string text;
  llvm::raw_string_ostream os(text);
  writeTrace(os, traceEvents(s, result, " (predicted)"));
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  ASSERT_TRUE(static_cast<bool>(parsed)) << llvm::toString(parsed.takeError());
  const llvm::json::Array *events = parsed->getAsArray();
  ASSERT_TRUE(events);
  int64_t spans = 0, names = 0;
  double longest = 0;
  for (const llvm::json::Value &value : *events) {
    const llvm::json::Object &event = *value.getAsObject();
    if (event.getString("ph") == "X") {
      ++spans;
      longest = std::max(longest, event.getNumber("dur").value_or(0));
      EXPECT_TRUE(event.getInteger("tid"));
    }
    if (event.getString("name") == "process_name") {
      ++names;
      EXPECT_TRUE(event.getObject("args")->getString("name")->ends_with("(predicted)"));
    }
  }
  EXPECT_EQ(spans, 12);
  EXPECT_EQ(names, 2);
  EXPECT_NEAR(longest, 4e6, 1);
}

} // namespace

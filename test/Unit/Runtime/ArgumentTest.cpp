//===- ArgumentTest.cpp - What a wrong plan or call gets ------------------===//
#include "Harness.h"

#include <cstring>
#include <gtest/gtest.h>
#include <utility>

using namespace harness;
using ncclxrt::LaunchedRank;

namespace {

PlanSpec smallSpec() {
  PlanSpec spec;
  spec.windows = {{"in", 64, 1, ncclxrtRoleInput}, {"out", 64, 2, ncclxrtRoleOutput}};
  spec.slots = {{"flag", 4, 1, 0}};
  return spec;
}

struct Bad {
  std::function<int32_t(int64_t)> program;
  ncclxrtResult_t code;
  const char *message;
};

int32_t put(int64_t exec, Box to, Box from, int64_t slots = -1, int64_t peer = -1,
            int64_t index = 0) {
  return copy(0, exec, 1, ce, to, from, slots, peer, index);
}

const Box good0 = whole(0, -1, 0, 8), good1 = whole(1, -1, 0, 8);
constexpr int64_t huge = INT64_MAX;

const std::vector<Bad> &bads() {
  static const std::vector<Bad> all = {
      {[](int64_t e) { return put(e, whole(2, -1, 0, 8), good0); }, ncclxrtInvalidArgument,
       "destination: there is no window 2, the plan has 2"},
      {[](int64_t e) { return put(e, good1, whole(-1, -1, 0, 8)); }, ncclxrtInvalidArgument,
       "source: there is no window -1"},
      {[](int64_t e) { return put(e, whole(1, 1, 0, 8), good0); }, ncclxrtInvalidArgument,
       "destination: there is no rank 1, the job has 1"},
      {[](int64_t e) { return put(e, whole(1, -2, 0, 8), good0); }, ncclxrtInvalidArgument,
       "there is no rank -2"},
      {[](int64_t e) { return put(e, whole(1, -1, 57, 8), good0); }, ncclxrtInvalidArgument,
       "do not lie in window 'out' of 64 bytes"},
      {[](int64_t e) { return put(e, whole(1, -1, -1, 8), good0); }, ncclxrtInvalidArgument,
       "offset -1"},
      {[](int64_t e) { return put(e, {1, -1, 0, 3, 30, 8}, {0, -1, 0, 3, 8, 8}); },
       ncclxrtInvalidArgument, "do not lie in window"},
      {[](int64_t e) { return put(e, {1, -1, 0, huge, huge, 8}, good0); }, ncclxrtInvalidArgument,
       "do not lie in window"},
      {[](int64_t e) { return put(e, {1, -1, huge, 2, huge, 2}, good0); }, ncclxrtInvalidArgument,
       "do not lie in window"},
      {[](int64_t e) { return put(e, {1, -1, 0, 2, 3, 4}, good0); }, ncclxrtInvalidArgument,
       "overlap in a destination"},
      {[](int64_t e) { return put(e, {1, -1, 0, -1, 8, 8}, good0); }, ncclxrtInvalidArgument,
       "do not lie in window"},
      {[](int64_t e) { return put(e, whole(1, -1, 0, 9), good0); }, ncclxrtInvalidArgument,
       "the source has 8 bytes, the destination 9"},
      {[](int64_t e) { return put(e, good1, good0, 1, 0, 0); }, ncclxrtInvalidArgument,
       "there are no slots 1"},
      {[](int64_t e) { return put(e, good1, good0, 0, 5, 0); }, ncclxrtInvalidArgument,
       "notify: there is no rank 5"},
      {[](int64_t e) { return put(e, good1, good0, 0, 0, 4); }, ncclxrtInvalidArgument,
       "slots 'flag' have 4 counters"},
      {[](int64_t e) { return ncclxrt_wait(0, e, 1, ce, 0, 2, 3, 1); }, ncclxrtInvalidArgument,
       "slots 'flag' have 4 counters, expected [2, 2 + 3)"},
      {[](int64_t e) { return ncclxrt_wait(0, e, 1, ce, 0, huge, huge, 1); },
       ncclxrtInvalidArgument, "slots 'flag' have 4 counters"},
      {[](int64_t e) { return ncclxrt_signal(0, e, 1, ce, -1, 0, 0); }, ncclxrtInvalidArgument,
       "there are no slots -1"},
      {[](int64_t e) { return ncclxrt_signal(0, e, 1, ce, 0, 1, 0); }, ncclxrtInvalidArgument,
       "there is no rank 1"},
      {[](int64_t e) { return ncclxrt_count(0, e, 1, ce, 2, 0, 8, 1); }, ncclxrtInvalidArgument,
       "the size: there is no window 2"},
      {[](int64_t e) { return ncclxrt_count(0, e, 1, ce, 0, 57, 8, 1); }, ncclxrtInvalidArgument,
       "the size: offset 57"},
      {[](int64_t e) { return ncclxrt_count(0, e, 1, ce, 0, 0, 2, 1); }, ncclxrtInvalidArgument,
       "a size of 2 bytes, expected 4 or 8"},
      {[](int64_t e) { return ncclxrt_count(0, e, 1, ce, 0, 0, 8, -1); }, ncclxrtInvalidArgument,
       "the size at byte 0 of window 'in' is 0, expected 0 to -1"},
      {[](int64_t e) { return ncclxrt_choose(0, e, 1, ce, 2, 1); }, ncclxrtInvalidArgument,
       "the choice: there is no window 2"},
      {[](int64_t e) { return ncclxrt_choose(0, e, 1, ce, 0, 0); }, ncclxrtInvalidArgument,
       "the choice in window 'in' is 0, expected 0 to -1"},
      {[](int64_t e) { return ncclxrt_choose(ncclxrt_choose(0, e, 1, ce, 0, 1), e, 1, ce, 0, 0); },
       ncclxrtInvalidArgument, "the choice in window 'in' is 0, expected 0 to -1"},
      {[](int64_t e) { return ncclxrt_agree(0, e, 1, ce, 2, ncclxrtI32); }, ncclxrtInvalidArgument,
       "the number: there is no window 2"},
      {[](int64_t e) { return ncclxrt_agree(0, e, 1, ce, 0, ncclxrtE5m2); }, ncclxrtInvalidArgument,
       "ranks cannot agree on dtype 13"},
      {[](int64_t e) { return ncclxrt_agree(0, e, 1, ce, 0, -1); }, ncclxrtInvalidArgument,
       "ranks cannot agree on dtype -1"},
      {[](int64_t e) { return ncclxrt_flush(0, e, 99, ce); }, ncclxrtInvalidArgument,
       "there is no op 99, the plan has 8"},
      {[](int64_t e) { return ncclxrt_complete(0, e, 1, 3); }, ncclxrtInvalidArgument,
       "there is no lane 3, the plan has 3"},
      {[](int64_t e) { return reduce(0, e, 1, 4, ncclxrtF32, ncclxrtF32, good1, good0, 1, 0); },
       ncclxrtInvalidArgument, "4 is no kind of reduction"},
      {[](int64_t e) { return reduce(0, e, 1, 0, 14, 14, good1, good0, 1, 0); },
       ncclxrtInvalidArgument, "dtype 14 cannot be accumulated in dtype 14"},
      {[](int64_t e) {
         return reduce(0, e, 1, 0, ncclxrtI32, ncclxrtI32, good1, good0, 1, 0, {-1, 0, 0, 0, 0, 0},
                       0.5);
       },
       ncclxrtInvalidArgument, "only floats are"},
      {[](int64_t e) {
         return reduce(0, e, 1, 0, ncclxrtF32, ncclxrtF32, good1, good0, 1, 0, {-1, 0, 0, 0, 0, 0},
                       1, 0);
       },
       ncclxrtInvalidArgument, "a divisor of 0, expected at least 1"},
      {[](int64_t e) { return reduce(0, e, 1, 0, ncclxrtI64, ncclxrtI32, good1, good0, 1, 0); },
       ncclxrtInvalidArgument, "cannot be accumulated"},
      {[](int64_t e) { return reduce(0, e, 1, 0, ncclxrtF32, ncclxrtI32, good1, good0, 1, 0); },
       ncclxrtInvalidArgument, "cannot be accumulated"},
      {[](int64_t e) {
         return reduce(0, e, 1, 0, ncclxrtF32, ncclxrtF32, whole(1, -1, 0, 6), whole(0, -1, 0, 6),
                       1, 0);
       },
       ncclxrtInvalidArgument, "rows of 6 bytes are not whole elements of 4 bytes"},
      {[](int64_t e) { return reduce(0, e, 1, 0, ncclxrtF32, ncclxrtF32, good1, good0, 0, 0); },
       ncclxrtInvalidArgument, "expected at least one"},
      {[](int64_t e) { return reduce(0, e, 1, 0, ncclxrtF32, ncclxrtF32, good1, good0, 9, 8); },
       ncclxrtInvalidArgument, "moved by up to 64"},
      {[](int64_t e) {
         return reduce(0, e, 1, 0, ncclxrtF32, ncclxrtF32, good1, good0, huge, huge);
       },
       ncclxrtInvalidArgument, "expected at least one and a step >= 0"},
      {[](int64_t e) {
         int32_t s = ncclxrt_operand(0, e, 1, ce, 9, -1, 0, 1, 8, 8);
         return reduce(s, e, 1, 0, ncclxrtF32, ncclxrtF32, good1, good0, 1, 0);
       },
       ncclxrtInvalidArgument, "an operand: there is no window 9"},
      {[](int64_t e) {
         int32_t s = ncclxrt_operand(0, e, 1, ce, 0, -1, 0, 1, 4, 4);
         return reduce(s, e, 1, 0, ncclxrtF32, ncclxrtF32, good1, good0, 1, 0);
       },
       ncclxrtInvalidArgument, "an operand has 4 bytes, the destination"},
      {[](int64_t e) { return ncclxrt_operand(0, e, 1, 3, 0, -1, 0, 1, 4, 4); },
       ncclxrtInvalidArgument, "there is no lane 3"},
      {[](int64_t e) { return ncclxrt_compute_end(0, e, 1, ce); }, ncclxrtInvalidUsage,
       "compute_end without compute_begin"},
      {[](int64_t e) {
         return ncclxrt_compute_begin(ncclxrt_compute_begin(0, e, 1, ce), e, 1, ce);
       },
       ncclxrtInvalidUsage, "another computation has not ended"},
      {[](int64_t e) { return ncclxrt_address(e, 7) == 0 ? ncclxrt_flush(0, e, 1, ce) : 0; },
       ncclxrtInvalidArgument, "the address of window 7"},
      {[](int64_t e) { return int32_t(ncclxrt_address(e, 7)); }, ncclxrtInvalidArgument,
       "there is no window 7"},
      {[](int64_t) { return 42; }, ncclxrtAborted, "the program ended with status 42"},
  };
  return all;
}

TEST(Arguments, AWrongPlanIsAnErrorAndNoCrash) {
  for (const char *transport : {"shm", "tcp"})
    for (const Bad &bad : bads()) {
      Job job;
      job.mode = Mode::Threads;
      job.nranks = 1;
      job.transport = transport;
      auto outcomes = run(job, [&](const LaunchedRank &launched) {
        Rank me(launched.config());
        me.prepare(smallSpec());
        ncclxrtResult_t result = me.tryRun(bad.program);
        check(result == bad.code, std::string("found ") + ncclxrtResultString(result));
        check(me.error().find(bad.message) != std::string::npos, me.error());
        check(me.error().find("rank 0, plan 'test', run 0") != std::string::npos, me.error());
      });
      EXPECT_TRUE(outcomes[0].exit.ok()) << bad.message << ": " << outcomes[0].text;
    }
}

TEST(Arguments, AStatusPassesThrough) {
  EXPECT_EQ(ncclxrt_flush(5, 0, 0, 0), 5);
  EXPECT_EQ(ncclxrt_wait(5, 0, 0, 0, 0, 0, 0, 0), 5);
  EXPECT_EQ(ncclxrt_signal(5, 0, 0, 0, 0, 0, 0), 5);
  EXPECT_EQ(ncclxrt_join(0, 0), 0);
  EXPECT_EQ(ncclxrt_join(3, 4), 3);
  EXPECT_EQ(ncclxrt_join(0, 4), 4);
  EXPECT_EQ(ncclxrt_flush(0, 0, 0, 0), ncclxrtInvalidUsage); // no program runs
  EXPECT_EQ(ncclxrt_rank(0), -1);
  EXPECT_EQ(ncclxrt_address(0, 0), 0);
  EXPECT_EQ(ncclxrt_choose(5, 0, 0, 0, 0, 2), 5);
  EXPECT_EQ(ncclxrt_agree(5, 0, 0, 0, 0, ncclxrtI32), 5);
  EXPECT_EQ(ncclxrt_branch(0), -1);
}

TEST(Arguments, OverTcpWhatNeedsAPeersMemoryIsRefused) {
  Job job;
  job.transport = "tcp";
  job.nranks = 3;
  for (int kind = 0; kind < 3; ++kind) {
    auto outcomes = run(job, [&](const LaunchedRank &launched) {
      Rank me(launched.config());
      me.prepare(smallSpec());
      int other = (me.rank + 1) % 3, third = (me.rank + 2) % 3;
      ncclxrtResult_t result = me.tryRun([&](int64_t exec) {
        switch (kind) {
        case 0: // a get
          return put(exec, good1, whole(0, other, 0, 8));
        case 1: // a put that notifies a third rank
          return put(exec, whole(1, other, 0, 8), good0, 0, third, 0);
        default: // one that notifies its sender
          return put(exec, whole(1, other, 0, 8), good0, 0, -1, 0);
        }
      });
      // The first reason of the three ranks wins, and the others hear of it.
      check(result == ncclxrtUnsupported || result == ncclxrtAborted, "result");
      check(me.error().find(kind ? "only the rank it goes to knows when it has landed"
                                 : "transport tcp cannot load from") != std::string::npos,
            me.error());
    });
    for (const Outcome &o : outcomes)
      EXPECT_TRUE(o.exit.ok()) << o.text;
  }
}

TEST(Arguments, OverShmAGetAndAThirdRanksSlotWork) {
  Job job;
  job.nranks = 3;
  each(job, [](Rank &me) {
    me.prepare(smallSpec());
    me.buffer(0)[0] = std::byte(me.rank + 1);
    int other = (me.rank + 1) % 3, third = (me.rank + 2) % 3;
    me.run([&](int64_t exec) {
      int32_t s = ncclxrt_signal(0, exec, 0, ce, 0, third, 0); // my input is ready: third gets it
      s = ncclxrt_wait(s, exec, 1, ce, 0, 0, 1, 1);
      s = copy(s, exec, 2, ce, good1, whole(0, other, 0, 8), 0, other, 1);
      return ncclxrt_wait(s, exec, 3, ce, 0, 1, 1, 1);
    });
    check(me.buffer(1)[0] == std::byte(other + 1), "what was got");
  });
}

TEST(Prepare, DifferentPlansAreAnErrorThatNamesWho) {
  for (const char *transport : {"shm", "tcp"}) {
    Job job;
    job.transport = transport;
    job.nranks = 4;
    each(job, [](Rank &me) {
      auto expect = [&](const PlanSpec &spec, ncclxrtResult_t code, const std::string &message) {
        ncclxrtResult_t result = me.tryPrepare(spec);
        check(result == code && me.error().find(message) != std::string::npos,
              std::string(ncclxrtResultString(result)) + ": " + me.error());
      };
      PlanSpec spec = smallSpec();
      if (me.rank == 2)
        spec.hash = 0xbad;
      expect(spec, ncclxrtPlanMismatch,
             "rank 2 has hash 0x0000000000000bad, where rank 0 has hash 0x0000000000000001");
      spec = smallSpec();
      if (me.rank == 0)
        spec.windows[1].bytes = 65;
      expect(spec, ncclxrtPlanMismatch,
             "rank 0 has window 'out' of 65 bytes, 2 generations, role 2, where rank 1 has window "
             "'out' of 64 bytes");
      spec = smallSpec();
      if (me.rank >= 2)
        spec.slots.push_back({"more", 1, 1, 0});
      expect(spec, ncclxrtPlanMismatch, "rank 2 has slots 'more'");
      spec = smallSpec();
      if (me.rank == 3)
        spec.numOps = 9;
      expect(spec, ncclxrtPlanMismatch, "rank 3 has 9 ops");
      spec = smallSpec();
      if (me.rank == 1)
        spec.windows[0].generations = 0;
      expect(spec, ncclxrtInvalidArgument,
             "rank 1 cannot prepare it: plan 'test': window 0: expected bytes < 2^63 and "
             "generations >= 1");
      spec = smallSpec();
      if (me.rank == 1)
        spec.windows[0].bytes = uint64_t(1) << 60;
      expect(spec, ncclxrtOutOfMemory, "rank 1 cannot prepare it: windows and slots need");
      spec = smallSpec();
      spec.slots[0].writers = -1;
      expect(spec, ncclxrtInvalidArgument, "writers >= 0, found 4, 1, -1");
      spec = smallSpec();
      if (me.rank == 2)
        spec.slots[0].writers = 1;
      expect(spec, ncclxrtPlanMismatch,
             "rank 2 has slots 'flag', count 4, 1 generations, 1 writers");
      spec = smallSpec();
      spec.slots[0].count = int64_t(1) << 60;
      expect(spec, ncclxrtInvalidArgument, "more than 2^63 bytes");
      // Sizes that the graph leaves open: the ranks agree, and stay in the range.
      spec = smallSpec();
      spec.sizes = {{"m", "dimension 1 of argument 0", 0, 8, 1, 3},
                    {"n", "dimension 0 of argument 0", 0, 64, 4, me.rank == 1 ? 12 : 8}};
      spec.hash = spec.sizes[1].value;
      expect(spec, ncclxrtPlanMismatch, "rank 1 has size 'n' = 12, where rank 0 has size 'n' = 8");
      for (auto [value, max, rule] : {std::tuple(68, 64, "0 to 64, a multiple of 4"),
                                      std::tuple(-4, 64, "0 to 64, a multiple of 4"),
                                      std::tuple(6, 64, "0 to 64, a multiple of 4"),
                                      std::tuple(4, 0, "0, a multiple of 4")}) {
        spec.sizes[1].max = max;
        spec.sizes[1].value = me.rank == 2 ? value : 0;
        expect(spec, ncclxrtInvalidArgument,
               "rank 2 cannot prepare it: plan 'test': size 'n' (dimension 0 of argument 0) is " +
                   std::to_string(value) + ", expected " + rule);
      }
      spec.sizes[1] = {nullptr, nullptr, 0, 8, 0, 0};
      expect(spec, ncclxrtInvalidArgument, "size 1: expected 0 <= min <= max and multiple >= 1");
      // The communicator is none the worse.
      me.prepare(smallSpec());
      me.run([](int64_t exec) { return put(exec, good1, good0); });
    });
  }
}

TEST(Prepare, WhatCannotBeSharedIsAnError) {
  Job job;
  job.nranks = 2;
  each(job, [](Rank &me) {
    PlanSpec spec = smallSpec();
    spec.windows.push_back({"scratch", 64, 1, ncclxrtRoleScratch});
    me.prepare(spec);
    ncclxrtPlan_t first = std::exchange(me.plan, nullptr);
    auto expect = [&](std::vector<ncclxrtSharing_t> sharing, ncclxrtResult_t code,
                      const std::string &message) {
      spec.sharing = std::move(sharing);
      ncclxrtResult_t result = me.tryPrepare(spec);
      check(result == code && me.error().find(message) != std::string::npos,
            std::string(ncclxrtResultString(result)) + ": " + me.error());
    };
    const auto wrong = ncclxrtInvalidArgument;
    expect({{0, nullptr, 0}}, wrong, "which is none of this communicator");
    expect({{0, first, 3}}, wrong, "window 0: is to be window 3 of plan 'test', which has 3");
    expect({{3, first, 0}}, wrong, "shares window 3, but has 3");
    expect({{0, first, 0}, {0, first, 0}}, wrong, "window 0: is shared twice");
    expect({{2, first, 0}}, wrong, "window 'scratch' has role 0 and 1 generations");
    expect({{0, first, 1}}, wrong, "window 'out' has role 2 and 2 generations");
    spec.windows[0].bytes = 65;
    expect({{0, first, 0}}, wrong, "has 65 bytes, but is to be window 'in' of plan 'test', which");
    spec.windows[0].bytes = 64;
    if (me.rank == 1)
      expect({}, ncclxrtPlanMismatch, "rank 1 has window 'out'");
    else
      expect({{0, first, 0}}, ncclxrtPlanMismatch, "window 'in' in window 0 of plan number 0");
    spec.sharing = {{0, first, 0}};
    me.prepare(spec); // the communicator is none the worse
    me.destroyPlan();
    me.plan = first;
  });
}

// A buffer belongs to one communicator. When that goes, another one of the process does not notice.
TEST(Prepare, TwoCommunicatorsShareNoBuffer) {
  ncclxrtComm_t comms[2] = {};
  ncclxrtPlan_t plans[2] = {};
  ncclxrtWindowDesc_t window = {};
  window.name = "x";
  window.bytes = 64;
  window.generations = 1;
  window.role = ncclxrtRoleInput;
  ncclxrtPlanDesc_t desc = NCCLXRT_PLAN_DESC_INIT;
  desc.windows = &window;
  desc.num_windows = 1;
  for (int i : {0, 1}) {
    ncclxrtCommConfig_t config = NCCLXRT_COMM_CONFIG_INIT;
    config.rank = 0;
    config.nranks = 1;
    ASSERT_EQ(ncclxrtCommInit(&config, &comms[i]), ncclxrtSuccess) << ncclxrtGetLastError(nullptr);
    if (i) {
      ncclxrtSharing_t sharing = {0, plans[0], 0};
      desc.sharing = &sharing;
      desc.num_sharing = 1;
      EXPECT_EQ(ncclxrtPlanPrepare(comms[i], &desc, &plans[i]), ncclxrtInvalidArgument);
      EXPECT_NE(std::string(ncclxrtGetLastError(comms[i])).find("none of this communicator"),
                std::string::npos)
          << ncclxrtGetLastError(comms[i]);
      desc.num_sharing = 0;
    }
    ASSERT_EQ(ncclxrtPlanPrepare(comms[i], &desc, &plans[i]), ncclxrtSuccess)
        << ncclxrtGetLastError(comms[i]);
  }
  void *data[2];
  size_t bytes;
  for (int i : {0, 1})
    ASSERT_EQ(ncclxrtPlanBuffer(plans[i], 0, 0, &data[i], &bytes), ncclxrtSuccess);
  EXPECT_NE(data[0], data[1]);
  memset(data[1], 7, bytes);
  EXPECT_EQ(ncclxrtPlanDestroy(plans[0]), ncclxrtSuccess);
  EXPECT_EQ(ncclxrtCommDestroy(comms[0]), ncclxrtSuccess);
  EXPECT_EQ(ncclxrtPlanRun(plans[1], [](int64_t) { return 0; }), ncclxrtSuccess);
  EXPECT_EQ(static_cast<uint8_t *>(data[1])[63], 7);
  EXPECT_EQ(ncclxrtPlanDestroy(plans[1]), ncclxrtSuccess);
  EXPECT_EQ(ncclxrtCommDestroy(comms[1]), ncclxrtSuccess);
}

TEST(Calls, RefuseNullsAndWrongTimes) {
  ncclxrtComm_t comm = nullptr;
  ncclxrtCommConfig_t config = NCCLXRT_COMM_CONFIG_INIT;
  EXPECT_EQ(ncclxrtCommInit(nullptr, &comm), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCommInit(&config, nullptr), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtPlanRun(nullptr, [](int64_t) -> int32_t { return 0; }), ncclxrtInvalidArgument);
  config.rank = 3;
  config.nranks = 3;
  EXPECT_EQ(ncclxrtCommInit(&config, &comm), ncclxrtInvalidArgument);
  EXPECT_STREQ(ncclxrtGetLastError(nullptr), "expected 0 <= rank < nranks, found rank 3 of 3");
  config.rank = 0;
  EXPECT_EQ(ncclxrtCommInit(&config, &comm), ncclxrtInvalidArgument); // no address
  config.nranks = 1;
  config.transport = "pigeon";
  EXPECT_EQ(ncclxrtCommInit(&config, &comm), ncclxrtInvalidArgument);
  EXPECT_STREQ(ncclxrtGetLastError(nullptr), "expected transport 'shm' or 'tcp', found 'pigeon'");
  config.transport = nullptr;
  config.rendezvous = "nowhere";
  EXPECT_EQ(ncclxrtCommInit(&config, &comm), ncclxrtInvalidArgument);
  config.rendezvous = nullptr;
  config.timeout_ms = -1;
  EXPECT_EQ(ncclxrtCommInit(&config, &comm), ncclxrtInvalidArgument);
  config.timeout_ms = 0;
  config.struct_size = 8;
  EXPECT_EQ(ncclxrtCommInit(&config, &comm), ncclxrtInvalidArgument);

  struct {
    ncclxrtCommConfig_t config = NCCLXRT_COMM_CONFIG_INIT;
    uint64_t future = 0;
  } longer;
  longer.config.rank = 0;
  longer.config.nranks = 1;
  longer.config.struct_size = sizeof(longer);
  longer.future = 1;
  EXPECT_EQ(ncclxrtCommInit(&longer.config, &comm), ncclxrtVersionMismatch);
  longer.future = 0;
  ASSERT_EQ(ncclxrtCommInit(&longer.config, &comm), ncclxrtSuccess) << ncclxrtGetLastError(nullptr);

  ncclxrtPlan_t plan = nullptr;
  ncclxrtPlanDesc_t desc = NCCLXRT_PLAN_DESC_INIT;
  EXPECT_EQ(ncclxrtPlanPrepare(nullptr, &desc, &plan), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtPlanPrepare(comm, nullptr, &plan), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtPlanPrepare(comm, &desc, nullptr), ncclxrtInvalidArgument);
  desc.struct_size = offsetof(ncclxrtPlanDesc_t, sizes); // a caller of before there were sizes
  desc.num_sizes = 7;
  ASSERT_EQ(ncclxrtPlanPrepare(comm, &desc, &plan), ncclxrtSuccess) << ncclxrtGetLastError(comm);
  ASSERT_EQ(ncclxrtPlanDestroy(plan), ncclxrtSuccess);
  desc = NCCLXRT_PLAN_DESC_INIT;
  ASSERT_EQ(ncclxrtPlanPrepare(comm, &desc, &plan), ncclxrtSuccess) << ncclxrtGetLastError(comm);
  void *data;
  size_t bytes;
  EXPECT_EQ(ncclxrtPlanBuffer(plan, 0, 0, &data, &bytes), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtPlanRun(plan, nullptr), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCommDestroy(comm), ncclxrtInvalidUsage); // a plan is left
  static ncclxrtPlan_t inner;
  inner = plan;
  EXPECT_EQ(ncclxrtPlanRun(plan,
                           [](int64_t) {
                             EXPECT_EQ(ncclxrtPlanRun(inner, [](int64_t) { return 0; }),
                                       ncclxrtInvalidUsage);
                             EXPECT_EQ(ncclxrtPlanDestroy(inner), ncclxrtInvalidUsage);
                             return 0;
                           }),
            ncclxrtSuccess);
  EXPECT_EQ(ncclxrtPlanDestroy(plan), ncclxrtSuccess);
  EXPECT_EQ(ncclxrtPlanDestroy(nullptr), ncclxrtSuccess);
  EXPECT_EQ(ncclxrtCommDestroy(comm), ncclxrtSuccess);
  EXPECT_EQ(ncclxrtCommDestroy(nullptr), ncclxrtSuccess);
  EXPECT_EQ(ncclxrtVersion(), NCCLXRT_ABI_VERSION);
}

} // namespace

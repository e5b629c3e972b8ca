//===- ConformanceTest.cpp - What every transport must do -----------------===//
//
// One suite, run for each transport, with ranks as processes and as threads (thread sanitizers see
// across the latter only), for the fake transport, and for several rank counts.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <utility>

using namespace harness;

namespace {

struct Case {
  std::string transport;
  Mode mode;
  int nranks;
};

class Conformance : public testing::TestWithParam<Case> {
protected:
  Job job() const {
    Job job;
    job.transport = GetParam().transport;
    job.mode = GetParam().mode;
    job.nranks = GetParam().nranks;
    return job;
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char *transport : {"shm", "tcp"})
    for (Mode mode : {Mode::Processes, Mode::Threads})
      for (int n : {1, 2, 3, 5, 8})
        all.push_back({transport, mode, n});
  for (int n : {1, 2, 3, 5, 8})
    all.push_back({"fake", Mode::Fake, n});
  return all;
}

std::string caseName(const testing::TestParamInfo<Case> &info) {
  const char *modes[] = {"Processes", "Threads", ""};
  return info.param.transport + modes[int(info.param.mode)] + std::to_string(info.param.nranks);
}

INSTANTIATE_TEST_SUITE_P(All, Conformance, testing::ValuesIn(cases()), caseName);

uint8_t pattern(int64_t rank, int64_t run, int64_t i) {
  return uint8_t(rank * 31 + run * 7 + i * 13 + i / 251);
}

/// The bytes of a range, in order.
std::vector<uint8_t> gather(const std::byte *base, const Box &box) {
  std::vector<uint8_t> bytes;
  for (int64_t r = 0; r < box.rows; ++r)
    for (int64_t i = 0; i < box.rowBytes; ++i)
      bytes.push_back(uint8_t(base[box.offset + r * box.stride + i]));
  return bytes;
}

TEST_P(Conformance, CopyShapes) {
  // Pairs of a destination and a source with the same bytes in other pieces.
  const std::vector<std::pair<Box, Box>> shapes = {
      {{1, 0, 0, 1, 64, 64}, {0, 0, 0, 1, 64, 64}},
      {{1, 0, 5, 1, 1, 1}, {0, 0, 9, 1, 1, 1}},
      {{1, 0, 3, 3, 100, 10}, {0, 0, 7, 5, 11, 6}},
      {{1, 0, 0, 1, 999, 999}, {0, 0, 1, 333, 17, 3}},
      {{1, 0, 1, 333, 17, 3}, {0, 0, 0, 1, 999, 999}},
      {{1, 0, 2, 7, 8000, 5000}, {0, 0, 0, 5, 9000, 7000}},
      {{1, 0, 0, 20'000, 5, 3}, {0, 0, 4, 30'000, 3, 2}},
      {{1, 0, 0, 1, 100'000, 100'000}, {0, 0, 17, 1, 100'000, 100'000}},
      {{1, 0, 0, 4, 10, 10}, {0, 0, 40, 40, 0, 1}}, // one byte, read again and again
      {{1, 0, 0, 0, 10, 10}, {0, 0, 0, 1, 0, 0}},
      {{1, 0, 120'000, 5, 0, 0}, {0, 0, 120'000, 0, 8, 8}}, // empty, at the very end
  };
  each(job(), [&](Rank &me) {
    PlanSpec spec;
    spec.windows = {{"in", 120'000, 1, ncclxrtRoleInput}, {"out", 120'000, 1, ncclxrtRoleOutput}};
    spec.slots = {{"landed", 1, 1, 0}, {"free", 1, 1, 0}};
    me.prepare(spec);
    std::byte *in = me.buffer(0), *out = me.buffer(1);
    int next = (me.rank + 1) % me.nranks, previous = (me.rank + me.nranks - 1) % me.nranks;
    int64_t count = 0;
    for (int64_t lane : {ce, nic, host})
      for (const auto &[to, from] : shapes) {
        ++count;
        for (int64_t i = 0; i < 120'000; ++i)
          in[i] = std::byte(pattern(me.rank, count, i));
        memset(out, 0xee, 120'000);
        me.run([&, to = to, from = from](int64_t exec) mutable {
          to.peer = next;
          from.peer = -1;
          int32_t s = ncclxrt_signal(0, exec, 0, lane, 1, previous, 0); // my output is free
          s = ncclxrt_wait(s, exec, 1, lane, 1, 0, 1, count);
          s = copy(s, exec, 2, lane, to, from, 0, next, 0);
          s = ncclxrt_complete(s, exec, 3, lane);
          return ncclxrt_wait(s, exec, 4, lane, 0, 0, 1, count);
        });
        std::vector<uint8_t> expected(120'000, 0xee), bytes;
        std::vector<std::byte> theirs(120'000);
        for (int64_t i = 0; i < 120'000; ++i)
          theirs[i] = std::byte(pattern(previous, count, i));
        bytes = gather(theirs.data(), from);
        for (int64_t r = 0, k = 0; r < to.rows; ++r)
          for (int64_t i = 0; i < to.rowBytes; ++i)
            expected[to.offset + r * to.stride + i] = bytes[k++];
        check(memcmp(out, expected.data(), 120'000) == 0, "shape " + std::to_string(count));
      }
  });
}

TEST_P(Conformance, AllGatherOverManyRuns) {
  const int64_t chunk = 1003;
  const int runs = 40;
  each(job(), [&](Rank &me) {
    PlanSpec spec;
    const int64_t n = me.nranks;
    spec.windows = {{"in", uint64_t(chunk), 1, ncclxrtRoleInput},
                    {"out", uint64_t(chunk * n), 2, ncclxrtRoleOutput}};
    spec.slots = {{"landed", n, 2, 1}};
    me.prepare(spec);
    for (int run = 0; run < runs; ++run) {
      for (int64_t i = 0; i < chunk; ++i)
        me.buffer(0)[i] = std::byte(pattern(me.rank, run, i));
      me.run([&](int64_t exec) {
        check(ncclxrt_run(exec) == run && ncclxrt_rank(exec) == me.rank, "run or rank");
        check(ncclxrt_address(exec, 1) == int64_t(me.buffer(1, run % 2)), "address");
        int32_t s = 0;
        for (int64_t k = 0; k < n; ++k) {
          int64_t peer = (me.rank + k) % n;
          s = copy(s, exec, 0, nic, whole(1, peer, me.rank * chunk, chunk), whole(0, -1, 0, chunk),
                   0, peer, me.rank);
        }
        s = ncclxrt_wait(s, exec, 1, host, 0, 0, n, run / 2 + 1);
        s = ncclxrt_flush(s, exec, 2, host);
        return ncclxrt_complete(s, exec, 3, nic);
      });
      // Two generations: who overwrites this output has heard from us after we read it.
      for (int64_t r = 0; r < n; ++r)
        for (int64_t i = 0; i < chunk; ++i)
          check(uint8_t(me.buffer(1, run % 2)[r * chunk + i]) == pattern(r, run, i),
                "run " + std::to_string(run) + ", chunk " + std::to_string(r));
    }
  });
}

TEST_P(Conformance, SizesAreReadWhereTheyStand) {
  each(job(), [&](Rank &me) {
    PlanSpec spec;
    spec.windows = {{"sizes", 24, 2, ncclxrtRoleInput}};
    me.prepare(spec);
    for (int run = 0; run < 2; ++run) {
      int64_t wide = INT64_MAX - run;
      int32_t narrow = 7 + run;
      memcpy(me.buffer(0, run) + 8, &wide, 8);
      memcpy(me.buffer(0, run) + 20, &narrow, 4);
      int64_t found[3] = {};
      me.run([&](int64_t exec) {
        int32_t s = ncclxrt_count(0, exec, 0, host, 0, 8, 8, INT64_MAX);
        found[0] = ncclxrt_size(exec);
        s = ncclxrt_count(s, exec, 0, host, 0, 20, 4, 8);
        found[1] = ncclxrt_size(exec);
        found[2] = ncclxrt_count(5, exec, 0, host, 0, 8, 8, 1); // a status passes through
        return s;
      });
      check(found[0] == wide && found[1] == narrow && found[2] == 5, "run " + std::to_string(run));
    }
  });
}

// What one plan leaves the other starts from, in turn and without a barrier; whichever is destroyed
// first, the memory lives on.
TEST_P(Conformance, TwoPlansShareABuffer) {
  each(job(), [&](Rank &me) {
    const int64_t n = me.nranks, next = (me.rank + 1) % n, previous = (me.rank + n - 1) % n;
    const int64_t bytes = 5000; // not a page, and not at the start of one
    auto move = [&](int64_t exec, int64_t from, int64_t to) {
      int64_t number = ncclxrt_run(exec) + 1;
      int32_t s = ncclxrt_signal(0, exec, 0, host, 0, previous, 0); // it may write here
      s = ncclxrt_wait(s, exec, 1, host, 0, 0, 1, number);
      s = copy(s, exec, 2, ce, whole(to, next, 0, bytes), whole(from, -1, 0, bytes), 1, next, 0);
      return ncclxrt_wait(s, exec, 3, host, 1, 0, 1, number);
    };
    for (bool firstGoesFirst : {true, false}) {
      PlanSpec spec;
      spec.windows = {{"small", 100, 1, ncclxrtRoleScratch},
                      {"in", bytes, 1, ncclxrtRoleInput},
                      {"out", bytes, 1, ncclxrtRoleOutput}};
      spec.slots = {{"ready", 1, 1, 1}, {"landed", 1, 1, 1}};
      me.prepare(spec);
      ncclxrtPlan_t first = std::exchange(me.plan, nullptr);
      spec.windows = {{"in", bytes, 1, ncclxrtRoleInput},
                      {"between", 70, 3, ncclxrtRoleScratch},
                      {"none", 0, 1, ncclxrtRoleScratch},
                      {"out", bytes, 1, ncclxrtRoleOutput}};
      spec.sharing = {{0, first, 2}};
      me.prepare(spec);
      ncclxrtPlan_t second = std::exchange(me.plan, first);
      std::byte *in = me.buffer(1), *middle = me.buffer(2);
      me.plan = second;
      std::byte *seen = me.buffer(0), *out = me.buffer(3);
      auto isFrom = [&](const std::byte *data, int64_t rank, int64_t run) {
        for (int64_t i = 0; i < bytes; ++i)
          if (uint8_t(data[i]) != pattern(rank, run, i))
            return false;
        return true;
      };
      auto run = [&](bool isFirst) {
        me.plan = isFirst ? first : second;
        me.run([&](int64_t exec) { return isFirst ? move(exec, 1, 2) : move(exec, 0, 3); });
      };
      int64_t before = (previous + n - 1) % n;
      for (int64_t round = 0; round < 6; ++round) {
        for (int64_t i = 0; i < bytes; ++i)
          in[i] = std::byte(pattern(me.rank, round, i));
        run(true);
        check(isFrom(middle, previous, round) && isFrom(seen, previous, round), "of the first");
        for (int64_t again = 0; again <= round % 2; ++again)
          run(false);
        check(isFrom(out, before, round), "of the second");
      }
      me.plan = firstGoesFirst ? first : second;
      me.destroyPlan();
      std::byte *from = firstGoesFirst ? seen : in;
      for (int64_t i = 0; i < bytes; ++i)
        from[i] = std::byte(pattern(me.rank, 9, i));
      run(!firstGoesFirst);
      check(isFrom(firstGoesFirst ? out : middle, previous, 9), "of the one that is left");
      me.destroyPlan();
    }
  });
}

// Each branch counts its own runs, in slots and generations that no other uses.
TEST_P(Conformance, ABranchCountsItsOwnRuns) {
  each(job(), [&](Rank &me) {
    const int64_t n = me.nranks, next = (me.rank + 1) % n, previous = (me.rank + n - 1) % n;
    PlanSpec spec; // of branch b: scratch 2 + b, slots b
    spec.windows = {{"choice", 8, 1, ncclxrtRoleInput},
                    {"in", 8, 1, ncclxrtRoleInput},
                    {"first", 8, 2, ncclxrtRoleScratch},
                    {"second", 8, 3, ncclxrtRoleScratch},
                    {"nothing", 0, 2, ncclxrtRoleScratch}};
    spec.slots = {{"first", 1, 1, 1}, {"second", 1, 2, 1}};
    me.prepare(spec);
    int64_t runs[2] = {}, generations[2] = {2, 3}, perSlot[2] = {1, 2};
    int64_t run = 0;
    for (int64_t branch : {0, 1, 1, 0, 0, 0, 1, 0, 1, 1}) {
      int64_t mine = me.rank * 100 + run, number = runs[branch]++;
      memcpy(me.buffer(0), &branch, 8);
      memcpy(me.buffer(1), &mine, 8);
      me.run([&](int64_t exec) {
        check(ncclxrt_branch(exec) == -1 && ncclxrt_run(exec) == run, "before the choice");
        int32_t s = ncclxrt_choose(0, exec, 0, host, 0, 2);
        check(ncclxrt_branch(exec) == branch && ncclxrt_run(exec) == number, "behind the choice");
        s = copy(s, exec, 1, ce, whole(2 + branch, next, 0, 8), whole(1, -1, 0, 8), branch, next,
                 0);
        return ncclxrt_wait(s, exec, 2, ce, branch, 0, 1, number / perSlot[branch] + 1);
      });
      int64_t found;
      memcpy(&found, me.buffer(size_t(2 + branch), int(number % generations[branch])), 8);
      check(found == previous * 100 + run, "run " + std::to_string(run));
      ++run;
    }
  });
}

// A run of several stages: each counts its own plays, over all runs, and agrees on a number.
TEST_P(Conformance, ARunChoosesAgain) {
  each(job(), [&](Rank &me) {
    const int64_t n = me.nranks, next = (me.rank + 1) % n;
    PlanSpec spec; // of stage b: slots b
    spec.windows = {{"choice", 8, 1, ncclxrtRoleInput},
                    {"number", 8, 1, ncclxrtRoleInput},
                    {"first", 8, 2, ncclxrtRoleScratch},
                    {"second", 8, 3, ncclxrtRoleScratch}};
    spec.slots = {{"first", 1, 1, 1}, {"second", 1, 2, 1}};
    me.prepare(spec);
    int64_t plays[2] = {}, perSlot[2] = {1, 2};
    for (const std::vector<int64_t> &way :
         std::vector<std::vector<int64_t>>{{0, 1, 1}, {1}, {0, 0, 1, 0}, {1, 1, 1, 1, 0}})
      me.run([&](int64_t exec) {
        int32_t s = 0;
        for (int64_t stage : way) {
          int64_t number = plays[stage]++;
          memcpy(me.buffer(0), &stage, 8);
          memcpy(me.buffer(1), &number, 8);
          s = ncclxrt_agree(s, exec, 3, host, 1, ncclxrtI64);
          s = ncclxrt_choose(s, exec, 0, host, 0, 2);
          check(ncclxrt_branch(exec) == stage && ncclxrt_run(exec) == number, "behind the choice");
          s = copy(s, exec, 1, ce, whole(2 + stage, next, 0, 8), whole(1, -1, 0, 8), stage, next,
                   0);
          s = ncclxrt_wait(s, exec, 2, ce, stage, 0, 1, number / perSlot[stage] + 1);
        }
        return s;
      });
  });
}

TEST_P(Conformance, RingReduceScatter) {
  // Each step reduces what came with the own part, and sends it on: f32, odd sizes.
  const int64_t elements = 517;
  each(job(), [&](Rank &me) {
    const int64_t n = me.nranks, bytes = elements * 4;
    PlanSpec spec;
    spec.windows = {{"in", uint64_t(bytes * n), 1, ncclxrtRoleInput},
                    {"stage", uint64_t(bytes * n), 2, ncclxrtRoleScratch},
                    {"out", uint64_t(bytes), 1, ncclxrtRoleOutput}};
    spec.slots = {{"landed", n, 2, 0}};
    me.prepare(spec);
    auto value = [](int64_t rank, int64_t run, int64_t i) {
      return float(rank * 1000 + i % 97 + run) / 3.0f;
    };
    int64_t next = (me.rank + 1) % n;
    // Two generations of the stage: the end of a run here means that all have begun it.
    for (int run = 0; run < 6; ++run) {
      auto *in = reinterpret_cast<float *>(me.buffer(0));
      for (int64_t i = 0; i < elements * n; ++i)
        in[i] = value(me.rank, run, i);
      me.run([&](int64_t exec) {
        int32_t s = 0;
        for (int64_t k = 0; k < n; ++k) {
          int64_t part = (me.rank + 2 * n - k - 1) % n, at = part * bytes;
          if (k > 0) {
            s = ncclxrt_wait(s, exec, 0, ce, 0, part, 1, run / 2 + 1);
            s = reduce(s, exec, 1, ncclxrtReduceSum, ncclxrtF32, ncclxrtF32,
                       k == n - 1 ? whole(2, -1, 0, bytes) : whole(1, -1, at, bytes),
                       whole(1, -1, at, bytes), 1, 0, whole(0, -1, at, bytes));
          }
          if (k < n - 1)
            s = copy(s, exec, 2, ce, whole(1, next, at, bytes), whole(k ? 1 : 0, -1, at, bytes), 0,
                     next, part);
        }
        if (n == 1)
          s = copy(s, exec, 2, ce, whole(2, -1, 0, bytes), whole(0, -1, 0, bytes));
        return s;
      });
      for (int64_t i = 0; i < elements; ++i) {
        int64_t at = me.rank * elements + i;
        float expected = value((me.rank + 1) % n, run, at);
        for (int64_t k = 2; k <= n; ++k)
          expected += value((me.rank + k) % n, run, at);
        check(reinterpret_cast<float *>(me.buffer(2))[i] == expected,
              "run " + std::to_string(run) + ", element " + std::to_string(i));
      }
    }
  });
}

TEST_P(Conformance, BigPutsBothWays) {
  // More than any socket buffer holds, all ranks at once, and the source changes after completion.
  const int64_t bytes = (GetParam().nranks > 3 ? 1 << 20 : 12 << 20) + 5;
  each(job(), [&](Rank &me) {
    PlanSpec spec;
    spec.windows = {{"in", uint64_t(bytes), 1, ncclxrtRoleInput},
                    {"out", uint64_t(bytes * me.nranks), 1, ncclxrtRoleOutput}};
    spec.slots = {{"landed", me.nranks, 1, 0}};
    me.prepare(spec);
    auto *in = reinterpret_cast<uint8_t *>(me.buffer(0));
    for (int64_t i = 0; i < bytes; ++i)
      in[i] = pattern(me.rank, 0, i);
    me.run([&](int64_t exec) {
      int32_t s = 0;
      for (int64_t k = 1; k <= me.nranks; ++k) {
        int64_t peer = (me.rank + k) % me.nranks;
        s = copy(s, exec, 0, nic, whole(1, peer, me.rank * bytes, bytes), whole(0, -1, 0, bytes), 0,
                 peer, me.rank);
      }
      s = ncclxrt_complete(s, exec, 1, nic);
      memset(in, 0, size_t(bytes));
      return ncclxrt_wait(s, exec, 2, host, 0, 0, me.nranks, 1);
    });
    auto *out = reinterpret_cast<uint8_t *>(me.buffer(1));
    for (int64_t r = 0; r < me.nranks; ++r)
      for (int64_t i = 0; i < bytes; ++i)
        if (out[r * bytes + i] != pattern(r, 0, i))
          check(false, "from rank " + std::to_string(r) + " byte " + std::to_string(i));
  });
}

TEST_P(Conformance, DataBeforeFlag) {
  // Litmus: whoever sees the flag sees the data; the flag goes once by notify, once by signal.
  const int rounds = GetParam().nranks > 2 ? 300 : 3000;
  each(job(), [&](Rank &me) {
    PlanSpec spec;
    spec.windows = {{"in", 256, 1, ncclxrtRoleInput}, {"out", 256, 1, ncclxrtRoleOutput}};
    spec.slots = {{"flag", 1, 1, 0}, {"free", 1, 1, 0}};
    me.prepare(spec);
    int next = (me.rank + 1) % me.nranks, previous = (me.rank + me.nranks - 1) % me.nranks;
    me.run([&](int64_t exec) {
      auto *in = reinterpret_cast<uint64_t *>(ncclxrt_address(exec, 0));
      auto *out = reinterpret_cast<uint64_t *>(ncclxrt_address(exec, 1));
      int32_t s = 0;
      for (int64_t i = 1; i <= rounds && s == 0; ++i) {
        for (int k = 0; k < 32; ++k)
          in[k] = uint64_t(i * 64 + k);
        s = ncclxrt_wait(s, exec, 0, ce, 1, 0, 1, i - 1);
        bool byNotify = i % 2;
        s = copy(s, exec, 1, ce, whole(1, next, 0, 256), whole(0, -1, 0, 256), byNotify ? 0 : -1,
                 next, 0);
        if (!byNotify)
          s = ncclxrt_signal(s, exec, 2, ce, 0, next, 0);
        s = ncclxrt_wait(s, exec, 3, ce, 0, 0, 1, i);
        for (int k = 0; k < 32; ++k)
          check(s || out[k] == uint64_t(i * 64 + k), "round " + std::to_string(i));
        s = ncclxrt_signal(s, exec, 4, ce, 1, previous, 0);
      }
      return s;
    });
  });
}

TEST_P(Conformance, CountedSlots) {
  // Every rank raises one slot of rank 0, which lets them go again: W writers of one counter.
  each(job(), [&](Rank &me) {
    PlanSpec spec;
    spec.slots = {{"arrived", 1, 3, 0}, {"go", 1, 3, 0}};
    me.prepare(spec);
    for (int run = 0; run < 30; ++run)
      me.run([&](int64_t exec) {
        int64_t round = run / 3 + 1;
        int32_t s = ncclxrt_signal(0, exec, 0, host, 0, 0, 0);
        if (me.rank == 0) {
          s = ncclxrt_wait(s, exec, 1, host, 0, 0, 1, round * me.nranks);
          for (int r = 0; r < me.nranks; ++r)
            s = ncclxrt_signal(s, exec, 2, host, 1, r, 0);
        }
        return ncclxrt_wait(s, exec, 3, host, 1, 0, 1, round);
      });
  });
}

TEST_P(Conformance, TraceTellsWhatRan) {
  each(job(), [&](Rank &me) {
    PlanSpec spec;
    spec.windows = {{"in", 4096, 1, 0}, {"out", 4096, 1, 0}};
    spec.slots = {{"landed", 1, 1, 0}};
    spec.trace = 9;
    me.prepare(spec);
    int next = (me.rank + 1) % me.nranks;
    for (int run = 0; run < 3; ++run)
      me.run([&](int64_t exec) {
        int32_t s = ncclxrt_compute_begin(0, exec, 5, host);
        s = ncclxrt_compute_end(s, exec, 5, host);
        s = copy(s, exec, 1, nic, whole(1, next, 0, 4096), whole(0, -1, 0, 4096), 0, next, 0);
        s = ncclxrt_wait(s, exec, 2, host, 0, 0, 1, run + 1);
        return ncclxrt_complete(s, exec, 3, nic);
      });
    const ncclxrtTraceEvent_t *events;
    size_t count;
    check(ncclxrtPlanTrace(me.plan, &events, &count) == ncclxrtSuccess, "trace");
    check(count == 9, "expected the capacity's 9 events, found " + std::to_string(count));
    check(events[0].op == 5 && events[0].run == 0 && events[0].lane == host, "the computation");
    check(events[1].op == 1 && events[1].bytes == 4096 && events[1].lane == nic, "the copy");
    check(events[2].op == 2, "the wait");
    for (int i = 0; i < 3; ++i)
      check(events[i].end_ns >= events[i].start_ns && events[i].start_ns > 0, "times");
    check(ncclxrtPlanTraceClear(me.plan) == ncclxrtSuccess, "clear");
    check(ncclxrtPlanTrace(me.plan, &events, &count) == ncclxrtSuccess && count == 0, "cleared");
  });
}

TEST_P(Conformance, ManyPlansAtOnce) {
  each(job(), [&](Rank &me) {
    PlanSpec spec;
    spec.windows = {{"w", 100, 1, 0}};
    spec.slots = {{"s", 1, 1, 0}};
    std::vector<ncclxrtPlan_t> plans;
    for (int i = 0; i < 5; ++i) {
      spec.hash = uint64_t(i);
      me.prepare(spec);
      plans.push_back(me.plan);
    }
    int next = (me.rank + 1) % me.nranks;
    for (int i : {3, 0, 4, 1, 2}) {
      me.plan = plans[size_t(i)];
      me.buffer(0)[0] = std::byte(i + 1);
      me.run([&](int64_t exec) {
        int32_t s = copy(0, exec, 0, ce, whole(0, next, 50, 1), whole(0, -1, 0, 1), 0, next, 0);
        return ncclxrt_wait(s, exec, 1, ce, 0, 0, 1, 1);
      });
      check(me.buffer(0)[50] == std::byte(i + 1), "plan " + std::to_string(i));
    }
    for (ncclxrtPlan_t plan : plans) {
      me.plan = plan;
      me.destroyPlan();
    }
  });
}

} // namespace

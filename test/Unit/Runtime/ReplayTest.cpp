//===- ReplayTest.cpp - Which captured runs follow each other by themselves ===//
//
// Of runs that are said to, no order of their steps lets a wait pass by what another run raised, a
// counter grow over it, or a rank reach into memory outside of its owner's run.
//
//===----------------------------------------------------------------------===//
#include "cuda/Replay.h"

#include "gtest/gtest.h"

#include <random>

using namespace ncclxrt::cuda;

namespace {

using Runs = std::vector<Replay::Run>;

/// What each rank tells of its run.
template <class Tell> Runs runsOf(int ranks, Tell tell) {
  Runs runs;
  for (int rank = 0; rank < ranks; ++rank) {
    Replay replay;
    tell(replay, rank);
    runs.push_back(replay.told());
  }
  return runs;
}

bool follow(const Runs &runs) {
  for (int rank = 0; rank < int(runs.size()); ++rank)
    if (!Replay::lastOf(rank, runs))
      return false;
  return true;
}

/// Counter r of a rank is raised by r when its own memory is free, counter ranks + r when r's part
/// has been written.
void exchange(Replay &replay, int me, int ranks, bool asks = true, bool awaits = true) {
  for (int peer = 0; asks && peer < ranks; ++peer)
    if (peer != me)
      replay.raise(0, peer, me);
  for (int peer = 0; peer < ranks; ++peer)
    if (peer != me) {
      if (asks)
        replay.wait(0, peer, 1);
      replay.order(1, 0);
      replay.reach(1, peer);
      replay.raise(1, peer, ranks + me);
    }
  for (int peer = 0; awaits && peer < ranks; ++peer)
    if (peer != me)
      replay.wait(0, ranks + peer, 1);
}

TEST(Replay, FollowsWhereRanksAskAndAwait) {
  for (int ranks : {2, 3, 8}) {
    Runs runs = runsOf(ranks, [&](Replay &r, int me) { exchange(r, me, ranks); });
    EXPECT_TRUE(follow(runs));
    EXPECT_EQ(Replay::lastOf(0, runs)->size(), 2 * size_t(ranks - 1));
  }
}

TEST(Replay, DoesNotWhereNobodyAsksOrAwaits) {
  EXPECT_FALSE(follow(runsOf(2, [](Replay &r, int me) { exchange(r, me, 2, false); })));
  EXPECT_FALSE(follow(runsOf(2, [](Replay &r, int me) { exchange(r, me, 2, true, false); })));
}

TEST(Replay, OneWaySignalsNeedAnAnswer) {
  auto signals = [](bool answered) {
    return runsOf(2, [&](Replay &r, int me) {
      me == 0 ? r.raise(0, 1, 0) : r.wait(0, 0, 1);
      if (answered)
        me == 1 ? r.raise(0, 0, 1) : r.wait(0, 1, 1);
    });
  };
  EXPECT_FALSE(follow(signals(false)));
  EXPECT_TRUE(follow(signals(true)));
}

TEST(Replay, ACounterIsEmptiedOnce) {
  auto chunks = [](bool ordered, int64_t last, int waits) {
    return runsOf(2, [&](Replay &r, int me) {
      int peer = 1 - me;
      r.raise(0, peer, 0);
      r.wait(0, 0, 1);
      for (int chunk = 0; chunk < 3; ++chunk)
        r.raise(0, peer, 1);
      r.wait(1, 1, 2);
      if (ordered)
        r.order(0, 1);
      for (int i = 0; i < waits; ++i)
        r.wait(0, 1, last);
    });
  };
  EXPECT_TRUE(follow(chunks(true, 3, 1)));
  EXPECT_EQ(Replay::lastOf(0, chunks(true, 3, 1))->at(1), 3);
  EXPECT_FALSE(follow(chunks(false, 3, 1))); // the wait for 2 may come when it is 0 again
  EXPECT_FALSE(follow(chunks(true, 2, 1)));  // one stays
  EXPECT_FALSE(follow(chunks(true, 3, 2)));  // the second would wait for ever
  EXPECT_FALSE(follow(chunks(true, 4, 1)));  // of another run
}

TEST(Replay, ACounterHasOneWriter) {
  auto runs = [](bool alone) {
    return runsOf(3, [&](Replay &r, int me) {
      if (me == 0) {
        r.wait(0, 0, alone ? 1 : 2);
        r.raise(0, 1, 1);
        if (!alone)
          r.raise(0, 2, 1);
      } else if (!alone || me == 1) {
        r.raise(0, 0, 0);
        r.wait(0, 1, 1);
      }
    });
  };
  EXPECT_TRUE(follow(runs(true)));
  EXPECT_FALSE(follow(runs(false)));
}

/// Runs of all ranks, a step at a time, in an order that chance gives, as streams play them.
class Play {
public:
  Play(const Runs &runs, unsigned seed) : runs(runs), random(seed), ranks(runs.size()) {
    for (int r = 0; r < int(runs.size()); ++r)
      lasts.push_back(*Replay::lastOf(r, runs));
  }
  /// Empty, or what went wrong.
  std::string play(int count) {
    for (;;) {
      std::vector<std::pair<int, size_t>> able;
      bool left = false;
      for (int r = 0; r < int(ranks.size()); ++r) {
        Rank &rank = ranks[r];
        if (!rank.running && rank.run < count)
          start(r);
        left |= rank.running;
        for (size_t i = 0; rank.running && i < runs[r].size(); ++i)
          if (!rank.done[i] && isAble(r, i))
            able.push_back({r, i});
      }
      if (!left)
        return "";
      if (able.empty())
        return "nothing can go on";
      auto [r, i] = able[random() % able.size()];
      if (std::string wrong = step(r, i); !wrong.empty())
        return wrong;
      ranks[r].done[i] = true;
      bool all =
          std::find(ranks[r].done.begin(), ranks[r].done.end(), false) == ranks[r].done.end();
      ranks[r].running &= !all;
    }
  }

private:
  struct Rank {
    int run = 0; ///< of which it has begun
    bool running = false;
    std::vector<bool> done;
  };
  struct Value {
    int64_t value = 0;
    int run = 0; ///< that raised it
  };

  void start(int r) {
    ++ranks[r].run;
    ranks[r].running = !runs[r].empty();
    ranks[r].done.assign(runs[r].size(), false);
  }
  bool isAble(int r, size_t i) {
    const Replay::Step &step = runs[r][i];
    for (size_t before = 0; before < i; ++before)
      if (!ranks[r].done[before] &&
          (runs[r][before].lane == step.lane ||
           (step.kind == Replay::Order && runs[r][before].lane == step.counter)))
        return false;
    return step.kind != Replay::Wait || values[{r, step.counter}].value >= step.value;
  }
  std::string step(int r, size_t i) {
    const Replay::Step &step = runs[r][i];
    if (step.kind == Replay::Raise) {
      Value &value = values[{step.rank, step.counter}];
      if (value.value && value.run != ranks[r].run)
        return "a counter grows over what was not awaited";
      ++value.value, value.run = ranks[r].run;
    } else if (step.kind == Replay::Wait) {
      Value &value = values[{r, step.counter}];
      if (value.run != ranks[r].run)
        return "a wait passes by another run";
      if (lasts[r].at(step.counter) == step.value)
        value.value = 0;
    } else if (step.kind == Replay::Reach) {
      const Rank &owner = ranks[step.rank];
      if (!owner.running || owner.run != ranks[r].run)
        return "memory is reached outside of its owner's run";
    }
    return "";
  }

  const Runs &runs;
  std::mt19937 random;
  std::vector<Rank> ranks;
  std::vector<std::map<int64_t, int64_t>> lasts;
  std::map<std::pair<int, int64_t>, Value> values;
};

/// Signals, waits and accesses by chance; each signal is awaited at a place by chance, too.
Runs runsByChance(std::mt19937 &random) {
  int ranks = 2 + int(random() % 2);
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  std::vector<Replay> told(ranks);
  int64_t counters = 0;
  for (int round = 1 + below(4); round > 0; --round)
    for (int r = 0; r < ranks; ++r) {
      int peer = (r + 1 + below(ranks - 1)) % ranks, count = 1 + below(2);
      size_t lane = size_t(below(2)), other = size_t(below(2));
      if (below(3) == 0)
        told[r].reach(lane, peer);
      for (int i = 0; i < count; ++i)
        told[r].raise(lane, peer, counters);
      for (int value = below(4) ? count : 1; value <= count; ++value)
        told[peer].wait(other, counters, value);
      if (below(2))
        told[peer].order(1 - other, other);
      if (below(3) == 0)
        told[r].reach(lane, peer);
      ++counters;
    }
  Runs runs;
  for (Replay &r : told)
    runs.push_back(r.told());
  return runs;
}

TEST(Replay, NoOrderOfStepsBreaksWhatFollows) {
  int good = 0, bad = 0;
  for (unsigned seed = 0; seed < 20000; ++seed) {
    std::mt19937 random(seed);
    Runs runs = runsByChance(random);
    if (!follow(runs)) {
      ++bad;
      continue;
    }
    ++good;
    for (unsigned order = 0; order < 5; ++order)
      ASSERT_EQ(Play(runs, seed * 5 + order).play(3), "") << "seed " << seed;
  }
  EXPECT_GT(good, 200);
  EXPECT_GT(bad, 200);
}

} // namespace

//===- CudaGraphTest.cpp - Runs that are captured and replayed ----------===//
//
// The patterns in which others' users capture collectives. Which case is which is in test/CASES.md.
//
//===----------------------------------------------------------------------===//
#include "CudaRanks.h"

#include <chrono>

using namespace cuda_ranks;

namespace {

// One run, captured; replayed with other data at the same places.
TEST(CudaGraphs, Basic) {
  play([](Rank &me) {
    ncclxrtCudaPlan_t plan = me.another();
    ncclxrtCudaGraph_t graph = me.captureRuns(plan);
    for (int32_t i = 0; i < 5; ++i)
      me.replay(graph, plan, i);
    (void)ncclxrtCudaGraphDestroy(graph);
    me.destroy(plan);
  });
}

// In place: the rank's own piece is that of this replay.
TEST(CudaGraphs, InPlace) {
  play([](Rank &me) {
    ncclxrtCudaPlan_t plan = me.another(true);
    me.eager(plan, 0, true);
    ncclxrtCudaGraph_t graph = me.captureRuns(plan);
    for (int32_t i = 1; i < 5; ++i)
      me.replay(graph, plan, i, true);
    (void)ncclxrtCudaGraphDestroy(graph);
    me.destroy(plan);
  });
}

// Several runs of several plans, one after the other in one graph.
TEST(CudaGraphs, Sequence) {
  play([](Rank &me) {
    ncclxrtCudaPlan_t a = me.another(), b = me.another(true);
    ncclxrtCudaGraph_t graph = me.capture([&] {
      for (ncclxrtCudaPlan_t of : {a, b, a, a, b})
        me.expect(ncclxrtCudaPlanRun(of, me.stream) == ncclxrtSuccess, "captured run");
    });
    for (int32_t i = 0; i < 5; ++i) {
      me.fill(a, false, i);
      me.replay(graph, b, 100 + i, true);
      me.look(a, false, i);
    }
    (void)ncclxrtCudaGraphDestroy(graph);
    me.destroy(a);
    me.destroy(b);
  });
}

// Two plans side by side on two streams of one graph; the second stream forks and joins.
TEST(CudaGraphs, TwoStreams) {
  play([](Rank &me) {
    ncclxrtCudaPlan_t a = me.another(), b = me.another(true);
    void *second = nullptr;
    me.expect(ncclxrtCudaStream(me.comm, &second) == ncclxrtSuccess, "stream");
    auto order = [&](void *earlier, void *later) {
      Event event;
      driver().createEvent(&event, ncclxrt::cuda::noTiming);
      driver().record(event, static_cast<ncclxrt::cuda::Stream>(earlier));
      driver().waitEvent(static_cast<ncclxrt::cuda::Stream>(later), event, 0);
      driver().destroyEvent(event);
    };
    ncclxrtCudaGraph_t graph = me.capture([&] {
      order(me.stream, second);
      // No two ranks begin with the same one.
      void *on[] = {me.stream, second};
      ncclxrtCudaPlan_t plans[] = {a, b};
      for (int i : {me.rank % 2, 1 - me.rank % 2})
        me.expect(ncclxrtCudaPlanRun(plans[i], on[i]) == ncclxrtSuccess, "captured run");
      order(second, me.stream);
    });
    for (int32_t i = 0; i < 5; ++i) {
      me.fill(a, false, i);
      me.replay(graph, b, 100 + i, true);
      me.look(a, false, i);
    }
    (void)ncclxrtCudaGraphDestroy(graph);
    me.destroy(a);
    me.destroy(b);
  });
}

// Plan and graph are destroyed and made anew, in one communicator.
TEST(CudaGraphs, DestroyedAndMadeAgain) {
  play([](Rank &me) {
    for (int32_t i = 0; i < 10; ++i) {
      ncclxrtCudaPlan_t plan = me.another(i % 2);
      ncclxrtCudaGraph_t graph = me.captureRuns(plan, 1 + i % 3);
      me.replay(graph, plan, 2 * i, i % 2);
      me.replay(graph, plan, 2 * i + 1, i % 2);
      (void)ncclxrtCudaGraphDestroy(graph);
      me.destroy(plan);
    }
  });
}

// Replays and ordinary runs of one plan, in any order: what counts runs counts both.
TEST(CudaGraphs, MixedWithRuns) {
  play([](Rank &me) {
    ncclxrtCudaPlan_t plan = me.another();
    ncclxrtCudaGraph_t graph = nullptr;
    for (int32_t i = 0; i < 24; ++i) {
      if (i == 3) // after some runs
        graph = me.captureRuns(plan, 2);
      if (graph && i % 3 != 1)
        me.replay(graph, plan, i);
      else
        me.eager(plan, i);
    }
    // And without a look between: the last of them is seen.
    me.fill(plan, false, 99);
    for (int i = 0; i < 4; ++i)
      me.expect((i % 2 ? ncclxrtCudaPlanRun(plan, me.stream)
                       : ncclxrtCudaGraphLaunch(graph, me.stream)) == ncclxrtSuccess,
                "without a look");
    me.look(plan, false, 99);
    (void)ncclxrtCudaGraphDestroy(graph);
    me.destroy(plan);
  });
}

// Two graphs of one plan and one of another, in turn, a thousand times.
TEST(CudaGraphs, SeveralInTurn) {
  play([](Rank &me) {
    ncclxrtCudaPlan_t a = me.another(), b = me.another(true);
    ncclxrtCudaGraph_t graphs[] = {me.captureRuns(a), me.captureRuns(a, 2), me.captureRuns(b)};
    for (int32_t i = 0; i < 1000; ++i)
      if (i % 50 > 2) // most of them without a look
        me.expect(ncclxrtCudaGraphLaunch(graphs[i % 3], me.stream) == ncclxrtSuccess, "replay");
      else
        me.replay(graphs[i % 3], i % 3 == 2 ? b : a, i, i % 3 == 2);
    me.expect(ncclxrtCudaSynchronize(me.comm, me.stream) == ncclxrtSuccess, "the last");
    for (ncclxrtCudaGraph_t graph : graphs)
      (void)ncclxrtCudaGraphDestroy(graph);
    me.destroy(a);
    me.destroy(b);
  });
}

// Runs and replays behind each other with nothing between but each one's own inputs and outputs:
// nobody overwrites what another still reads.
TEST(CudaGraphs, BackToBack) {
  play([](Rank &me) {
    ncclxrtCudaPlan_t plan = me.another();
    ncclxrtCudaGraph_t graph = me.captureRuns(plan);
    constexpr int32_t runs = 60;
    std::vector<std::vector<int32_t>> in(runs), out(runs);
    std::vector<int32_t> idle(words);
    void *given = me.buffer(plan, 0), *made = me.buffer(plan, 1);
    for (int32_t i = 0; i < runs; ++i) {
      for (int k = 0; k < words; ++k)
        in[size_t(i)].push_back(Rank::valueOf(me.rank, i, k));
      out[size_t(i)].resize(size_t(ranks) * words);
      (void)ncclxrtCudaCopy(me.comm, me.stream, given, in[size_t(i)].data(), piece);
      me.expect((i % 3 ? ncclxrtCudaPlanRun(plan, me.stream)
                       : ncclxrtCudaGraphLaunch(graph, me.stream)) == ncclxrtSuccess,
                "run");
      // One of them reads late what it has got; the others are a run ahead by then.
      for (int late = 0; i % ranks == me.rank && late < 30; ++late)
        (void)ncclxrtCudaCopy(me.comm, me.stream, idle.data(), given, piece);
      (void)ncclxrtCudaCopy(me.comm, me.stream, out[size_t(i)].data(), made, all);
    }
    me.expect(ncclxrtCudaSynchronize(me.comm, me.stream) == ncclxrtSuccess, "end");
    for (int32_t i = 0; i < runs; ++i)
      for (int k = 0; k < ranks * words; ++k)
        me.expect(out[size_t(i)][size_t(k)] == Rank::valueOf(k / words, i, k % words),
                  "run " + std::to_string(i) + " brought " +
                      std::to_string(out[size_t(i)][size_t(k)]));
    me.meet();
    (void)ncclxrtCudaGraphDestroy(graph);
    me.destroy(plan);
  });
}

// A rank does not come to a replay: the others are let go by an abort, not by their deadline, and
// what comes after it is refused with the first reason.
TEST(CudaGraphs, AbortedReplay) {
  auto start = std::chrono::steady_clock::now();
  play([](Rank &me) {
    ncclxrtCudaPlan_t plan = me.another();
    ncclxrtCudaGraph_t graph = me.captureRuns(plan);
    me.replay(graph, plan, 1);
    if (me.rank != 2)
      me.expect(ncclxrtCudaGraphLaunch(graph, me.stream) == ncclxrtSuccess, "launch");
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // they wait by now
    (void)ncclxrtCudaAbort(me.comm, "enough");
    (void)ncclxrtCudaAbort(me.comm, "more than enough");
    me.expect(ncclxrtCudaSynchronize(me.comm, me.stream) == ncclxrtAborted, "the aborted replay");
    me.expect(ncclxrtCudaPlanWait(plan) == ncclxrtSuccess, "its lanes");
    me.expect(ncclxrtCudaGraphLaunch(graph, me.stream) == ncclxrtAborted &&
                  ncclxrtCudaPlanRun(plan, me.stream) == ncclxrtAborted,
              "a call after an abort");
    me.expect(std::string(ncclxrtCudaLastError(me.comm)) == "enough", "the first reason");
    (void)ncclxrtCudaGraphDestroy(graph);
    me.destroy(plan);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)); // of 20
}

} // namespace

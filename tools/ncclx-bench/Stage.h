//===- Stage.h - Two libraries that take turns ------------------*- C++ -*-===//
//
// Memory that the processes of both libraries share: what is to be measured, whose turn it is, and
// what was measured. Each cell has a warm-up turn and then its rounds, the libraries by turns, so
// that whatever else the machine does falls on both alike. Who has no turn sleeps.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TOOLS_NCCLX_BENCH_STAGE_H
#define NCCLX_TOOLS_NCCLX_BENCH_STAGE_H

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ncclx_bench {

enum Collective {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Broadcast,
  Permute, ///< to the next rank; on GPUs alone
  numCollectives
};
constexpr const char *collectiveNames[] = {"all_reduce", "all_gather", "reduce_scatter",
                                           "all_to_all", "broadcast",  "permute"};

inline int64_t nowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

struct Cell {
  int32_t collective;
  int32_t inPlace;
  int64_t count; ///< f32 of one rank's part: of the whole for all_reduce, broadcast and permute
  int64_t bytes; ///< of the whole, as nccl-tests counts
};

struct Stage {
  static constexpr int maxCells = 512, maxRounds = 64, maxRanks = 64;
  int32_t nranks, libraries, rounds, numCells, check;
  int64_t batchNs; ///< how long a turn should take
  Cell cells[maxCells];

  std::atomic<uint32_t> turn;   ///< counts up; the library is turn % libraries
  std::atomic<uint32_t> done;   ///< ranks that have ended this turn
  std::atomic<uint32_t> failed; ///< a process ended early: nobody waits on
  int32_t iterations[2][maxCells];
  int64_t wrong[2][maxCells];                 ///< elements that the check did not expect
  float ns[2][maxCells][maxRounds][maxRanks]; ///< of one iteration
  char waitPolicy[2][256];

  static Stage *open(const char *path) {
    int fd = ::open(path, O_RDWR | O_CLOEXEC);
    void *memory = fd < 0 ? MAP_FAILED
                          : mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
      ::close(fd);
    return memory == MAP_FAILED ? nullptr : static_cast<Stage *>(memory);
  }
  void fail() {
    failed = 1;
    futex(FUTEX_WAKE, INT_MAX, 0);
  }
  /// Sleeps until it is the library's turn for step `t` of its own; false when the other is gone.
  bool await(int library, uint32_t t) {
    const uint32_t mine = t * uint32_t(libraries) + uint32_t(library);
    const int64_t end = nowNs() + int64_t(300) * 1'000'000'000;
    for (uint32_t seen; (seen = turn) != mine;) {
      if (failed || nowNs() > end)
        return false;
      futex(FUTEX_WAIT, seen, 1'000'000'000);
    }
    return !failed;
  }
  /// Ends this rank's part of a turn; the last one hands it on.
  void end() {
    if (done.fetch_add(1) + 1 < uint32_t(nranks))
      return;
    done = 0;
    ++turn;
    futex(FUTEX_WAKE, INT_MAX, 0);
  }

private:
  void futex(int op, uint32_t value, int64_t ns) {
    timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
    syscall(SYS_futex, &turn, op, value, op == FUTEX_WAIT ? &t : nullptr, nullptr, 0);
  }
};

/// What an input holds: small numbers, so that sums are exact in any order.
inline float given(int rank, int64_t i) { return float((rank * 3 + i) % 7); }

/// Elements of a rank's input and output.
inline int64_t inputCount(const Cell &c, int n) {
  return c.collective == ReduceScatter || c.collective == AllToAll ? c.count * n : c.count;
}
inline int64_t outputCount(const Cell &c, int n) {
  return c.collective == AllGather || c.collective == AllToAll ? c.count * n : c.count;
}

inline float expected(const Cell &c, int n, int rank, int64_t i) {
  float sum = 0;
  switch (c.collective) {
  case AllGather:
    return given(int(i / c.count), i % c.count);
  case AllToAll:
    return given(int(i / c.count), rank * c.count + i % c.count);
  case Broadcast: // from rank 0
    return given(0, i);
  case ReduceScatter:
    i += rank * c.count;
    [[fallthrough]];
  default:
    for (int r = 0; r < n; ++r)
      sum += given(r, i);
    return sum;
  }
}

/// One rank's part in all cells. `Library` has: prepare(cell) giving false on failure, input(),
/// output() as float *, meet() (a barrier of the ranks), run() giving false on failure, finish().
template <typename Library> bool play(Stage &stage, Library &library, int which, int rank) {
  uint32_t t = 0;
  for (int k = 0; k < stage.numCells; ++k) {
    const Cell &cell = stage.cells[k];
    int64_t in = inputCount(cell, stage.nranks), out = outputCount(cell, stage.nranks);
    // Warm-up: buffers, the check, and how many iterations a turn takes: by a few, and by as many
    // as that gave. The first cell finds everything cold and takes more.
    if (!stage.await(which, t++))
      return false;
    if (!library.prepare(cell))
      return false;
    for (int64_t i = 0; i < in; ++i)
      library.input()[i] = given(rank, i);
    if (!library.meet() || !library.run())
      return false;
    if (stage.check) {
      int64_t wrong = 0;
      for (int64_t i = 0; i < out; ++i)
        wrong += library.output()[i] != expected(cell, stage.nranks, rank, i);
      std::atomic_ref(stage.wrong[which][k]).fetch_add(wrong);
    }
    if (!library.meet())
      return false;
    int64_t start = 0, n = 3;
    for (int pass = 0; pass < (k == 0 ? 10 : 3); ++pass) {
      start = nowNs();
      for (int64_t i = 0; i < n; ++i)
        if (!library.run())
          return false;
      int64_t each = std::max<int64_t>(1, (nowNs() - start) / n);
      if (rank == 0)
        stage.iterations[which][k] = int32_t(std::clamp<int64_t>(stage.batchNs / each, 1, 20'000));
      if (!library.meet())
        return false;
      n = stage.iterations[which][k];
      if (!library.meet()) // all have read it
        return false;
    }
    stage.end();
    for (int round = 0; round < stage.rounds; ++round) {
      if (!stage.await(which, t++))
        return false;
      if (!library.meet()) // all are awake
        return false;
      start = nowNs();
      for (int64_t i = 0; i < n; ++i)
        if (!library.run())
          return false;
      stage.ns[which][k][round][rank] = float(nowNs() - start) / float(n);
      if (round + 1 == stage.rounds && !library.finish())
        return false;
      stage.end();
    }
  }
  return true;
}

} // namespace ncclx_bench

#endif // NCCLX_TOOLS_NCCLX_BENCH_STAGE_H

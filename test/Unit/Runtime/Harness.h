//===- Harness.h - Ranks as processes or as threads -------------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_RUNTIME_HARNESS_H
#define NCCLX_TEST_UNIT_RUNTIME_HARNESS_H

#include "ncclxrt/abi.h"
#include "ncclxrt/launch.h"

#include <bit>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace harness {

/// Fake: threads of a FakeWorld, over its transport, whatever the job names.
enum class Mode { Processes, Threads, Fake };

/// A plan's description that owns its arrays. Lanes 0 to 2 are ce, nic and host; op i is "op<i>".
struct PlanSpec {
  std::string name = "test";
  uint64_t hash = 1;
  std::vector<ncclxrtWindowDesc_t> windows;
  std::vector<ncclxrtSlotsDesc_t> slots;
  std::vector<ncclxrtSizeDesc_t> sizes;
  std::vector<ncclxrtSharing_t> sharing;
  int numOps = 8;
  size_t trace = 0;
};
constexpr int64_t ce = 0, nic = 1, host = 2;

/// One rank of a test. Each call that fails throws the result and the sentence, so that a test's
/// body reads straight; `expect` is for the failures that are meant.
class Rank {
public:
  Rank(const ncclxrtCommConfig_t &config);
  ~Rank(); // leaves without ceremony what is still there
  void prepare(const PlanSpec &spec);
  ncclxrtResult_t tryPrepare(const PlanSpec &spec);
  void destroyPlan();
  void leave();
  std::byte *buffer(size_t window, int generation = 0, size_t *bytes = nullptr);
  /// One run of `program`; throws if it fails.
  void run(const std::function<int32_t(int64_t exec)> &program);
  ncclxrtResult_t tryRun(const std::function<int32_t(int64_t exec)> &program);
  std::string error() const { return ncclxrtGetLastError(comm); }
  int rank, nranks;
  ncclxrtComm_t comm = nullptr;
  ncclxrtPlan_t plan = nullptr;
};

/// A condition of a test's body; throws the text.
void check(bool condition, const std::string &text);

struct Job {
  Mode mode = Mode::Processes;
  std::string transport = "shm";
  int nranks = 2;
  int64_t timeoutMs = 20'000;
  std::string job = "test";
  std::vector<int> absent;
  int64_t graceMs = 0;
  uint64_t seed = 1; // of the fake world
};

struct Outcome {
  ncclxrt::RankExit exit;
  std::string text;       // what the body threw, or reported
  int64_t elapsedMs = -1; // of the body, by the job's clock
};

/// Runs the body on each rank. The body makes its Rank itself, or lets each() do so.
std::vector<Outcome> run(const Job &job,
                         const std::function<void(const ncclxrt::LaunchedRank &)> &body);

/// Calls body(i) for each i < n, each in a process of its own and all at once; gives what each
/// returned, or how its process ended. For tests that mostly wait.
std::vector<std::string> inProcesses(int n, const std::function<std::string(int)> &body);

/// A port of this machine that nobody is bound to, below those that the kernel gives to clients.
/// Tests that run side by side start their search at different ones.
int freePort();

/// How a rank comes to grief: as a process, or in the fake world as if it were one. Hang: it does
/// not come back for longer than anybody waits.
enum class Fall { Kill, Stop, Hang };
/// Makes the calling rank fall. Comes back for Hang, and, in the fake world, by an exception when
/// nobody is left who could notice.
void fall(Fall how, const ncclxrt::LaunchedRank &rank);

/// Runs the body on each rank of a whole job, and expects each to end well.
void each(const Job &job, const std::function<void(Rank &)> &body);

/// The whole range [offset, offset + bytes) of a window.
struct Box {
  int64_t window, peer, offset, rows, stride, rowBytes;
};
inline Box whole(int64_t window, int64_t peer, int64_t offset, int64_t bytes) {
  return {window, peer, offset, 1, bytes, bytes};
}
inline int32_t copy(int32_t s, int64_t exec, int64_t op, int64_t lane, Box d, Box f,
                    int64_t slots = -1, int64_t peer = -1, int64_t index = 0) {
  return ncclxrt_copy(s, exec, op, lane, d.window, d.peer, d.offset, d.rows, d.stride, d.rowBytes,
                      f.window, f.peer, f.offset, f.rows, f.stride, f.rowBytes, slots, peer, index);
}
inline int32_t reduce(int32_t s, int64_t exec, int64_t op, int64_t kind, int64_t dtype, int64_t acc,
                      Box d, Box a, int64_t count, int64_t step, Box b = {-1, 0, 0, 0, 0, 0},
                      double scale = 1, int64_t divisor = 1) {
  return ncclxrt_reduce(s, exec, op, ce, kind, dtype, acc, std::bit_cast<int64_t>(scale), divisor,
                        d.window, d.peer, d.offset, d.rows, d.stride, d.rowBytes, a.window, a.peer,
                        a.offset, a.rows, a.stride, a.rowBytes, count, step, b.window, b.peer,
                        b.offset, b.rows, b.stride, b.rowBytes);
}

} // namespace harness

#endif // NCCLX_TEST_UNIT_RUNTIME_HARNESS_H

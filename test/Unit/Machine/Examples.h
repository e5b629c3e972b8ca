//===- Examples.h - The reference's schedules, in C++ --------------*- C++ -*-===//
//
// Each is the rank-symbolic program of one collective, made op by op while it is read, so that a
// program for 131,072 ranks takes no memory. The caller's accesses are a Source and a Sink on the
// user lane.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TEST_MACHINE_EXAMPLES_H
#define NCCLX_TEST_MACHINE_EXAMPLES_H

#include "ncclx/Machine/Schedule.h"

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir::ctran::machine::examples {

/// A coroutine that yields ops.
class Generator {
public:
  struct promise_type {
    Op *current = nullptr;
    Generator get_return_object() {
      return Generator(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(Op &op) noexcept {
      current = &op;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  explicit Generator(std::coroutine_handle<promise_type> handle) : handle(handle) {}
  Generator(Generator &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Generator(const Generator &) = delete;
  Generator &operator=(Generator &&) = delete;
  ~Generator() {
    if (handle)
      handle.destroy();
  }
  /// The next op, or null. It is the coroutine's own: move it away.
  Op *next() {
    handle.resume();
    return handle.done() ? nullptr : handle.promise().current;
  }

private:
  std::coroutine_handle<promise_type> handle;
};

/// One run of one rank; `point` null: the representative.
struct Context {
  int64_t run = 0;
  const std::vector<int64_t> *point = nullptr;
};

class Example : public Schedule {
public:
  std::function<Generator(const Example &, Context)> body;
  bool asymmetric = false;
  std::optional<int64_t> depth; ///< the shallowest queues that the schedule ends with (S11)
  std::unique_ptr<OpStream> open(const std::vector<int64_t> *point, int64_t run) const override;
};
using ExampleRef = std::shared_ptr<Example>;

/// (a) direct all-gather on a copy engine; `counted`: one data slot for all writers.
ExampleRef directAllGather(int64_t n, bool counted = false);
/// (b), (g) ring all-reduce, tier by tier.
ExampleRef ringAllReduce(std::vector<int64_t> grid, int64_t pieces = 1, int64_t slots = 2);
/// (c) recursive doubling on k axes of size 2.
ExampleRef recursiveDoubling(unsigned k);
/// (d) Bruck; `intervals`: one put a step.
ExampleRef bruckAllGather(int64_t n, bool intervals = false);
/// (e) two-shot all-reduce in one kernel; `swap`: a block pushes what another owns.
ExampleRef twoShotAllReduce(int64_t n, int64_t blocks = 2, bool swap = false);
/// (f) one-shot all-reduce with packets; `oneWay`: no way back.
ExampleRef oneShotPackets(int64_t n, int64_t generations = 2, bool oneWay = false);
/// (m) pipeline send/recv, asymmetric.
ExampleRef pipelineSendRecv(int64_t n, int64_t micro = 4, int64_t slots = 2);
/// all_to_all of one put a peer, over `lanes` copy engines.
ExampleRef allToAll(int64_t n, int64_t lanes = 1);
ExampleRef permute(int64_t n, int64_t shift = 1);
ExampleRef bidirectionalAllGather(int64_t n);
/// Broadcast from rank 0, asymmetric.
ExampleRef binomialBroadcast(int64_t n);
/// Reduce-scatter on k axes of size 2.
ExampleRef halvingReduceScatter(unsigned k);
/// (h) reduce-scatter: copy engines push chunks, one block adds them.
ExampleRef chunkedReduceScatter(int64_t n, int64_t chunks = 2, int64_t slots = 2);
/// Chunks to the right-hand neighbour; with more slots than chunks a run lives on credit of the one
/// before the last.
ExampleRef streamRight(int64_t n, int64_t chunks = 2, int64_t slots = 2);
/// All-gather that only ends because its lanes are two, and deep enough.
ExampleRef handoffAllGather(int64_t n);
/// An example by its text, e.g. "ring 2,3 pieces=2 slots=1"; null when there is none.
ExampleRef byName(const std::string &text);

/// Where a mutator works.
struct Where {
  int64_t absolute = 0; ///< of a wait: its value, counted from the first run
  int64_t run = 0;
  const std::vector<int64_t> *point = nullptr; ///< null: the representative
};
/// Changes one op; false: it does not apply.
using Mutator = std::function<bool(Op &op, const Where &where)>;
/// Those of the reference's model.
const std::vector<std::pair<std::string, Mutator>> &mutators();
/// Waits only for the last two tokens: what was received, not the own puts.
bool forgetOwnPuts(Op &op, const Where &where);
class Mutant : public Schedule {
public:
  /// `mutator` on the op at `index` of every run; on all ranks, or on `rank` alone.
  Mutant(std::shared_ptr<const Schedule> base, int64_t index, Mutator mutator, int64_t rank = -1);
  std::unique_ptr<OpStream> open(const std::vector<int64_t> *point, int64_t run) const override;
  bool everyOp = false;    ///< not only the one at `index`
  bool needsPoint = false; ///< a coordinate becomes a number: there is no representative
  mutable int64_t hits = 0;

private:
  std::shared_ptr<const Schedule> base;
  int64_t index;
  Mutator mutator;
  int64_t rank;
  friend class MutantStream;
};
/// A schedule with one thing broken.
struct Broken {
  std::string kind, what;
  std::shared_ptr<Schedule> schedule;
  std::optional<int64_t> depth; ///< to be proved with
  bool asymmetric = false;      ///< where `base` may not be
};
/// Every kind of mutation of `base`, each at `most` places at most, spread over the program. What
/// says the same in other words is none: see Mutations.cpp for the rules.
std::vector<Broken> mutations(const ExampleRef &base, size_t most);
/// The ops of rank 0 in run 0.
std::vector<Op> firstRun(const Schedule &schedule);
/// Index of the nth op whose note is `note`; -1 when there is none.
int64_t find(const Schedule &schedule, const std::string &note, int64_t nth = 0);

} // namespace mlir::ctran::machine::examples
#endif // NCCLX_TEST_MACHINE_EXAMPLES_H

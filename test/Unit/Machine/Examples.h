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
/// An example by its text, e.g. "ring 2,3 pieces=2 slots=1"; null when there is none.
ExampleRef byName(const std::string &text);

/// Changes one op; false: it does not apply. `absolute` is a wait's value counted from the first
/// run.
using Mutator = std::function<bool(Op &op, int64_t absolute)>;
const std::vector<std::pair<std::string, Mutator>> &mutators();
/// Waits only for the last two tokens: what was received, not the own puts.
bool forgetOwnPuts(Op &op, int64_t absolute);
/// Swaps the index of a box's last dimension without moving the peer (a translation with a buffer
/// offset that is none): see Mutants.
class Mutant : public Schedule {
public:
  /// `mutator` on the op at `index` of every run; on all ranks, or on `rank` alone.
  Mutant(std::shared_ptr<const Schedule> base, int64_t index, Mutator mutator, int64_t rank = -1);
  std::unique_ptr<OpStream> open(const std::vector<int64_t> *point, int64_t run) const override;
  mutable int64_t hits = 0;

private:
  std::shared_ptr<const Schedule> base;
  int64_t index;
  Mutator mutator;
  int64_t rank;
  friend class MutantStream;
};
/// The ops of rank 0 in run 0.
std::vector<Op> firstRun(const Schedule &schedule);
/// Index of the nth op whose note is `note`; -1 when there is none.
int64_t find(const Schedule &schedule, const std::string &note, int64_t nth = 0);

} // namespace mlir::ctran::machine::examples
#endif // NCCLX_TEST_MACHINE_EXAMPLES_H

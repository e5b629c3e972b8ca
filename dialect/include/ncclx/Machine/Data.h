//===- Data.h - A schedule executed in an adversarial order --------*- C++ -*-===//
#ifndef NCCLX_MACHINE_DATA_H
#define NCCLX_MACHINE_DATA_H

#include "ncclx/Machine/Schedule.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::ctran::machine {

/// Real bytes for a data run. Called from one thread.
class DataModel {
public:
  virtual ~DataModel() = default;
  /// Fills an Input window (all of its storage) as Entry of `run`.
  virtual void input(int64_t rank, unsigned window, int64_t run, uint8_t *bytes, int64_t size) = 0;
  /// `dst` = the combination of `srcs`, all of `size` bytes; `dst` is separate storage.
  virtual void reduce(const Op &op, const std::vector<const uint8_t *> &srcs, uint8_t *dst,
                      int64_t size) = 0;
  /// The body of a compute: packed copies of the boxes it reads, packed room for those it writes.
  virtual void compute(const Op &op, int64_t rank, int64_t run,
                       const std::vector<std::vector<uint8_t>> &reads,
                       std::vector<std::vector<uint8_t>> &writes) = 0;
  /// Sees an Output window as Exit of `run` does; a non-empty answer says what is wrong.
  virtual std::string output(int64_t rank, unsigned window, int64_t run, const uint8_t *bytes,
                             int64_t size) = 0;
};

struct DataOptions {
  uint64_t seed = 1;
  int64_t runs = 0; ///< 0: P+1, as the prover
  int64_t eventBudget = 4'000'000;
  DataModel *model = nullptr; ///< null: symbolic values only
};

struct DataResult {
  enum class Outcome : uint8_t { Ok, Wrong, Hang, Invalid, Undecided } outcome = Outcome::Ok;
  std::string message; ///< empty when Ok
  int64_t events = 0;
  explicit operator bool() const { return outcome == Outcome::Ok; }
};

/// Executes every rank, one random choice after another: a data op's reads and writes are two
/// events, landings come in any order, and a landing is seen late unless a flush makes it visible.
/// What `prove` accepts never ends otherwise than Ok here.
[[nodiscard]] DataResult run(const Schedule &schedule, const DataOptions &options = {});

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_DATA_H

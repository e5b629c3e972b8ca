//===- Fluid.h - Flows that share resources max-min fairly ---------*- C++ -*-===//
#ifndef NCCLX_MACHINE_LIB_FLUID_H
#define NCCLX_MACHINE_LIB_FLUID_H

#include "ncclx/Machine/Time.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <queue>

namespace mlir::ctran::machine {

class Fluid {
public:
  explicit Fluid(const CostModel &model);

  void add(int64_t id, double work, double maxRate, llvm::ArrayRef<ResourceUse> uses, double now);
  /// When the next flow ends; infinity when none does.
  double nextEnd(double now);
  /// Moves all flows to `now`; the ids of those that have ended.
  std::vector<int64_t> advance(double now);
  /// Empty, or which flow can never end.
  std::string stuck() const;

private:
  struct Flow {
    int64_t id, number; ///< number: in the order in which they came
    double left, since; ///< units left at a time
    double rate, maxRate;
    llvm::SmallVector<ResourceUse, 8> uses;
    llvm::SmallVector<size_t, 8> places; ///< of each use, in usersOf
    /// Resource whose capacity alone keeps all flows that have it for theirs slowest, with weight
    /// 1; -1: none does.
    int64_t tightest = -1;
    uint64_t version = 0; ///< of its rate
    bool over = false;

    double end() const;
  };
  struct End {
    double time;
    size_t flow;
    uint64_t version;
    bool operator<(const End &other) const { return time > other.time; }
  };
  void count(const Flow &flow, int by);
  void join(size_t i);
  void leave(size_t i);
  /// Full at no rates that its flows can have: it makes nobody wait.
  bool isSlack(unsigned resource) const;
  void findChanged();
  void sortByAge(std::vector<size_t> &list);
  void share();
  void setRate(size_t i, double rate);
  bool isCurrent(const End &end) const {
    return !flows[end.flow].over && flows[end.flow].version == end.version;
  }

  std::vector<Flow> flows;    ///< those that are over are used again
  std::vector<size_t> unused; ///< of those
  std::vector<size_t> fresh;  ///< have no rate yet
  /// Number and flow, in the order in which they came; some are over.
  std::vector<std::pair<int64_t, size_t>> byAge;
  std::priority_queue<End> ends;
  std::vector<unsigned> left; ///< resources of flows that have ended since rates were shared
  std::vector<double> capacity;
  // Per resource: what its flows bring at most, where each has a tightest resource elsewhere; how
  // many have none; whether rates were shared when it was not slack; its flows, each with the
  // number of its use.
  std::vector<double> most;
  std::vector<int64_t> boundless;
  std::vector<bool> coupled;
  std::vector<std::vector<std::pair<size_t, size_t>>> usersOf;
  llvm::DenseMap<std::pair<unsigned, unsigned>, int64_t>
      through; ///< flows of a resource, by tightest
  // Scratch, per resource and per flow.
  std::vector<double> used, weight;
  std::vector<int64_t> users;
  std::vector<bool> asked;
  enum class State : uint8_t { None, Found, Rises, Stops };
  std::vector<State> states;
  std::vector<size_t> rising, stopped;
  std::vector<unsigned> told, touched;
  double at = 0;
  int64_t nextNumber = 0;
  size_t running = 0;
  bool stale = false;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_FLUID_H

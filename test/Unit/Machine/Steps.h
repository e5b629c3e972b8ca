//===- Steps.h - A schedule as steps, and what they do -------------*- C++ -*-===//
#ifndef NCCLX_TEST_MACHINE_STEPS_H
#define NCCLX_TEST_MACHINE_STEPS_H

#include "Orders.h"

#include <map>
#include <tuple>
#include <vector>

namespace mlir::ctran::machine::orders {

/// What a cell holds: nothing (0), or the number of a Value.
using Cell = uint64_t;

struct Value {
  int64_t name = -1; ///< index into valueNames; -1: what a computation made
  int64_t run = 0;
  uint32_t summed = 0; ///< axes
  uint64_t from = 0;   ///< contributing points of those axes, a bit each
  std::vector<int64_t>
      label; ///< indices in the global array; of a computation: what it is made from
  friend bool operator==(const Value &, const Value &) = default;
};

/// Cells [begin, end) of one window generation of one rank.
struct Region {
  int memory = 0;
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// One executed op.
struct Action {
  Op op;
  uint32_t rank = 0;
  int64_t run = 0;
  std::vector<Region> reads, writes;
  bool looksOnly = false; ///< the caller: what it reads need not be there
};

struct Step {
  enum class Kind : uint8_t { Issue, Start, Read, Write, Over, Arrive } kind = Kind::Start;
  int action = 0;
  unsigned access = 0;
  std::vector<int> after; ///< steps that come before in every order
};

class Steps {
public:
  Steps(const Schedule &schedule, const OrdersOptions &options);

  std::vector<Action> actions;
  std::vector<Step> steps;
  std::string unexplored; ///< see Orders
  std::string mismatch;   ///< two ends of a move that differ in size

  /// A wait for a counter that several lanes raise: any `k` of `adds` will do.
  struct Counted {
    int step;
    std::vector<int> adds;
    int64_t k;
  };
  std::vector<Counted> counted;
  /// A put that tells of itself: flushes that know of its arrival come after `shown`.
  struct Landing {
    int arrive, shown;
    uint32_t rank;
  };
  std::vector<Landing> landings;
  std::vector<int> flushes;
  /// Every step, in an order in which they can happen; fewer when the program hangs.
  std::vector<int> walk;

  bool touches(int step, Region &region, bool &writes) const;
  uint32_t rankOf(int step) const { return actions[steps[step].action].rank; }

  struct State {
    std::vector<std::vector<Cell>> memory;             ///< by Region::memory
    std::vector<std::vector<std::vector<Cell>>> reads; ///< by action and access
    std::vector<uint64_t> seen;                        ///< by step
    std::string wrong;
    uint64_t sum() const;
  };
  State begin() const;
  void execute(int step, State &state);

private:
  struct Lane;
  void load();
  void add(Action action, Lane &lane, int &issued);
  int newStep(Step::Kind kind, unsigned access = 0, std::vector<int> after = {});
  void resolveWaits();
  void greedy();

  int64_t index(const Index &index, uint32_t rank) const;
  uint32_t target(const Peer &peer, uint32_t rank) const;
  Region region(const Access &access, uint32_t rank, int64_t run);
  Region whole(unsigned window, uint32_t rank, int64_t run);
  /// Owner, slots and index of each place that `ref` names.
  using Place = std::tuple<uint32_t, unsigned, int64_t>;
  std::vector<Place> places(const SlotRef &ref, uint32_t rank);
  int slotId(const Place &place, int64_t run);
  void raise(const Action &action, Lane &lane, int step);

  Cell number(Value value);
  Cell labelled(const Action &action, int64_t cell);
  Cell sum(Cell a, Cell b);
  std::vector<Cell> made(const Step &step, const State &state);
  int64_t used(const Action &action) const;
  std::string name(const Action &action) const;

  const Schedule &schedule;
  OrdersOptions options;
  std::map<std::tuple<uint32_t, unsigned, int64_t>, int> memories;
  std::vector<int64_t> sizes; ///< cells, by memory
  std::map<std::tuple<uint32_t, unsigned, int64_t, int64_t>, int> slotIds;
  struct Add {
    int lane, step;
    int64_t run;
  };
  std::vector<std::vector<Add>> adds; ///< by slot
  std::map<Place, int64_t> firstRun;  ///< signals of run 0
  struct Wait {
    int step, slot;
    Place place;
    int64_t use, k;
  };
  std::vector<Wait> waits;
  std::map<const Token *, int> ends;
  std::map<Cell, Value> values;
};

} // namespace mlir::ctran::machine::orders
#endif // NCCLX_TEST_MACHINE_STEPS_H

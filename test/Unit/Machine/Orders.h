//===- Orders.h - Every order in which a schedule may happen -------*- C++ -*-===//
//
// An oracle for the prover that shares none of its code: not its clocks, its memory or its values.
//
// A schedule is taken apart into steps: an op's start, each of its reads and writes, its end, and
// for a put on an issue lane the moment at which each destination shows it and the one at which its
// notify arrives. What must come before a step by the rules S9 to S22 is a fixed set of steps, as
// counters only grow and nothing is ever taken back (a step that could happen once can always
// happen). So whether a program ends does not depend on the order; one greedy walk tells.
//
// What depends on the order is memory. Two steps that touch the same cells, one of them writing,
// either come in one order always, or are a race. All orders that resolve every race alike give
// every read the same values, since neighbours that touch no common cell may change places. So it
// is enough to execute one order for each way to resolve the races, and that is what is done: races
// are decided one after another, both ways, what follows from a decision is followed, and
// contradictions are dropped. (The trace semantics on which dynamic partial-order reduction rests;
// here the steps are known beforehand, so that no order is executed twice.) A program without races
// has one.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TEST_MACHINE_ORDERS_H
#define NCCLX_TEST_MACHINE_ORDERS_H

#include "ncclx/Machine/Schedule.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace mlir::ctran::machine {

struct OrdersOptions {
  int64_t runs = 0;             ///< 0: P+1, as the prover
  int64_t limit = 1000;         ///< orders to execute at most
  std::optional<int64_t> depth; ///< ops that a lane holds before its issuer blocks (S11)
  bool stopAtWrong = true;
};

struct Orders {
  int64_t steps = 0;
  int64_t races = 0;       ///< pairs of steps that conflict and that nothing orders
  int64_t tried = 0;       ///< orders executed, no two of which resolve all races alike
  bool all = false;        ///< no order is left
  bool hangs = false;      ///< in every order
  std::string wrong;       ///< what goes wrong in the first such order; empty: nothing did
  std::set<uint64_t> seen; ///< a number for all that the steps of an order read, for each order
  std::string unexplored;  ///< what this oracle has no meaning for; then the rest is empty
  bool right() const { return all && !hangs && wrong.empty() && unexplored.empty(); }
  std::string str() const;
};

/// All orders, one for each way to resolve the races.
[[nodiscard]] Orders tryAllOrders(const Schedule &schedule, const OrdersOptions &options = {});
/// All orders one by one, step by step; for programs of a few steps.
[[nodiscard]] Orders tryEveryOrder(const Schedule &schedule, const OrdersOptions &options = {});

} // namespace mlir::ctran::machine
#endif // NCCLX_TEST_MACHINE_ORDERS_H

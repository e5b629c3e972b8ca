//===- RandomSchedule.h - Schedules that mean something, at random -*- C++ -*-===//
//
// A schedule is a list of steps in one order that all ranks follow: a put of a cell of one rank to
// a cell of another, or a reduction of two cells of one rank. Each rank does its part of each step
// and no more waiting than the data needs, so that steps overlap; what every cell holds in the end
// is what the steps give one after the other.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TEST_UNIT_RUNTIME_RANDOMSCHEDULE_H
#define NCCLX_TEST_UNIT_RUNTIME_RANDOMSCHEDULE_H

#include "Harness.h"

namespace harness {

struct RandomSchedule {
  struct Step {
    enum Kind { PutNotify, PutThenSignal, Reduce } kind;
    int from, to;               // ranks; the same for Reduce
    int source, second, target; // cells; second: of Reduce alone
  };
  int nranks, cells, runs;
  int64_t cellElements; // i32
  std::vector<Step> steps;

  explicit RandomSchedule(uint64_t seed);

  PlanSpec spec() const;
  /// What a cell holds at the start.
  int32_t initial(int rank, int cell, int64_t element) const;
  /// Every rank's cells after all runs.
  std::vector<std::vector<int32_t>> expected() const;
  /// One rank's program; `before` is called ahead of each step.
  int32_t execute(int64_t exec, int rank, const std::function<void(int step)> &before) const;
  /// A whole rank: prepares, fills, runs, checks, leaves. `before` also gets the run.
  void play(Rank &me, const PlanSpec &plan,
            const std::function<void(int run, int step)> &before) const;
};

} // namespace harness

#endif // NCCLX_TEST_UNIT_RUNTIME_RANDOMSCHEDULE_H

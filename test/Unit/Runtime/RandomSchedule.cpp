//===- RandomSchedule.cpp - Schedules that mean something, at random ------===//
#include "RandomSchedule.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

using namespace harness;

RandomSchedule::RandomSchedule(uint64_t seed) {
  std::mt19937_64 engine(seed);
  auto below = [&](int n) { return int(engine() % uint64_t(n)); };
  nranks = 2 + below(4);
  cells = 2 + below(4);
  runs = 1 + below(3);
  cellElements = 1 + below(seed % 8 == 0 ? 20'000 : 40);
  for (int i = 3 + below(20); i > 0; --i) {
    Step step{Step::Kind(below(3)), below(nranks), below(nranks), below(cells), below(cells), 0};
    if (step.kind == Step::Reduce)
      step.to = step.from;
    do
      step.target = below(cells); // a copy onto itself is no copy
    while (step.kind != Step::Reduce && step.from == step.to && step.target == step.source);
    steps.push_back(step);
  }
}

PlanSpec RandomSchedule::spec() const {
  PlanSpec spec;
  spec.name = "random";
  spec.windows = {{"cells", uint64_t(cells * cellElements * 4), 1, ncclxrtRoleInput}};
  auto count = int64_t(steps.size());
  spec.slots = {{"ready", count, 1, 0}, {"data", count, 1, 0}};
  spec.numOps = int(steps.size()) + 1;
  return spec;
}

int32_t RandomSchedule::initial(int rank, int cell, int64_t element) const {
  return int32_t(rank * 1'000'003 + cell * 10'007 + element * 31);
}

std::vector<std::vector<int32_t>> RandomSchedule::expected() const {
  std::vector<std::vector<int32_t>> memory(size_t(nranks),
                                           std::vector<int32_t>(size_t(cells * cellElements)));
  auto at = [&](int rank, int cell) { return memory[size_t(rank)].data() + cell * cellElements; };
  for (int rank = 0; rank < nranks; ++rank)
    for (int cell = 0; cell < cells; ++cell)
      for (int64_t i = 0; i < cellElements; ++i)
        at(rank, cell)[i] = initial(rank, cell, i);
  for (int run = 0; run < runs; ++run)
    for (const Step &s : steps)
      for (int64_t i = 0; i < cellElements; ++i) {
        int32_t value = at(s.from, s.source)[i];
        if (s.kind == Step::Reduce)
          value = int32_t(uint32_t(value) + uint32_t(at(s.from, s.second)[i]));
        at(s.to, s.target)[i] = value;
      }
  return memory;
}

int32_t RandomSchedule::execute(int64_t exec, int rank,
                                const std::function<void(int)> &before) const {
  const int64_t bytes = cellElements * 4, round = ncclxrt_run(exec) + 1;
  const int64_t ready = 0, data = 1;
  auto box = [&](int cell, int peer) { return whole(0, peer, cell * bytes, bytes); };
  std::vector<int> comes(size_t(cells), -1);       // the step whose put is on its way to a cell
  std::vector<bool> leaving(size_t(cells), false); // a put that may still read the cell
  int32_t s = 0;
  auto arrived = [&](int cell, int op) {
    if (int step = std::exchange(comes[size_t(cell)], -1); step >= 0)
      s = ncclxrt_wait(s, exec, op, host, data, step, 1, round);
  };
  auto mayOverwrite = [&](int cell, int op) {
    arrived(cell, op);
    if (!leaving[size_t(cell)])
      return;
    s = ncclxrt_complete(s, exec, op, nic);
    leaving.assign(size_t(cells), false);
  };
  for (int k = 0; k < int(steps.size()) && s == 0; ++k) {
    const Step &step = steps[size_t(k)];
    before(k);
    if (step.kind == Step::Reduce && rank == step.from) {
      arrived(step.source, k);
      arrived(step.second, k);
      mayOverwrite(step.target, k);
      s = reduce(s, exec, k, ncclxrtReduceSum, ncclxrtI32, ncclxrtI32, box(step.target, -1),
                 box(step.source, -1), 1, 0, box(step.second, -1));
    }
    if (step.kind == Step::Reduce)
      continue;
    if (rank == step.to) {
      mayOverwrite(step.target, k);
      s = ncclxrt_signal(s, exec, k, host, ready, step.from, k);
    }
    if (rank == step.from) {
      arrived(step.source, k);
      s = ncclxrt_wait(s, exec, k, host, ready, k, 1, round);
      bool notifies = step.kind == Step::PutNotify;
      s = copy(s, exec, k, notifies ? nic : ce, box(step.target, step.to), box(step.source, -1),
               notifies ? data : -1, step.to, k);
      if (notifies)
        leaving[size_t(step.source)] = true;
      else
        s = ncclxrt_signal(s, exec, k, host, data, step.to, k);
    }
    if (rank == step.to)
      comes[size_t(step.target)] = k;
  }
  for (int cell = 0; cell < cells; ++cell)
    arrived(cell, int(steps.size()));
  return ncclxrt_complete(s, exec, int64_t(steps.size()), nic);
}

void RandomSchedule::play(Rank &me, const PlanSpec &plan,
                          const std::function<void(int, int)> &before) const {
  me.prepare(plan);
  auto *memory = reinterpret_cast<int32_t *>(me.buffer(0));
  for (int cell = 0; cell < cells; ++cell)
    for (int64_t i = 0; i < cellElements; ++i)
      memory[cell * cellElements + i] = initial(me.rank, cell, i);
  for (int run = 0; run < runs; ++run)
    me.run(
        [&](int64_t exec) { return execute(exec, me.rank, [&](int step) { before(run, step); }); });
  const std::vector<int32_t> mine = expected()[size_t(me.rank)];
  check(memcmp(memory, mine.data(), mine.size() * 4) == 0, "a cell holds something else");
  me.leave();
}

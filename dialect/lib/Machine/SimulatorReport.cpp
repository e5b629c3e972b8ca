//===- SimulatorReport.cpp - What a timed execution tells ---------------------===//

#include "Simulator.h"

#include <algorithm>

namespace mlir::ctran::machine {

void Simulator::report() {
  result.collectives.resize(schedule.collectives.size());
  std::vector<bool> seen(schedule.collectives.size(), false);
  for (size_t i = 0; i < result.ops.size(); ++i) {
    const TimedOp &op = result.ops[i];
    // A signal on its way keeps nobody but whoever waits for it.
    double over = op.kind == OpKind::Signal ? op.end : std::max(op.end, op.landed);
    result.makespan = std::max(result.makespan, over);
    result.hops = std::max<int64_t>(result.hops, instances[i].hops);
    if (op.collective < 0)
      continue;
    CollectiveTime &c = result.collectives[op.collective];
    c.firstIssue = seen[op.collective] ? std::min(c.firstIssue, op.start) : op.start;
    c.lastCompletion = std::max(c.lastCompletion, over);
    seen[op.collective] = true;
  }
  expose();
  if (options.keepOps)
    sortOps();
  else
    result.ops.clear();
}

void Simulator::sortOps() {
  std::vector<int64_t> order(result.ops.size()), place(result.ops.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<int64_t>(i);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::pair(result.ops[a].start, a) < std::pair(result.ops[b].start, b);
  });
  std::vector<TimedOp> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<int64_t>(i);
    sorted.push_back(result.ops[order[i]]);
  }
  for (TimedOp &op : sorted)
    if (op.blocker >= 0)
      op.blocker = place[op.blocker];
  result.ops = std::move(sorted);
}

/// Charges the time in which a rank executes no compute to what kept it from doing so.
void Simulator::expose() {
  std::vector<double> charged;
  auto processes = static_cast<double>(result.processes);
  for (size_t process = 0; process + 1 < firstOf.size(); ++process) {
    charged.assign(schedule.collectives.size(), 0);
    double other = 0, computes = 0, coveredTo = 0;
    std::vector<int64_t> work;
    int64_t last = -1;
    for (auto i = static_cast<int64_t>(firstOf[process]),
              end = static_cast<int64_t>(firstOf[process + 1]);
         i < end; ++i) {
      const TimedOp &op = result.ops[i];
      if (op.kind == OpKind::Compute)
        work.push_back(i);
      if (last < 0 || op.end >= result.ops[last].end)
        last = i;
    }
    std::sort(work.begin(), work.end(), [&](int64_t a, int64_t b) {
      return std::pair(result.ops[a].start, a) < std::pair(result.ops[b].start, b);
    });
    // The stretch (from, to] is charged to what `i` did, and before that to what held `i` back.
    auto charge = [&](double from, double to, int64_t i, bool itself) {
      while (to > from) {
        if (!itself)
          i = i < 0 ? -1 : result.ops[i].blocker;
        itself = false;
        double since = i < 0 ? from : std::max(from, std::min(to, result.ops[i].start));
        int collective = i < 0 ? -1 : result.ops[i].collective;
        (collective < 0 ? other : charged[collective]) += to - since;
        to = since;
      }
    };
    for (int64_t i : work) {
      const TimedOp &op = result.ops[i];
      if (op.start > coveredTo)
        charge(coveredTo, op.start, i, false);
      computes += std::max(0.0, op.end - std::max(op.start, coveredTo));
      coveredTo = std::max(coveredTo, op.end);
    }
    if (last >= 0 && result.ops[last].end > coveredTo)
      charge(coveredTo, result.ops[last].end, last, true);
    for (size_t c = 0; c < charged.size(); ++c) {
      CollectiveTime &time = result.collectives[c];
      time.exposedMax = std::max(time.exposedMax, charged[c]);
      time.exposedMean += charged[c] / processes;
    }
    result.exposedOtherMax = std::max(result.exposedOtherMax, other);
    result.computeMax = std::max(result.computeMax, computes);
  }
}

} // namespace mlir::ctran::machine

//===- Steady.cpp - Two iterations of a loop at once -----------------------------------------===//
//
// Modulo scheduling in two stages. What is cut off in front belongs to the iteration ahead, so that
// no edge of the body leads from behind the cut to its front: the two stages of one kernel have
// only what one iteration hands to the next between them. Where to cut is tried.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Solve.h"

#include <algorithm>

using namespace mlir::ncclx::overlap;

namespace {

/// The kernel of a body that is cut in front of op `cut`.
SteadyState cutAt(const Problem &body, unsigned cut,
                  const std::vector<std::pair<unsigned, unsigned>> &carried) {
  const unsigned n = body.ops.size();
  SteadyState result;
  result.cut = cut;
  Problem &kernel = result.kernel;
  kernel = body;
  auto place = [&](unsigned op) { return op < cut ? n - cut + op : op - cut; };
  for (unsigned i = 0; i < n; ++i) {
    Op op = body.ops[i];
    for (std::vector<unsigned> *list : {&op.after, &op.fences}) {
      std::erase_if(*list, [&](unsigned j) { return (j < cut) != (i < cut); });
      for (unsigned &j : *list)
        j = place(j);
    }
    if (op.partOf)
      op.partOf = place(*op.partOf);
    kernel.ops[place(i)] = std::move(op);
  }
  for (auto [from, to] : carried)
    if (from >= cut && to < cut)
      kernel.ops[place(to)].after.push_back(place(from));
  kernel.buffers.clear();
  for (const Buffer &buffer : body.buffers) {
    Buffer made = buffer;
    made.users.clear();
    Buffer handedOn = made; // what the stage in front has made an iteration ago
    for (unsigned user : buffer.users) {
      bool across = buffer.producer && *buffer.producer < cut && user >= cut;
      (across ? handedOn : made).users.push_back(place(user));
    }
    if (buffer.producer)
      made.producer = place(*buffer.producer);
    // What the front alone makes, and the body ends with, waits for the rest, too.
    bool isHanded =
        !handedOn.users.empty() || (buffer.escapes && buffer.producer && *buffer.producer < cut);
    made.escapes |= isHanded;
    kernel.buffers.push_back(std::move(made));
    if (isHanded) {
      handedOn.producer.reset();
      result.carried += handedOn.bytes;
      kernel.buffers.push_back(std::move(handedOn));
    }
  }
  return result;
}

} // namespace

std::optional<SteadyState>
mlir::ncclx::overlap::scheduleSteadyState(const Problem &body, const Schedule &given,
                                          const std::vector<std::pair<unsigned, unsigned>> &carried,
                                          const SolveOptions &options) {
  constexpr unsigned most = 24; // places to cut
  const unsigned n = body.ops.size();
  auto opaque = [](const Op &op) { return op.opaque; };
  if (n < 2 || std::any_of(body.ops.begin(), body.ops.end(), opaque))
    return std::nullopt;
  Solution alone = solve(body, given, options);
  std::optional<SteadyState> best;
  double least = alone.timeline.seconds;
  for (unsigned i = 1; i <= std::min(n - 1, most); ++i) {
    unsigned cut = n - 1 <= most ? i : uint64_t(i) * n / (most + 1);
    if (cut == 0 || body.ops[cut].partOf) // chunks of one collective stay together
      continue;
    SteadyState state = cutAt(body, cut, carried);
    Schedule serial = serialSchedule(state.kernel);
    SolveOptions limits = options;
    if (options.memoryBudget) {
      limits.memoryBudget =
          alone.peakBefore + *options.memoryBudget - peakBytes(state.kernel, serial);
      if (*limits.memoryBudget < 0)
        continue;
    }
    Solution found = solve(state.kernel, serial, limits);
    if (found.timeline.seconds >= least)
      continue;
    least = state.seconds = found.timeline.seconds;
    state.schedule = std::move(found.schedule);
    best = std::move(state);
  }
  if (best) {
    best->before = alone.timeline.seconds;
    best->floor = floorOf(body);
  }
  return best;
}

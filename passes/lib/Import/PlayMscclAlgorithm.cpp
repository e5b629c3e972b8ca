//===- PlayMscclAlgorithm.cpp - One execution of an MSCCL program -----------------------===//
//
// Waits count and nothing is chosen by arrival, so one execution in any order stands for all: it
// completes with a number of FIFO places or with that number no execution does.
//
//===----------------------------------------------------------------------===//
#include "MscclAlgorithm.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

#include <deque>

using namespace mlir;
using namespace mlir::ncclx::msccl;

namespace {

class Player {
public:
  Player(const Algorithm &a, int64_t slots) : a(a), slots(slots) {
    for (const Gpu &gpu : a.gpus) {
      next.emplace_back(gpu.blocks.size(), 0);
      waiting.emplace_back();
      order.emplace_back();
      depth.push_back({std::vector<int64_t>(a.inPlace ? 0 : a.inputChunks),
                       std::vector<int64_t>(a.inPlace ? a.bufferChunks() : a.outputChunks),
                       std::vector<int64_t>(a.scratchChunks)});
    }
    for (auto [c, count] : a.connections())
      fifos[c];
  }

  /// Does every step get its turn?
  bool run();
  std::vector<std::vector<std::pair<size_t, size_t>>> order;
  int64_t hops = 0, transfers = 0, mostSent = 0;

private:
  using Turn = std::pair<size_t, size_t>; ///< rank, position of a block
  struct Fifo {
    int64_t taken = 0;
    std::deque<std::vector<int64_t>> places; ///< how far each chunk of a transfer has come
    std::optional<Turn> sender, receiver;    ///< who waits for room, for a transfer
  };
  const Algorithm &a;
  int64_t slots;
  std::vector<std::vector<size_t>> next; ///< step of each block
  std::map<Connection, Fifo> fifos;
  std::vector<std::map<std::pair<size_t, size_t>, std::vector<size_t>>> waiting;
  std::vector<std::array<std::vector<int64_t>, 3>> depth; ///< of the value in each chunk: i, o, s

  int64_t &at(size_t rank, Place place, int64_t i) {
    Place found = a.resolve(int64_t(rank), place);
    return depth[rank][found.buffer == 'i' ? 0 : found.buffer == 'o' ? 1 : 2][found.chunk + i];
  }
  bool advance(Turn turn, std::deque<Turn> &ready);
};

/// One step of a block, or false and a note of what it waits for.
bool Player::advance(Turn turn, std::deque<Turn> &ready) {
  auto [rank, b] = turn;
  const ThreadBlock &block = a.gpus[rank].blocks[b];
  size_t &position = next[rank][b];
  const Step &step = block.steps[position];
  if (step.dependency && next[rank][step.dependency->first] <= step.dependency->second) {
    waiting[rank][*step.dependency].push_back(b);
    return false;
  }
  Fifo *from = nullptr, *to = nullptr;
  if (receives(step.type)) {
    from = &fifos[{block.receive, int64_t(rank), block.channel}];
    if (from->places.empty()) {
      from->receiver = turn;
      return false;
    }
  }
  if (sends(step.type)) {
    to = &fifos[{int64_t(rank), block.send, block.channel}];
    if (int64_t(to->places.size()) >= slots) {
      to->sender = turn;
      return false;
    }
  }
  std::vector<int64_t> got(step.count, 0), moved(step.count);
  if (from)
    got = from->places.front();
  for (int64_t i = 0; i < step.count; ++i) {
    int64_t value = got[i];
    if (readsSource(step.type))
      value = std::max(value, at(rank, step.source, i));
    if (step.type == StepType::Reduce)
      value = std::max(value, at(rank, step.dest, i));
    if (stores(step.type))
      at(rank, step.dest, i) = value;
    moved[i] = value + 1;
    if (to)
      hops = std::max(hops, value + 1);
  }
  if (from) {
    from->places.pop_front();
    if (from->sender)
      ready.push_back(*std::exchange(from->sender, std::nullopt));
  }
  if (to) {
    transfers += step.count;
    to->places.push_back(std::move(moved));
    if (to->receiver)
      ready.push_back(*std::exchange(to->receiver, std::nullopt));
  }
  order[rank].push_back({b, position});
  auto waiters = waiting[rank].find({b, position});
  ++position;
  if (waiters != waiting[rank].end()) {
    for (size_t other : waiters->second)
      ready.push_back({rank, other});
    waiting[rank].erase(waiters);
  }
  return true;
}

bool Player::run() {
  std::deque<Turn> ready;
  for (auto [rank, gpu] : llvm::enumerate(a.gpus)) {
    for (auto &[source, dest] : gpu.copies)
      at(rank, dest, 0) = at(rank, source, 0);
    for (size_t b = 0; b < gpu.blocks.size(); ++b)
      ready.push_back({rank, b});
  }
  while (!ready.empty()) {
    Turn turn = ready.front();
    ready.pop_front();
    size_t end = a.gpus[turn.first].blocks[turn.second].steps.size();
    while (next[turn.first][turn.second] < end && advance(turn, ready)) {
    }
  }
  for (auto [rank, gpu] : llvm::enumerate(a.gpus)) {
    int64_t sent = 0;
    for (auto [b, block] : llvm::enumerate(gpu.blocks)) {
      if (next[rank][b] != block.steps.size())
        return false;
      for (const Step &step : block.steps)
        sent += sends(step.type) ? step.count : 0;
    }
    mostSent = std::max(mostSent, sent);
  }
  return true;
}

/// An order of a GPU's steps that its dependencies allow; none: they form a cycle.
std::optional<std::vector<std::pair<size_t, size_t>>> dependencyOrder(const Gpu &gpu) {
  std::vector<std::pair<size_t, size_t>> order;
  std::vector<size_t> next(gpu.blocks.size(), 0);
  size_t total = 0;
  for (const ThreadBlock &block : gpu.blocks)
    total += block.steps.size();
  for (bool moved = true; moved && order.size() < total;) {
    moved = false;
    for (size_t b = 0; b < gpu.blocks.size(); ++b)
      while (next[b] < gpu.blocks[b].steps.size()) {
        const Step &step = gpu.blocks[b].steps[next[b]];
        if (step.dependency && next[step.dependency->first] <= step.dependency->second)
          break;
        order.push_back({b, next[b]++});
        moved = true;
      }
  }
  if (order.size() == total)
    return order;
  // Whoever stands waits for somebody who stands: walk until one is met again.
  std::vector<size_t> path;
  size_t b = 0;
  while (next[b] == gpu.blocks[b].steps.size())
    ++b;
  while (!llvm::is_contained(path, b)) {
    path.push_back(b);
    b = gpu.blocks[b].steps[next[b]].dependency->first;
  }
  InFlightDiagnostic error = emitError(gpu.blocks[b].steps[next[b]].loc);
  error << "the dependencies of this GPU's steps form a cycle";
  for (auto it = llvm::find(path, b); it != path.end(); ++it) {
    const ThreadBlock &block = gpu.blocks[*it];
    const Step &step = block.steps[next[*it]];
    error.attachNote(step.loc) << "step " << step.number << " of thread block " << block.id
                               << " waits for step " << step.dependency->second
                               << " of thread block " << gpu.blocks[step.dependency->first].id;
  }
  return std::nullopt;
}

} // namespace

std::optional<Play> mlir::ncclx::msccl::play(const Algorithm &algorithm, int64_t mostSlots) {
  Play result;
  for (const Gpu &gpu : algorithm.gpus) {
    auto order = dependencyOrder(gpu);
    if (!order)
      return std::nullopt;
    result.order.push_back(std::move(*order));
  }
  for (int64_t slots = 1; slots <= mostSlots; ++slots) {
    Player player(algorithm, slots);
    bool done = player.run();
    result.hops = player.hops;
    result.transfers = player.transfers;
    result.mostSent = player.mostSent;
    if (!done)
      continue;
    result.order = std::move(player.order);
    result.fifoSlots = slots;
    break;
  }
  return result;
}

//===- RandomProblem.cpp - Small problems at random ------------------------------------===//
#include "RandomProblem.h"

#include <random>

using namespace mlir::ncclx::overlap;

Problem overlap_test::randomProblem(uint64_t seed, unsigned mostOps) {
  std::mt19937_64 random(seed); // its numbers are the same everywhere; distributions' are not
  auto below = [&](uint64_t n) { return unsigned(random() % n); };
  auto real = [&](double low, double high) {
    return low + (high - low) * double(random() >> 11) / double(uint64_t(1) << 53);
  };
  Problem problem;
  problem.resources = {"HBM", "link"};
  problem.sms = 132;
  problem.sharing = below(2) ? Sharing::fixed : Sharing::dynamic;
  unsigned n = 4 + below(mostOps - 3), queues = 1 + below(2);
  double density = real(0.5, 2.5); // needs of an op, on average
  for (unsigned i = 0; i < n; ++i) {
    Op op;
    op.collective = i > 0 && below(5) < 2;
    op.name = (op.collective ? "c" : "k") + std::to_string(i);
    op.seconds = op.collective ? real(20e-6, 200e-6) : real(5e-6, 400e-6);
    op.joules = op.seconds * real(50, 600);
    if (op.collective) {
      static const double taken[] = {0, 0, 4, 16, 24};
      op.sms = taken[below(5)];
      op.queue = below(queues);
      op.uses = {{0, real(0.05, 0.3)}, {1, real(0.5, 1)}};
    } else if (below(4) > 0) {
      op.clocked = true;
      op.tiles = 1 + below(2000);
      op.uses = {{0, real(0.02, 0.5)}};
    } else {
      op.uses = {{0, real(0.5, 0.95)}};
    }
    for (unsigned j = 0; j < i; ++j)
      if (real(0, 1) < density / (i + 1))
        op.after.push_back(j);
    if (i > 2 && below(12) == 0)
      op.fences = {below(i)};
    op.opaque = below(30) == 0;
    problem.ops.push_back(std::move(op));
  }
  for (unsigned i = 0; i < n; ++i) {
    Buffer buffer;
    buffer.bytes = 1 + below(100);
    buffer.producer = i;
    for (unsigned j = i + 1; j < n; ++j)
      for (unsigned need : problem.ops[j].after)
        if (need == i)
          buffer.users.push_back(j);
    buffer.escapes = buffer.users.empty() && below(2);
    problem.buffers.push_back(std::move(buffer));
    if (below(3) == 0)
      problem.buffers.push_back({"", 1 + below(100), std::nullopt, {i}, false});
  }
  if (below(4) == 0)
    problem.power = {100, real(300, 600), 0.3};
  return problem;
}

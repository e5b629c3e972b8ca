//===- CostModel.cpp - What an op costs on one kind of device ------------------===//
#include "ncclx/Overlap/CostModel.h"

#include <algorithm>
#include <cmath>

using namespace mlir::ncclx::overlap;

bool Engine::carries(llvm::StringRef kind) const {
  return std::find(collectives.begin(), collectives.end(), kind.str()) != collectives.end();
}

Problem CostModel::problem() const {
  Problem problem;
  problem.resources = resources;
  problem.sms = sms;
  problem.sharing = sharing;
  problem.power = power;
  return problem;
}

/// Bytes of an element of a GEMM's operands and result: bf16.
static constexpr double elementBytes = 2;

Op CostModel::gemm(std::string name, double m, double n, double k, double groups) const {
  Op op;
  op.name = std::move(name);
  double tiles = std::ceil(m / double(tileM)) * std::ceil(n / double(tileN));
  double flops = 2 * m * n * k, bytes = (m * k + groups * k * n + m * n) * elementBytes;
  double busy = flops / gemmFlops;
  if (waves)
    busy = std::ceil(tiles / sms) * 2 * double(tileM) * double(tileN) * k / (gemmFlops / sms);
  double moving = bytes / (hbm * hbmEfficiency);
  op.tiles = int64_t(tiles);
  op.clocked = busy >= moving;
  op.seconds = std::max(busy, moving) + launch;
  op.joules = flops * gemmJoulesPerFlop;
  if (hbmContention)
    op.uses = {{0, std::min(1.0, bytes / op.seconds / hbm)}};
  return op;
}

Op CostModel::attention(std::string name, double flops, double bytes, bool backward) const {
  Op op;
  op.name = std::move(name);
  op.clocked = true;
  op.seconds = flops / (backward ? attentionBackward : attentionForward) + launch;
  op.joules = flops * attentionJoulesPerFlop;
  if (hbmContention && op.seconds > 0)
    op.uses = {{0, std::min(1.0, bytes / op.seconds / hbm)}};
  return op;
}

Op CostModel::memory(std::string name, double bytes) const {
  Op op;
  op.name = std::move(name);
  op.seconds = bytes / (hbm * hbmEfficiency) + launch;
  op.joules = bytes * hbmJoulesPerByte;
  if (hbmContention && op.seconds > 0)
    op.uses = {{0, std::min(1.0, bytes / op.seconds / hbm)}};
  return op;
}

Op CostModel::collective(std::string name, const Engine &engine, int64_t members,
                         double bytes) const {
  Op op;
  op.name = std::move(name);
  op.collective = true;
  op.queue = engine.queue;
  if (members <= 1)
    return op;
  double moving = bytes / engine.bytesPerSecond;
  op.seconds = engine.base + engine.perMember * double(members - 1) + moving;
  op.sms = engine.sms;
  op.joules = bytes * engine.joulesPerByte;
  // Shares are averages over the op, so that a latency leaves its resources to others.
  for (const Use &use : engine.uses)
    op.uses.push_back({use.resource, use.share * moving / op.seconds});
  if (hbmContention)
    op.uses.push_back({0, std::min(1.0, engine.hbmPerByte * bytes / op.seconds / hbm)});
  return op;
}

const Engine *CostModel::engine(llvm::StringRef kind, llvm::StringRef name) const {
  for (const Engine &engine : engines)
    if (name.empty() ? engine.carries(kind) : (name == engine.name && engine.carries(kind)))
      return &engine;
  return nullptr;
}

double mlir::ncclx::overlap::wireBytes(llvm::StringRef kind, int64_t members, double payload) {
  if (members <= 1)
    return 0;
  if (kind == "permute")
    return payload;
  double once = payload * double(members - 1) / double(members);
  return kind == "all_reduce" ? 2 * once : once;
}

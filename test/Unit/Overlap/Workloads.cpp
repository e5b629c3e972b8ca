//===- Workloads.cpp - Transformer layers as problems ------------------------------===//
#include "Workloads.h"

#include <algorithm>
#include <cmath>

using namespace overlap_test;

namespace {

constexpr double word = 2; // bytes of bf16

/// The sizes of one layer, and what adds ops of them to a problem.
struct Layer {
  Problem &problem;
  const CostModel &cost;
  double S, t, h, q, kv, f;
  std::vector<unsigned> none;
  const BuildOptions &options;

  Layer(Problem &problem, const CostModel &cost, const Case &c, const BuildOptions &options)
      : problem(problem), cost(cost), S(c.tokens), t(double(c.t)), h(c.model.hidden),
        q(c.model.heads * c.model.headDim), kv(c.model.kvHeads * c.model.headDim), f(c.model.ffn),
        options(options) {}

  unsigned add(Op op, std::vector<unsigned> after) {
    std::sort(after.begin(), after.end());
    op.after = std::move(after);
    problem.ops.push_back(std::move(op));
    return problem.ops.size() - 1;
  }
  unsigned memory(const std::string &name, double bytes, std::vector<unsigned> after) {
    return add(cost.memory(name, bytes), std::move(after));
  }
  unsigned gemm(const std::string &name, double m, double n, double k, std::vector<unsigned> after,
                double groups = 1) {
    return add(cost.gemm(name, m, n, k, groups), std::move(after));
  }
  unsigned collective(const std::string &name, const char *kind, const std::string &engine,
                      double payload, std::vector<unsigned> after) {
    const Engine *e = cost.engine(kind, engine);
    return add(cost.collective(name, *e, int64_t(t), wireBytes(kind, int64_t(t), payload)),
               std::move(after));
  }
  unsigned gather(const std::string &name, std::vector<unsigned> after) {
    return collective(name, "all_gather", options.gather, S * h * word, std::move(after));
  }
  unsigned scatter(const std::string &name, std::vector<unsigned> after) {
    return collective(name, "reduce_scatter", options.scatter, S * h * word, std::move(after));
  }
  /// A weight gradient of m x n over k tokens, whole or in pieces of whole tiles; `uses` are the
  /// buffers that it keeps alive.
  void wgrad(const std::string &name, double m, double n, double k, std::vector<unsigned> after,
             std::vector<unsigned> uses) {
    Op whole = cost.gemm(name, m, n, k);
    int64_t each = whole.tiles; // of one piece
    if (options.pieceSeconds > 0)
      each = std::max<int64_t>(1, std::lround(options.pieceSeconds / whole.seconds * whole.tiles));
    for (int64_t from = 0; from < whole.tiles; from += each) {
      Op op = whole;
      op.tiles = std::min(each, whole.tiles - from);
      double part = double(op.tiles) / double(whole.tiles);
      if (part < 1)
        op.name += "." + std::to_string(from / each);
      op.seconds = (whole.seconds - cost.launch) * part + cost.launch;
      op.joules *= part;
      unsigned made = add(std::move(op), after);
      for (unsigned b : uses)
        problem.buffers[b].users.push_back(made);
    }
  }
  unsigned buffer(const std::string &name, double elements, std::optional<unsigned> producer,
                  std::vector<unsigned> users = {}) {
    problem.buffers.push_back({name, int64_t(elements * word), producer, std::move(users), false});
    return problem.buffers.size() - 1;
  }
  void use(unsigned buffer, unsigned op) { problem.buffers[buffer].users.push_back(op); }
};

std::vector<unsigned> list(std::optional<unsigned> op) {
  return op ? std::vector<unsigned>{*op} : std::vector<unsigned>{};
}

} // namespace

unsigned overlap_test::addForward(Problem &problem, const CostModel &cost, const Case &c,
                                  int layers, const BuildOptions &options,
                                  std::optional<unsigned> entry) {
  Layer L(problem, cost, c, options);
  auto [S, t, h, q, kv, f] = std::tuple(L.S, L.t, L.h, L.q, L.kv, L.f);
  std::optional<unsigned> x = entry;
  for (int i = 0; i < layers; ++i) {
    std::string p = "f" + std::to_string(i) + ".";
    auto after = list(x);
    unsigned norm1 = L.memory(p + "norm1", 4 * S * h / t, after);
    unsigned ag1 = L.gather(p + "AG1", {norm1});
    unsigned qkv = L.gemm(p + "qkv.fwd", S, (q + 2 * kv) / t, h, {ag1});
    unsigned rope = L.memory(p + "rope", 4 * S * (q + kv) / t, {qkv});
    unsigned attn = L.add(
        cost.attention(p + "attention", 2 * S * S * q / t, 2 * S * (2 * q + 2 * kv) / t, false),
        {rope});
    unsigned o = L.gemm(p + "o.fwd", S, h, q / t, {attn});
    unsigned rs1 = L.scatter(p + "RS1", {o});
    auto both = list(x);
    both.push_back(rs1);
    unsigned norm2 = L.memory(p + "norm2", 8 * S * h / t, both);
    unsigned ag2 = L.gather(p + "AG2", {norm2});
    unsigned fc1 = L.gemm(p + "fc1.fwd", S, 2 * f / t, h, {ag2});
    unsigned act = L.memory(p + "swiglu", 6 * S * f / t, {fc1});
    unsigned fc2 = L.gemm(p + "fc2.fwd", S, h, f / t, {act});
    unsigned rs2 = L.scatter(p + "RS2", {fc2});
    unsigned add = L.memory(p + "residual", 6 * S * h / t, {norm2, rs2});
    L.buffer(p + "x1.full", S * h, ag1, {qkv});
    L.buffer(p + "o.part", S * h, o, {rs1});
    L.buffer(p + "x2.full", S * h, ag2, {fc1});
    L.buffer(p + "fc2.part", S * h, fc2, {rs2});
    // Saved for the backward: shards of the norms, q, k, v, context, gate and up, activation.
    double saved = 2 * S * h / t + S * (2 * q + 2 * kv) / t + 3 * S * f / t;
    problem.buffers[L.buffer(p + "saved", saved, norm1)].escapes = true;
    x = add;
  }
  return *x;
}

unsigned overlap_test::addBackward(Problem &problem, const CostModel &cost, const Case &c,
                                   int layers, const BuildOptions &options,
                                   std::optional<unsigned> entry) {
  Layer L(problem, cost, c, options);
  auto [S, t, h, q, kv, f] = std::tuple(L.S, L.t, L.h, L.q, L.kv, L.f);
  std::optional<unsigned> dy = entry;
  for (int i = 0; i < layers; ++i) {
    std::string p = "b" + std::to_string(i) + ".";
    // There from the forward: activations that weight gradients read.
    unsigned actSaved = L.buffer(p + "act", S * f / t, std::nullopt);
    unsigned gateUp = L.buffer(p + "gate.up", 2 * S * f / t, std::nullopt);
    unsigned ctx = L.buffer(p + "ctx", S * q / t, std::nullopt);
    unsigned qkvSaved = L.buffer(p + "q.k.v", S * (q + 2 * kv) / t, std::nullopt);

    unsigned ag3 = L.gather(p + "AG3", list(dy));
    unsigned dy2 = L.buffer(p + "dY2.full", S * h, ag3);
    unsigned fc2d = L.gemm(p + "fc2.dgrad", S, f / t, h, {ag3});
    L.use(dy2, fc2d);
    L.wgrad(p + "fc2.wgrad", h, f / t, S, {ag3}, {dy2, actSaved});
    unsigned act = L.memory(p + "swiglu.bwd", 10 * S * f / t, {fc2d});
    L.buffer(p + "dact", S * f / t, fc2d, {act});
    L.use(gateUp, act);
    unsigned dgu = L.buffer(p + "dgu", 2 * S * f / t, act);
    unsigned ag4 = L.gather(p + "AG4", {});
    unsigned ln2 = L.buffer(p + "ln2.full", S * h, ag4);
    unsigned fc1d = L.gemm(p + "fc1.dgrad", S, h, 2 * f / t, {act});
    L.use(dgu, fc1d);
    unsigned rs3 = L.scatter(p + "RS3", {fc1d});
    L.buffer(p + "dln2.part", S * h, fc1d, {rs3});
    L.wgrad(p + "fc1.wgrad", 2 * f / t, h, S, {act, ag4}, {dgu, ln2});
    unsigned norm2 = L.memory(p + "norm2.bwd", 8 * S * h / t, {rs3});
    unsigned ag5 = L.gather(p + "AG5", {norm2});
    unsigned dy1 = L.buffer(p + "dY1.full", S * h, ag5);
    unsigned od = L.gemm(p + "o.dgrad", S, q / t, h, {ag5});
    L.use(dy1, od);
    L.wgrad(p + "o.wgrad", h, q / t, S, {ag5}, {dy1, ctx});
    unsigned attn = L.add(
        cost.attention(p + "attention.bwd", 5 * S * S * q / t, 2 * S * (4 * q + 4 * kv) / t, true),
        {od});
    L.buffer(p + "dctx", S * q / t, od, {attn});
    L.use(qkvSaved, attn);
    L.use(ctx, attn);
    unsigned rope = L.memory(p + "rope.bwd", 4 * S * (q + kv) / t, {attn});
    unsigned dqkv = L.buffer(p + "dqkv", S * (q + 2 * kv) / t, attn, {rope});
    unsigned qkvd = L.gemm(p + "qkv.dgrad", S, h, (q + 2 * kv) / t, {rope});
    L.use(dqkv, qkvd);
    unsigned ag6 = L.gather(p + "AG6", {});
    unsigned ln1 = L.buffer(p + "ln1.full", S * h, ag6);
    unsigned rs4 = L.scatter(p + "RS4", {qkvd});
    L.buffer(p + "dln1.part", S * h, qkvd, {rs4});
    L.wgrad(p + "qkv.wgrad", (q + 2 * kv) / t, h, S, {rope, ag6}, {dqkv, ln1});
    unsigned norm1 = L.memory(p + "norm1.bwd", 8 * S * h / t, {norm2, rs4});
    L.buffer(p + "dx", S * h / t, norm1);
    dy = norm1;
  }
  return *dy;
}

Problem overlap_test::mixtureLayer(const CostModel &cost, const Case &c, int layers) {
  Problem problem = cost.problem();
  BuildOptions options;
  Layer L(problem, cost, c, options);
  const double E = c.model.experts, k = c.model.topK, m = c.model.ffn, ep = 8;
  double rows = L.S / L.t * k; // sent, and with balanced routing received, by one rank
  double local = E / ep;
  const Engine *engine = cost.engine("all_to_all");
  auto exchange = [&](const std::string &name, std::vector<unsigned> after) {
    return L.add(cost.collective(name, *engine, int64_t(ep),
                                 wireBytes("all_to_all", int64_t(ep), rows * L.h * word)),
                 std::move(after));
  };
  std::optional<unsigned> x;
  for (int i = 0; i < layers; ++i) {
    std::string p = "f" + std::to_string(i) + ".";
    unsigned norm = L.memory(p + "norm2", 8 * L.S * L.h / L.t, list(x));
    unsigned router = L.memory(p + "router", L.S / L.t * L.h * word, {norm});
    unsigned permute = L.memory(p + "permute", 4 * rows * L.h, {router});
    unsigned dispatch = exchange(p + "dispatch", {permute});
    unsigned fc1 = L.gemm(p + "fc1.fwd", rows, 2 * m, L.h, {dispatch}, local);
    unsigned act = L.memory(p + "swiglu", 6 * rows * m, {fc1});
    unsigned fc2 = L.gemm(p + "fc2.fwd", rows, L.h, m, {act}, local);
    unsigned combine = exchange(p + "combine", {fc2});
    x = L.memory(p + "unpermute", 4 * rows * L.h, {combine});
  }
  for (int i = layers; i-- > 0;) {
    std::string p = "b" + std::to_string(i) + ".";
    unsigned un = L.memory(p + "unpermute.bwd", 4 * rows * L.h, list(x));
    unsigned combine = exchange(p + "combine.bwd", {un});
    unsigned fc2d = L.gemm(p + "fc2.dgrad", rows, m, L.h, {combine}, local);
    L.gemm(p + "fc2.wgrad", L.h * local, m, rows / local, {combine}, local);
    unsigned act = L.memory(p + "swiglu.bwd", 10 * rows * m, {fc2d});
    unsigned fc1d = L.gemm(p + "fc1.dgrad", rows, L.h, 2 * m, {act}, local);
    L.gemm(p + "fc1.wgrad", 2 * m * local, L.h, rows / local, {act}, local);
    unsigned dispatch = exchange(p + "dispatch.bwd", {fc1d});
    unsigned permute = L.memory(p + "permute.bwd", 4 * rows * L.h, {dispatch});
    x = L.memory(p + "norm2.bwd", 8 * L.S * L.h / L.t, {permute});
  }
  return problem;
}

Problem overlap_test::multiLevel(const CostModel &cost, const Case &c, int layers) {
  Problem problem = cost.problem();
  BuildOptions options;
  Layer L(problem, cost, c, options);
  auto [S, t, h, q, kv] = std::tuple(L.S, L.t, L.h, L.q, L.kv);
  const double E = c.model.experts, k = c.model.topK, m = c.model.ffn, ep = 8, dp = 16;
  const double rows = S / t * k, local = E / ep;
  // bf16 numbers of one rank's weights, once they are gathered.
  const double attention = h * (2 * q + 2 * kv) / t, experts = local * 3 * h * m;
  auto collective = [&](const std::string &name, const char *kind, const char *engine,
                        double members, double elements, std::vector<unsigned> after) {
    return L.add(cost.collective(name, *cost.engine(kind, engine), int64_t(members),
                                 wireBytes(kind, int64_t(members), elements * word)),
                 std::move(after));
  };
  auto weights = [&](const std::string &name, double elements) {
    unsigned gather = collective(name, "all_gather", "fsdp", dp, elements, {});
    return std::pair(gather, L.buffer(name, elements, gather));
  };
  auto uses = [&](const std::pair<unsigned, unsigned> &weight, std::vector<unsigned> ops) {
    for (unsigned op : ops) {
      problem.ops[op].after.push_back(weight.first);
      std::sort(problem.ops[op].after.begin(), problem.ops[op].after.end());
      L.use(weight.second, op);
    }
  };
  auto receive = [&](const std::string &name) {
    return collective(name, "permute", "pp", 2, S / t * h, {});
  };

  unsigned dy = receive("b.recv");
  for (int i = layers; i-- > 0;) {
    std::string p = "b" + std::to_string(i) + ".";
    auto wa = weights(p + "attention.w", attention), we = weights(p + "experts.w", experts);
    unsigned un = L.memory(p + "unpermute.bwd", 4 * rows * h, {dy});
    unsigned combine = collective(p + "combine.bwd", "all_to_all", "ep", ep, rows * h, {un});
    unsigned fc2d = L.gemm(p + "fc2.dgrad", rows, m, h, {combine}, local);
    unsigned fc2w = L.gemm(p + "fc2.wgrad", h * local, m, rows / local, {combine}, local);
    unsigned act = L.memory(p + "swiglu.bwd", 10 * rows * m, {fc2d});
    unsigned fc1d = L.gemm(p + "fc1.dgrad", rows, h, 2 * m, {act}, local);
    unsigned fc1w = L.gemm(p + "fc1.wgrad", 2 * m * local, h, rows / local, {act}, local);
    uses(we, {fc2d, fc1d});
    unsigned dispatch = collective(p + "dispatch.bwd", "all_to_all", "ep", ep, rows * h, {fc1d});
    unsigned norm2 = L.memory(p + "norm2.bwd", 8 * S * h / t, {dispatch});
    unsigned ag = collective(p + "AG5", "all_gather", "tp", t, S * h, {norm2});
    unsigned od = L.gemm(p + "o.dgrad", S, q / t, h, {ag});
    unsigned ow = L.gemm(p + "o.wgrad", h, q / t, S, {ag});
    unsigned attn = L.add(
        cost.attention(p + "attention.bwd", 5 * S * S * q / t, 2 * S * (4 * q + 4 * kv) / t, true),
        {od});
    unsigned qkvd = L.gemm(p + "qkv.dgrad", S, h, (q + 2 * kv) / t, {attn});
    unsigned qkvw = L.gemm(p + "qkv.wgrad", (q + 2 * kv) / t, h, S, {attn});
    uses(wa, {od, qkvd});
    unsigned rs = collective(p + "RS4", "reduce_scatter", "tp", t, S * h, {qkvd});
    dy = L.memory(p + "norm1.bwd", 8 * S * h / t, {norm2, rs});
    collective(p + "experts.grad", "reduce_scatter", "fsdp", dp, experts, {fc2w, fc1w});
    collective(p + "attention.grad", "reduce_scatter", "fsdp", dp, attention, {ow, qkvw});
    L.buffer(p + "dY1.full", S * h, ag, {od, ow});
    L.buffer(p + "combined", rows * h, combine, {fc2d, fc2w});
    L.buffer(p + "dact", 2 * rows * m, act, {fc1d, fc1w});
  }
  collective("b.send", "permute", "pp", 2, S / t * h, {dy});
  unsigned x = receive("f.recv");
  for (int i = 0; i < layers; ++i) {
    std::string p = "f" + std::to_string(i) + ".";
    auto wa = weights(p + "attention.w", attention), we = weights(p + "experts.w", experts);
    unsigned norm1 = L.memory(p + "norm1", 4 * S * h / t, {x});
    unsigned ag = collective(p + "AG1", "all_gather", "tp", t, S * h, {norm1});
    unsigned qkv = L.gemm(p + "qkv", S, (q + 2 * kv) / t, h, {ag});
    unsigned attn = L.add(
        cost.attention(p + "attention", 2 * S * S * q / t, 2 * S * (2 * q + 2 * kv) / t, false),
        {qkv});
    unsigned o = L.gemm(p + "o", S, h, q / t, {attn});
    uses(wa, {qkv, o});
    unsigned rs = collective(p + "RS1", "reduce_scatter", "tp", t, S * h, {o});
    unsigned router = L.memory(p + "router", 8 * S * h / t + 4 * rows * h, {x, rs});
    unsigned dispatch = collective(p + "dispatch", "all_to_all", "ep", ep, rows * h, {router});
    unsigned fc1 = L.gemm(p + "fc1", rows, 2 * m, h, {dispatch}, local);
    unsigned act = L.memory(p + "swiglu", 6 * rows * m, {fc1});
    unsigned fc2 = L.gemm(p + "fc2", rows, h, m, {act}, local);
    uses(we, {fc1, fc2});
    unsigned combine = collective(p + "combine", "all_to_all", "ep", ep, rows * h, {fc2});
    x = L.memory(p + "unpermute", 4 * rows * h, {router, combine});
    problem.buffers[L.buffer(p + "saved", 2 * S * h / t + rows * (h + 3 * m), fc1)].escapes = true;
  }
  collective("f.send", "permute", "pp", 2, S / t * h, {x});
  return problem;
}

Problem overlap_test::prefill(const CostModel &cost, const Case &c, int layers, int parts) {
  Problem problem = cost.problem();
  BuildOptions options;
  Case part = c;
  part.tokens = c.tokens / parts;
  std::vector<std::optional<unsigned>> x(parts), context(parts);
  for (int i = 0; i < layers; ++i) {
    for (int j = 0; j < parts; ++j) {
      Layer L(problem, cost, part, options);
      auto [S, t, h, q, kv, f] = std::tuple(L.S, L.t, L.h, L.q, L.kv, L.f);
      std::string p = "l" + std::to_string(i) + "." + std::to_string(j) + ".";
      // all_reduce with residual and norm in one kernel (TokenWeave); attention sees the parts
      // before, which is why they keep their order.
      unsigned qkv = L.gemm(p + "qkv", S, (q + 2 * kv) / t, h, list(x[j]));
      unsigned rope = L.memory(p + "rope", 4 * S * (q + kv) / t, {qkv});
      std::vector<unsigned> seen = {rope};
      if (j > 0)
        seen.push_back(*context[j - 1]);
      unsigned attn = L.add(cost.attention(p + "attention", 2 * S * S * (1 + 2 * j) * q / t,
                                           2 * S * (2 * q + 2 * kv * (j + 1)) / t, false),
                            seen);
      context[j] = rope;
      unsigned o = L.gemm(p + "o", S, h, q / t, {attn});
      unsigned ar1 = L.collective(p + "AR1", "all_reduce", "", S * h * word, {o});
      unsigned last;
      if (c.model.experts > 0) {
        // Random routing leaves the last tile of each expert half full on average.
        double experts = c.model.experts;
        double rows = S * c.model.topK + experts * double(cost.tileM) / 2;
        // Few columns: bound by reading the tokens, not by tiles.
        unsigned router = L.memory(p + "router", S * h * word, {ar1});
        unsigned fc1 = L.gemm(p + "fc1", rows, 2 * f / t, h, {router}, experts);
        unsigned act = L.memory(p + "swiglu", 6 * rows * f / t, {fc1});
        last = L.gemm(p + "fc2", rows, h, f / t, {act}, experts);
      } else {
        unsigned fc1 = L.gemm(p + "fc1", S, 2 * f / t, h, {ar1});
        unsigned act = L.memory(p + "swiglu", 6 * S * f / t, {fc1});
        last = L.gemm(p + "fc2", S, h, f / t, {act});
      }
      x[j] = L.collective(p + "AR2", "all_reduce", "", S * h * word, {last});
    }
  }
  return problem;
}

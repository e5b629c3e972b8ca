//===- Workloads.h - Transformer layers as problems ---------------------------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_OVERLAP_WORKLOADS_H
#define NCCLX_TEST_UNIT_OVERLAP_WORKLOADS_H

#include "ncclx/Overlap/CostModel.h"

#include <cstdint>
#include <string>

namespace overlap_test {

using namespace mlir::ncclx::overlap;

struct Model {
  std::string name;
  double hidden, heads, kvHeads, headDim, ffn;
  double experts = 0, topK = 0; ///< of a mixture; ffn is then one expert's
  int layers = 1;
};
inline const Model llama8B{"8B", 4096, 32, 8, 128, 14336, 0, 0, 32};
inline const Model llama70B{"70B", 8192, 64, 8, 128, 28672, 0, 0, 80};
inline const Model mixtral8x7B{"Mixtral-8x7B", 4096, 32, 8, 128, 14336, 8, 2, 32};
inline const Model mixtral8x22B{"Mixtral-8x22B", 6144, 48, 8, 128, 16384, 8, 2, 56};
inline const Model qwen30B{"Qwen3-30B-A3B", 2048, 32, 4, 128, 768, 128, 8, 48};

/// One layer stack under tensor parallelism with sequence parallelism.
struct Case {
  Model model;
  double tokens = 0; ///< S
  int64_t t = 1;
};

/// What carries the collectives; weight gradients may be cut between tiles.
struct BuildOptions {
  std::string gather, scatter, exchange; ///< names of engines; empty: the first that can
  double pieceSeconds = 0;               ///< of a piece of a weight gradient, about; 0: whole
};

/// Adds `layers` layers' forward behind what the problem holds. `entry`: the op that makes the
/// input, if any; gives the op that makes the output. Saved activations are escaping buffers.
unsigned addForward(Problem &problem, const CostModel &cost, const Case &c, int layers,
                    const BuildOptions &options, std::optional<unsigned> entry = std::nullopt);
/// The same for the backward of Llama layers: overlap survey B1 to B18.
unsigned addBackward(Problem &problem, const CostModel &cost, const Case &c, int layers,
                     const BuildOptions &options, std::optional<unsigned> entry = std::nullopt);

/// A mixture's layer, forward then backward, expert parallelism over the same 8 ranks: dispatch and
/// combine as all_to_all.
Problem mixtureLayer(const CostModel &cost, const Case &c, int layers);

/// A pipeline stage of a mixture as DualPipe runs it, on all levels at once: the backward of one
/// micro-batch and the forward of the next, `layers` layers each. Tensor parallelism gathers and
/// scatters (engine "tp", t members), experts exchange ("ep", 8), weights are gathered and their
/// gradients scattered ("fsdp", 16), and the stages around send and receive ("pp").
Problem multiLevel(const CostModel &cost, const Case &c, int layers);

/// Inference prefill (all_reduce behind attention and FFN) of `parts` slices of the tokens, one
/// layer stack: what TokenWeave splits. Routing fills half a tile for each expert beyond its
/// tokens.
Problem prefill(const CostModel &cost, const Case &c, int layers, int parts);

} // namespace overlap_test
#endif // NCCLX_TEST_UNIT_OVERLAP_WORKLOADS_H

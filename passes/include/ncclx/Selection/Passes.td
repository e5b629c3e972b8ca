//===- Passes.td - Which algorithm carries a collective ------------------------------===//
#ifndef NCCLX_SELECTION_PASSES
#define NCCLX_SELECTION_PASSES

include "mlir/Pass/PassBase.td"

def ChooseAlgorithm : Pass<"ncclx-choose-algorithm", "::mlir::ModuleOp"> {
  let summary = "Give each collective the algorithm that is fastest on a topology";
  let description = [{
    A collective that names an algorithm keeps it. For any other, each algorithm that can carry it is
    written out, simulated alone on the topology, and the fastest is taken; a remark gives the times.
    Reductions whose order is `any` get the order of their algorithm.

    Before: `%r = ncclx.all_gather %a dim 0 over @g["tp"] : ...`
    After:  `%r = ncclx.all_gather %a dim 0 over @g["tp"] algorithm direct : ...`
  }];
  let options = [
    Option<"topologyFile", "topology", "std::string", "\"\"",
           "Topology file (JSON or NCCL system XML); without it, the module's ncclx.topology">,
    Option<"loadStore", "load-store", "bool", "true",
           "Peers' memory is reached by load and store">
  ];
}

#endif

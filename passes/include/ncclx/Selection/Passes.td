//===- Passes.td - Which algorithm carries a collective ------------------------------===//
#ifndef NCCLX_SELECTION_PASSES
#define NCCLX_SELECTION_PASSES

include "mlir/Pass/PassBase.td"

def ChooseAlgorithm : Pass<"ncclx-choose-algorithm", "::mlir::ModuleOp"> {
  let summary = "Give each collective the algorithm that is fastest on a topology";
  let description = [{
    A collective that names an algorithm keeps it. For any other, each algorithm that can carry it is
    written out and simulated alone on the topology. The first rule of the rule file (Rules.h says how
    one looks) that matches is taken, else the fastest; a remark gives the times and the lower bound.
    Reductions whose order is `any` get the order of their algorithm. Trees, whose lowering needs the
    topology too, are considered where the module has it. What switches do is considered with
    `in-network`, and compared with the bound of `ncclx-topo bounds --in-network`; a switch adds floats
    in an order of its own.

    Before: `%r = ncclx.all_gather %a dim 0 over @g["tp"] : ...`
    After:  `%r = ncclx.all_gather %a dim 0 over @g["tp"] algorithm direct : ...`
  }];
  let options = [
    Option<"topologyFile", "topology", "std::string", "\"\"",
           "Topology file (JSON or NCCL system XML); without it, the module's ncclx.topology">,
    Option<"loadStore", "load-store", "bool", "true",
           "Peers' memory is reached by load and store">,
    Option<"ruleFile", "rules", "std::string", "\"\"",
           "Rule file (CSV, the columns of NCCL's example tuner)">,
    Option<"inNetwork", "in-network", "bool", "false",
           "Switches that can multicast and reduce may do so">,
    Option<"scratchLimit", "scratch-limit", "int64_t", "-1",
           "Bytes of scratch memory that collectives may take on a rank; -1: no limit">
  ];
}

def Explain : Pass<"ncclx-explain", "::mlir::ModuleOp"> {
  let summary = "Print which algorithm would carry each collective, why, and the distance to the bound";
  let description = [{
    For each collective of the module: what `ncclx-choose-algorithm` would take and why, each
    algorithm's predicted time, as a multiple of the lower bound and of the best, and the bound with
    its argument; up to 1 MiB also how many transfers follow each other, beside the topology's
    eccentricity. For each schedule of the module that no collective names: its predicted time, beside
    that of the choice for its collective. With `min-bytes`, a table instead: the choice from that size
    to `max-bytes`, and the sizes where it changes. With `collective`, `bytes` and `ranks` the module is
    not looked at: it is that collective that is explained. The report goes to standard output; the
    module stays as it is.

    ```
    ncclx-opt --ncclx-explain="topology=h200x8.xml collective=all_reduce bytes=1048576 ranks=8" /dev/null -o /dev/null
    ```
  }];
  let options = [
    Option<"topologyFile", "topology", "std::string", "\"\"",
           "Topology file (JSON or NCCL system XML); without it, the module's ncclx.topology">,
    Option<"loadStore", "load-store", "bool", "true",
           "Peers' memory is reached by load and store">,
    Option<"ruleFile", "rules", "std::string", "\"\"",
           "Rule file (CSV, the columns of NCCL's example tuner)">,
    Option<"inNetwork", "in-network", "bool", "false",
           "Switches that can multicast and reduce may do so">,
    Option<"collective", "collective", "std::string", "\"\"",
           "Explain this collective over all of `ranks`, of f32">,
    Option<"bytes", "bytes", "int64_t", "1048576", "Its payload, rounded up to whole shards">,
    Option<"ranks", "ranks", "int64_t", "0", "Its ranks">,
    Option<"minBytes", "min-bytes", "int64_t", "0", "Print a table by size, from here">,
    Option<"maxBytes", "max-bytes", "int64_t", "1073741824", "to here">,
    Option<"scratchLimit", "scratch-limit", "int64_t", "-1",
           "Bytes of scratch memory that collectives may take on a rank; -1: no limit">
  ];
  let dependentDialects = ["::mlir::ncclx::NCCLXDialect", "::mlir::func::FuncDialect"];
}

#endif

//===- Passes.td - From graphs to schedules ---------------------------------------===//
#ifndef NCCLX_CONVERSION_PASSES
#define NCCLX_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertNCCLXToCTran : Pass<"convert-ncclx-to-ctran", "::mlir::ModuleOp"> {
  let summary = "Turn each bufferized graph into a program that every rank executes";
  let description = [{
    Each function with collectives on memrefs becomes a `ctran.program`: buffers become windows, each
    operation on them a `ctran.compute` of a function of its own, and each collective is written out by
    its algorithm (`direct` where the op names none). Order follows what each buffer is read and
    written by, in the order of the function.

    Before:
    ```mlir
    func.func @f(%a: memref<4xf32>) -> memref<32xf32> {
      %r = memref.alloc() : memref<32xf32>
      ncclx.all_gather %a dim 0 over @g["tp"] into(%r : memref<32xf32>) : memref<4xf32>
      return %r : memref<32xf32>
    }
    ```
    After: `ctran.program @f` with windows `arg0` and `buf0`, the direct exchange, and `ctran.return`.

    A collective on a part of a buffer, or on a strided view, goes through a window of its own, with a
    copy before or behind it; a remark says so.
  }];
  let options = [
    Option<"loadStore", "load-store", "bool", "true",
           "Peers' memory is reached by load and store (false: by puts of a nic lane alone)">,
    Option<"oneKernel", "one-kernel", "bool", "false",
           "All ops are those of one kernel's sm lane; eager collectives send packets, and a direct one "
           "that is alone works block by block">,
    Option<"blocks", "blocks", "int64_t", "0", "Blocks of that kernel, where they work so; 0: as many as suit">,
    Option<"mostBlocks", "most-blocks", "int64_t", "132",
           "As many blocks as suit are at most these: a GPU's multiprocessors">,
    Option<"topologyFile", "topology", "std::string", "\"\"",
           "Topology file for `trees`, `routed`, `hierarchical` and `switch`; without it, the module's ncclx.topology">,
    Option<"cutByTiers", "cut-by-tiers", "bool", "false",
           "Axes are cut where the topology's tiers begin (as they are where a collective is hierarchical)">,
    Option<"scratchLimit", "scratch-limit", "int64_t", "-1",
           "Bytes of scratch memory that collectives may take on a rank; -1: no limit">
  ];
  let dependentDialects = ["::mlir::ctran::CTranDialect", "::mlir::func::FuncDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect"];
}

#endif

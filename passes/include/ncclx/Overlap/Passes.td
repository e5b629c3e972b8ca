//===- Passes.td - Communication beside computation ------------------------===//

#ifndef NCCLX_OVERLAP_PASSES_TD
#define NCCLX_OVERLAP_PASSES_TD

include "mlir/Pass/PassBase.td"

// All of them read a function of collectives, linalg and ncclx.call into one problem, solve it, and
// move ops; collectives that then overlap become start and await. The block's op then carries the contract
// (ncclx.contract): what runs beside what, and for how long, for ncclx-diagnose. Results keep every bit: ops are
// only moved. Remarks give predicted times, the memory peak, and why a collective stays exposed.
class OverlapPass<string name> : Pass<name, "::mlir::ModuleOp"> {
  list<Option> common = [
    Option<"machineFile", "machine", "std::string", "\"\"", "Machine file (JSON); required">,
    Option<"memoryBudget", "memory-budget", "int64_t", "int64_t(1) << 30",
           "Bytes beyond the peak of the graph as it is; never exceeded; 0 changes nothing">,
    Option<"margin", "margin", "double", "0.05",
           "Part of a collective's time that an overlap must gain at least">,
    Option<"requireOverlap", "require-overlap", "bool", "false",
           "A collective that stays exposed for more than the margin is an error">
  ];
  let options = common;
}

def PairBulk : OverlapPass<"ncclx-pair-bulk"> {
  let summary = "Run each collective beside a GEMM that is ready at the same time";
  let description = [{
    A collective that nothing hides goes beside the last GEMM between what it needs and what needs it. No
    computation moves.

    Before: `%r = ncclx.all_gather %a ...; %c = linalg.matmul ...; use %r`
    After: `%f = ncclx.start { ncclx.all_gather %a ... }; %c = linalg.matmul ...; %r = ncclx.await %f; use %r`
  }];
}

def RescheduleAGWgrad : OverlapPass<"ncclx-reschedule-ag-wgrad"> {
  let summary = "Put off weight-gradient GEMMs to run beside the next gather that nothing hides";
  let description = [{
    AG-WGRAD: a GEMM whose result nothing in the function needs is held back and runs beside the next
    collective that has no partner, which stays whole. In a transformer layer's backward fc2's weight gradient
    goes beside the gather in front of the output projection, and the output projection's beside the gather of
    the layer below. Run ncclx-pair-bulk first: it takes the partners that are ready anyway.

    Before: `wgrad; ...; %r = ncclx.all_gather %a ...; dgrad(%r)`
    After: `...; %f = ncclx.start { ncclx.all_gather %a ... }; wgrad; %r = ncclx.await %f; dgrad(%r)`
  }];
  let options = !listconcat(common, [
    Option<"maxDistance", "max-distance", "unsigned", "1",
           "Collectives without a partner that a GEMM may be put off by">
  ]);
}

def HoistCollectives : OverlapPass<"ncclx-hoist-collectives"> {
  let summary = "Start collectives as early, and await them as late, as memory allows";
  let description = [{
    Computation keeps its order. A start goes as far up as its input allows, and an await down to the first
    user; where the budget does not allow all of it, the start goes up less far.
  }];
}

def Overlap : OverlapPass<"ncclx-overlap"> {
  let summary = "Place collectives and computation so that least communication is exposed";
  let description = [{
    The general scheduler, no pattern named: finds bulk and AG-WGRAD pairs by itself, and others. Never slower
    by the model than what is given.
  }];
  let options = !listconcat(common, [
    Option<"maxDistance", "max-distance", "unsigned", "8",
           "Collectives that anything may be put off, or brought forward, by">
  ]);
}

def SplitSinks : Pass<"ncclx-split-sinks", "::mlir::ModuleOp"> {
  let summary = "Cut weight-gradient GEMMs into pieces that other passes can place one by one";
  let description = [{
    A product that nothing in its block needs is cut in a dimension of its result, at whole tiles, into pieces that
    take about `piece-us`. Never in a dimension that is summed over: every element keeps its bits. The pieces are
    written into one result. Run it before ncclx-overlap, whose collectives then find partners of their own length.

    Before: `%w = linalg.matmul ins(%a, %b) outs(%zero)`
    After: `%w0 = linalg.matmul ins(%a.rows0, %b) ...; %w1 = ...; %w = insert %w0, %w1`
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect", "::mlir::linalg::LinalgDialect"];
  let options = [
    Option<"machineFile", "machine", "std::string", "\"\"", "Machine file (JSON); required">,
    Option<"pieceMicroseconds", "piece-us", "double", "150", "What a piece takes, about">
  ];
}

def SplitExchanges : Pass<"ncclx-split-exchanges", "::mlir::ModuleOp"> {
  let summary = "Cut a gather and its product, or a product and its reduction, into parts that overlap";
  let description = [{
    A gather in front of a product is cut within each member's shard, a product in front of a reduce_scatter in its
    columns: every part is a native collective over all links, and every element keeps its bits. Never across a
    sum, of uneven shards, or where somebody else needs the whole; and not where the model gains less than the
    margin. Run ncclx-overlap behind it, which starts the parts.

    Before: `%full = ncclx.all_gather %a ...; %c = linalg.matmul ins(%full, %w)`
    After: `%f0 = ncclx.all_gather %a.rows0; %c0 = linalg.matmul ins(%f0, %w); ...; %c = insert %c0, %c1, ...`
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect", "::mlir::linalg::LinalgDialect"];
  let options = [
    Option<"machineFile", "machine", "std::string", "\"\"", "Machine file (JSON); required">,
    Option<"parts", "parts", "unsigned", "0", "Parts; 0: the best of 2 to 8 by the model">,
    Option<"margin", "margin", "double", "0.05",
           "Part of a collective's time that the parts must gain at least">
  ];
}

def DirectExchanges : Pass<"ncclx-direct-exchanges", "::mlir::ModuleOp"> {
  let summary = "Multiply each shard of a gather as it comes";
  let description = [{
    A gather stays whole, over all links, and the product behind it is taken shard by shard: each awaits its chunk of the
    one future. Every element keeps its bits. Of groups that axes span, where chunks have signals of their own. A product
    in front of a reduce_scatter is taken shard by shard, too: each goes by a permute straight to whom it is for, that of
    the farthest first, and is added there, in `order rank` or `any`; not where a permute leaves links idle. Where the
    model gains less than the margin the product stays whole. ncclx-overlap moves what else there is between the chunks.

    Before: `%full = ncclx.all_gather %a ...; %c = linalg.matmul ins(%full, %w)`
    After: `%f = ncclx.start { ncclx.all_gather %a ... }; %a0 = ncclx.await %f chunk 0 ...; %c0 = linalg.matmul ins(%a0, %w); ...; await %f`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"machineFile", "machine", "std::string", "\"\"", "Machine file (JSON); required">,
    Option<"margin", "margin", "double", "0.05",
           "Part of a collective's time that the chunks must gain at least">
  ];
}

class StepExchanges<string name> : Pass<name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"machineFile", "machine", "std::string", "\"\"", "Machine file (JSON); required">,
    Option<"margin", "margin", "double", "0.05",
           "Part of a collective's time that the steps must gain at least">
  ];
}

def RingExchanges : StepExchanges<"ncclx-ring-exchanges"> {
  let summary = "Take a gather and its product, or a product and its reduction, round a ring";
  let description = [{
    A member multiplies the shard that it has while it receives the next from its neighbour; of a reduction, adds its
    own product to the partial sum that comes round, in `order ring`. Rows are put in place by one rotation. What the
    model does not like stays whole, and so does what would leave links idle: in a full mesh a permute gets less than
    the native collective (the machine file says what). Run ncclx-overlap behind it.

    Before: `%full = ncclx.all_gather %a ...; %c = linalg.matmul ins(%full, %w)`
    After: `%a1 = ncclx.permute %a shift -1 ...; %c0 = linalg.matmul ins(%a, %w); %a2 = ncclx.permute %a1 shift -1 ...; ...`
  }];
}

def DoubleExchanges : StepExchanges<"ncclx-double-exchanges"> {
  let summary = "Take a gather and its product, or a product and its reduction, in doubling steps";
  let description = [{
    As ncclx-ring-exchanges, but each step brings as many shards as are there: products grow by S, S, 2S, 4S, ...; of a
    reduction they shrink, and sums are in `order tree`. Of a group over several axes the last one doubles, and one
    shard from each place on the outer axes is asked for first, so that it crosses the slow links while the first
    products run. Any number of members.

    Before: `%full = ncclx.all_gather %a ...; %c = linalg.matmul ins(%full, %w)`
    After: `%a1 = ncclx.permute %a shift -1 ...; %c0 = linalg.matmul ins(%a, %w); %a23 = ncclx.permute %a, %a1 shift -2 ...; ...`
  }];
}

def SplitBatches : Pass<"ncclx-split-batches", "::mlir::ModuleOp"> {
  let summary = "Do a block's rows in two halves, so that one communicates while the other computes";
  let description = [{
    Rows (tokens, samples) are found by the collectives, in a dimension that these treat row by row, and followed back to
    where they come from. Every op that works row by row is done twice; one that needs all rows (a sum over them, a
    kernel that does not say how it may be cut) gets them put together. Results keep every bit. Both forms are scheduled
    by the model, with whole tiles and waves where the machine has them, and halves are taken where they gain the
    margin. A call of a kernel without a body may say `ncclx.cut = array<i64: 0, -1, 0>`: the dimension of rows in each
    input, then in each result. Run ncclx-overlap behind it.

    Before: `%c = linalg.matmul ins(%x, %w); %r = ncclx.all_reduce %c ...; next(%r)`
    After: `%c0 = linalg.matmul ins(%x0, %w); %c1 = ...; %r0 = ncclx.all_reduce %c0 ...; %r1 = ...; next(%r0); next(%r1)`
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"machineFile", "machine", "std::string", "\"\"", "Machine file (JSON); required">,
    Option<"rowsOfFirst", "rows", "int64_t", "0", "Rows of the first half; 0: about half, at whole tiles, by the model">,
    Option<"margin", "margin", "double", "0.05",
           "Part of the collectives' time that the halves must gain at least">
  ];
}

def SplitHalos : Pass<"ncclx-split-halos", "::mlir::ModuleOp"> {
  let summary = "Compute the interior of a stencil while its halo is exchanged";
  let description = [{
    A stencil is elementwise and windowed linalg ops on a field into which faces have been inserted that come from
    collectives. What of its result reads no such face is the interior: the same ops make it from the field alone, and
    slabs around it from field and faces. Every element is computed as before and keeps its bits. Not where every
    element needs what is communicated, and not where the model gains less than the margin. Run ncclx-overlap behind
    it, which starts the exchanges and awaits them behind the interior. Neighbours may also put faces into a window that
    the field is put into: the interior then stands in front of the wait.

    Before: `%face = ncclx.permute %row shift 1 ...; %padded = insert %face, %field; %next = stencil %padded`
    After: `%face = ncclx.permute %row shift 1 ...; %in = stencil %field; %slab = stencil of %face and rows of %field; %next = insert %in, %slab`
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"machineFile", "machine", "std::string", "\"\"", "Machine file (JSON); required">,
    Option<"margin", "margin", "double", "0.05",
           "Part of the exchanges' time that the cut must gain at least">
  ];
}

def PipelineLoops : Pass<"ncclx-pipeline-loops", "::mlir::ModuleOp"> {
  let summary = "Move collectives of a loop to the iteration before, or their awaits to the next";
  let description = [{
    A collective of a loop whose operands depend on loop-invariant values, the induction variable and slices of them
    alone is issued for iteration i+1 in iteration i: the first one in front of the loop, none behind the last. One whose
    result only leaves through a slice of a carried tensor, or a sum with it, is awaited in the iteration behind, and the
    last one behind the loop. The loop then carries its future. A loop whose length is not known runs so behind a test
    that it runs at all; of scf.while those that count are such loops. Not where the body hides it already by the model, or the
    budget does not allow one more result in flight.

    Before: `scf.for %i { %w = ncclx.all_gather %shard(%i) ...; use %w }`
    After: `%f = ncclx.start {gather of 0}; scf.for %i iter_args(%f) { %w = ncclx.await %f; %g = ncclx.start {gather of i+1}; use %w; yield %g }`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"machineFile", "machine", "std::string", "\"\"", "Machine file (JSON); required">,
    Option<"memoryBudget", "memory-budget", "int64_t", "int64_t(1) << 30",
           "Bytes in flight between iterations; never exceeded; 0 changes nothing">,
    Option<"margin", "margin", "double", "0.05",
           "Part of a collective's time that its place must gain at least">
  ];
}

def BraidLoops : Pass<"ncclx-braid-loops", "::mlir::ModuleOp"> {
  let summary = "Run the front of one iteration beside the rest of the one before";
  let description = [{
    A loop over micro-batches whose forward and backward are chains of kernels and exchanges (DualPipe, 1F1B with expert
    parallelism): the forward of one runs beside the backward of the other, and each one's exchanges have the other's
    kernels for partners. Where to cut is found by modulo scheduling in two stages, under the budget; what the front
    hands on is carried, the first front stands before the loop and the last rest behind it. Results keep every bit. Run
    ncclx-overlap behind it, which braids the two.

    Before: `scf.for %i { forward(%i); backward(%i) }`
    After: `forward(0); scf.for %i to n-1 { backward(%i); forward(%i + 1) }; backward(n-1)`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let options = [
    Option<"machineFile", "machine", "std::string", "\"\"", "Machine file (JSON); required">,
    Option<"memoryBudget", "memory-budget", "int64_t", "int64_t(1) << 30",
           "Bytes beyond the peak of an iteration; never exceeded; 0 changes nothing">,
    Option<"margin", "margin", "double", "0.05",
           "Part of the collectives' time that the braid must gain at least">
  ];
}

def Diagnose : Pass<"ncclx-diagnose", "::mlir::ModuleOp"> {
  let summary = "Hold a measured timeline against what the schedule promises";
  let description = [{
    Each function with a contract is compared with a trace: of `ncclx-run --trace`, or of PyTorch's profiler (Kineto), by
    name and order. A *lost* overlap (a collective ran beside less than was promised) is named with the op or the wait
    that delayed it, a *harmful* one (ran together, took longer than apart) with both times. The module stays as it is. With `machine` and `corrected` the
    machine file is written anew with what the ops that ran alone have shown of it: flops of products, bandwidth and
    latency of each engine.
  }];
  let options = [
    Option<"trace", "trace", "std::string", "\"\"", "Trace (JSON); required">,
    Option<"machine", "machine", "std::string", "\"\"", "Machine file (JSON) that the schedule was made with">,
    Option<"corrected", "corrected", "std::string", "\"\"", "File that gets its corrected coefficients">,
    Option<"rank", "rank", "int64_t", "0", "Rank whose timeline is read, of a trace of ours">,
    Option<"tolerance", "tolerance", "double", "0.1", "Part of a time that is no finding">,
    Option<"requireOverlap", "require-overlap", "bool", "false", "A finding is an error, else a warning">
  ];
}

#endif // NCCLX_OVERLAP_PASSES_TD

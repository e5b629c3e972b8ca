// Debian's own mlir-opt reads, optimizes and lowers graphs with the plug-in: its one-shot-bufferize
// takes our ops, its pipelines run our passes.
// REQUIRES: plugin
// UNSUPPORTED: sanitized
// RUN: mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %s --verify-roundtrip --pass-pipeline='builtin.module(canonicalize,cse,ncclx-verify-legality)' | FileCheck %s --check-prefix=GRAPH
// RUN: mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %s --pass-pipeline='builtin.module(ncclx-bufferize,convert-ncclx-to-ctran,ctran-verify)' | FileCheck %s
// RUN: mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %s --pass-pipeline='builtin.module(ncclx-materialize-destinations,one-shot-bufferize{bufferize-function-boundaries})' | FileCheck %s --check-prefix=BUFFER
// RUN: sed 's/dim 0/dim 3/' %s | not mlir-opt --load-dialect-plugin=%plugin 2>&1 | FileCheck %s --check-prefix=ERROR

// GRAPH: ncclx.all_gather {{.*}} over @g["r"]
// CHECK: ctran.program @f
// CHECK: ctran.copy
// BUFFER: ncclx.all_gather {{.*}}memref
// ERROR: error: 'ncclx.all_gather' op
ncclx.grid @g ["r" = 4]
func.func @f(%a: tensor<5xf32>) -> tensor<20xf32> {
  %r = ncclx.all_gather %a dim 0 over @g["r"] algorithm direct : tensor<5xf32> -> tensor<20xf32>
  return %r : tensor<20xf32>
}

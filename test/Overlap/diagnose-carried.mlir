// A gather that the next iteration awaits is one overlap, across two iterations: that of the third one waits, and is named.
// RUN: ncclx-opt %s --ncclx-pipeline-loops=machine=%ncclx_src/examples/machines/h100-nvswitch.json --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: %python %S/Inputs/make-carried-trace.py none > %t.good.json
// RUN: ncclx-opt %t.mlir --ncclx-diagnose=trace=%t.good.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=GOOD --implicit-check-not=warning:
// RUN: %python %S/Inputs/make-carried-trace.py 2 > %t.late.json
// RUN: ncclx-opt %t.mlir --ncclx-diagnose=trace=%t.late.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: sed 's/resumes = array<i64: [0-9]*, /resumes = array<i64: 77, /' %t.mlir > %t.wrong.mlir
// RUN: not ncclx-opt %t.wrong.mlir --ncclx-diagnose=trace=%t.good.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// CHECK: handed_to = array<i64: 0, 1>
// CHECK: resumes = array<i64: {{[0-9]+}}, 1>
// GOOD: remark: 3 of 3 overlaps are as promised
// LATE: warning: lost overlap: 'all_gather.2'
// LATE: remark: 2 of 3 overlaps are as promised
// WRONG: error: ncclx.contract is no contract
ncclx.grid @g ["tp" = 8]
func.func @ahead(%shards: tensor<4x512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%h = %x) -> tensor<4096x4096xbf16> {
    %shard = tensor.extract_slice %shards[%i, 0, 0] [1, 512, 4096] [1, 1, 1] : tensor<4x512x4096xbf16> to tensor<512x4096xbf16>
    %w = ncclx.all_gather %shard dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%h, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %c : tensor<4096x4096xbf16>
  }
  return %r : tensor<4096x4096xbf16>
}

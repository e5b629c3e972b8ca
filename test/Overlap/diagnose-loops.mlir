// What a loop promises counts as often as it runs: in one iteration of four the gather waits, and that one is named.
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json -o %t.mlir
// RUN: %python %S/Inputs/make-loop-trace.py none > %t.good.json
// RUN: ncclx-opt %t.mlir --ncclx-diagnose=trace=%t.good.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=GOOD --implicit-check-not=warning:
// RUN: %python %S/Inputs/make-loop-trace.py 2 > %t.late.json
// RUN: ncclx-opt %t.mlir --ncclx-diagnose=trace=%t.late.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=LATE
// GOOD: remark: 4 of 4 overlaps are as promised
// LATE: warning: {{.*}}all_gather.2
// LATE: remark: 3 of 4 overlaps are as promised
// A loop of unknown length has run as often as the trace has its gathers.
// RUN: sed 's/%c4 = arith.constant 4 : index/%c4 = arith.addi %n, %c1 : index/; s/@loop(/@loop(%n: index {ncclx.uniform}, /' %s > %t.unknown.mlir
// RUN: ncclx-opt %t.unknown.mlir --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json -o %t.unknown.placed.mlir
// RUN: ncclx-opt %t.unknown.placed.mlir --ncclx-diagnose=trace=%t.good.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=GOOD --implicit-check-not=warning:
// RUN: ncclx-opt %t.unknown.placed.mlir --ncclx-diagnose=trace=%t.late.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=LATE
ncclx.grid @g ["tp" = 8]
func.func @loop(%a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %x) -> (tensor<4096x4096xbf16>) {
    %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%x, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %d = linalg.matmul ins(%full, %c : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%acc : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %d : tensor<4096x4096xbf16>
  }
  return %r : tensor<4096x4096xbf16>
}

// A schedule carries what it promises; a trace in which it is not kept gives the op, the cause and the figures.
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: %python %S/Inputs/make-trace.py good > %t.good.json
// RUN: ncclx-opt %t.mlir --ncclx-diagnose=trace=%t.good.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=GOOD --implicit-check-not=warning:
// RUN: %python %S/Inputs/make-trace.py late > %t.late.json
// RUN: ncclx-opt %t.mlir --ncclx-diagnose=trace=%t.late.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: not ncclx-opt %t.mlir --ncclx-diagnose="trace=%t.late.json require-overlap" 2>&1 | FileCheck %s --check-prefix=REQUIRED
// RUN: not ncclx-opt %t.mlir --ncclx-diagnose --trace=%t.late.json --require-overlap 2>&1 | FileCheck %s --check-prefix=REQUIRED
// RUN: %python %S/Inputs/make-trace.py slow > %t.slow.json
// RUN: ncclx-opt %t.mlir --ncclx-diagnose=trace=%t.slow.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=SLOW
// RUN: %python %S/Inputs/make-trace.py kineto > %t.kineto.json
// RUN: ncclx-opt %t.mlir --ncclx-diagnose=trace=%t.kineto.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=KINETO
// RUN: not ncclx-opt %t.mlir --ncclx-diagnose 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ncclx-opt %t.mlir --ncclx-diagnose=trace=%t.nowhere 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not ncclx-opt %s --ncclx-diagnose=trace=%t.good.json 2>&1 | FileCheck %s --check-prefix=CONTRACT
// What ran alone corrects the machine file, and the next schedule is made with what is so.
// RUN: %python %S/Inputs/make-trace.py half > %t.half.json
// RUN: ncclx-opt %t.mlir --ncclx-diagnose="trace=%t.half.json machine=%ncclx_src/examples/machines/h100-nvswitch.json corrected=%t.corrected.json" -o /dev/null
// RUN: FileCheck %s --check-prefix=FILE < %t.corrected.json
// RUN: ncclx-opt %s --ncclx-overlap=machine=%t.corrected.json | FileCheck %s --check-prefix=HALF
// RUN: not ncclx-opt %t.mlir --ncclx-diagnose="trace=%t.half.json corrected=%t.corrected.json" 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not ncclx-opt %t.mlir --ncclx-diagnose="trace=%t.half.json machine=%t.half.json corrected=%t.no" 2>&1 | FileCheck %s --check-prefix=MACHINE
// FILE: "base_us": 16.7
// FILE: "gb_per_s": 150.
// FILE: "name": "free"
// FILE: "source": "overlap survey {{.*}}; times {{1.99|2.0}}{{.*}} by {{.*}}half.json"
// FILE: "gb_per_s": 300,
// FILE: "name": "nccl-24"
// HALF: ncclx.contract = [
// HALF-SAME: name = "all_gather.0", us = 2{{59.9|60.0}}
// ALONE: error: ncclx-diagnose: machine=FILE and corrected=FILE go together
// MACHINE: error: {{.*}}half.json
// CHECK: ncclx.contract = [
// CHECK-SAME: kind = "collective", name = "all_gather.0", us = 130.
// CHECK-SAME: beside = array<i64: {{[0-9]+}}>, hidden_us = 130.
// CHECK-SAME: name = "all_gather.1"
// GOOD: remark: 1 of 1 overlaps are as promised
// LATE: warning: lost overlap: 'all_gather.1' ran beside kernels for 0 % of its {{.*}} promised were 100 %: 'all_gather.1' began {{.*}} us late, behind a wait for 'matmul'
// LATE: remark: 0 of 1 overlaps
// REQUIRED: error: lost overlap: 'all_gather.1'
// SLOW: warning: harmful overlap: 'all_gather.1' and 'matmul' took {{.*}} us together, apart they take
// KINETO: warning: lost overlap: 'all_gather.1' {{.*}} behind an op that is not in the contract, 'memset_kernel'
// NONE: error: ncclx-diagnose needs trace=FILE
// NOWHERE: error: {{.*}}nowhere: cannot be read: No such file
// CONTRACT: error: no function has a contract

ncclx.grid @g ["tp" = 8]
func.func @f(%dy: tensor<512x4096xbf16>, %act: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %dy.full = ncclx.all_gather %dy dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %wgrad = linalg.matmul ins(%act, %dy.full : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %dgrad = linalg.matmul ins(%dy.full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %d1 = tensor.extract_slice %dgrad[0, 0] [512, 4096] [1, 1] : tensor<4096x4096xbf16> to tensor<512x4096xbf16>
  %d1.full = ncclx.all_gather %d1 dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %next = linalg.matmul ins(%d1.full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %wgrad, %next : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}

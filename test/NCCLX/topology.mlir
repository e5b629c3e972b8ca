// A machine in the IR: text and bytecode, and a pass that takes it.
// RUN: ncclx-opt %s | FileCheck %s
// RUN: ncclx-opt %s | ncclx-opt | FileCheck %s
// RUN: ncclx-opt %s --emit-bytecode | ncclx-opt | FileCheck %s
// RUN: ncclx-opt %s --verify-roundtrip -o /dev/null
// RUN: ncclx-opt %s --ncclx-choose-algorithm | FileCheck %s --check-prefix=CHOSEN
// A file goes before it.
// RUN: not ncclx-opt %s --ncclx-choose-algorithm=topology=%t.nowhere 2>&1 | FileCheck %s --check-prefix=FILE
// What `convert --to=mlir` writes is read, and gives the same choices.
// RUN: echo 'module attributes {ncclx.topology =' > %t.mlir
// RUN: ncclx-topo convert %ncclx_src/examples/topologies/h200x8-nvswitch.xml --to=mlir >> %t.mlir
// RUN: echo '} { ncclx.grid @g ["x" = 8] func.func @f(%%a: tensor<4xf32>) -> tensor<32xf32> { %%r = ncclx.all_gather %%a dim 0 over @g["x"] : tensor<4xf32> -> tensor<32xf32> return %%r : tensor<32xf32> } }' >> %t.mlir
// RUN: ncclx-opt %t.mlir --ncclx-choose-algorithm > %t.attribute
// RUN: ncclx-opt %t.mlir --ncclx-choose-algorithm=topology=%ncclx_src/examples/topologies/h200x8-nvswitch.xml > %t.file
// RUN: diff %t.attribute %t.file

// CHECK: module attributes {ncclx.topology = #ncclx.topology<{links = [{both_ways, count = 18 : i64, from = "gpu0", kind = "nvlink", to = "gpu1"}], nodes = [{gpu = "H200-SXM", kind = "gpu", name = "gpu0", rank = 0 : i64}, {gpu = "H200-SXM", kind = "gpu", name = "gpu1", rank = 1 : i64}]}>}
// CHOSEN: ncclx.all_gather {{.*}} algorithm trees
// FILE: error: {{.*}}nowhere
module attributes {ncclx.topology = #ncclx.topology<{
  nodes = [{name = "gpu0", kind = "gpu", rank = 0, gpu = "H200-SXM"},
           {name = "gpu1", kind = "gpu", rank = 1, gpu = "H200-SXM"}],
  links = [{from = "gpu0", to = "gpu1", kind = "nvlink", count = 18, both_ways}]}>} {
  ncclx.grid @g ["x" = 2]
  func.func @f(%a: tensor<4xf32>) -> tensor<8xf32> {
    %r = ncclx.all_gather %a dim 0 over @g["x"] : tensor<4xf32> -> tensor<8xf32>
    return %r : tensor<8xf32>
  }
}

// Results and arguments that no op touches, before ones that some do.
// RUN: ncclx-run %s --topology=%ncclx_src/examples/topologies/h200x8-nvswitch.json --machine=%t.m.json | FileCheck %s
// CHECK: result 0 tensor<0xi32>: 0 elements on 3 ranks, all bits equal
// CHECK: result 1 tensor<5xi8>: 15 elements on 3 ranks, all bits equal
// CHECK: ok: proved
ncclx.grid @g ["x" = 3]
func.func @f(%unused: tensor<7xf32>, %a: tensor<0xi32>, %b: tensor<5xi8>) -> (tensor<0xi32>, tensor<5xi8>) {
  %w = ncclx.window over @g["x"] init(%a : tensor<0xi32>) : !ncclx.window<tensor<0xi32>>
  ncclx.put %a into %w[0] shift 1 : tensor<0xi32> into !ncclx.window<tensor<0xi32>>
  ncclx.signal %w shift 1 : !ncclx.window<tensor<0xi32>>
  ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<0xi32>>
  %r = ncclx.get %w[0] : !ncclx.window<tensor<0xi32>> -> tensor<0xi32>
  %s = ncclx.permute %b shift 1 over @g["x"] : tensor<5xi8> -> tensor<5xi8>
  return %r, %s : tensor<0xi32>, tensor<5xi8>
}

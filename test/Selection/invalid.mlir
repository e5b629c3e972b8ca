// An algorithm that is asked for and cannot carry the collective.
// RUN: ncclx-opt %s --split-input-file --verify-diagnostics --ncclx-choose-algorithm=topology=%ncclx_src/examples/topologies/h200x8-nvswitch.json

ncclx.grid @g ["tp" = 4, "pp" = 2]
func.func @no_axes(%a: tensor<8xf32>) -> tensor<32xf32> {
  // expected-error @below {{asks for hierarchical, but no axes span its groups}}
  %r = ncclx.all_gather %a dim 0 over @g groups [[0, 1, 2, 4], [3, 5, 6, 7]] algorithm hierarchical : tensor<8xf32> -> tensor<32xf32>
  return %r : tensor<32xf32>
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @direct_in_ring_order(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{asks for direct, but it reduces in rank order, not in ring order}}
  %r = ncclx.all_reduce %a sum accumulate f32 order ring over @g["tp"] algorithm direct : tensor<8xf32> -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @nothing_left(%a: tensor<8xbf16>) -> tensor<8xbf16> {
  // expected-error @below {{has no algorithm that can carry it; direct refused: it reduces in rank order, not in ring order; ring refused: a ring accumulates in the element type; bruck refused: it accumulates in the element type; binomial refused: all_reduce has no root}}
  %r = ncclx.all_reduce %a sum accumulate f32 order ring over @g["tp"] : tensor<8xbf16> -> tensor<8xbf16>
  return %r : tensor<8xbf16>
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @chunk_of_a_ring(%a: tensor<4xf32>, %i: index) -> tensor<16xf32> {
  %f = ncclx.start {
    // expected-error @below {{asks for ring, but its result is awaited by chunk}}
    %r = ncclx.all_gather %a dim 0 over @g["tp"] algorithm ring : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  %c = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<16xf32>> -> tensor<4xf32>
  %v = ncclx.await %f : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  return %v : tensor<16xf32>
}

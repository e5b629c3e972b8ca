// A small graph with the promise of ncclx-overlap: the second gather runs beside a product.
ncclx.grid @g ["tp" = 2]
func.func @f(%dy: tensor<2x4xf32>, %act: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    attributes {ncclx.contract = [{kind = "collective", name = "all_gather.0", us = 10. : f64},
                                  {kind = "product", name = "matmul", us = 10. : f64},
                                  {beside = array<i64: 3>, hidden_us = 0.001 : f64, kind = "collective", name = "all_gather.1", us = 10. : f64},
                                  {kind = "product", name = "matmul", us = 10. : f64}]} {
  %full = ncclx.all_gather %dy dim 0 over @g["tp"] : tensor<2x4xf32> -> tensor<4x4xf32>
  %zero = arith.constant 0. : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %dgrad = linalg.matmul ins(%full, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %d1 = tensor.extract_slice %dgrad[0, 0] [2, 4] [1, 1] : tensor<4x4xf32> to tensor<2x4xf32>
  %sent = ncclx.start {
    %r = ncclx.all_gather %d1 dim 0 over @g["tp"] : tensor<2x4xf32> -> tensor<4x4xf32>
    ncclx.yield %r : tensor<4x4xf32>
  } : !ncclx.future<tensor<4x4xf32>>
  %wgrad = linalg.matmul ins(%act, %full : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %next = ncclx.await %sent : !ncclx.future<tensor<4x4xf32>> -> tensor<4x4xf32>
  return %wgrad, %next : tensor<4x4xf32>, tensor<4x4xf32>
}

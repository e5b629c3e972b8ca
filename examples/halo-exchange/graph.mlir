// Steps of a stencil over a field whose rows stand on the ranks in turn, round a ring. Each rank has
// room for one row of either neighbour, and the neighbours write it.
ncclx.grid @g ["x" = 8]

func.func @steps(%field: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<18x32xf32>>
  %end = scf.for %i = %c0 to %c4 step %c1 iter_args(%f = %field) -> (tensor<16x32xf32>) {
    ncclx.put %f into %w[1, 0] : tensor<16x32xf32> into !ncclx.window<tensor<18x32xf32>>
    // My last row is the first that the next rank needs, and my first the last of the one before.
    %last = tensor.extract_slice %f[15, 0] [1, 32] [1, 1] : tensor<16x32xf32> to tensor<1x32xf32>
    ncclx.put %last into %w[0, 0] shift 1 : tensor<1x32xf32> into !ncclx.window<tensor<18x32xf32>>
    ncclx.signal %w shift 1 : !ncclx.window<tensor<18x32xf32>>
    %first = tensor.extract_slice %f[0, 0] [1, 32] [1, 1] : tensor<16x32xf32> to tensor<1x32xf32>
    ncclx.put %first into %w[17, 0] shift -1 : tensor<1x32xf32> into !ncclx.window<tensor<18x32xf32>>
    ncclx.signal %w shift -1 : !ncclx.window<tensor<18x32xf32>>
    // Theirs are here.
    ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<18x32xf32>>
    ncclx.wait %w shift -1 count 1 : !ncclx.window<tensor<18x32xf32>>
    %above = ncclx.get %w[0, 0] : !ncclx.window<tensor<18x32xf32>> -> tensor<16x32xf32>
    %below = ncclx.get %w[2, 0] : !ncclx.window<tensor<18x32xf32>> -> tensor<16x32xf32>
    // I have read them: they may write again, and so may I.
    ncclx.signal %w shift -1 : !ncclx.window<tensor<18x32xf32>>
    ncclx.signal %w shift 1 : !ncclx.window<tensor<18x32xf32>>
    ncclx.wait %w shift -1 count 1 : !ncclx.window<tensor<18x32xf32>>
    ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<18x32xf32>>
    %new = tensor.empty() : tensor<16x32xf32>
    %sum = linalg.add ins(%above, %below : tensor<16x32xf32>, tensor<16x32xf32>) outs(%new : tensor<16x32xf32>) -> tensor<16x32xf32>
    %next = linalg.sub ins(%sum, %f : tensor<16x32xf32>, tensor<16x32xf32>) outs(%new : tensor<16x32xf32>) -> tensor<16x32xf32>
    scf.yield %next : tensor<16x32xf32>
  }
  return %end : tensor<16x32xf32>
}

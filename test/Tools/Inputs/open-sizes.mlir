// Two sizes are open: rows, of which members get uneven shards, and words that all_to_all can split.
ncclx.grid @g ["x" = RANKS]

// A graph of its own in the same module, for other sizes.
func.func private @max(%a: tensor<?xi32>) -> tensor<?xi32> {
  %0 = ncclx.all_reduce %a max accumulate i32 order any over @g["x"] : tensor<?xi32> -> tensor<?xi32>
  return %0 : tensor<?xi32>
}
func.func @other(%a: tensor<?xi32> {ncclx.dims = ["k"]}) -> tensor<?xi32> attributes {ncclx.sizes = {k = [1, 2]}} {
  %0 = call @max(%a) : (tensor<?xi32>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}

func.func private @twice(%a: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = arith.addf %a, %a : tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

func.func @f(%a: tensor<?x3xf32> {ncclx.dims = ["n"]}, %b: tensor<?xi32> {ncclx.dims = ["m"]})
    -> (tensor<?x3xf32>, tensor<?x3xf32>, tensor<?xi32>, tensor<?xi32>)
    attributes {ncclx.sizes = {m = [0, 24, RANKS], n = [0, 17]}} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x3xf32>
  // In flight, while there is computation.
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["x"] : tensor<?x3xf32> -> tensor<?x3xf32>
    ncclx.yield %r : tensor<?x3xf32>
  } : !ncclx.future<tensor<?x3xf32>>
  %twice = ncclx.call @twice(%a) {flops = 1, bytes = 1, sms = 1} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %part = ncclx.reduce_scatter %twice dim 0 sum accumulate f32 order rank over @g["x"] : tensor<?x3xf32> -> tensor<?x3xf32>
  %all = ncclx.await %f : !ncclx.future<tensor<?x3xf32>> -> tensor<?x3xf32>
  // As many rows as there were: the destination says it.
  %empty = tensor.empty(%n) : tensor<?x3xf32>
  %whole = ncclx.all_gather %part dim 0 over @g["x"] into(%empty : tensor<?x3xf32>) : tensor<?x3xf32> -> tensor<?x3xf32>
  %sum = linalg.add ins(%whole, %a : tensor<?x3xf32>, tensor<?x3xf32>) outs(%empty : tensor<?x3xf32>) -> tensor<?x3xf32>
  %words = ncclx.all_to_all %b split 0 concat 0 over @g["x"] : tensor<?xi32> -> tensor<?xi32>
  %most = ncclx.all_reduce %b max accumulate i32 order any over @g["x"] : tensor<?xi32> -> tensor<?xi32>
  return %all, %sum, %words, %most : tensor<?x3xf32>, tensor<?x3xf32>, tensor<?xi32>, tensor<?xi32>
}

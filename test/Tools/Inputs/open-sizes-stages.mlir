// A size is open, and how often the loop turns is known at run time only; it carries what is in flight.
ncclx.grid @g ["x" = 4]
func.func @f(%a: tensor<?x8xf32> {ncclx.dims = ["n"]}, %m: tensor<1xi32> {ncclx.uniform}) -> (tensor<?x8xf32>, tensor<?x8xf32>)
    attributes {ncclx.sizes = {n = [0, 64]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : i32
  %i = tensor.extract %m[%c0] : tensor<1xi32>
  %j = arith.remui %i, %c12 : i32
  %turns = arith.index_cast %j : i32 to index
  %n = tensor.dim %a, %c0 : tensor<?x8xf32>
  %f = ncclx.start {
    %p = ncclx.all_gather %a dim 0 over @g["x"] : tensor<?x8xf32> -> tensor<?x8xf32>
    ncclx.yield %p : tensor<?x8xf32>
  } : !ncclx.future<tensor<?x8xf32>>
  %r:2 = scf.for %k = %c0 to %turns step %c1 iter_args(%x = %a, %g = %f) -> (tensor<?x8xf32>, !ncclx.future<tensor<?x8xf32>>) {
    %s = ncclx.await %g : !ncclx.future<tensor<?x8xf32>> -> tensor<?x8xf32>
    %h = ncclx.start {
      %p = ncclx.all_gather %x dim 0 over @g["x"] : tensor<?x8xf32> -> tensor<?x8xf32>
      ncclx.yield %p : tensor<?x8xf32>
    } : !ncclx.future<tensor<?x8xf32>>
    %e = tensor.empty(%n) : tensor<?x8xf32>
    %t = ncclx.reduce_scatter %s dim 0 sum accumulate f32 order rank over @g["x"] : tensor<?x8xf32> -> tensor<?x8xf32>
    %y = linalg.add ins(%t, %a : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
    scf.yield %y, %h : tensor<?x8xf32>, !ncclx.future<tensor<?x8xf32>>
  }
  %s = ncclx.await %r#1 : !ncclx.future<tensor<?x8xf32>> -> tensor<?x8xf32>
  return %r#0, %s : tensor<?x8xf32>, tensor<?x8xf32>
}

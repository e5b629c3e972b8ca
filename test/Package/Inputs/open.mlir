ncclx.grid @g ["x" = 3]
func.func @f(%a: tensor<?xf32> {ncclx.dims = ["n"]}) -> tensor<?xf32> attributes {ncclx.sizes = {n = [1, 64]}} {
  %r = ncclx.all_gather %a dim 0 over @g["x"] : tensor<?xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}

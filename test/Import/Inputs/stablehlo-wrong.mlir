
func.func @main(%a: tensor<4xf32>) -> tensor<?xf32> {
  %b = "stablehlo.abs"(%a) : (tensor<4xf32>) -> tensor<?xf32>
  func.return %b : tensor<?xf32>
}
// -----


func.func @main(%a: tensor<4xf32>) -> tensor<8xf32> {
  %b = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.axes<"x">}> : (tensor<4xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}
// -----

func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %b = "stablehlo.all_to_all"(%a) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 3 : i64, replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}
// -----
func.func private @main(%a: tensor<8xf32>) -> tensor<8xf32>
// -----

func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  func.return %b : tensor<8xf32>
}

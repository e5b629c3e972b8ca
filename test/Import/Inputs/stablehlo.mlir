module @step attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<8x16xf32>, %arg2: tensor<8xf32>) -> (tensor<4x16xf32>, tensor<8x8xf32>, tensor<f32>) {
    %zero = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %first = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %end = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %table = "stablehlo.constant"() <{value = dense<[1.5, -2.0, 0x7F800000, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>}> : () -> tensor<8xf32>
    %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %1 = "stablehlo.dot_general"(%0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = "stablehlo.reduce_scatter"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }) : (tensor<8x16xf32>) -> tensor<4x16xf32>
    // A loop that takes what it needs from outside, and counts to a constant there.
    %3:2 = "stablehlo.while"(%first, %0) ({
    ^bb0(%i: tensor<i32>, %x: tensor<8x8xf32>):
      %p = "stablehlo.compare"(%i, %end) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%p) : (tensor<i1>) -> ()
    }, {
    ^bb0(%i: tensor<i32>, %x: tensor<8x8xf32>):
      %one = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %bias = "stablehlo.broadcast_in_dim"(%arg2) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<8x8xf32>
      %y = "stablehlo.add"(%x, %bias) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %z = "func.call"(%y) <{callee = @reduced}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
      %n = "stablehlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%n, %z) : (tensor<i32>, tensor<8x8xf32>) -> ()
    }) : (tensor<i32>, tensor<8x8xf32>) -> (tensor<i32>, tensor<8x8xf32>)
    %row = "stablehlo.reshape"(%table) : (tensor<8xf32>) -> tensor<1x8xf32>
    %rows = "stablehlo.broadcast_in_dim"(%row) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<8x8xf32>
    %sorted = "stablehlo.sort"(%rows) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %4 = "stablehlo.multiply"(%3#1, %sorted) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %5 = "stablehlo.reduce"(%4, %zero) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }) : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
    %7 = "stablehlo.custom_call"(%0, %0) <{call_target_name = "__cublas$gemm", backend_config = "{\22dot\22:{\22lhs_contracting_dimensions\22:[\221\22]}}"}> : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %6 = "other.mystery"(%7) {level = 3 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    "func.return"(%2, %6, %5) : (tensor<4x16xf32>, tensor<8x8xf32>, tensor<f32>) -> ()
  }
  func.func private @reduced(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %s = "stablehlo.slice"(%x) <{limit_indices = array<i64: 8, 8>, start_indices = array<i64: 0, 4>, strides = array<i64: 1, 1>}> : (tensor<8x8xf32>) -> tensor<8x4xf32>
    %t = "stablehlo.concatenate"(%s, %s) <{dimension = 1 : i64}> : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
    %r = "stablehlo.all_reduce"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%m) : (tensor<f32>) -> ()
    }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %p = "stablehlo.collective_permute"(%r) <{channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    func.return %p : tensor<8x8xf32>
  }
}

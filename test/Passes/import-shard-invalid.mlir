// What has no counterpart is one error at its place.
// RUN: ncclx-opt %s --ncclx-import-shard --split-input-file --verify-diagnostics

// expected-error @+1 {{expected axes of constant size}}
shard.grid @g(shape = 2x?)
// -----
shard.grid @g(shape = 2x2)
func.func @bits(%a: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @+1 {{reduces by bitwise_and, which ncclx does not}}
  %r = shard.all_reduce %a on @g grid_axes = [0] reduction = bitwise_and : tensor<4xi32> -> tensor<4xi32>
  return %r : tensor<4xi32>
}
// -----
shard.grid @g(shape = 2x2)
func.func @narrow(%a: tensor<4xf32>) -> tensor<4xbf16> {
  // expected-error @+1 {{accumulates 'tensor<4xf32>' in 'bf16', which is no wider type of its kind}}
  %r = shard.all_reduce %a on @g grid_axes = [0] : tensor<4xf32> -> tensor<4xbf16>
  return %r : tensor<4xbf16>
}
// -----
shard.grid @g(shape = 2x2)
func.func @sharded(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{shard modules are taken behind upstream's shard-partition}}
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %r = shard.shard %a to %s : tensor<4xf32>
  return %r : tensor<4xf32>
}
// -----
shard.grid @g(shape = 2x2)
func.func @late_root(%a: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  // expected-error @+1 {{has a root that is known at run time only}}
  %r = shard.broadcast %a on @g grid_axes = [0] root = [%i] : (tensor<4xf32>, index) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
// -----
shard.grid @g(shape = 2x2)
func.func @dynamic(%a: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{expected tensors of static shape, found 'tensor<?xf32>'}}
  %r = shard.all_reduce %a on @g grid_axes = [0] : tensor<?xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}
// -----
shard.grid @g(shape = 2x2)
func.func @sends(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has no counterpart in ncclx}}
  %r = shard.send %a on @g grid_axes = [0] destination = [1] : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

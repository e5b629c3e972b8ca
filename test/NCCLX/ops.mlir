// RUN: ncclx-opt %s | FileCheck %s
// RUN: ncclx-opt %s | ncclx-opt | FileCheck %s
// RUN: ncclx-opt %s --mlir-print-op-generic | ncclx-opt | FileCheck %s
// RUN: ncclx-opt %s --emit-bytecode | ncclx-opt | FileCheck %s
// RUN: ncclx-opt %s --verify-roundtrip -o /dev/null

// CHECK: ncclx.grid @g ["dp" = 2, "tp" = 4]
ncclx.grid @g ["dp" = 2, "tp" = 4]

// CHECK-LABEL: @tensors
func.func @tensors(%a: tensor<4x8xf32>, %b: tensor<32x8xbf16>, %i: index) {
  // CHECK: ncclx.all_gather %{{.*}} dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x8xf32>
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x8xf32>
  // CHECK: ncclx.all_gather %{{.*}} dim 1 over @g["tp", "dp"] algorithm ring : tensor<4x8xf32> -> tensor<4x64xf32>
  %1 = ncclx.all_gather %a dim 1 over @g["tp", "dp"] algorithm ring : tensor<4x8xf32> -> tensor<4x64xf32>
  // CHECK: ncclx.reduce_scatter %{{.*}} dim 0 sum accumulate f32 order any over @g["tp"] : tensor<32x8xbf16> -> tensor<8x8xbf16>
  %2 = ncclx.reduce_scatter %b dim 0 sum accumulate f32 order any over @g["tp"] : tensor<32x8xbf16> -> tensor<8x8xbf16>
  %d = tensor.empty() : tensor<4x8xf32>
  // CHECK: ncclx.all_reduce %{{.*}} max accumulate f64 order ring over @g["dp"] into(%{{.*}} : tensor<4x8xf32>) : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = ncclx.all_reduce %a max accumulate f64 order ring over @g["dp"] into(%d : tensor<4x8xf32>) : tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK: ncclx.all_to_all %{{.*}} split 1 concat 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x2xf32>
  %4 = ncclx.all_to_all %a split 1 concat 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x2xf32>
  // CHECK: ncclx.permute %{{.*}} shift -1 over @g["tp"] : tensor<4x8xf32> -> tensor<4x8xf32>
  %5 = ncclx.permute %a shift -1 over @g["tp"] : tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK: ncclx.permute %{{.*}} pairs [0 -> 1, 1 -> 3] over @g["tp"]
  %6 = ncclx.permute %a pairs [0 -> 1, 1 -> 3] over @g["tp"] : tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK: ncclx.permute %{{.*}} pairs [] over @g["tp"]
  %7 = ncclx.permute %a pairs [] over @g["tp"] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: @windows
func.func @windows(%a: tensor<4x8xf32>, %b: tensor<1x2xf32>, %m: memref<4x8xf32>, %i: index) {
  // CHECK: %[[W:.+]] = ncclx.window over @g["tp"] init(%{{.*}} : tensor<4x8xf32>) : !ncclx.window<tensor<4x8xf32>>
  %w = ncclx.window over @g["tp"] init(%a : tensor<4x8xf32>) : !ncclx.window<tensor<4x8xf32>>
  // CHECK: ncclx.window over @g groups {{\[\[}}0, 2, 4], [1, 3, 5, 7], [6]] : !ncclx.window<tensor<f8E4M3FN>>
  %v = ncclx.window over @g groups [[0, 2, 4], [1, 3, 5, 7], [6]] : !ncclx.window<tensor<f8E4M3FN>>
  // CHECK: ncclx.window over @g["dp"] init(%{{.*}} : memref<4x8xf32>)
  %u = ncclx.window over @g["dp"] init(%m : memref<4x8xf32>) : !ncclx.window<tensor<4x8xf32>>
  // CHECK: ncclx.put %{{.*}} into %[[W]][3, 6] shift -1 : tensor<1x2xf32> into !ncclx.window<tensor<4x8xf32>>
  ncclx.put %b into %w[3, 6] shift -1 : tensor<1x2xf32> into !ncclx.window<tensor<4x8xf32>>
  // CHECK: ncclx.put %{{.*}} into %[[W]][%{{.*}}, 0] pairs [0 -> 1, 1 -> 3] :
  ncclx.put %b into %w[%i, 0] pairs [0 -> 1, 1 -> 3] : tensor<1x2xf32> into !ncclx.window<tensor<4x8xf32>>
  // CHECK: ncclx.put %{{.*}} into %[[W]][0, 0] : memref<4x8xf32> into
  ncclx.put %m into %w[0, 0] : memref<4x8xf32> into !ncclx.window<tensor<4x8xf32>>
  // CHECK: ncclx.signal %[[W]] shift -1 : !ncclx.window<tensor<4x8xf32>>
  ncclx.signal %w shift -1 : !ncclx.window<tensor<4x8xf32>>
  // CHECK: ncclx.wait %[[W]] pairs [0 -> 1] count 2 : !ncclx.window<tensor<4x8xf32>>
  ncclx.wait %w pairs [0 -> 1] count 2 : !ncclx.window<tensor<4x8xf32>>
  // CHECK: ncclx.get %{{.*}}[] : !ncclx.window<tensor<f8E4M3FN>> -> tensor<f8E4M3FN>
  %0 = ncclx.get %v[] : !ncclx.window<tensor<f8E4M3FN>> -> tensor<f8E4M3FN>
  // CHECK: ncclx.get %[[W]][0, %{{.*}}] shift 1 into(%{{.*}} : tensor<1x2xf32>) : !ncclx.window<tensor<4x8xf32>> -> tensor<1x2xf32>
  %1 = ncclx.get %w[0, %i] shift 1 into(%b : tensor<1x2xf32>) : !ncclx.window<tensor<4x8xf32>> -> tensor<1x2xf32>
  // CHECK: ncclx.get %[[W]][0, 0] into(%{{.*}} : memref<4x8xf32>) : !ncclx.window<tensor<4x8xf32>>{{$}}
  ncclx.get %w[0, 0] into(%m : memref<4x8xf32>) : !ncclx.window<tensor<4x8xf32>>
  return
}

// CHECK-LABEL: @rooted
func.func @rooted(%a: tensor<4x8xf32>, %b: tensor<5x8xf8E4M3FN>, %c: tensor<6xui16>, %n: tensor<2xi32>) {
  // CHECK: ncclx.broadcast %{{.*}} root [3] over @g["tp"] : tensor<4x8xf32> -> tensor<4x8xf32>
  %0 = ncclx.broadcast %a root [3] over @g["tp"] : tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK: ncclx.reduce %{{.*}} root [1, 0] sum scale 5.000000e-01 accumulate f32 order tree over @g["tp", "dp"] algorithm binomial : tensor<5x8xf8E4M3FN> -> tensor<5x8xf8E4M3FN>
  %1 = ncclx.reduce %b root [1, 0] sum scale 5.0e-01 accumulate f32 order tree over @g["tp", "dp"] algorithm binomial : tensor<5x8xf8E4M3FN> -> tensor<5x8xf8E4M3FN>
  // CHECK: ncclx.reduce %{{.*}} root [0] avg accumulate ui32 order any over @g["dp"] : tensor<6xui16> -> tensor<6xui16>
  %2 = ncclx.reduce %c root [0] avg accumulate ui32 order any over @g["dp"] : tensor<6xui16> -> tensor<6xui16>
  // CHECK: ncclx.gather %{{.*}} dim 1 root [2] over @g["tp"] : tensor<4x8xf32> -> tensor<4x30xf32>
  %3 = ncclx.gather %a dim 1 root [2] over @g["tp"] : tensor<4x8xf32> -> tensor<4x30xf32>
  // CHECK: ncclx.scatter %{{.*}} dim 0 root [2] over @g["tp"] : tensor<5x8xf8E4M3FN> -> tensor<2x8xf8E4M3FN>
  %4 = ncclx.scatter %b dim 0 root [2] over @g["tp"] : tensor<5x8xf8E4M3FN> -> tensor<2x8xf8E4M3FN>
  // CHECK: ncclx.all_to_all_v %{{.*}} dim 0 counts dense<{{.*}}> : tensor<2x2xi64> over @g["dp"] : tensor<6xui16> -> tensor<3xui16>
  %5 = ncclx.all_to_all_v %c dim 0 counts dense<[[1, 0], [2, 3]]> : tensor<2x2xi64> over @g["dp"] : tensor<6xui16> -> tensor<3xui16>
  // CHECK: ncclx.all_to_all_v %{{.*}} dim 0 sizes %{{.*}} : tensor<2xi32> over @g["dp"] : tensor<6xui16> -> tensor<6xui16>
  %7 = ncclx.all_to_all_v %c dim 0 sizes %n : tensor<2xi32> over @g["dp"] : tensor<6xui16> -> tensor<6xui16>
  // CHECK: ncclx.barrier over @g["tp", "dp"]
  ncclx.barrier over @g["tp", "dp"]
  // CHECK: ncclx.barrier over @g groups {{\[\[}}0, 2], [1, 3, 4, 5, 6, 7]]
  ncclx.barrier over @g groups [[0, 2], [1, 3, 4, 5, 6, 7]]
  // CHECK: ncclx.broadcast %{{.*}} root [1] over @g groups {{\[\[}}4, 0, 1], [2, 3, 5, 6, 7]] algorithm direct : tensor<4x8xf32> -> tensor<4x8xf32>
  %6 = ncclx.broadcast %a root [1] over @g groups [[4, 0, 1], [2, 3, 5, 6, 7]] algorithm direct : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: @assumed
func.func @assumed(%n: index, %p: i1, %x: bf16) {
  // CHECK: ncclx.assume_uniform %{{.*}} : index
  %0 = ncclx.assume_uniform %n : index
  // CHECK: ncclx.assume_uniform %{{.*}} : i1
  %1 = ncclx.assume_uniform %p : i1
  // CHECK: ncclx.assume_uniform %{{.*}} : bf16
  %2 = ncclx.assume_uniform %x : bf16
  return
}

// CHECK-LABEL: @futures
func.func @futures(%a: tensor<4x8xf32>, %i: index) -> tensor<16x8xf32> {
  // CHECK: %[[F:.+]] = ncclx.start {
  // CHECK-NEXT: %[[R:.+]] = ncclx.all_gather
  // CHECK-NEXT: ncclx.yield %[[R]] : tensor<16x8xf32>
  // CHECK-NEXT: } : !ncclx.future<tensor<16x8xf32>>
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x8xf32>
    ncclx.yield %r : tensor<16x8xf32>
  } : !ncclx.future<tensor<16x8xf32>>
  // CHECK: ncclx.await %[[F]] chunk %{{.*}} of 4 dim 0 : !ncclx.future<tensor<16x8xf32>> -> tensor<4x8xf32>
  %c = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<16x8xf32>> -> tensor<4x8xf32>
  // CHECK: ncclx.await %[[F]] keeping(%{{.*}} : tensor<4x8xf32>) : !ncclx.future<tensor<16x8xf32>> -> tensor<16x8xf32>
  %v = ncclx.await %f keeping(%a : tensor<4x8xf32>) : !ncclx.future<tensor<16x8xf32>> -> tensor<16x8xf32>
  return %v : tensor<16x8xf32>
}

// A chunk of an uneven gather has a size known at run time.
// CHECK-LABEL: @uneven
func.func @uneven(%a: tensor<3x8xf32>, %i: index) -> tensor<10x8xf32> {
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<3x8xf32> -> tensor<10x8xf32>
    ncclx.yield %r : tensor<10x8xf32>
  } : !ncclx.future<tensor<10x8xf32>>
  // CHECK: -> tensor<?x8xf32>
  %c = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<10x8xf32>> -> tensor<?x8xf32>
  %v = ncclx.await %f : !ncclx.future<tensor<10x8xf32>> -> tensor<10x8xf32>
  return %v : tensor<10x8xf32>
}

// Sizes of zero and one, and a scalar.
// CHECK-LABEL: @small
func.func @small(%a: tensor<0x8xf32>, %b: tensor<1xi64>, %c: tensor<f16>) {
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<0x8xf32> -> tensor<0x8xf32>
  %1 = ncclx.all_gather %b dim 0 over @g["tp"] : tensor<1xi64> -> tensor<1xi64>
  %2 = ncclx.all_reduce %c min accumulate f16 order rank over @g["tp"] : tensor<f16> -> tensor<f16>
  // CHECK-COUNT-2: ncclx.all_gather
  // CHECK: ncclx.all_reduce
  return
}

// CHECK-LABEL: @in_flight
func.func @in_flight(%a: tensor<4x8xf32>, %d: tensor<16x8xf32>, %i: index) -> tensor<16x8xf32> {
  // CHECK: %[[R:.+]], %[[T:.+]] = ncclx.all_gather %{{.*}} dim 0 over @g["tp"] into(%{{.*}} : tensor<16x8xf32>) async : tensor<4x8xf32> -> tensor<16x8xf32>
  %r, %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : tensor<16x8xf32>) async : tensor<4x8xf32> -> tensor<16x8xf32>
  // CHECK: ncclx.finish_chunk %[[T]], %[[R]][%{{.*}}] of 4 dim 0 : tensor<16x8xf32> -> tensor<4x8xf32>
  %c = ncclx.finish_chunk %t, %r[%i] of 4 dim 0 : tensor<16x8xf32> -> tensor<4x8xf32>
  // CHECK: ncclx.finish %[[T]], %[[R]] keeping(%{{.*}} : tensor<4x8xf32>) : tensor<16x8xf32> -> tensor<16x8xf32>
  %v = ncclx.finish %t, %r keeping(%a : tensor<4x8xf32>) : tensor<16x8xf32> -> tensor<16x8xf32>
  return %v : tensor<16x8xf32>
}

// CHECK-LABEL: @buffers
func.func @buffers(%a: memref<4x8xf32>, %d: memref<16x8xf32>, %i: index) {
  // CHECK: ncclx.all_gather %{{.*}} dim 0 over @g["tp"] into(%{{.*}} : memref<16x8xf32>) : memref<4x8xf32>{{$}}
  ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16x8xf32>) : memref<4x8xf32>
  // CHECK: ncclx.all_reduce %[[A:.+]] sum accumulate f32 order any over @g["tp"] into(%[[A]] : memref<4x8xf32>) : memref<4x8xf32>
  ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] into(%a : memref<4x8xf32>) : memref<4x8xf32>
  // CHECK: %[[T:.+]] = ncclx.all_gather %{{.*}} into(%{{.*}} : memref<16x8xf32>) async : memref<4x8xf32>
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16x8xf32>) async : memref<4x8xf32>
  // CHECK: ncclx.finish_chunk %[[T]], %{{.*}}[%{{.*}}] of 4 dim 0 : memref<16x8xf32> -> memref<4x8xf32, strided<[8, 1], offset: ?>>
  %c = ncclx.finish_chunk %t, %d[%i] of 4 dim 0 : memref<16x8xf32> -> memref<4x8xf32, strided<[8, 1], offset: ?>>
  // CHECK: ncclx.finish %[[T]], %{{.*}} keeping(%{{.*}} : memref<4x8xf32>) : memref<16x8xf32>
  ncclx.finish %t, %d keeping(%a : memref<4x8xf32>) : memref<16x8xf32>
  return
}

func.func private @kernel(%a: tensor<8xf32>, %s: f32) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}
func.func private @buffer_kernel(%a: memref<8xf32>, %s: f32, %o: memref<8xf32>) {
  return
}

// CHECK-LABEL: @calls
func.func @calls(%a: tensor<8xf32>, %m: memref<8xf32>, %s: f32) -> tensor<8xf32> {
  // CHECK: ncclx.call @kernel(%{{.*}}, %{{.*}}) {bytes = 64 : i64, flops = 8 : i64, sms = 1 : i64} : (tensor<8xf32>, f32) -> tensor<8xf32>
  %r = ncclx.call @kernel(%a, %s) {flops = 8, bytes = 64, sms = 1} : (tensor<8xf32>, f32) -> tensor<8xf32>
  // CHECK: ncclx.call @buffer_kernel(%{{.*}}, %{{.*}}) outs(%{{.*}} : memref<8xf32>)
  ncclx.call @buffer_kernel(%m, %s) outs(%m : memref<8xf32>) {flops = 8, bytes = 64, sms = 1} : (memref<8xf32>, f32) -> ()
  return %r : tensor<8xf32>
}

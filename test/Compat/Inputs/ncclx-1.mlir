module {
  ncclx.grid @g ["dp" = 2, "tp" = 4]
  func.func @tensors(%arg0: tensor<4x8xf32>, %arg1: tensor<32x8xbf16>, %arg2: index) {
    %result = ncclx.all_gather %arg0 dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x8xf32>
    %result_0 = ncclx.all_gather %arg0 dim 1 over @g["tp", "dp"] algorithm ring : tensor<4x8xf32> -> tensor<4x64xf32>
    %result_1 = ncclx.reduce_scatter %arg1 dim 0 sum accumulate f32 order any over @g["tp"] : tensor<32x8xbf16> -> tensor<8x8xbf16>
    %0 = tensor.empty() : tensor<4x8xf32>
    %result_2 = ncclx.all_reduce %arg0 max accumulate f64 order ring over @g["dp"] into(%0 : tensor<4x8xf32>) : tensor<4x8xf32> -> tensor<4x8xf32>
    %result_3 = ncclx.all_to_all %arg0 split 1 concat 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x2xf32>
    %result_4 = ncclx.permute %arg0 shift -1 over @g["tp"] : tensor<4x8xf32> -> tensor<4x8xf32>
    %result_5 = ncclx.permute %arg0 pairs [0 -> 1, 1 -> 3] over @g["tp"] : tensor<4x8xf32> -> tensor<4x8xf32>
    %result_6 = ncclx.permute %arg0 pairs [] over @g["tp"] : tensor<4x8xf32> -> tensor<4x8xf32>
    return
  }
  func.func @windows(%arg0: tensor<4x8xf32>, %arg1: tensor<1x2xf32>, %arg2: memref<4x8xf32>, %arg3: index) {
    %0 = ncclx.window over @g["tp"] init(%arg0 : tensor<4x8xf32>) : !ncclx.window<tensor<4x8xf32>>
    %1 = ncclx.window over @g groups [[0, 2, 4], [1, 3, 5, 7], [6]] : !ncclx.window<tensor<f8E4M3FN>>
    %2 = ncclx.window over @g["dp"] init(%arg2 : memref<4x8xf32>) : !ncclx.window<tensor<4x8xf32>>
    ncclx.put %arg1 into %0[3, 6] shift -1 : tensor<1x2xf32> into !ncclx.window<tensor<4x8xf32>>
    ncclx.put %arg1 into %0[%arg3, 0] pairs [0 -> 1, 1 -> 3] : tensor<1x2xf32> into !ncclx.window<tensor<4x8xf32>>
    ncclx.put %arg2 into %0[0, 0] : memref<4x8xf32> into !ncclx.window<tensor<4x8xf32>>
    ncclx.signal %0 shift -1 : !ncclx.window<tensor<4x8xf32>>
    ncclx.wait %0 pairs [0 -> 1] count 2 : !ncclx.window<tensor<4x8xf32>>
    %3 = ncclx.get %1[] : !ncclx.window<tensor<f8E4M3FN>> -> tensor<f8E4M3FN>
    %4 = ncclx.get %0[0, %arg3] shift 1 into(%arg1 : tensor<1x2xf32>) : !ncclx.window<tensor<4x8xf32>> -> tensor<1x2xf32>
    ncclx.get %0[0, 0] into(%arg2 : memref<4x8xf32>) : !ncclx.window<tensor<4x8xf32>>
    return
  }
  func.func @rooted(%arg0: tensor<4x8xf32>, %arg1: tensor<5x8xf8E4M3FN>, %arg2: tensor<6xui16>, %arg3: tensor<2xi32>) {
    %result = ncclx.broadcast %arg0 root [3] over @g["tp"] : tensor<4x8xf32> -> tensor<4x8xf32>
    %result_0 = ncclx.reduce %arg1 root [1, 0] sum scale 5.000000e-01 accumulate f32 order tree over @g["tp", "dp"] algorithm binomial : tensor<5x8xf8E4M3FN> -> tensor<5x8xf8E4M3FN>
    %result_1 = ncclx.reduce %arg2 root [0] avg accumulate ui32 order any over @g["dp"] : tensor<6xui16> -> tensor<6xui16>
    %result_2 = ncclx.gather %arg0 dim 1 root [2] over @g["tp"] : tensor<4x8xf32> -> tensor<4x30xf32>
    %result_3 = ncclx.scatter %arg1 dim 0 root [2] over @g["tp"] : tensor<5x8xf8E4M3FN> -> tensor<2x8xf8E4M3FN>
    %result_4 = ncclx.all_to_all_v %arg2 dim 0 counts dense<[[1, 0], [2, 3]]> : tensor<2x2xi64> over @g["dp"] : tensor<6xui16> -> tensor<3xui16>
    %result_5 = ncclx.all_to_all_v %arg2 dim 0 sizes %arg3 : tensor<2xi32> over @g["dp"] : tensor<6xui16> -> tensor<6xui16>
    ncclx.barrier over @g["tp", "dp"]
    ncclx.barrier over @g groups [[0, 2], [1, 3, 4, 5, 6, 7]]
    %result_6 = ncclx.broadcast %arg0 root [1] over @g groups [[4, 0, 1], [2, 3, 5, 6, 7]] algorithm direct : tensor<4x8xf32> -> tensor<4x8xf32>
    return
  }
  func.func @futures(%arg0: tensor<4x8xf32>, %arg1: index) -> tensor<16x8xf32> {
    %0 = ncclx.start {
      %result = ncclx.all_gather %arg0 dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x8xf32>
      ncclx.yield %result : tensor<16x8xf32>
    } : !ncclx.future<tensor<16x8xf32>>
    %1 = ncclx.await %0 chunk %arg1 of 4 dim 0 : !ncclx.future<tensor<16x8xf32>> -> tensor<4x8xf32>
    %2 = ncclx.await %0 keeping(%arg0 : tensor<4x8xf32>) : !ncclx.future<tensor<16x8xf32>> -> tensor<16x8xf32>
    return %2 : tensor<16x8xf32>
  }
  func.func @uneven(%arg0: tensor<3x8xf32>, %arg1: index) -> tensor<10x8xf32> {
    %0 = ncclx.start {
      %result = ncclx.all_gather %arg0 dim 0 over @g["tp"] : tensor<3x8xf32> -> tensor<10x8xf32>
      ncclx.yield %result : tensor<10x8xf32>
    } : !ncclx.future<tensor<10x8xf32>>
    %1 = ncclx.await %0 chunk %arg1 of 4 dim 0 : !ncclx.future<tensor<10x8xf32>> -> tensor<?x8xf32>
    %2 = ncclx.await %0 : !ncclx.future<tensor<10x8xf32>> -> tensor<10x8xf32>
    return %2 : tensor<10x8xf32>
  }
  func.func @small(%arg0: tensor<0x8xf32>, %arg1: tensor<1xi64>, %arg2: tensor<f16>) {
    %result = ncclx.all_gather %arg0 dim 0 over @g["tp"] : tensor<0x8xf32> -> tensor<0x8xf32>
    %result_0 = ncclx.all_gather %arg1 dim 0 over @g["tp"] : tensor<1xi64> -> tensor<1xi64>
    %result_1 = ncclx.all_reduce %arg2 min accumulate f16 order rank over @g["tp"] : tensor<f16> -> tensor<f16>
    return
  }
  func.func @in_flight(%arg0: tensor<4x8xf32>, %arg1: tensor<16x8xf32>, %arg2: index) -> tensor<16x8xf32> {
    %result, %token = ncclx.all_gather %arg0 dim 0 over @g["tp"] into(%arg1 : tensor<16x8xf32>) async : tensor<4x8xf32> -> tensor<16x8xf32>
    %0 = ncclx.finish_chunk %token, %result[%arg2] of 4 dim 0 : tensor<16x8xf32> -> tensor<4x8xf32>
    %1 = ncclx.finish %token, %result keeping(%arg0 : tensor<4x8xf32>) : tensor<16x8xf32> -> tensor<16x8xf32>
    return %1 : tensor<16x8xf32>
  }
  func.func @buffers(%arg0: memref<4x8xf32>, %arg1: memref<16x8xf32>, %arg2: index) {
    ncclx.all_gather %arg0 dim 0 over @g["tp"] into(%arg1 : memref<16x8xf32>) : memref<4x8xf32>
    ncclx.all_reduce %arg0 sum accumulate f32 order any over @g["tp"] into(%arg0 : memref<4x8xf32>) : memref<4x8xf32>
    %token = ncclx.all_gather %arg0 dim 0 over @g["tp"] into(%arg1 : memref<16x8xf32>) async : memref<4x8xf32>
    %0 = ncclx.finish_chunk %token, %arg1[%arg2] of 4 dim 0 : memref<16x8xf32> -> memref<4x8xf32, strided<[8, 1], offset: ?>>
    ncclx.finish %token, %arg1 keeping(%arg0 : memref<4x8xf32>) : memref<16x8xf32>
    return
  }
  func.func private @kernel(%arg0: tensor<8xf32>, %arg1: f32) -> tensor<8xf32> {
    return %arg0 : tensor<8xf32>
  }
  func.func private @buffer_kernel(%arg0: memref<8xf32>, %arg1: f32, %arg2: memref<8xf32>) {
    return
  }
  func.func @calls(%arg0: tensor<8xf32>, %arg1: memref<8xf32>, %arg2: f32) -> tensor<8xf32> {
    %0 = ncclx.call @kernel(%arg0, %arg2) {bytes = 64 : i64, flops = 8 : i64, sms = 1 : i64} : (tensor<8xf32>, f32) -> tensor<8xf32>
    ncclx.call @buffer_kernel(%arg1, %arg2) outs(%arg1 : memref<8xf32>) {bytes = 64 : i64, flops = 8 : i64, sms = 1 : i64} : (memref<8xf32>, f32) -> ()
    return %0 : tensor<8xf32>
  }
}


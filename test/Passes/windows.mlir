// A get of a peer's window becomes a permute; windows and puts bufferize to readers, gets to writers.
// RUN: ncclx-opt %s --ncclx-answer-gets | FileCheck %s --check-prefix=ANSWER
// RUN: ncclx-opt %s --ncclx-bufferize | FileCheck %s

ncclx.grid @g ["x" = 4]

// ANSWER-LABEL: @answers
func.func @answers(%a: tensor<6x2xf32>, %d: tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) {
  %w = ncclx.window over @g["x"] init(%a : tensor<6x2xf32>) : !ncclx.window<tensor<6x2xf32>>
  // ANSWER: %[[H:.+]] = ncclx.get %{{.*}}[5, 0] : !ncclx.window<tensor<6x2xf32>> -> tensor<1x2xf32>
  // ANSWER: ncclx.permute %[[H]] shift 1 over @g["x"] : tensor<1x2xf32> -> tensor<1x2xf32>
  %0 = ncclx.get %w[5, 0] shift -1 : !ncclx.window<tensor<6x2xf32>> -> tensor<1x2xf32>
  // ANSWER: %[[K:.+]] = ncclx.get %{{.*}}[0, 0] :
  // ANSWER: ncclx.permute %[[K]] pairs [1 -> 0, 3 -> 2] over @g["x"] into(%{{.*}}) :
  %1 = ncclx.get %w[0, 0] pairs [0 -> 1, 2 -> 3] into(%d : tensor<1x2xf32>) : !ncclx.window<tensor<6x2xf32>> -> tensor<1x2xf32>
  // ANSWER: ncclx.get %{{.*}}[2, 0] :
  // ANSWER-NOT: permute
  %2 = ncclx.get %w[2, 0] : !ncclx.window<tensor<6x2xf32>> -> tensor<1x2xf32>
  return %0, %1, %2 : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>
}

// The window is memory of its own: what it was made of, and what was put, may be written behind it.
// CHECK-LABEL: @buffers
func.func @buffers(%a: tensor<4xf32>, %f: f32) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[T:.+]] = memref.alloc
  // CHECK-NOT: memref.copy
  // CHECK: ncclx.window over @g["x"] init(%[[T]] : memref<4xf32>)
  // CHECK: ncclx.put %[[T]] into
  // CHECK: linalg.fill {{.*}} outs(%[[T]]
  // CHECK: %[[R:.+]] = memref.alloc
  // CHECK: ncclx.get %{{.*}}[0] into(%[[R]] : memref<4xf32>)
  // CHECK: return %[[T]], %[[R]]
  %e = tensor.empty() : tensor<4xf32>
  %t = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %w = ncclx.window over @g["x"] init(%t : tensor<4xf32>) : !ncclx.window<tensor<4xf32>>
  ncclx.put %t into %w[0] shift 1 : tensor<4xf32> into !ncclx.window<tensor<4xf32>>
  %u = linalg.fill ins(%f : f32) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  ncclx.signal %w shift 1 : !ncclx.window<tensor<4xf32>>
  ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<4xf32>>
  %r = ncclx.get %w[0] : !ncclx.window<tensor<4xf32>> -> tensor<4xf32>
  return %u, %r : tensor<4xf32>, tensor<4xf32>
}

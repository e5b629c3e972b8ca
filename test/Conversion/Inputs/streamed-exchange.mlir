// Blocks cut along their rows and as one piece, shards of which one is short and one is not there.
ncclx.grid @g ["x" = 5]
func.func @f(%a: memref<35x2xf32>, %b: memref<4x10xf32>, %c: memref<13x2xf32>, %d: memref<4x17xf32>)
    -> (memref<35x2xf32>, memref<4x10xf32>, memref<3x2xf32>, memref<4x4xf32>) {
  %0 = memref.alloc() : memref<35x2xf32>
  ncclx.all_to_all %a split 0 concat 0 over @g["x"] algorithm bruck into(%0 : memref<35x2xf32>) {ncclx.pipeline = {chunks = 3, depth = 1}} : memref<35x2xf32>
  %1 = memref.alloc() : memref<4x10xf32>
  ncclx.all_to_all %b split 1 concat 1 over @g["x"] algorithm bruck into(%1 : memref<4x10xf32>) {ncclx.pipeline = {chunks = 2, depth = 1}} : memref<4x10xf32>
  %2 = memref.alloc() : memref<3x2xf32>
  ncclx.reduce_scatter %c dim 0 sum accumulate f32 order tree over @g["x"] algorithm bruck into(%2 : memref<3x2xf32>) {ncclx.pipeline = {chunks = 2, depth = 1}} : memref<13x2xf32>
  %3 = memref.alloc() : memref<4x4xf32>
  ncclx.reduce_scatter %d dim 1 sum accumulate f32 order tree over @g["x"] algorithm bruck into(%3 : memref<4x4xf32>) {ncclx.pipeline = {chunks = 3, depth = 1}} : memref<4x17xf32>
  return %0, %1, %2, %3 : memref<35x2xf32>, memref<4x10xf32>, memref<3x2xf32>, memref<4x4xf32>
}

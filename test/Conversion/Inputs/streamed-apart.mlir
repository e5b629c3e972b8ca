// No part of a block is a box at both ends.
ncclx.grid @g ["x" = 5]
func.func @f(%a: memref<4x10xf32>) -> memref<20x2xf32> {
  %0 = memref.alloc() : memref<20x2xf32>
  ncclx.all_to_all %a split 1 concat 0 over @g["x"] algorithm bruck into(%0 : memref<20x2xf32>) {ncclx.pipeline = {chunks = 2}} : memref<4x10xf32>
  return %0 : memref<20x2xf32>
}

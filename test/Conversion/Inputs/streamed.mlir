ncclx.grid @g ["x" = 4]
func.func @f(%a: memref<48xf32>) -> memref<48xf32> {
  %r = memref.alloc() : memref<48xf32>
  ncclx.all_reduce %a sum accumulate f32 order tree over @g["x"] algorithm bruck into(%r : memref<48xf32>) {ncclx.pipeline = {chunks = 3}} : memref<48xf32>
  return %r : memref<48xf32>
}

// RUN: ncclx-opt %s --ncclx-group-products | FileCheck %s
// RUN: ncclx-opt %s --ncclx-group-products --convert-ncclx-to-ctran | FileCheck %s --check-prefix=KERNEL

ncclx.grid @g ["tp" = 2]

// Zeros before and rounding behind are one kernel with the product, and so is the buffer between.
// CHECK-LABEL: func.func @finished
// CHECK-NOT: memref<4x6xf32>
// CHECK: scf.execute_region {
// CHECK-NEXT: memref.alloc() : memref<4x6xf32>
// CHECK-NEXT: linalg.fill
// CHECK-NEXT: linalg.matmul
// CHECK-NEXT: linalg.generic
// CHECK: }
// KERNEL-LABEL: ctran.program @finished
// KERNEL: ctran.compute @finished.k0.matmul{{.*}} sms 100
// KERNEL: func.func private @finished.k0.matmul(
// KERNEL-SAME: %{{.*}}: memref<4x8xbf16>, %{{.*}}: memref<8x6xbf16>, %{{.*}}: memref<4x6xbf16>)
// KERNEL-NOT: scf.execute_region
func.func @finished(%a: memref<4x8xbf16>, %b: memref<8x6xbf16>) -> memref<8x6xbf16> {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<4x6xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<4x6xf32>)
  %d = memref.alloc() : memref<4x6xbf16>
  linalg.matmul {ncclx.sms = 100 : i64} ins(%a, %b : memref<4x8xbf16>, memref<8x6xbf16>) outs(%p : memref<4x6xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : memref<4x6xf32>) outs(%d : memref<4x6xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %c = arith.truncf %x : f32 to bf16
      linalg.yield %c : bf16
  }
  %r = memref.alloc() : memref<8x6xbf16>
  ncclx.all_gather %d dim 0 over @g["tp"] into(%r : memref<8x6xbf16>) : memref<4x6xbf16>
  return %r : memref<8x6xbf16>
}

// What somebody else reads stays outside, and so does what rounds it.
// CHECK-LABEL: func.func @read_elsewhere
// CHECK: %[[P:.+]] = memref.alloc() : memref<4x4xf32>
// CHECK: scf.execute_region {
// CHECK-NEXT: linalg.fill
// CHECK-NEXT: linalg.matmul
// CHECK-NEXT: scf.yield
// CHECK: linalg.generic
// CHECK: ncclx.all_gather %[[P]]
func.func @read_elsewhere(%a: memref<4x8xbf16>, %b: memref<8x4xbf16>) -> (memref<4x4xbf16>, memref<8x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<4x4xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<4x4xf32>)
  linalg.matmul ins(%a, %b : memref<4x8xbf16>, memref<8x4xbf16>) outs(%p : memref<4x4xf32>)
  %d = memref.alloc() : memref<4x4xbf16>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : memref<4x4xf32>) outs(%d : memref<4x4xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %c = arith.truncf %x : f32 to bf16
      linalg.yield %c : bf16
  }
  %r = memref.alloc() : memref<8x4xf32>
  ncclx.all_gather %p dim 0 over @g["tp"] into(%r : memref<8x4xf32>) : memref<4x4xf32>
  return %d, %r : memref<4x4xbf16>, memref<8x4xf32>
}

// Ones are not zeros, another buffer's zeros are not the product's, and a collective between is no neighbour.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: scf.execute_region
// CHECK: return
func.func @alone(%a: memref<4x8xf32>, %b: memref<8x4xf32>, %c: memref<4x4xf32>) -> (memref<4x4xf32>, memref<8x4xf32>, memref<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %p = memref.alloc() : memref<4x4xf32>
  %q = memref.alloc() : memref<4x4xf32>
  linalg.fill ins(%one : f32) outs(%p : memref<4x4xf32>)
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x4xf32>) outs(%p : memref<4x4xf32>)
  linalg.fill ins(%zero : f32) outs(%q : memref<4x4xf32>)
  %r = memref.alloc() : memref<8x4xf32>
  ncclx.all_gather %c dim 0 over @g["tp"] into(%r : memref<8x4xf32>) : memref<4x4xf32>
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x4xf32>) outs(%q : memref<4x4xf32>)
  return %p, %r, %q : memref<4x4xf32>, memref<8x4xf32>, memref<4x4xf32>
}

// An accumulation: the copy of what is there.
// KERNEL-LABEL: ctran.program @added
// KERNEL: ctran.compute @added.k{{[0-9]+}}.matmul({{.*}}) reads %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}} writes
// CHECK-LABEL: func.func @added
// CHECK: scf.execute_region {
// CHECK-NEXT: memref.copy
// CHECK-NEXT: linalg.matmul
// CHECK-NEXT: scf.yield
func.func @added(%a: memref<4x8xf32>, %b: memref<8x4xf32>, %c: memref<4x4xf32>) -> (memref<4x4xf32>, memref<8x4xf32>) {
  %p = memref.alloc() : memref<4x4xf32>
  memref.copy %c, %p : memref<4x4xf32> to memref<4x4xf32>
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x4xf32>) outs(%p : memref<4x4xf32>)
  %r = memref.alloc() : memref<8x4xf32>
  ncclx.all_gather %c dim 0 over @g["tp"] into(%r : memref<8x4xf32>) : memref<4x4xf32>
  return %p, %r : memref<4x4xf32>, memref<8x4xf32>
}

// What it is added to is extended from the type that the sum is rounded to: all is one kernel. Not so from another type.
// CHECK-LABEL: func.func @added_to
// CHECK: scf.execute_region {
// CHECK-NEXT: memref.alloc() : memref<4x6xf32>
// CHECK-NEXT: linalg.generic
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: linalg.matmul
// CHECK-NEXT: linalg.generic
// CHECK: arith.truncf
// CHECK: }
// KERNEL-LABEL: ctran.program @added_to
// KERNEL: func.func private @added_to.k0.matmul(
// KERNEL-SAME: %{{.*}}: memref<4x6xbf16>, %{{.*}}: memref<4x8xbf16>, %{{.*}}: memref<8x6xbf16>, %{{.*}}: memref<4x6xbf16>)
#same = affine_map<(i, j) -> (i, j)>
func.func @added_to(%a: memref<4x8xbf16>, %b: memref<8x6xbf16>, %c: memref<4x6xbf16>) -> memref<8x6xbf16> {
  %p = memref.alloc() : memref<4x6xf32>
  linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]} ins(%c : memref<4x6xbf16>) outs(%p : memref<4x6xf32>) {
    ^bb0(%x: bf16, %y: f32):
      %w = arith.extf %x : bf16 to f32
      linalg.yield %w : f32
  }
  linalg.matmul ins(%a, %b : memref<4x8xbf16>, memref<8x6xbf16>) outs(%p : memref<4x6xf32>)
  %d = memref.alloc() : memref<4x6xbf16>
  linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]} ins(%p : memref<4x6xf32>) outs(%d : memref<4x6xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %n = arith.truncf %x : f32 to bf16
      linalg.yield %n : bf16
  }
  %r = memref.alloc() : memref<8x6xbf16>
  ncclx.all_gather %d dim 0 over @g["tp"] into(%r : memref<8x6xbf16>) : memref<4x6xbf16>
  return %r : memref<8x6xbf16>
}
// CHECK-LABEL: func.func @added_to_another_type
// CHECK: scf.execute_region {
// CHECK-NOT: arith.truncf
// CHECK: scf.yield
// CHECK: arith.truncf
func.func @added_to_another_type(%a: memref<4x8xbf16>, %b: memref<8x6xbf16>, %c: memref<4x6xf16>) -> memref<8x6xbf16> {
  %p = memref.alloc() : memref<4x6xf32>
  linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]} ins(%c : memref<4x6xf16>) outs(%p : memref<4x6xf32>) {
    ^bb0(%x: f16, %y: f32):
      %w = arith.extf %x : f16 to f32
      linalg.yield %w : f32
  }
  linalg.matmul ins(%a, %b : memref<4x8xbf16>, memref<8x6xbf16>) outs(%p : memref<4x6xf32>)
  %d = memref.alloc() : memref<4x6xbf16>
  linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]} ins(%p : memref<4x6xf32>) outs(%d : memref<4x6xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %n = arith.truncf %x : f32 to bf16
      linalg.yield %n : bf16
  }
  %r = memref.alloc() : memref<8x6xbf16>
  ncclx.all_gather %d dim 0 over @g["tp"] into(%r : memref<8x6xbf16>) : memref<4x6xbf16>
  return %r : memref<8x6xbf16>
}

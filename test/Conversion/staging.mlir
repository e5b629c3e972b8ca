// A collective on part of a buffer, or on a strided view, goes through a window of its own.
// RUN: ncclx-opt %s --convert-ncclx-to-ctran --ctran-verify=undecided=error --remarks-filter=convert-ncclx-to-ctran --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.err

// REMARK: CopiedForCollective
// REMARK-SAME: the input is not a whole buffer: it goes through one of its own
// REMARK: CopiedForCollective
// REMARK-SAME: the destination is not a whole buffer: it goes through one of its own
// CHECK-LABEL: ctran.program @views
// CHECK: ctran.window "arg0" input 0 : memref<4x8xf32>
// CHECK: ctran.window "buf0" scratch peers load_store : memref<4x4xf32>
// CHECK: ctran.window "buf1" scratch peers load_store : memref<4x4xf32>
// CHECK: ctran.compute {{.*}}copy
// CHECK: ctran.source {{.*}}holds "permute.0"
// CHECK: ctran.sink {{.*}}holds "permute.0"
// CHECK: ctran.compute {{.*}}copy
ncclx.grid @g ["tp" = 2]
func.func @views(%a: memref<4x8xf32>) -> memref<4x8xf32> {
  %r = memref.alloc() : memref<4x8xf32>
  %from = memref.subview %a[0, 4] [4, 4] [1, 1] : memref<4x8xf32> to memref<4x4xf32, strided<[8, 1], offset: 4>>
  %to = memref.subview %r[0, 0] [4, 4] [1, 1] : memref<4x8xf32> to memref<4x4xf32, strided<[8, 1]>>
  %rest = memref.subview %r[0, 4] [4, 4] [1, 1] : memref<4x8xf32> to memref<4x4xf32, strided<[8, 1], offset: 4>>
  memref.copy %from, %rest : memref<4x4xf32, strided<[8, 1], offset: 4>> to memref<4x4xf32, strided<[8, 1], offset: 4>>
  ncclx.permute %from shift 1 over @g["tp"] into(%to : memref<4x4xf32, strided<[8, 1]>>) : memref<4x4xf32, strided<[8, 1], offset: 4>>
  return %r : memref<4x8xf32>
}

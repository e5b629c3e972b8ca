// What nobody would see in the result: a hint that is not followed where it stands, or not all of it.
// RUN: ncclx-opt %s --convert-ncclx-to-ctran --split-input-file --verify-diagnostics -o /dev/null --remarks-filter=convert-ncclx-to-ctran --remark-policy=all 2>&1
// RUN: ncclx-opt %s --convert-ncclx-to-ctran --split-input-file -o /dev/null --remarks-filter=convert-ncclx-to-ctran --remark-policy=all 2>&1 | FileCheck %s

// Direct goes in one piece.
ncclx.grid @g ["x" = 4]
func.func @direct(%a: memref<8xf32>) -> memref<32xf32> {
  %r = memref.alloc() : memref<32xf32>
  // expected-warning @+1 {{asks for ncclx.pipeline, but direct carries this all_gather in one piece; hierarchical, bruck, and ring of a broadcast or a reduce, follow it}}
  ncclx.all_gather %a dim 0 over @g["x"] algorithm direct into(%r : memref<32xf32>) {ncclx.pipeline = {chunks = 4}} : memref<8xf32>
  return %r : memref<32xf32>
}

// -----

// So does a ring that is no chain.
ncclx.grid @g ["x" = 4]
func.func @ring(%a: memref<8xf32>) -> memref<32xf32> {
  %r = memref.alloc() : memref<32xf32>
  // expected-warning @+1 {{asks for ncclx.pipeline, but ring carries this all_gather in one piece; hierarchical, bruck,}}
  ncclx.all_gather %a dim 0 over @g["x"] algorithm ring into(%r : memref<32xf32>) {ncclx.pipeline = {depth = 4}} : memref<8xf32>
  return %r : memref<32xf32>
}

// -----

// Pieces and lanes of trees, and nobody's trees.
ncclx.grid @g ["x" = 4]
func.func @trees(%a: memref<8xf32>) -> memref<32xf32> {
  %r = memref.alloc() : memref<32xf32>
  // expected-warning @+1 {{asks for ncclx.trees, but bruck carries this all_gather without it; trees alone follow it}}
  ncclx.all_gather %a dim 0 over @g["x"] algorithm bruck into(%r : memref<32xf32>) {ncclx.trees = {lanes = 2}} : memref<8xf32>
  return %r : memref<32xf32>
}

// -----

// A block of one row.
ncclx.grid @g ["x" = 4]
func.func @row(%a: memref<1x8xf32>) -> memref<4x8xf32> {
  %r = memref.alloc() : memref<4x8xf32>
  // expected-warning @+1 {{asks for ncclx.pipeline, but bruck carries this all_gather in one piece: its blocks are of one row, or of none}}
  ncclx.all_gather %a dim 0 over @g["x"] algorithm bruck into(%r : memref<4x8xf32>) {ncclx.pipeline = {chunks = 2}} : memref<1x8xf32>
  // Which is one chunk.
  ncclx.all_gather %a dim 0 over @g["x"] algorithm bruck into(%r : memref<4x8xf32>) {ncclx.pipeline = {chunks = 1}} : memref<1x8xf32>
  return %r : memref<4x8xf32>
}

// -----

// A chain has no rounds, and no more chunks than units of 16 bytes.
ncclx.grid @g ["x" = 4]
func.func @chain(%a: memref<8xf32>) -> memref<8xf32> {
  %r = memref.alloc() : memref<8xf32>
  // CHECK: [Missed] Pipelined {{.*}}broadcast.0 in 2 chunks; 100 are asked for
  // expected-remark @+2 {{broadcast.0 in 2 chunks; 100 are asked for}}
  // expected-warning @+1 {{asks for depth = 2 of ncclx.pipeline, but ring carries this broadcast without it; bruck alone follows it}}
  ncclx.broadcast %a root [0] over @g["x"] algorithm ring into(%r : memref<8xf32>) {ncclx.pipeline = {chunks = 100, depth = 2}} : memref<8xf32>
  return %r : memref<8xf32>
}

// -----

// All of it is followed; depth alone is, too.
ncclx.grid @g ["x" = 4]
func.func @rounds(%a: memref<8xf32>) -> memref<32xf32> {
  %r = memref.alloc() : memref<32xf32>
  ncclx.all_gather %a dim 0 over @g["x"] algorithm bruck into(%r : memref<32xf32>) {ncclx.pipeline = {chunks = 4, depth = 2}} : memref<8xf32>
  ncclx.all_gather %a dim 0 over @g["x"] algorithm bruck into(%r : memref<32xf32>) {ncclx.pipeline = {depth = 2}} : memref<8xf32>
  return %r : memref<32xf32>
}
// CHECK-NOT: Pipelined

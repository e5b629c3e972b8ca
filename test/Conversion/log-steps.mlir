// Rooted and log-step collectives are written as loops over their rounds: the text does not grow with
// the ranks. (ctran 4.2, cases 6 to 8, 10 and 12: all counts of members are run in EquivalenceTests.)
// RUN: sed 's/N/8/; s/M/12/g' %s | ncclx-opt --convert-ncclx-to-ctran > %t.8
// RUN: sed 's/N/131072/; s/M/12/g' %s | ncclx-opt --convert-ncclx-to-ctran > %t.many
// RUN: FileCheck %s < %t.8
// RUN: %python -c "a = len(open('%t.8').read()); b = len(open('%t.many').read()); assert b < a * 1.05, (a, b)"

ncclx.grid @g ["x" = N]

// CHECK-LABEL: ctran.program @f
// CHECK-SAME: #ctran.collective<"all_reduce.0", "all_reduce", "bruck", ["x"]
// CHECK-SAME: #ctran.collective<"broadcast.0", "broadcast", "binomial", ["x"]
// CHECK-SAME: #ctran.collective<"reduce.0", "reduce", "binomial", ["x"]
// CHECK-SAME: #ctran.collective<"broadcast.1", "broadcast", "direct", ["x"]
// CHECK: scf.for
func.func @f(%a: memref<Mxf32>) -> (memref<Mxf32>, memref<Mxf32>, memref<Mxf32>, memref<Mxf32>) {
  %q = memref.alloc() : memref<Mxf32>
  %r = memref.alloc() : memref<Mxf32>
  %s = memref.alloc() : memref<Mxf32>
  %t = memref.alloc() : memref<Mxf32>
  ncclx.all_reduce %a sum accumulate f32 order tree over @g["x"] algorithm bruck into(%q : memref<Mxf32>) : memref<Mxf32>
  ncclx.broadcast %q root [1] over @g["x"] algorithm binomial into(%r : memref<Mxf32>) : memref<Mxf32>
  ncclx.reduce %r root [2] avg accumulate f32 order any over @g["x"] algorithm binomial into(%s : memref<Mxf32>) : memref<Mxf32>
  ncclx.broadcast %s root [2] over @g["x"] algorithm direct into(%t : memref<Mxf32>) : memref<Mxf32>
  return %q, %r, %s, %t : memref<Mxf32>, memref<Mxf32>, memref<Mxf32>, memref<Mxf32>
}

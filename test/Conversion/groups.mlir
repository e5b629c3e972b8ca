// The program's grid: the coarsest in which axes span the groups of every collective. Listed groups and
// other grids are taken apart into axes; what crosses them is written by tables of ranks.
// RUN: ncclx-opt %s --ncclx-bufferize --convert-ncclx-to-ctran --cse --ctran-verify=undecided=error --remarks-filter=ctran-verify --remark-policy=all 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=PROOF --input-file=%t.remarks

ncclx.grid @g ["dp" = 2, "tp" = 4]
ncclx.grid @h ["all" = 8]
ncclx.grid @k ["a" = 4, "b" = 2]

// Groups {0, 4}, {1, 5}, ... are those of "dp"; {0, 2}, {1, 3} cut "tp" in two. One rank stands for all.
// PROOF: proved for every rank by one representative
// CHECK-LABEL: ctran.program @regular grid ["dp" = 2, "ranks by 2" = 2, "b" = 2] collectives
// CHECK-SAME: <"all_reduce.0", "all_reduce", "direct", ["dp"], 32>
// CHECK-SAME: <"all_reduce.1", "all_reduce", "direct", ["ranks by 2"], 32>
// CHECK-SAME: <"all_reduce.2", "all_reduce", "direct", ["ranks by 2", "b"], 32>
// CHECK-SAME: <"all_reduce.3", "all_reduce", "direct", ["dp", "ranks by 2", "b"], 32>
// CHECK-SAME: <"all_reduce.4", "all_reduce", "direct", ["b"], 32>
// CHECK-NOT: ctran.table
func.func @regular(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = ncclx.all_reduce %a sum accumulate f32 order any over @g groups [[0, 4], [1, 5], [2, 6], [3, 7]] : tensor<8xf32> -> tensor<8xf32>
  %1 = ncclx.all_reduce %0 sum accumulate f32 order any over @g groups [[0, 2], [1, 3], [4, 6], [5, 7]] : tensor<8xf32> -> tensor<8xf32>
  %2 = ncclx.all_reduce %1 sum accumulate f32 order any over @g["tp"] : tensor<8xf32> -> tensor<8xf32>
  %3 = ncclx.all_reduce %2 sum accumulate f32 order any over @h["all"] : tensor<8xf32> -> tensor<8xf32>
  %4 = ncclx.all_reduce %3 sum accumulate f32 order any over @k["b"] : tensor<8xf32> -> tensor<8xf32>
  return %4 : tensor<8xf32>
}

// PROOF: proved on all 8 ranks
// CHECK-LABEL: ctran.program @irregular grid ["all" = 8] collectives
// CHECK: ctran.table
// CHECK: ctran.sink %{{.+}} holds "all_reduce.0"[%{{.+}}] summed ["all"] among [3, 0, 1] by sum divide 3
// CHECK: ctran.sink %{{.+}} holds "all_reduce.0"[%{{.+}}] summed ["all"] among [2] by sum divide 1
func.func @irregular(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = ncclx.all_reduce %a avg accumulate f32 order any over @h groups [[3, 0, 1], [2], [7, 4, 6, 5]] : tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Groups of three sizes have a branch each, with rounds, chains and packets of their own sizes.
// PROOF: proved on all 8 ranks
// CHECK-LABEL: ctran.program @of_three_sizes grid ["all" = 8] collectives
// CHECK: ctran.slots "all_reduce.0.of3.rs.data" {{.*}}per_run 2
// CHECK: ctran.slots "all_reduce.0.of4.rs.data" {{.*}}per_run 3
// CHECK: ctran.slots "all_reduce.1.of4.rs.ready" [2] per_run 1
// CHECK: ctran.window "all_reduce.2.of4.parts" scratch {{.*}}memref<32xf32>
func.func @of_three_sizes(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = ncclx.all_reduce %a avg accumulate f32 order ring over @h groups [[3, 0, 1], [2], [7, 4, 6, 5]] algorithm ring : tensor<8xf32> -> tensor<8xf32>
  %1 = ncclx.all_reduce %0 avg accumulate f32 order tree over @h groups [[3, 0, 1], [2], [7, 4, 6, 5]] algorithm bruck : tensor<8xf32> -> tensor<8xf32>
  %2 = ncclx.all_reduce %1 sum accumulate f32 order rank over @h groups [[3, 0, 1], [2], [7, 4, 6, 5]] algorithm eager : tensor<8xf32> -> tensor<8xf32>
  %3 = ncclx.reduce %2 root [0] sum accumulate f32 order tree over @h groups [[3, 0, 1], [2], [7, 4, 6, 5]] algorithm binomial : tensor<8xf32> -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

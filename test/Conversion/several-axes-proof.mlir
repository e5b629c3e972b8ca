// A reduction over several axes at once is proved by one representative, as over a single axis: on
// 131,072 ranks, over either carrier, of a size that does not divide. On a few ranks all of them agree.
//
// RUN: sed 's/@DP@/4096/' %s > %t.large
// RUN: ncclx-opt %t.large --ncclx-bufferize --convert-ncclx-to-ctran=load-store=true \
// RUN:   --ctran-verify="mode=class undecided=error" --remarks-filter=ctran-verify --remark-policy=all -o /dev/null 2>&1 | FileCheck %s
// RUN: ncclx-opt %t.large --ncclx-bufferize --convert-ncclx-to-ctran=load-store=false \
// RUN:   --ctran-verify="mode=class undecided=error" --remarks-filter=ctran-verify --remark-policy=all -o /dev/null 2>&1 | FileCheck %s
// RUN: sed 's/@DP@/2/' %s | ncclx-opt --ncclx-bufferize --convert-ncclx-to-ctran --ctran-verify="mode=all undecided=error" -o /dev/null
//
// CHECK-COUNT-2: proved for every rank by one representative
ncclx.grid @g ["tp" = 4, "dp" = @DP@, "cp" = 8]
func.func @all_reduce(%a: tensor<33x3xf32>) -> tensor<33x3xf32> {
  %r = ncclx.all_reduce %a sum accumulate f32 order rank over @g["tp", "cp"] algorithm direct : tensor<33x3xf32> -> tensor<33x3xf32>
  return %r : tensor<33x3xf32>
}
func.func @reduce_scatter(%a: tensor<33x3xf32>) -> tensor<2x3xf32> {
  %r = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order rank over @g["cp", "tp"] algorithm direct : tensor<33x3xf32> -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

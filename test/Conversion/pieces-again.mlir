// The run before has written the output in pieces of another index space; what this run has written again since is known.
// RUN: ncclx-opt %s --ncclx-bufferize --convert-ncclx-to-ctran --ctran-verify="undecided=error" | FileCheck %s
// CHECK: ctran.program
ncclx.grid @g ["x" = 2]
func.func @f(%a: tensor<1x2xf8E4M3FN>, %any: tensor<2xi64>) -> tensor<1x2xf8E4M3FN> {
  %p = ncclx.permute %a pairs [] over @g["x"] : tensor<1x2xf8E4M3FN> -> tensor<1x2xf8E4M3FN>
  %s = ncclx.all_reduce %p sum accumulate f8E4M3FN order any over @g["x"] algorithm direct : tensor<1x2xf8E4M3FN> -> tensor<1x2xf8E4M3FN>
  %e = tensor.empty() : tensor<2xi64>
  %sizes = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%any : tensor<2xi64>) outs(%e : tensor<2xi64>) {
  ^bb0(%in: i64, %out: i64):
    %two = arith.constant 2 : i64
    %n = arith.remui %in, %two : i64
    linalg.yield %n : i64
  } -> tensor<2xi64>
  %r = ncclx.all_to_all_v %p dim 1 sizes %sizes : tensor<2xi64> over @g["x"] into(%s : tensor<1x2xf8E4M3FN>) : tensor<1x2xf8E4M3FN> -> tensor<1x2xf8E4M3FN>
  return %r : tensor<1x2xf8E4M3FN>
}

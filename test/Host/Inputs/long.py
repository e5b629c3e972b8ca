"""A graph of N exchanges of three ranks, one after the other, every other of sizes that only the run tells: long.py N"""
import sys

n = int(sys.argv[1])
print("""ncclx.grid @g ["x" = 3]
func.func @f(%a0: tensor<9xf32>, %any: tensor<3xi64>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<3xi64>
  %sizes = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%any : tensor<3xi64>) outs(%e : tensor<3xi64>) {
    ^bb0(%in: i64, %out: i64):
      %four = arith.constant 4 : i64
      %s = arith.remui %in, %four : i64
      linalg.yield %s : i64
  } -> tensor<3xi64>""")
for i in range(n):
    words = "_v %a{} dim 0 sizes %sizes : tensor<3xi64>" if i % 2 else " %a{} split 0 concat 0"
    print(f"  %a{i + 1} = ncclx.all_to_all{words.format(i)} over @g[\"x\"] algorithm direct : tensor<9xf32> -> tensor<9xf32>")
print(f"  return %a{n} : tensor<9xf32>\n}}")

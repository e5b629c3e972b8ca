"""Writes a graph with one exchange and N cheap ops one behind the other; with "wide", each of which uses the one before twice."""
import sys

n, wide = int(sys.argv[1]), sys.argv[2:] == ["wide"]
print("""ncclx.grid @g ["x" = 4]
func.func @chain(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<6x8xf32>, tensor<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<6x8xf32>
  %s = tensor.empty() : tensor<8x8xf32>
  %last = tensor.extract_slice %x[3, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
  %face = ncclx.permute %last shift 1 over @g["x"] : tensor<1x8xf32> -> tensor<1x8xf32>
  %a = tensor.insert_slice %x into %e[1, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<6x8xf32>
  %v0 = tensor.insert_slice %face into %a[0, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<6x8xf32>""")
for i in range(n):
    print(f"  %v{i + 1} = arith.addf %v{i}, %{'v' + str(i) if wide else 'e'} : tensor<6x8xf32>")
# The same behind a product that nobody needs, and in a loop.
print("  %g0 = linalg.matmul ins(%w, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%s : tensor<8x8xf32>) -> tensor<8x8xf32>")
k = min(n, 200)
for i in range(k):
    print(f"  %g{i + 1} = arith.addf %g{i}, %g{i} : tensor<8x8xf32>")
print("""  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%h = %w) -> tensor<8x8xf32> {
    %p0 = linalg.matmul ins(%w, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%s : tensor<8x8xf32>) -> tensor<8x8xf32>""")
for i in range(k):
    print(f"    %p{i + 1} = arith.addf %p{i}, %p{i} : tensor<8x8xf32>")
print(f"""    %q = ncclx.permute %p{k} shift 1 over @g["x"] : tensor<8x8xf32> -> tensor<8x8xf32>
    %t = linalg.matmul ins(%q, %h : tensor<8x8xf32>, tensor<8x8xf32>) outs(%s : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %t : tensor<8x8xf32>
  }}
  %sum = arith.addf %r, %g{k} : tensor<8x8xf32>
  return %v{n}, %sum : tensor<6x8xf32>, tensor<8x8xf32>
}}""")

"""many-counts.py RANKS: an all_to_all_v whose counts are all kinds: none, one, many, nothing for oneself."""
import sys

n = int(sys.argv[1])
counts = [[0 if i == j else (i * 7 + j * 13) % 5 * (i % 9 > 0) for j in range(n)] for i in range(n)]
gives, takes = max(map(sum, counts)), max(sum(row[j] for row in counts) for j in range(n))
print(f"""ncclx.grid @g ["x" = {n}]
func.func @f(%a: tensor<{gives}xf32>) -> tensor<{takes}xf32> {{
  %r = ncclx.all_to_all_v %a dim 0 counts dense<{counts}> : tensor<{n}x{n}xi64> over @g["x"] : tensor<{gives}xf32> -> tensor<{takes}xf32>
  return %r : tensor<{takes}xf32>
}}""")

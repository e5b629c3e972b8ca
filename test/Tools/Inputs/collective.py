"""collective.py OP IN OUT: a graph of one collective of 4 ranks, from a tensor of one type to one of another."""
import sys

op, source, result = sys.argv[1:]
print(f"""ncclx.grid @g ["x" = 4]
func.func @f(%a: tensor<{source}>) -> tensor<{result}> {{
  %r = ncclx.{op} over @g["x"] algorithm direct : tensor<{source}> -> tensor<{result}>
  return %r : tensor<{result}>
}}""")

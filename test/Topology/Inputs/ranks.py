"""ranks.py N json|mlir: N GPUs behind one switch, or a graph of an all_gather over N."""
import json
import sys

n = int(sys.argv[1])
if sys.argv[2] == "json":
    nodes = [{"name": f"gpu{i}", "kind": "gpu", "rank": i, "gpu": "GB200"} for i in range(n)]
    links = [{"from": f"gpu{i}", "to": "sw", "kind": "nvlink", "count": 18, "both_ways": True}
             for i in range(n)]
    print(json.dumps({"format": "ncclx-topology", "version": 1, "links": links,
                      "nodes": nodes + [{"name": "sw", "kind": "nvswitch"}]}))
else:
    print(f"""ncclx.grid @g ["x" = {n}]
func.func @f(%a: tensor<4xf32>) -> tensor<{4 * n}xf32> {{
  %r = ncclx.all_gather %a dim 0 over @g["x"] : tensor<4xf32> -> tensor<{4 * n}xf32>
  return %r : tensor<{4 * n}xf32>
}}""")

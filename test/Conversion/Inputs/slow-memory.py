"""slow-memory.py N OP TYPES GRID: prints a graph with one direct reduction; slow-memory.py topology N: N GPUs whose
memory is so slow that even a small sum goes in chunks."""
import json
import sys

if sys.argv[1] == "topology":
    n = int(sys.argv[2])
    print(json.dumps({
        "format": "ncclx-topology", "version": 1, "name": "slow-memory",
        "gpus": [{"name": "X1", "arch": "sm_90", "sms": 8, "bf16_flops": "10 TFLOP/s", "f32_flops": "10 TFLOP/s",
                  "hbm": "20 MB/s", "hbm_size": 1000000000, "copy_engines": 3, "power_cap_w": 700}],
        "nodes": [{"name": f"gpu{r}", "kind": "gpu", "rank": r, "gpu": "X1"} for r in range(n)],
        "links": [{"from": f"gpu{a}", "to": f"gpu{b}", "kind": "nvlink", "raw": "20 GB/s", "both_ways": True}
                  for a in range(n) for b in range(a)]}))
else:
    grid, over, op, types = sys.argv[1:]
    source, result = types.split(" -> ")
    print(f"""ncclx.grid @g [{grid}]
func.func @f(%a: tensor<{source}>) -> tensor<{result}> {{
  %r = ncclx.{op} over @g[{over}] algorithm direct : tensor<{source}> -> tensor<{result}>
  return %r : tensor<{result}>
}}""")

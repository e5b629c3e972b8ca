"""The JSON lines of ncclx-bench: FILE RANKS SMALLEST [against]."""
import json
import sys

lines = [json.loads(line) for line in open(sys.argv[1])]
ranks = [int(n) for n in sys.argv[2].split(",")]
assert {l["ranks"] for l in lines} == set(ranks), "rank counts"
assert {l["collective"] for l in lines} == {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                          "broadcast"}
for l in lines:
    n = l["ranks"]
    factor = {"all_reduce": 2 * (n - 1) / n, "broadcast": 1}.get(l["collective"], (n - 1) / n)
    assert l["wrong"] == 0 and l["us"] > 0 and l["iterations"] >= 1, l
    assert abs(l["algbw_GBps"] - l["bytes"] / l["us"] / 1e3) < 1e-6, l
    assert abs(l["busbw_GBps"] - l["algbw_GBps"] * factor) < 1e-6, l
    if "against" in sys.argv:
        assert abs(l["ratio"] - l["against_us"] / l["us"]) < 1e-6, l
assert min(l["bytes"] for l in lines) == int(sys.argv[3])

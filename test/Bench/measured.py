"""measured.py [BIN [INPUTS]]: predictions beside measurements that others published (INPUTS/measured), a JSON line each with
predicted, measured and error. All_reduce on one NDv4 (8 A100 behind NVSwitches): NCCL as our ring, MSCCL as the fastest of the files of
INPUTS/msccl for that size; where there is none it is left out. MSCCL++'s targets: as our choice. Then the pairs that are measured more
than 10 % apart, at one size or of one kind at two: the last line counts those whose order is predicted, and fails where one is not; two
that are predicted alike have none. What came of it: README.md."""
import itertools
import json
import pathlib
import sys

from explained import Explainer, range_of, root

explainer = Explainer(sys.argv[1] if len(sys.argv) > 1 else root / "build/bin")
inputs = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else root.parent / "shared/inputs")
machine = root / "examples/topologies/dgx-a100.json"
APART = 1.1


def in_place(name):
    """Microseconds in place, by size, of a table of nccl-tests."""
    rows = (line.split() for line in (inputs / "measured" / name).read_text().splitlines())
    return {int(row[0]): float(row[8]) for row in rows if len(row) > 8 and row[0].isdigit()}


def tell(by, collective, size, predicted, measured, of):
    print(json.dumps({"bench": "measured", "by": by, "collective": collective, "bytes": size, "predicted_us": predicted,
                      "measured_us": measured, "error": round(predicted / measured - 1, 3), "as": of}), flush=True)
    return {"by": by, "collective": collective, "bytes": size, "predicted": predicted, "measured": measured}


files = [path for path in sorted((inputs / "msccl").glob("azure-ndv4-*.xml"))
         if 'coll="allreduce"' in path.read_text()]
chunks = {path: explainer.written(path, machine, 4)[0]["bytes"] // 4 for path in files}
rows = []
for size, measured in in_place("1xNDv4_Allreduce-inplace_nccl.txt").items():
    times, _ = explainer.predicted(machine, "all_reduce", size, 8)
    rows.append(tell("NCCL", "all_reduce", size, times["ring"], measured, "ring"))
    other = in_place("1xNDv4_Allreduce-inplace_msccl.txt").get(size)
    made = [path for path in files if range_of(path)[0] <= max(size, 1 << 10) <= range_of(path)[1]]
    best = min(((explainer.written(path, machine, max(1, size // chunks[path] // 4) * 4)[0]["written_us"], path.name)
                for path in made), default=None)
    if other and best:
        rows.append(tell("MSCCL", "all_reduce", size, best[0], other, best[1]))
    elif other:
        print(json.dumps({"bench": "measured", "by": "MSCCL", "collective": "all_reduce", "bytes": size,
                          "left_out": "no file of INPUTS/msccl is for this size"}))
KINDS = {"allreduce": "all_reduce", "allgather": "all_gather", "alltoall": "all_to_all", "reducescatter": "reduce_scatter"}
targets = [json.loads(line) for line in (inputs / "measured/perf_ndmv4.jsonl").read_text().splitlines()]
for target in targets:
    kind = KINDS[target["name"]]
    if target["ranks"] != 8:
        print(json.dumps({"bench": "measured", "by": "MSCCL++", "collective": kind, "bytes": target["size"], "ranks": target["ranks"],
                          "left_out": "what joins its hosts is not described"}))
        continue
    times, chosen = explainer.predicted(machine, kind, target["size"], 8)
    rows.append(tell("MSCCL++", kind, target["size"], times[chosen], target["time"], chosen))
pairs = right = 0
for a, b in itertools.combinations(rows, 2):
    comparable = a["collective"] == b["collective"] and (a["bytes"] == b["bytes"] or a["by"] == b["by"])
    if not comparable or max(a["measured"], b["measured"]) < APART * min(a["measured"], b["measured"]):
        continue
    pairs += 1
    good = a["predicted"] != b["predicted"] and (a["predicted"] < b["predicted"]) == (a["measured"] < b["measured"])
    right += good
    if not good:
        print(json.dumps({"bench": "measured", "order": "wrong", "first": a, "second": b}), flush=True)
print(json.dumps({"bench": "measured", "lines": len(rows), "pairs": pairs, "order_right": right}))
sys.exit(right < pairs or not pairs)

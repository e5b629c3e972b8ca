"""public.py [BIN [FOLDER]]: predictions beside measurements of public repositories, fetched below FOLDER as OWNER+NAME (git directories
with their files, or trees): rouge3877/ns3-msccl-data (MSCCL files timed on 8 MI300X) and microsoft/mscclpp (targets of 8 and of 2 x 8
H100). A JSON line each with predicted, measured and error; at each size the pairs of algorithms measured more than 10 % apart. The last
lines count those whose order is predicted, among all files and among those of protocol Simple, as which the model takes all: it knows
no flags of LL. Fails where one of the latter is wrong; two that are predicted alike have none."""
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from explained import ELEMENT, Explainer, root

explainer = Explainer(sys.argv[1] if len(sys.argv) > 1 else root / "build/bin")
folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")
topologies = root / "examples/topologies"
APART = 1.1
SIZES = [1 << p for p in range(10, 31, 4)]
KINDS = {"allreduce": "all_reduce", "allgather": "all_gather", "alltoall": "all_to_all"}


class Repository:
    def __init__(self, name):
        self.at = folder / name.replace("/", "+")
        self.git = next((at for at in (self.at / "repo", self.at) if (at / "HEAD").exists()), None)

    def names(self):
        if self.git:
            return subprocess.run(["git", f"--git-dir={self.git}", "ls-tree", "-r", "--name-only", "HEAD"],
                                  capture_output=True, text=True, check=True).stdout.splitlines()
        return [str(path.relative_to(self.at)) for path in sorted(self.at.rglob("*")) if path.is_file()]

    def text(self, name):
        if self.git:
            return subprocess.run(["git", f"--git-dir={self.git}", "show", f"HEAD:{name}"], capture_output=True, text=True).stdout
        return (self.at / name).read_text()


def tell(source, of, collective, size, predicted, measured):
    row = {"bench": "public", "source": source, "of": of, "collective": collective, "bytes": size, "predicted_us": predicted,
           "measured_us": measured, "error": round(predicted / measured - 1, 3)}
    print(json.dumps(row), flush=True)
    return row


rows = []
timed = Repository("rouge3877/ns3-msccl-data")
names = set(timed.names())
for name in sorted(names):
    table = name.replace("/Input/", "/GroundTruth/").replace(".xml", "_in_place.csv")
    if not name.endswith(".xml") or table not in names:
        continue
    fields = (line.split(",") for line in timed.text(table).splitlines()[1:])
    measured = {int(row[0]): float(row[5]) for row in fields if len(row) > 5 and re.fullmatch(r"[\d.]+", row[5])}
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / pathlib.Path(name).name
        path.write_text(timed.text(name))
        unit, why = explainer.written(path, topologies / "mi300x8-mesh.json", ELEMENT)
        if not unit:
            print(json.dumps({"bench": "public", "of": path.stem, "refused": why}), flush=True)
            continue
        for size in (size for size in SIZES if size in measured):
            found, _ = explainer.written(path, topologies / "mi300x8-mesh.json", size // (unit["bytes"] // ELEMENT))
            if found and found["bytes"] == size:
                rows.append(tell("ns3-msccl-data, 8 MI300X", path.stem, unit["collective"], size, found["written_us"], measured[size]))
for line in Repository("microsoft/mscclpp").text("test/deploy/perf_ndmv5.jsonl").splitlines():
    target = json.loads(line)
    kind = KINDS[target["name"]]
    times, chosen = explainer.predicted(topologies / "dgx-h100-2.json", kind, target["size"], target["ranks"])
    tell(f"mscclpp, {target['ranks']} H100 (kernel {target['kernel']})", chosen, kind, target["size"], times[chosen], target["time"])
counts = {"all": [0, 0], "simple": [0, 0]}
for a, b in itertools.combinations(rows, 2):
    low, high = sorted((a["measured_us"], b["measured_us"]))
    if a["collective"] != b["collective"] or a["bytes"] != b["bytes"] or high < APART * low:
        continue
    good = (a["predicted_us"] - b["predicted_us"]) * (a["measured_us"] - b["measured_us"]) > 0
    for count in ["all"] + ["simple"] * all("_simple_" in row["of"] for row in (a, b)):
        counts[count][0] += 1
        counts[count][1] += good
for name, (pairs, right) in counts.items():
    print(json.dumps({"bench": "public", "files": name, "pairs": pairs, "order_right": right}))
sys.exit(counts["simple"][0] != counts["simple"][1] or not rows)

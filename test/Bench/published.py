"""published.py [BIN [INPUTS [MACHINE...]]]: schedules that others published (MSCCL files and MSCCL++ plans below INPUTS) beside what
the compiler chooses for the same collective, ranks and bytes, both by the same model: a JSON line for each file, machine of
examples/topologies with one host that has its ranks, and size of those that the file says it is for. The last line counts the
choices that are slower; fails where there are any. Which are left, and why: README.md."""
import json
import pathlib
import re
import sys

from explained import ELEMENT, Explainer, range_of, root

explainer = Explainer(sys.argv[1] if len(sys.argv) > 1 else root / "build/bin")
inputs = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else root.parent / "shared/inputs")
wanted = sys.argv[3:]


def machines():
    for path in sorted((root / "examples/topologies").glob("*.json")):
        machine = json.loads(path.read_text())
        gpus = sum("rank" in node for node in machine.get("nodes", []))
        if len(machine.get("hosts", [1])) == 1 and "replicate" not in machine and gpus > 1 and (not wanted or path.stem in wanted):
            yield path, gpus


rows = slower = 0
for path in sorted(p for kind in ("msccl", "mscclpp") for p in (inputs / kind).glob("*.*")):
    said = re.search(r"remark: (\w+) of (\d+) ranks", explainer.imported(path).stderr)
    for machine, gpus in machines():
        row = {"bench": "published", "file": path.name, "machine": machine.stem}
        if not said:
            print(json.dumps(row | {"error": "not imported"}))
            break
        if int(said[2]) > gpus:
            continue
        low, high = range_of(path)
        unit, why = explainer.written(path, machine, ELEMENT)
        if not unit:
            print(json.dumps(row | {"refused": why.splitlines()[-1]}), flush=True)
            continue
        chunks = unit["bytes"] // ELEMENT
        for size in sorted({max(1, size // chunks // ELEMENT) for size in (low, int((low * high) ** 0.5), high)}):
            found, why = explainer.written(path, machine, size * ELEMENT)
            if not found:
                print(json.dumps(row | {"error": why}), flush=True)
                slower += 1
                continue
            loses = found["chosen_us"] > found["written_us"]
            print(json.dumps(row | found | {"slower": loses}), flush=True)
            rows += 1
            slower += loses
print(json.dumps({"bench": "published", "lines": rows, "slower": slower}))
sys.exit(slower > 0 or rows == 0)

"""bound_ratio.py [BIN [BYTES]]: predicted time over lower bound, at the same rates, of what the compiler chooses: a JSON
line for each topology of examples/topologies, whole and with one link less (of each host, where there are several: a wire
of a GPU, or the way to a NIC), number of ranks, and collective. What is
above 1.02 is marked `"misses": true`; the last line counts them. What takes more than a minute is given up."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).parent.parent.parent
bin_folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else root / "build/bin")
size = sys.argv[2] if len(sys.argv) > 2 else str(1 << 30)
machines = {"h200x8-nvswitch": (3, 5, 6, 7, 8), "h100x4-mesh": (3, 4), "mi300x8-mesh": (3, 5, 6, 7, 8),
            "dgx1-v100": (3, 5, 6, 7, 8), "mi250x16": (16,), "dgx-h100-2": (16,), "dgx-h100-16": (128,),
            "torus-4x4": (16,)}
limit = 60  # seconds
jobs = []


def explain(topology, name, ranks, links, collective):
    row = {"bench": "bound_ratio", "topology": name, "links": links, "ranks": ranks,
           "collective": collective, "bytes": int(size)}
    try:
        said = subprocess.run([bin_folder / "ncclx-opt", f"--ncclx-explain=topology={topology} collective={collective} "
                               f"bytes={size} ranks={ranks}", "/dev/null", "-o", "/dev/null"],
                              capture_output=True, text=True, timeout=limit)
        found = re.search(r"runs +(\w+): .*, ([\d.]+) us, ([\d.]+) of the bound\n", said.stdout)
    except subprocess.TimeoutExpired:
        found, said = None, None
    if found:
        row |= {"algorithm": found[1], "predicted_us": float(found[2]), "ratio": float(found[3])}
    elif said and "runs   nothing" in said.stdout:
        row["error"] = "no algorithm can carry it"
    else:
        row["error"] = (said.stderr or said.stdout)[:200] if said else f"more than {limit} s"
    row["misses"] = not found or float(found[3]) > 1.02
    return row


def ask(*what):
    for collective in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all"):
        jobs.append(pool.submit(explain, *what, collective))


pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
with tempfile.TemporaryDirectory() as folder:
    for name, counts in machines.items():
        path = root / "examples/topologies" / (name + ".json")
        for ranks in counts:
            ask(path, name, ranks, "all")
        # What leads from a NIC on is missed as the way to it is.
        for kinds, words in ((("nvlink", "xgmi"), "one less"), (("nic",), "one NIC less")):
            machine = json.loads(path.read_text())
            link = next((link for link in machine["links"] if link["kind"] in kinds), None)
            if not link:
                continue
            if link.get("count", 1) > 1:
                # One wire of a bundle, where a switch or a mesh joins more than two.
                link["count"] -= 1
            else:
                machine["links"].remove(link)
            less = pathlib.Path(folder) / f"{name}-{kinds[0]}.json"
            less.write_text(json.dumps(machine))
            ask(less, name, counts[-1], words)
    misses = 0
    for job in jobs:
        print(json.dumps(job.result()), flush=True)
        misses += job.result()["misses"]
print(json.dumps({"bench": "bound_ratio", "lines": len(jobs), "misses": misses}))

"""small_sizes.py [NAME...]: for sizes from 8 bytes to 1 MiB on the machines of examples/topologies (or those named), what the
choice takes beside the fastest of all algorithms, which --ncclx-explain times all. A JSON line a machine, collective and
number of ranks; fails where a choice is more than 1.05 of the fastest."""
import json
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).parent.parent.parent
RANKS = {"dgx-a100": (8, 5), "dgx-h100-2": (16,), "dgx-h100-16": (32,), "dgx1-v100": (8, 3), "gb200-nvl72": (32,), "h100x4-mesh": (4, 3),
         "h200x8-nvswitch": (8, 7), "mi250x16": (16,), "mi300x8-mesh": (8, 6), "torus-4x4": (16,)}
KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")


def explain(machine, kind, ranks, how):
    return subprocess.run(["ncclx-opt", f"--ncclx-explain=topology={root}/examples/topologies/{machine}.json collective={kind} "
                           f"ranks={ranks} {how}", "/dev/null", "-o", "/dev/null"], capture_output=True, text=True)


failed = False
for machine in sys.argv[1:] or RANKS:
    for ranks in RANKS[machine]:
        for kind in KINDS:
            done = explain(machine, kind, ranks, "min-bytes=8 max-bytes=1048576")
            rows = re.findall(r"^ +(\d+)  (\w+) +([\d.]+) ", done.stdout, re.M)
            row = {"bench": "small_sizes", "machine": machine, "ranks": ranks, "collective": kind, "sizes": len(rows), "worst": 0}
            for size, algorithm, us in rows[::6]:
                every = explain(machine, kind, ranks, f"bytes={size}").stdout
                times = [float(t) for t in re.findall(r"^  \w+ +([\d.]+) +[\d.-]+ +[\d.]+ ", every, re.M)]
                ratio = float(us) / min(times) if times else 0
                if ratio >= row["worst"]:
                    row |= {"worst": round(ratio, 3), "at": int(size), "algorithm": algorithm}
            failed |= done.returncode != 0 or not rows or not 0 < row["worst"] <= 1.05
            print(json.dumps(row), flush=True)
sys.exit(failed)

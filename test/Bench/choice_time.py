"""choice_time.py [BIN [BYTES [NAME...]]]: user seconds of choosing, lowering and proving one collective on machines of up to
64 ranks of examples/topologies (or those named): a JSON line a machine and collective, with the algorithm that was chosen.
What is not under 1 s, or not proved, is marked `"misses": true`; the last line counts them."""
import json
import pathlib
import re
import resource
import subprocess
import sys

root = pathlib.Path(__file__).parent.parent.parent
sys.path.append(str(root / "test/Conversion/Inputs"))
from hosts import attribute

bin_folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else root / "build/bin")
size = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 30
RANKS = {"h200x8-nvswitch": 8, "h100x4-mesh": 4, "mi300x8-mesh": 8, "dgx1-v100": 8, "mi250x16": 16, "torus-4x4": 16,
         "dgx-h100-2": 16, "gb200-nvl72": 64}
REDUCES = "sum accumulate f32 order any"
KINDS = {"all_gather": "dim 0", "reduce_scatter": f"dim 0 {REDUCES}", "all_reduce": REDUCES,
         "all_to_all": "split 0 concat 0"}
STEPS = ("--ncclx-choose-algorithm", "--ncclx-bufferize", "--convert-ncclx-to-ctran", "--ctran-verify=undecided=error")


def graph(machine, kind, ranks):
    shard = -(-size // 4 // ranks)
    i, o = (shard if kind == cut else shard * ranks for cut in ("all_gather", "reduce_scatter"))
    return (f"module attributes {{ncclx.topology = #ncclx.topology<{attribute(machine)}>}} {{\n"
            f"ncclx.grid @g [\"x\" = {ranks}]\nfunc.func @{kind}(%a: tensor<{i}xf32>) -> tensor<{o}xf32> {{\n"
            f"  %r = ncclx.{kind} %a {KINDS[kind]} over @g[\"x\"] : tensor<{i}xf32> -> tensor<{o}xf32>\n"
            f"  return %r : tensor<{o}xf32>\n}}\n}}\n")


def run(*how, text):
    """What it says, and the user seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([bin_folder / "ncclx-opt", *how], input=text, text=True, capture_output=True)
    return done, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


lines = misses = 0
for name in sys.argv[3:] or RANKS:
    machine = json.loads((root / "examples/topologies" / (name + ".json")).read_text())
    for kind in KINDS:
        text = graph(machine, kind, RANKS[name])
        chosen, choice = run(STEPS[0], text=text)
        proved, seconds = run(*STEPS, "-o", "/dev/null", text=text)
        algorithm = re.search(r"algorithm\(?\s*=?\s*(\w+)", chosen.stdout)
        row = {"bench": "choice_time", "topology": name, "ranks": RANKS[name], "collective": kind, "bytes": size,
               "algorithm": algorithm and algorithm[1], "choice_user_s": round(choice, 2), "user_s": round(seconds, 2),
               "misses": proved.returncode != 0 or seconds >= 1}
        if proved.returncode:
            row["error"] = proved.stderr[:200]
        lines, misses = lines + 1, misses + row["misses"]
        print(json.dumps(row), flush=True)
print(json.dumps({"bench": "choice_time", "lines": lines, "misses": misses}))

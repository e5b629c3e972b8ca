"""every-topology.py FOLDER: every kind of collective on up to 4 ranks of every machine of the folder, of a size that
nothing divides: an algorithm is chosen, written out and proved, or nothing leads from some rank to another. A line a
machine."""
import json
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parent.parent.parent / "Conversion/Inputs"))
from hosts import attribute

REDUCES = "sum accumulate f32 order any"


def graph(ranks):
    shard, whole = 7, 7 * ranks
    kinds = {"all_gather": ("dim 0", shard, whole), "reduce_scatter": (f"dim 0 {REDUCES}", whole, shard),
             "all_reduce": (REDUCES, 101, 101), "all_to_all": ("split 0 concat 0", whole, whole),
             "broadcast": ("root [0]", 101, 101), "reduce": (f"root [0] {REDUCES}", 101, 101),
             "gather": ("dim 0 root [0]", shard, whole), "scatter": ("dim 0 root [0]", whole, shard),
             "permute": ("shift 1", 101, 101)}
    text = f"ncclx.grid @g [\"x\" = {ranks}]\n"
    for kind, (words, i, o) in kinds.items():
        text += (f"func.func @{kind}(%a: tensor<{i}xf32>) -> tensor<{o}xf32> {{\n"
                 f"  %r = ncclx.{kind} %a {words} over @g[\"x\"] : tensor<{i}xf32> -> tensor<{o}xf32>\n"
                 f"  return %r : tensor<{o}xf32>\n}}\n")
    return text


for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
    machine = json.loads(path.read_text())
    gpus = [node for node in machine["nodes"] if "rank" in node]
    if len(gpus) < 2 or path.name.startswith("cluster"):
        continue
    text = f"module attributes {{ncclx.topology = #ncclx.topology<{attribute(machine)}>}} {{\n{graph(min(4, len(gpus)))}}}\n"
    done = subprocess.run(["ncclx-opt", "--ncclx-choose-algorithm", "--ncclx-bufferize", "--convert-ncclx-to-ctran",
                           "--ctran-verify=undecided=error", "-o", "/dev/null"], input=text, text=True,
                          capture_output=True)
    if done.returncode == 0:
        print(path.stem, "proved")
    elif done.returncode == 1 and "nothing leads there" in done.stderr:
        print(path.stem, "refused: a collective has no way")
    else:
        print(path.stem, done.returncode, done.stderr)

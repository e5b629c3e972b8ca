"""routed.py FOLDER: blocks from hand to hand on machines of the folder, lowered and proved; a line a machine on its routing.
Then what is broken in such a program must be refused."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

folder = pathlib.Path(sys.argv[1])


def opt(text, *options):
    return subprocess.run(["ncclx-opt", *options], input=text, capture_output=True, text=True)


def lower(machine, grid, words, i, o, *options):
    graph = (f"ncclx.grid @g [{grid}]\nfunc.func @f(%a: tensor<{i}>) -> tensor<{o}> {{\n  %r = ncclx.{words} algorithm routed : "
             f"tensor<{i}> -> tensor<{o}>\n  return %r : tensor<{o}>\n}}\n")
    return opt(graph, "--ncclx-bufferize", f"--convert-ncclx-to-ctran=topology={machine}", "--remark-policy=all",
               "--remarks-filter=convert-ncclx-to-ctran", *options)


prove = "--ctran-verify=undecided=error"
proved = 0
with tempfile.TemporaryDirectory() as scratch:
    less = pathlib.Path(scratch) / "less.json"
    machine = json.loads((folder / "mi300x8-mesh.json").read_text())
    machine["links"].pop(0)
    less.write_text(json.dumps(machine))
    for name, path, grid, axes, n in (("dgx1-v100", folder / "dgx1-v100.json", '"x" = 8', '"x"', 8),
                                      ("dgx1-v100", folder / "dgx1-v100.json", '"x" = 4, "y" = 2', '"y", "x"', 8),
                                      ("mesh less a link", less, '"x" = 8', '"x"', 8),
                                      ("torus-4x4", folder / "torus-4x4.json", '"x" = 16', '"x"', 16)):
        counts = json.dumps([[(3 * i + 5 * j) % 11 for j in range(n)] for i in range(n)])
        rows = 11 * n
        for number, (words, i, o) in enumerate((
                (f"all_to_all %a split 0 concat 0 over @g[{axes}]", f"{n * 300}xf32", f"{n * 300}xf32"),
                (f"all_to_all %a split 1 concat 0 over @g[{axes}]", f"3x{n}xi8", f"{3 * n}x1xi8"),
                (f"permute %a shift 3 over @g[{axes}]", "100xbf16", "100xbf16"),
                (f"all_to_all_v %a dim 0 counts dense<{counts}> : tensor<{n}x{n}xi64> over @g[{axes}]", f"{rows}x2xf16",
                 f"{rows}x2xf16"))):
            if "_v" in words and "," in axes:
                continue
            done = lower(path, grid, words, i, o, prove, "-o", "/dev/null")
            proved += done.returncode == 0
            if done.returncode:
                print("failed:", name, words[:40], done.stderr[:600])
            said = re.search(r"paths between \d+ members, (up to \d+ hops), .*takes ([\d.]+)", done.stderr)
            if number == 0 and "," not in axes and said:
                print(f"{name}: {said[1]}, {said[2]}")
print(f"{proved} proved")

text = lower(folder / "dgx1-v100.json", '"x" = 8', 'all_to_all %a split 0 concat 0 over @g["x"]', f"{1 << 24}xf32",
             f"{1 << 24}xf32").stdout
assert opt(text, prove, "-o", "/dev/null").returncode == 0


def broken(what, pattern, new, count=1):
    wrong, made = re.subn(pattern, new, text, count=count)
    done = opt(wrong, prove, "-o", "/dev/null")
    first = re.search(r"error: (.*)", done.stderr)
    print(f"{what}:", "not broken" if not made else "not refused" if done.returncode == 0 else "refused, " + first[1][:60])


broken("a place too many in flight", r"credits 2", "credits 3", 0)
broken("passed on a piece too early", r"(ctran\.wait %\w+ >= )%\w+( on ce\[[^\n]*note = \"await piece\")", r"\1%arg1\2")
broken("put before the output is free", r"after (%\w+), (%\w+)( on ce\[[^\n]*note = \"put block\")", r"after \1\3")
broken("the same piece again", r"(ctran\.range %\w+\[)(%c\w+), %arg1\]", r"\1\2, \2]")

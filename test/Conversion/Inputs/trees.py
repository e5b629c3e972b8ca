"""trees.py FOLDER: collectives by trees on machines of the folder, lowered and proved; a line a machine on its packing."""
import re
import subprocess
import sys

sums = "accumulate f32 order any over @g[{axes}] algorithm trees"
proved = 0
for machine, grid, axes in (("h100x4-mesh", '"x" = 4', '"x"'), ("h100x4-mesh", '"x" = 2, "y" = 2', '"y", "x"'),
                            ("dgx1-v100", '"x" = 8', '"x"'), ("torus-4x4", '"x" = 16', '"x"')):
    n = eval(grid.replace('"x" = ', "").replace('"y" = ', "").replace(",", "*"))
    for more in (0, 3):
        if n == 16 and more:
            continue
        whole, shard = 48 * n + more, -(-(48 * n + more) // n)
        how = sums.format(axes=axes)
        kind = "avg" if more else "sum scale 5.000000e-01"
        for op, i, o in ((f"all_gather %a dim 0 over @g[{axes}] algorithm trees", f"{shard}x2", f"{whole}x2"),
                         (f"reduce_scatter %a dim 1 {kind} {how}", f"2x{whole}", f"2x{shard}"),
                         (f"all_reduce %a {kind} {how}", f"{whole}x3", f"{whole}x3")):
            graph = (f"ncclx.grid @g [{grid}]\nfunc.func @f(%a: tensor<{i}xf32>) -> tensor<{o}xf32> {{\n  %r = ncclx.{op} : "
                     f"tensor<{i}xf32> -> tensor<{o}xf32>\n  return %r : tensor<{o}xf32>\n}}\n")
            done = subprocess.run(["ncclx-opt", "--ncclx-bufferize",
                                   f"--convert-ncclx-to-ctran=topology={sys.argv[1]}/{machine}.json",
                                   "--ctran-verify=undecided=error", "-o", "/dev/null", "--remark-policy=all",
                                   "--remarks-filter=convert-ncclx-to-ctran"], input=graph, capture_output=True, text=True)
            proved += done.returncode == 0
            if done.returncode:
                print("failed:", machine, op, i, done.stderr[:600])
            said = re.search(r"(\d+ trees) of \d+ members, (\d+ edges deep).*takes ([\d.]+ of the least)", done.stderr)
            if op.startswith("all_gather") and not more and said:
                print(machine, *(part + "," * (k < 2) for k, part in enumerate(said.groups())))
print(f"{proved} proved")

"""export-all.py PREFIX: collectives by each algorithm, lowered, exported, imported and proved."""
import subprocess
import sys

prefix = sys.argv[1]
sums = "sum accumulate f32 order any"
proved = 0


def run(*command, data=None):
    done = subprocess.run(command, input=data, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


for n in (2, 3, 4, 5, 8):
    m = 48 * n
    ops = {
        "all_gather": (f"ncclx.all_gather %a dim 0 over @g[\"x\"] ALGO", m // n, m),
        "reduce_scatter": (f"ncclx.reduce_scatter %a dim 0 {sums} over @g[\"x\"] ALGO", m, m // n),
        "all_reduce": (f"ncclx.all_reduce %a {sums} over @g[\"x\"] ALGO", m, m),
        "all_to_all": (f"ncclx.all_to_all %a split 0 concat 0 over @g[\"x\"] ALGO", m, m),
    }
    for name, (text, size, out) in ops.items():
        for algorithm in ("direct", "ring", "bruck"):
            op = text.replace("ALGO", f"algorithm {algorithm}")
            graph = (f'ncclx.grid @g ["x" = {n}]\nfunc.func @f(%a: tensor<{size}xf32>) -> tensor<{out}xf32> {{\n'
                     f"  %r = {op} : tensor<{size}xf32> -> tensor<{out}xf32>\n  return %r : tensor<{out}xf32>\n}}\n")
            code, lowered, said = run("ncclx-opt", "--ncclx-bufferize", "--convert-ncclx-to-ctran", data=graph)
            if code:
                print("failed to lower", name, n, algorithm, said[:400])
                continue
            code, xml, said = run("ncclx-translate", "--export-msccl-xml", data=lowered)
            if code:
                print("failed to export", name, n, algorithm, said[:400])
                continue
            open(prefix + ".xml", "w").write(xml)
            code, back, said = run("ncclx-translate", "--import-msccl-xml", prefix + ".xml")
            if code or "warning" in said:
                print("failed to import", name, n, algorithm, said[:400])
                continue
            code, _, said = run("ncclx-opt", "--ctran-verify=undecided=error", "-o", "/dev/null", data=back)
            if code:
                print("failed to prove", name, n, algorithm, said[:400])
                continue
            proved += 1
print(f"done: {proved} proved")

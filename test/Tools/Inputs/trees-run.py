"""trees-run.py FOLDER: on machines where some ranks have no direct way to each other, ncclx-run takes trees, proves them,
runs them on processes, and every bit is the reference's. As C++, which takes long to compile, an all_reduce alone: its trees
go both ways."""
import subprocess
import sys
import tempfile

words = {"all_gather": "dim 0", "reduce_scatter": "dim 0 sum accumulate i32 order any", "all_reduce": "sum accumulate i32 order any"}
ok = 0
with tempfile.TemporaryDirectory() as scratch:
    for machine, n, carrier, transport in (("torus-4x4", 16, "jit", "shm"), ("dgx1-v100", 8, "jit", "shm"),
                                           ("dgx1-v100", 8, "cpp", "shm"), ("dgx1-v100", 8, "jit", "tcp")):
        shard = 37 if transport == "shm" else 40
        lines = [f'ncclx.grid @g ["x" = {n}]']
        whole = shard * n
        types = {"all_gather": (shard, whole), "reduce_scatter": (whole, shard), "all_reduce": (whole, whole)}
        if carrier == "cpp":
            types = {"all_reduce": types["all_reduce"]}
        lines.append("func.func @f(" + ", ".join(f"%{k}: tensor<{types[k][0]}xi32>" for k in types) + ") -> (" +
                     ", ".join(f"tensor<{types[k][1]}xi32>" for k in types) + ") {")
        for k in types:
            lines.append(f'  %r_{k} = ncclx.{k} %{k} {words[k]} over @g["x"] : tensor<{types[k][0]}xi32> -> tensor<{types[k][1]}xi32>')
        lines.append("  return " + ", ".join(f"%r_{k}" for k in types) + " : " +
                     ", ".join(f"tensor<{types[k][1]}xi32>" for k in types) + "\n}")
        graph = f"{scratch}/graph.mlir"
        open(graph, "w").write("\n".join(lines) + "\n")
        done = subprocess.run(["ncclx-run", graph, f"--topology={sys.argv[1]}/{machine}.json", f"--machine={scratch}/m{n}.json",
                               "--repeat=1", f"--carrier={carrier}", f"--transport={transport}"], capture_output=True, text=True)
        good = done.returncode == 0 and done.stdout.count("all bits equal") == len(types) and done.stdout.count("trees") >= len(types)
        ok += good
        if not good:
            print("failed:", machine, carrier, transport, done.stdout[-1500:], done.stderr[-1500:])
print(f"{ok} ok")

"""each-count.py RANKS.py PREFIX N...: makes a topology and a graph of N ranks, lowers and proves it."""
import subprocess
import sys

maker, prefix, *counts = sys.argv[1:]
for n in counts:
    for kind in ("json", "mlir"):
        with open(f"{prefix}.{n}.{kind}", "w", encoding="utf-8") as file:
            subprocess.run([sys.executable, maker, n, kind], stdout=file, check=True)
    done = subprocess.run(["ncclx-opt", f"{prefix}.{n}.mlir",
                           f"--ncclx-choose-algorithm=topology={prefix}.{n}.json",
                           "--ncclx-bufferize", "--convert-ncclx-to-ctran",
                           "--ctran-verify=undecided=error", "-o", "/dev/null"],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{n} ranks: exit code {done.returncode}\n{done.stderr[-2000:]}")
    print(f"{n} ranks: proved")

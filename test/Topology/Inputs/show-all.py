"""show-all.py MADE KEPT: prints "FILE: N rank(s), M host(s)" for every file of the folder MADE; fails on
any finding, and if KEPT does not hold the same file."""
import os
import subprocess
import sys

made, kept = sys.argv[1:]
for file in sorted(os.listdir(made)):
    with open(os.path.join(made, file), "rb") as a, open(os.path.join(kept, file), "rb") as b:
        if a.read() != b.read():
            sys.exit(f"{file} is not what generate.py writes: run it again")
    done = subprocess.run(["ncclx-topo", "show", os.path.join(made, file)], capture_output=True,
                          text=True)
    if done.returncode or done.stderr:
        sys.exit(f"{file}: exit code {done.returncode}\n{done.stderr}")
    print(f"{file}: " + done.stdout.split(": ", 1)[1].split(", read", 1)[0])

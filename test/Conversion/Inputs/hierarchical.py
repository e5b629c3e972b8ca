"""hierarchical.py HOSTSxMEMBERS ...: collectives by tiers, lowered and proved; what is not is printed."""
import json
import subprocess
import sys
import tempfile

from hosts import graph, machine

kinds = ("sum", "avg", "max", "sum scale 5.000000e-01")
one = every = 0
for name in sys.argv[1:]:
    hosts, members = map(int, name.split("x"))
    ranks = hosts * members
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(machine(hosts, members), file)
        file.flush()
        # Nothing, one row, rows that no two members cut alike, even ones, and many chunks with credit.
        graphs = [graph(collective, ranks, size, "f32", kinds[(i + len(collective)) % 4])
                  for i, size in enumerate((0, 1, 7, ranks * 5, ranks * 2000000))
                  for collective in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast")]
        for load_store in ("true", "false"):
            done = subprocess.run(
                ["ncclx-opt", "--split-input-file", "--ncclx-bufferize",
                 f"--convert-ncclx-to-ctran=topology={file.name} load-store={load_store}",
                 "--ctran-verify=undecided=error", "-o", "/dev/null", "--remark-policy=all",
                 "--remarks-filter=ctran-verify"],
                input="// -----\n".join(graphs), capture_output=True, text=True)
            if done.returncode:
                print("failed:", name, load_store, done.stderr[:1500])
            one += done.stderr.count("Mode=class")
            every += done.stderr.count("Mode=all")
print(one, "proved by one rank,", every, "on all")

"""hierarchical.py HOSTSxMEMBERS ...: collectives by tiers, lowered and proved; what is not is printed."""
import json
import subprocess
import sys
import tempfile

from hosts import graph, machine

kinds = ("sum", "avg", "max", "sum scale 5.000000e-01")
proved = {}
for name in sys.argv[1:]:
    hosts, members = map(int, name.split("x"))
    ranks = hosts * members
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(machine(hosts, members), file)
        file.flush()
        number = 0
        for size in (0, 1, 7, ranks * 5, 2000000 * ranks):
            for collective in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all"):
                number += 1
                load_store = "false" if number % 3 == 0 else "true"
                done = subprocess.run(
                    ["ncclx-opt", "--ncclx-bufferize",
                     f"--convert-ncclx-to-ctran=topology={file.name} load-store={load_store}",
                     "--ctran-verify=undecided=error", "-o", "/dev/null", "--remark-policy=all",
                     "--remarks-filter=ctran-verify"],
                    input=graph(collective, ranks, size, "f32", kinds[number % 4]), capture_output=True, text=True)
                if done.returncode:
                    print("failed:", name, collective, size, load_store, done.stderr[:int(1500)])
                mode = "one" if "Mode=class" in done.stderr else "all"
                proved[mode] = proved.get(mode, 0) + (done.returncode == 0)
print(proved.get("one", 0), "proved by one rank,", proved.get("all", 0), "on all")

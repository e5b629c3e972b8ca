"""tiers.py FOLDER: what 1 GiB takes on hosts of the folder, of the lower bound; whole, and with a wire less."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

good = 0
for name, ranks in (("dgx-h100-2", 16), ("dgx-h100-16", 128)):
    machine = json.loads((pathlib.Path(sys.argv[1]) / (name + ".json")).read_text())
    for wires in (18, 17):
        next(link for link in machine["links"] if link["kind"] == "nvlink")["count"] = wires
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(machine, file)
            file.flush()
            for collective in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all"):
                said = subprocess.run(["ncclx-opt", f"--ncclx-explain=topology={file.name} collective={collective} "
                                       f"bytes={1 << 30} ranks={ranks}", "/dev/null", "-o", "/dev/null"],
                                      capture_output=True, text=True)
                found = re.search(r"runs +(\w+): .*, ([\d.]+) us, ([\d.]+) of the bound\n", said.stdout)
                if not found:
                    print("misses:", name, collective, said.stderr[:400])
                    continue
                print(name, ranks, collective, found[1], wires, found[3])
                good += float(found[3]) <= 1.02
print(good, "within 1.02")

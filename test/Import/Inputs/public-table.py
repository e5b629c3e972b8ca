"""public-table.py FOLDER: imports and proves each MSCCL file or MSCCL++ plan; a line each: name, what it is, steps,
FIFO places and hops (MSCCL alone), ratio, the verdict as declared and with one place."""
import pathlib
import re
import subprocess
import sys

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.*")):
    way = "--import-msccl-xml" if path.suffix == ".xml" else "--import-mscclpp-json"
    imported = subprocess.run(["ncclx-translate", way, str(path)], capture_output=True, text=True)
    said = re.search(r"remark: (\w+) of (\d+) ranks (in|out of) place, (\d+) steps(?:: needs (\d+) FIFO places?, "
                     r"(\d+) hops?)?, (?:the busiest rank sends ([\d.]+) of the least|through the switch)", imported.stderr)
    verdicts = []
    for slots in (0, 1):
        proved = subprocess.run(["ncclx-opt", f"--ctran-verify=fifo-slots={slots} undecided=error", "-o",
                                 "/dev/null"], input=imported.stdout, capture_output=True, text=True)
        refused = re.search(r"is refused: (\w+)", proved.stderr)
        verdicts.append("proved" if proved.returncode == 0 else refused[1] if refused else "broken")
    print(path.stem, *((x or "-" for x in said.groups()) if said else ["not imported"]), *verdicts)

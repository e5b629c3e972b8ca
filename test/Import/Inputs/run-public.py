"""run-public.py FOLDER TOPOLOGY MACHINE: imports and runs each MSCCL file; fails unless all outputs agree."""
import pathlib
import subprocess
import sys

wrong = []
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.xml")):
    imported = subprocess.run(["ncclx-translate", "--import-msccl-xml", str(path)], capture_output=True, text=True)
    ran = subprocess.run(["ncclx-run", "-", f"--topology={sys.argv[2]}", f"--machine={sys.argv[3]}", "--repeat=1"],
                         input=imported.stdout, capture_output=True, text=True)
    last = (ran.stdout.splitlines() or [""])[-1]
    print(path.name, last)
    if not last.startswith("ok:"):
        wrong.append(path.name)
sys.exit(f"failed: {wrong}" if wrong else 0)

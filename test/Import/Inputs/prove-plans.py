"""prove-plans.py FILE KIND...: makes plans of each kind for 2 and 3 ranks, imports and proves them."""
import pathlib
import subprocess
import sys

proved = 0
for kind in sys.argv[2:]:
    for n in ("2", "3"):
        plan = subprocess.run([sys.executable, pathlib.Path(__file__).parent / "make-mscclpp.py", kind, n],
                              capture_output=True, text=True, check=True).stdout
        pathlib.Path(sys.argv[1]).write_text(plan)
        imported = subprocess.run(["ncclx-translate", "--import-mscclpp-json", "--chunk-elements=3", sys.argv[1]],
                                  capture_output=True, text=True)
        verdict = subprocess.run(["ncclx-opt", "--ctran-verify=fifo-slots=1 undecided=error", "-o", "/dev/null"],
                                 input=imported.stdout, capture_output=True, text=True)
        if imported.returncode or verdict.returncode:
            print("failed:", kind, n, imported.stderr[:300], verdict.stderr[:300])
        else:
            proved += 1
print(proved, "plans proved")

"""import_scale.py [BIN]: how the import and the proof of MSCCL files grow with their steps, on files of 12,400 and 50,096
steps (test/Import/Inputs/make-msccl.py). A JSON line each, and one with the ratio of the two; fails where twice the
steps take much more than twice the time, on any machine."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

bin_folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin")
make = pathlib.Path(__file__).parent.parent / "Import/Inputs/make-msccl.py"
rows = []
with tempfile.TemporaryDirectory() as folder:
    for ranks, channels in ((16, 25), (16, 101)):
        xml, mlir = pathlib.Path(folder) / "in.xml", pathlib.Path(folder) / "out.mlir"
        xml.write_text(subprocess.run([sys.executable, make, str(ranks), str(channels)], capture_output=True, text=True,
                                      check=True).stdout)
        row = {"bench": "import_scale", "steps": (2 * (ranks - 1) + 1) * ranks * channels}
        for name, command in (
                ("import_s", [bin_folder / "ncclx-translate", "--import-msccl-xml", xml, "-o", mlir]),
                ("prove_s", [bin_folder / "ncclx-opt", mlir, "--ctran-verify=undecided=error", "-o", "/dev/null"])):
            best = None
            for _ in range(3):
                begin = time.perf_counter()
                subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
                took = time.perf_counter() - begin
                best = took if best is None else min(best, took)
            row[name] = round(best, 3)
        print(json.dumps(row))
        rows.append(row)
small, large = rows
grown = {"bench": "import_scale", "steps_ratio": round(large["steps"] / small["steps"], 3)}
for name in ("import_s", "prove_s"):
    grown[name.replace("_s", "_ratio")] = round(large[name] / small[name], 3)
print(json.dumps(grown))
if max(grown["import_ratio"], grown["prove_ratio"]) > 1.6 * grown["steps_ratio"]:
    sys.exit("time grows faster than the steps do")

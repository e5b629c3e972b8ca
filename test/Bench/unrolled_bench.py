"""Times every overlap pass on XLA modules written out: unrolled_bench.py BUILD_DIR [LAYERS...]

33 layers are 3 MB of text with 1,650 collectives. Prints seconds and resident memory of each pass, JSON lines.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
source = os.path.join(here, "..", "..")
build = sys.argv[1]
machine = os.path.join(source, "examples", "machines", "h100-nvswitch.json")
PASSES = ["pair-bulk", "reschedule-ag-wgrad", "hoist-collectives", "overlap", "split-exchanges", "ring-exchanges",
          "double-exchanges", "direct-exchanges", "split-batches", "split-halos", "pipeline-loops", "braid-loops"]


def run(command):
    start = time.monotonic()
    pid = os.posix_spawn(command[0], command, os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    return {"seconds": round(time.monotonic() - start, 2), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
            "mb": usage.ru_maxrss // 1024, "status": status}


with tempfile.TemporaryDirectory() as folder:
    for layers in sys.argv[2:] or ["33", "66"]:
        text, graph = os.path.join(folder, "m.hlo"), os.path.join(folder, "m.mlir")
        with open(text, "w") as out:
            subprocess.run([sys.executable, os.path.join(source, "test", "Import", "Inputs", "make-hlo.py"), layers],
                           stdout=out, check=True)
        print(json.dumps({"bench": "unrolled", "layers": int(layers), "pass": "import-hlo",
                          "bytes": os.path.getsize(text),
                          **run([os.path.join(build, "bin", "ncclx-translate"), "--import-hlo", text, "-o", graph])}),
              flush=True)
        for name in PASSES:
            print(json.dumps({"bench": "unrolled", "layers": int(layers), "pass": name,
                              **run([os.path.join(build, "bin", "ncclx-opt"), graph,
                                     f"--ncclx-{name}=machine={machine}", f"--remarks-filter=ncclx-{name}",
                                     "--remark-policy=all", "-o", os.devnull])}), flush=True)

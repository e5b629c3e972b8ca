"""hostile-files.py EXAMPLES [KIND...]: every file option of every tool with files that are none: a pipe that nobody
writes to, nothing, garbage, brackets without end, a directory, /dev/zero. Each ends soon, by itself, with a few lines
that name the file."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

examples, kinds = sys.argv[1], sys.argv[2:] or ["pipe", "empty", "garbage", "deep", "directory", "zero"]
topology = examples + "/topologies/h200x2-nvswitch.json"
machine = examples + "/machines/h200.json"
folder = tempfile.mkdtemp()
hostile = {kind: f"{folder}/{kind}" for kind in kinds} | {"zero": "/dev/zero"}
for kind, path in hostile.items():
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        os.mkdir(path)
    elif kind != "zero":
        with open(path, "wb") as file:
            file.write({"empty": b"", "deep": b"[" * 300_000}.get(kind, bytes(i * 7919 % 256 for i in range(5000))))
graph = folder + "/graph.mlir"
with open(graph, "w") as file:
    file.write("""ncclx.grid @g ["tp" = 2]
func.func @f(%a: tensor<2x4xf32>) -> tensor<4x4xf32> {
  %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<2x4xf32> -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
""")
explain = "collective=all_gather bytes=1024 ranks=2"
commands = [
    "ncclx-topo show FILE",
    f"ncclx-topo show --graphs=FILE {topology}",
    "ncclx-topo bounds FILE",
    f"ncclx-topo bounds --collective=all_to_all_v --counts=FILE {topology}",
    "ncclx-topo convert FILE",
    f"ncclx-topo diff {topology} FILE",
    "ncclx-topo show --this-machine --nvml=FILE",
    ["ncclx-opt", "/dev/null", f"--ncclx-explain=topology=FILE {explain}"],
    ["ncclx-opt", "/dev/null", f"--ncclx-explain=topology={topology} rules=FILE {explain}"],
    f"ncclx-opt {graph} --ncclx-choose-algorithm=topology=FILE",
    ["ncclx-opt", graph, f"--ncclx-choose-algorithm=topology={topology} rules=FILE"],
    f"ncclx-opt {graph} --convert-ncclx-to-ctran=topology=FILE",
    f"ncclx-opt {graph} --ncclx-overlap=machine=FILE",
    f"ncclx-opt {graph} --ncclx-split-exchanges=machine=FILE",
    f"ncclx-opt {graph} --ncclx-diagnose=trace=FILE",
    "ncclx-translate --import-msccl-xml FILE",
    "ncclx-translate --import-mscclpp-json FILE",
    "ncclx-translate --import-hlo FILE",
    "ncclx-translate --import-stablehlo FILE",
    "ncclx-translate --export-msccl-xml FILE",
    f"ncclx-run FILE --topology={topology}",
    f"ncclx-run {graph} --topology=FILE",
    f"ncclx-run {graph} --topology={topology} --machine=FILE",
    f"ncclx-run {graph} --topology={topology} --backend=cuda --cuda-driver=FILE",
    f"ncclx-compile FILE --topology={topology} -o {folder}/out",
    f"ncclx-compile {graph} --topology=FILE -o {folder}/out",
    "ncclx-bench --backend=cuda --topology=FILE",
]
# What is right as it is: no rules, no records, nothing to be translated, no library that would be needed.
allowed = {("rules=", "empty"), ("--import-hlo", "empty")}


def attempt(command, kind):
    words = [word.replace("FILE", hostile[kind])
             for word in (command if isinstance(command, list) else command.split())]
    said = " ".join(words) + ": "
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        return said + "does not end"
    output = done.stdout + done.stderr
    text = output.decode(errors="replace")
    if "--nvml" in said:
        return "" if done.returncode == 0 else said + text
    if done.returncode == 0:
        return "" if any(a in said and b == kind for a, b in allowed) else said + "succeeds\n" + text
    if done.returncode < 0 or done.returncode > 125 or "Stack dump" in text:
        return said + f"died, {done.returncode}\n{text[:2000]}"
    if hostile[kind] not in text or text.count("error") < 1:
        return said + f"does not name the file in an error\n{text[:2000]}"
    if text.count("\n") > 12 or (kind != "deep" and len(output) > 4000):  # MLIR shows the whole line
        return said + f"says too much\n{text[:2000]}"
    return ""


jobs = [(command, kind) for kind in kinds for command in commands]
with concurrent.futures.ThreadPoolExecutor(8 if kinds == ["pipe"] else 2) as pool:
    wrong = [answer for answer in pool.map(lambda job: attempt(*job), jobs) if answer]
print("\n".join(wrong) or f"{len(jobs)} refused")
sys.exit(bool(wrong))

"""Proves hierarchical collectives on machines whose hosts are not alike."""
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).parent
graph = here.parent.parent / "Conversion/Inputs/hosts.py"
machines = (["2", "1"], ["3", "5"], ["2@a", "3@a", "1@b"], ["2", "4:2"])


def written(*words):
    return subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True, text=True).stdout


proved = 0
with tempfile.TemporaryDirectory() as folder:
    machine = pathlib.Path(folder) / "machine.json"
    for words in machines:
        machine.write_text(written(here / "uneven-hosts.py", *words))
        ranks = sum(int(word.split("@")[0].split(":")[0]) for word in words)
        for collective in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all"):
            for size in (1, 7, 1200):
                text = written(graph, "graph", collective, ranks, size)
                done = subprocess.run(["ncclx-opt", "--ncclx-bufferize", f"--convert-ncclx-to-ctran=topology={machine}",
                                       "--ctran-verify=undecided=error", "-o", "/dev/null"], input=text,
                                      capture_output=True, text=True)
                if done.returncode:
                    print("failed", words, collective, size, done.stderr[:500])
                proved += not done.returncode
print(proved, "proved")

"""peers-rows.py: rows 26, 27, 31 and 32 of the list of public failures, on MSCCL files of make-msccl.py. A line a case."""
import pathlib
import re
import subprocess
import sys
import tempfile

make = pathlib.Path(__file__).parent / "make-msccl.py"
folder = tempfile.TemporaryDirectory()
xml, mlir = f"{folder.name}/in.xml", f"{folder.name}/out.mlir"


def ring(ranks, channels):
    return subprocess.run([sys.executable, make, str(ranks), str(channels)], capture_output=True, text=True, check=True).stdout


def imported(text):
    pathlib.Path(xml).write_text(text)
    return subprocess.run(["ncclx-translate", "--import-msccl-xml", xml, "-o", mlir], capture_output=True, text=True)


def proved(slots):
    done = subprocess.run(["ncclx-opt", mlir, f"--ctran-verify=fifo-slots={slots} undecided=error", "-o", "/dev/null"],
                          capture_output=True, text=True)
    if done.returncode == 0:
        return "proved"
    places = re.findall(r"rank \d+ sm\d+", done.stderr)
    cycle = "deadlock" in done.stderr and "(a cycle)" in done.stderr and "step" in done.stderr and len(places) > 1
    return "a cycle" if cycle else done.stderr


for channels in (1, 2, 3, 4, 8, 32):
    done = imported(ring(4, channels))
    print(f"channels {channels}: imported" if done.returncode == 0 else done.stderr,
          *(f"{slots}: {proved(slots)}" for slots in ((1, 2, 4) if channels < 8 else (2,))), sep=", ")
whole = ring(3, 1)
root = re.search(r"<algo [^>]*>", whole).group()
for name in re.findall(r" (\w+)=", root):
    done = imported(whole.replace(root, re.sub(f' {name}="[^"]*"', "", root)))
    said = re.search(rf"(warning|error): <algo> has no {name}(, taken as .*)?", done.stderr)
    print(f"without {name}: exit {done.returncode},", said.group() if said else "not said: " + done.stderr)

"""libncclxc.so of an installed tree: PREFIX PROGRAM ARGUMENTS..."""
import glob
import os
import resource
import subprocess
import sys

prefix, command = sys.argv[1], sys.argv[2:]
library = os.path.realpath(glob.glob(prefix + "/lib/**/libncclxc.so", recursive=True)[0])
symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                         check=True).stdout.split("\n")
names = [line.split()[-1].split("@")[0] for line in symbols if line and " A " not in line]
assert names, "no symbols"
assert all(n.startswith("ncclx") for n in names), [n for n in names if not n.startswith("ncclx")][:5]
needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True).stdout
static = "libMLIR" not in needed and "libLLVM" not in needed
size = os.path.getsize(library)
# Processor time, for the machine may be busy. No arguments: loads, asks for the version, ends.
start = []
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command[:1], capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    start.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
print(f"{size / 1e6:.1f} MB, {'static' if static else 'shared'} MLIR, {len(names)} symbols, "
      f"starts in {min(start) * 1e3:.1f} ms of processor time")
if static:
    assert size < 90e6, f"{size} bytes"
    assert min(start) < 0.1, f"starts in {min(start)} s"

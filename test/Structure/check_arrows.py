"""Checks the arrows of the house: which room may include which. Prints each broken one; exit code 1 if
there is any.

  tools -> codegen, passes, dialect, runtime     codegen -> passes, dialect, ncclxrt/abi.h
  passes -> dialect                              dialect -> MLIR
  runtime -> itself (no LLVM, no MLIR)           Machine, Support, Topology -> no MLIR
"""
import os
import re
import sys

root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
INCLUDE = re.compile(r'^\s*(?:#\s*include|include)\s+["<]([^">]+)[">]')
PARTS = {}  # part of ncclx/<Part>/ -> room
for room in ("dialect", "passes", "codegen"):
    base = os.path.join(root, room, "include", "ncclx")
    for part in os.listdir(base):
        if os.path.isdir(os.path.join(base, part)):
            PARTS[part] = room
BELOW = {"dialect": {"dialect"}, "passes": {"dialect", "passes"},
         "codegen": {"dialect", "passes", "codegen"},
         "tools": {"dialect", "passes", "codegen", "tools"}, "runtime": set()}
PLAIN = ("Machine", "Support", "Topology")  # parts of dialect that know no IR

broken = []
files = 0
for room, allowed in BELOW.items():
    for folder, _, names in os.walk(os.path.join(root, room)):
        plain = room == "dialect" and os.path.basename(folder) in PLAIN
        for name in names:
            if not name.endswith((".h", ".cpp", ".td", ".cuh", ".cu")):
                continue
            files += 1
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as f:
                for number, line in enumerate(f, 1):
                    m = INCLUDE.match(line)
                    if not m:
                        continue
                    target = m.group(1)
                    where = f"{os.path.relpath(path, root)}:{number}: {target}"
                    top = target.split("/")[0]
                    if top == "ncclx" and len(target.split("/")) > 1:
                        part = target.split("/")[1]
                        to = PARTS.get(part)
                        if to is None:
                            broken.append(f"{where}: no room has the part '{part}'")
                        elif to not in allowed:
                            broken.append(f"{where}: {room} may not include {to}")
                        if plain and part not in PLAIN:
                            broken.append(f"{where}: {os.path.basename(folder)} knows no IR")
                    elif top == "ncclxrt":
                        ok = (room in ("tools", "runtime") or
                              (room == "codegen" and target == "ncclxrt/abi.h"))
                        if not ok:
                            broken.append(f"{where}: {room} may not include the runtime")
                    elif top in ("mlir", "mlir-c") and (room == "runtime" or plain):
                        broken.append(f"{where}: no MLIR here")
                    elif top in ("llvm", "llvm-c") and room == "runtime":
                        broken.append(f"{where}: no LLVM in the runtime")
print("\n".join(broken) if broken else f"{files} files keep the arrows")
sys.exit(1 if broken or not files else 0)

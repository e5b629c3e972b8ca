"""Compiles each public header by itself: check_headers.py SOURCE BUILD COMPILER LLVM_INCLUDE plain|mlir.
`plain`: the headers that include no MLIR; `mlir`: the others. A header that another one includes before anything else
is by itself there, and is not compiled again. Prints what does not compile; exit code 1 if anything."""
import concurrent.futures
import os
import re
import subprocess
import sys

source, build, compiler, llvm, which = sys.argv[1:]
rooms = ("dialect", "passes", "codegen", "runtime")
flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
         "-isystem", llvm]
for room in rooms:
    flags += ["-I", os.path.join(source, room, "include"), "-I", os.path.join(build, room, "include")]


def plain(path):
    return f"{os.sep}runtime{os.sep}" in path or any(
        f"{os.sep}ncclx{os.sep}{part}{os.sep}" in path for part in ("Machine", "Support", "Topology"))


headers = []
for room in rooms:
    for folder, _, names in os.walk(os.path.join(source, room, "include")):
        headers += [os.path.join(folder, n) for n in names if n.endswith(".h")]
headers = sorted(h for h in headers if plain(h) == (which == "plain"))


def first_include(header):
    """The public header whose #include is a header's first line but for comments and its guard, or None."""
    for line in open(header, encoding="utf-8"):
        if re.match(r'\s*(//|$|#\s*(ifndef|define|pragma)\b)', line):
            continue
        name = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        places = name and [os.path.join(source, room, "include", name[1]) for room in rooms]
        return next((p for p in places or () if os.path.exists(p)), None)
    return None


alone = {first_include(h) for h in headers}


def compile_alone(header):
    languages = [] if header in alone else [("c++", flags)]
    if header.endswith(os.path.join("ncclxrt", "abi.h")):
        languages.append(("c", [f for f in flags if f != "-std=c++20"] + ["-std=c11", "-pedantic"]))
    out = ""
    for language, options in languages:
        run = subprocess.run([compiler, "-x", language, *options, "-"], text=True,
                             input=f'#include "{header}"\n', capture_output=True)
        if run.returncode:
            out += f"{os.path.relpath(header, source)} as {language}:\n{run.stderr}"
    return out


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    bad = [b for b in pool.map(compile_alone, headers) if b]
print("\n".join(bad) if bad else f"{len(headers)} headers compile alone")
sys.exit(1 if bad or not headers else 0)

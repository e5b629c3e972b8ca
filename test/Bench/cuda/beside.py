"""Graphs of an all_gather beside what takes its memory's rate, and beside another one: beside.py FOLDER.

Writes what overlap.py writes, for overlap.cpp, which beside.sh compiles with it. `compute_us` of a pair is its first part
alone: so an all_gather beside memory-bound work has gathered for `ours_us` at most, and of two all_gathers that start at once
`compute_us` is what one takes by itself.
"""
import os
import sys

folder = sys.argv[1]
ROWS, COLUMNS = 16384, 4096  # 128 MiB of bf16 gathered; sums read 256 MiB and write 128
WHOLE, SHARD = f"tensor<{ROWS}x{COLUMNS}xbf16>", f"tensor<{ROWS // 2}x{COLUMNS}xbf16>"
cases = []


def gather(n, x):
    return (f'  %f{n} = ncclx.start {{\n    %c = ncclx.all_gather {x} dim 0 over @g["tp"] : {SHARD} -> {WHOLE}\n'
            f"    ncclx.yield %c : {WHOLE}\n  }} : !ncclx.future<{WHOLE}>\n")


def await_(n):
    return f"  %g{n} = ncclx.await %f{n} : !ncclx.future<{WHOLE}> -> {WHOLE}\n"


def sums(times):
    text = f"  %e = tensor.empty() : {WHOLE}\n"
    last = "%a"
    for i in range(times):
        text += (f"  %s{i} = linalg.add ins({last}, %b : {WHOLE}, {WHOLE}) outs(%e : {WHOLE}) -> {WHOLE}\n")
        last = f"%s{i}"
    return text, last


def graph(name, arguments, body, results):
    types = ", ".join(WHOLE for _ in results)
    if "ncclx." not in body:  # some collective there must be
        arguments = arguments + [("%i", "tensor<1xbf16>")]
        body += '  %j = ncclx.all_gather %i dim 0 over @g["tp"] : tensor<1xbf16> -> tensor<2xbf16>\n'
        results, types = results + ["%j"], types + ", tensor<2xbf16>"
    with open(os.path.join(folder, name + ".mlir"), "w") as f:
        f.write('ncclx.grid @g ["tp" = 2]\n'
                f"func.func @f({', '.join(f'{a}: {t}' for a, t in arguments)}) -> ({types}) {{\n{body}"
                f"  return {', '.join(results)} : {types}\n}}\n")


def case(name, title, with_, without):
    graph(name + ".with", *with_)
    graph(name + ".without", *without)
    graph(name + ".only", *one)  # what comes beside it
    cases.append((name, title))


one = [("%x", SHARD)], gather(0, "%x") + await_(0), ["%g0"]
memory = [("%a", WHOLE), ("%b", WHOLE)]
text, last = sums(3)
case("memory", "memory-bound sums, gather beside them", (memory + [("%x", SHARD)], gather(0, "%x") + text + await_(0), [last, "%g0"]),
     (memory, text, [last]))
two = [("%x", SHARD), ("%y", SHARD)]
case("two", "one gather, another beside it", (two, gather(0, "%x") + gather(1, "%y") + await_(0) + await_(1), ["%g0", "%g1"]), one)
case("three", "sums and a gather, another gather beside both",
     (memory + two, gather(0, "%x") + gather(1, "%y") + text + await_(0) + await_(1), [last, "%g0", "%g1"]),
     (memory + [("%x", SHARD)], gather(0, "%x") + text + await_(0), [last, "%g0"]))
with open(os.path.join(folder, "cases.inc"), "w") as f:
    for name, _ in cases:
        f.write(f'#include "{name}_with.h"\n#include "{name}_without.h"\n#include "{name}_only.h"\n')
    f.write("static const Case cases[] = {\n")
    for name, title in cases:
        f.write(f'    {{"{title}", SCHEDULE({name}_with), SCHEDULE({name}_without), SCHEDULE({name}_only), {{{{Collective::AllGather, {ROWS * COLUMNS}u}}}}, 1, ""}},\n')
    f.write("};\n")

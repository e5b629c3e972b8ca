"""scale.py N [NAME...]: prints every collective by either algorithm on N ranks, or those named, each with a
shard of 4x3 elements.
scale.py compare SMALL LARGE: what ncclx-opt made of both, module by module: LARGE has as many lines, and
at most 5 % more bytes."""
import re
import sys

REDUCTION = "sum accumulate f32 order any"


def cases(n):
    whole = 4 * n
    yield "all_gather", "dim 0", 4, whole
    yield "reduce_scatter", f"dim 0 {REDUCTION}", whole, 4
    yield "all_reduce", REDUCTION, whole, whole
    yield "all_to_all", "split 0 concat 0", whole, whole
    yield "permute", "shift 1", 4, 4


def generate(n, wanted):
    modules = []
    for name, words, rows, result_rows in cases(n):
        for algorithm in ("direct", "ring"):
            if wanted and f"{name}_{algorithm}" not in wanted:
                continue
            a, r = f"tensor<{rows}x3xf32>", f"tensor<{result_rows}x3xf32>"
            modules.append(f"""ncclx.grid @g ["tp" = {n}]
func.func @{name}_{algorithm}(%a: {a}) -> {r} {{
  %r = ncclx.{name} %a {words} over @g["tp"] algorithm {algorithm} : {a} -> {r}
  return %r : {r}
}}
""")
    sys.stdout.write("// -----\n".join(modules))


def compare(small, large):
    a, b = (open(path, encoding="utf-8").read().split("// -----\n") for path in (small, large))
    assert len(a) == len(b) == 10, (len(a), len(b))
    worst = 0.0
    for x, y in zip(a, b):
        name = re.search(r"(?:all_|reduce_scatter|permute)\w*_(?:direct|ring)", x).group()
        assert x.count("\n") == y.count("\n"), f"{name}: {x.count(chr(10))}, {y.count(chr(10))} lines"
        assert len(y) <= 1.05 * len(x), f"{name}: {len(x)} bytes become {len(y)}"
        worst = max(worst, len(y) / len(x) - 1)
    print(f"{len(a)} programs, at most {100 * worst:.1f} % more")


if sys.argv[1] == "compare":
    compare(*sys.argv[2:])
else:
    generate(int(sys.argv[1]), sys.argv[2:])

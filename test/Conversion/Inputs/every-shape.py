"""every-shape.py N...: prints a module for every collective, algorithm and size that can be hard, on
groups of N ranks, split by `// -----`."""
import sys

REDUCTION = "sum accumulate f32 order any"


def cases(n, size, algorithm):
    """(op, input type, result type) of everything that `algorithm` carries."""
    shard = -(-size // n)

    def tensor(*sizes):
        return "tensor<" + "x".join(map(str, sizes)) + "xf32>"

    yield "all_gather %a dim 0", tensor(shard, 3), tensor(size, 3)
    yield "all_gather %a dim 1", tensor(2, shard, 3), tensor(2, size, 3)
    yield f"reduce_scatter %a dim 0 {REDUCTION}", tensor(size, 3), tensor(shard, 3)
    yield f"reduce_scatter %a dim 1 {REDUCTION}", tensor(2, size, 3), tensor(2, shard, 3)
    yield f"all_reduce %a {REDUCTION}", tensor(size, 3), tensor(size, 3)
    yield "all_to_all %a split 0 concat 0", tensor(n * size, 3), tensor(n * size, 3)
    yield "all_to_all %a split 1 concat 0", tensor(2, n * size, 3), tensor(2 * n, size, 3)
    for shift in sorted({0, 1, 3, n - 1, n}):
        yield f"permute %a shift {shift}", tensor(size, 3), tensor(size, 3)
    if algorithm == "direct":
        if n > 2:
            yield "permute %a pairs [0 -> 2, 1 -> 0]", tensor(size, 3), tensor(size, 3)
        yield "permute %a pairs []", tensor(size, 3), tensor(size, 3)


modules = []
for n in map(int, sys.argv[1:]):
    for size in sorted({0, 1, 5, n - 1, 2 * n, 2 * n + 1}):
        for algorithm in ("direct", "ring"):
            for op, a, r in cases(n, size, algorithm):
                modules.append(f"""ncclx.grid @g ["tp" = {n}]
func.func @f(%a: {a}) -> {r} {{
  %r = ncclx.{op} over @g["tp"] algorithm {algorithm} : {a} -> {r}
  return %r : {r}
}}
""")
sys.stdout.write("// -----\n".join(modules))

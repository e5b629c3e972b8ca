"""Prints a graph of known cases: cases.py KIND, where KIND is one of

seven    7 ranks, sizes that do not divide; rows of an all_to_all_v that are uniform, varied, zero in part and zero
long     2 ranks, counts about a MiB
alone    one all_gather of 2 ranks, which copy engines do by themselves
giant N  one all_gather of 2 ranks, of N bytes each
"""
import sys

arguments, results, lines = [], [], []


def tensor(size, dtype):
    return f"tensor<{size}x{dtype}>"


def case(op, given, got, dtype):
    """An op on an argument of `given` elements, with a result of `got`."""
    n = len(arguments)
    arguments.append(tensor(given, dtype))
    results.append(tensor(got, dtype))
    text = op.format(a=f"%a{n}", over='over @g["r"]')
    lines.append(f"  %r{n} = ncclx.{text} : {arguments[-1]} -> {results[-1]}\n")


def reduction(kind, dtype):
    return f"{kind} accumulate {dtype if dtype in ('f64', 'i64', 'ui64', 'i32') else 'f32'} order rank"


def counts(rows):
    return f"dense<{rows}> : tensor<{len(rows)}x{len(rows)}xi64>"


def exchange(rows, dtype):
    n = len(rows)
    given = max(sum(row) for row in rows)
    got = max(sum(row[i] for row in rows) for i in range(n))
    case(f"all_to_all_v {{a}} dim 0 counts {counts(rows)} {{over}}", given, got, dtype)


def seven():
    n = 7
    for size in (1, 6, 8, 100, 1003):
        if size >= n:
            case("all_gather {a} dim 0 {over}", -(-size // n), size, "bf16")
        case(f"all_reduce {{a}} {reduction('sum', 'f32')} {{over}}", size, size, "f32")
        case(f"reduce_scatter {{a}} dim 0 {reduction('max', 'i64')} {{over}}", size, -(-size // n), "i64")
        case(f"broadcast {{a}} root [{size % n}] {{over}}", size, size, "i8")
        case("permute {a} shift 3 {over}", size, size, "f16")
    case("all_to_all {a} split 0 concat 0 {over}", 7 * 11, 7 * 11, "i16")
    exchange([[3] * n] * n, "f32")
    exchange([[(i + 3 * j) % n for j in range(n)] for i in range(n)], "bf16")  # each gets 21, in pieces of 0 to 6
    exchange([[7] * n if i != 2 else [0] * n for i in range(n)], "i8")  # one that only receives
    exchange([[0] * n] * n, "f32")


def long():
    case("all_gather {a} dim 0 {over}", 1048567, 2 * 1048567, "i8")
    case(f"all_reduce {{a}} {reduction('avg', 'f32')} {{over}}", 1048576 + 17, 1048576 + 17, "f32")
    case("broadcast {a} root [1] {over}", 2097155, 2097155, "i8")


def giant(size):
    case("all_gather {a} dim 0 {over}", size, 2 * size, "i8")


kind, rest = sys.argv[1], [int(word) for word in sys.argv[2:]]
if kind == "alone":
    case("all_gather {a} dim 0 {over}", 1000, 2000, "f32")
else:
    {"seven": seven, "long": long, "giant": giant}[kind](*rest)
print(f'ncclx.grid @g ["r" = {7 if kind == "seven" else 2}]')
formal = ", ".join(f"%a{i}: {t}" for i, t in enumerate(arguments))
print(f"func.func @f({formal}) -> ({', '.join(results)}) {{\n{''.join(lines)}"
      f"  return {', '.join(f'%r{i}' for i in range(len(results)))} : {', '.join(results)}\n}}")

"""Prints a graph of many products, each a kernel of the user's: gemms.py KIND, where KIND is one of

layouts   all ways in which the factors and the result may lie in memory, odd sizes, every type
empty     sizes of 0: what is left is copied or filled
odd       sizes about those of a tile, of every type
shapes    sizes of 1 and more, batches, parts of larger buffers, merged dimensions
refused   almost products
scales    constants, accumulation, rounding of the result, 8-bit floats with scales in memory
"""
import sys

text, calls, arguments, results = [], [], [], []


def tensor(shape, dtype):
    return "tensor<" + "".join(f"{s}x" for s in shape) + dtype + ">"


def case(inputs, result, body, sms=0):
    """A kernel with `inputs` (types), which calls its arguments %a0, ..., and returns %r."""
    name = f"k{len(calls)}"
    formal = ", ".join(f"%a{i}: {t}" for i, t in enumerate(inputs))
    text.append(f"func.func private @{name}({formal}) -> {result} {{\n{body}  return %r : {result}\n}}")
    first = len(arguments)
    arguments.extend(inputs)
    actual = ", ".join(f"%a{first + i}" for i in range(len(inputs)))
    calls.append(f"  %r{len(calls)} = ncclx.call @{name}({actual}) {{flops = 1, bytes = 1, sms = {sms}}} : "
                 f"({', '.join(inputs)}) -> {result}\n")
    results.append(result)


def zeros(shape, dtype, to="%z"):
    t = tensor(shape, dtype)
    return (f"  %zero = arith.constant 0.0 : {dtype}\n  %e = tensor.empty() : {t}\n"
            f"  {to} = linalg.fill ins(%zero : {dtype}) outs(%e : {t}) -> {t}\n")


def product(a, b, c, types, maps, kinds, result="%r", attribute=""):
    """c += a b for (name) operands of `types` through `maps`, written as a contraction."""
    ta, tb, tc = types
    maps = ", ".join(f"affine_map<{m}>" for m in maps)
    kinds = ", ".join(f'"{k}"' for k in kinds)
    element = lambda t: t.rsplit("x", 1)[-1].rstrip(">").replace("tensor<", "")
    x, y, z = element(ta), element(tb), element(tc)
    body = ""
    p, q = "%x", "%y"
    if x != z:
        body += f"      %xw = arith.extf %x : {x} to {z}\n"
        p = "%xw"
    if y != z:
        body += f"      %yw = arith.extf %y : {y} to {z}\n"
        q = "%yw"
    return (f"  {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]{attribute}}}\n"
            f"      ins({a}, {b} : {ta}, {tb}) outs({c} : {tc}) {{\n    ^bb0(%x: {x}, %y: {y}, %acc: {z}):\n{body}"
            f"      %p = arith.mulf {p}, {q} : {z}\n      %s = arith.addf %acc, %p : {z}\n"
            f"      linalg.yield %s : {z}\n  }} -> {tc}\n")


MATMUL = ["parallel", "parallel", "reduction"]


def matmul(m, n, k, dtype, out, ta=False, tb=False, td=False, beta=True, attribute="", sms=0):
    a = tensor((k, m) if ta else (m, k), dtype)
    b = tensor((n, k) if tb else (k, n), dtype)
    shape = (n, m) if td else (m, n)
    c = tensor(shape, out)
    maps = [f"(m, n, k) -> ({'k, m' if ta else 'm, k'})", f"(m, n, k) -> ({'n, k' if tb else 'k, n'})",
            f"(m, n, k) -> ({'n, m' if td else 'm, n'})"]
    if beta:
        case([a, b, c], c, product("%a0", "%a1", "%a2", (a, b, c), maps, MATMUL, attribute=attribute), sms)
    else:
        case([a, b], c, zeros(shape, out) + product("%a0", "%a1", "%z", (a, b, c), maps, MATMUL, attribute=attribute), sms)


def elementwise(value, source, target, lines, last, more=(), result="%r"):
    """Each element %x of `value` through `lines`; `more`: (name, type) of scalars %s0, ..."""
    rank = source.count("x")
    dims = ", ".join(f"d{i}" for i in range(rank))
    identity = f"affine_map<({dims}) -> ({dims})>"
    scalar = f"affine_map<({dims}) -> ()>"
    maps = ", ".join([identity] + [scalar] * len(more) + [identity])
    kinds = ", ".join(['"parallel"'] * rank)
    element = lambda t: t.rsplit("x", 1)[-1].rstrip(">").replace("tensor<", "")
    names = "".join(f", {n}" for n, _ in more)
    types = "".join(f", {t}" for _, t in more)
    formal = "".join(f", %s{i}: {element(t)}" for i, (_, t) in enumerate(more))
    return (f"  {result}.e = tensor.empty() : {target}\n"
            f"  {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}\n"
            f"      ins({value}{names} : {source}{types}) outs({result}.e : {target}) {{\n"
            f"    ^bb0(%x: {element(source)}{formal}, %o: {element(target)}):\n"
            + "".join(f"      {line}\n" for line in lines) +
            f"      linalg.yield {last} : {element(target)}\n  }} -> {target}\n")


def layouts():
    for dtype, out in [("f32", "f32"), ("bf16", "bf16"), ("f16", "f32"), ("f64", "f64")]:
        for i in range(0, 8, 1 if dtype == "f32" else 3):
            matmul(5 + i % 3, 7, 9, dtype, out, i & 1, i & 2, i & 4, beta=i % 3 == 0)
    for i in range(4):
        matmul(6, 3, 4, "f32", "f32", i & 1, i & 2, attribute=", ncclx.allow_tf32", sms=100)


def sizes(*all):
    for m, n, k in all:
        for beta in (True, False):
            matmul(m, n, k, "bf16", "f32", beta=beta)
            matmul(m, n, k, "f32", "f32", True, True, True, beta=beta)


def empty():
    sizes((0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0))


def odd():
    for dtype, out in [("bf16", "f32"), ("f16", "f32"), ("f32", "f32")]:
        for m, n, k in ((127, 129, 7), (1, 127, 129), (129, 1, 127), (7, 7, 257)):
            matmul(m, n, k, dtype, out)


def shapes():
    sizes((1, 4, 5), (4, 1, 5), (4, 5, 1), (1, 1, 7), (1, 1, 1))
    # Named ops.
    a, b, c = tensor((3, 4, 5), "f32"), tensor((3, 5, 6), "f32"), tensor((3, 4, 6), "f32")
    case([a, b, c], c, f"  %r = linalg.batch_matmul ins(%a0, %a1 : {a}, {b}) outs(%a2 : {c}) -> {c}\n")
    a, b, c = tensor((4, 5), "bf16"), tensor((6, 5), "bf16"), tensor((4, 6), "f32")
    maps = "[affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]"
    case([a, b, c], c, f"  %r = linalg.matmul indexing_maps = {maps} ins(%a0, %a1 : {a}, {b}) outs(%a2 : {c}) -> {c}\n")
    a, b, c = tensor((4, 5), "f32"), tensor((5,), "f32"), tensor((4,), "f32")
    case([a, b, c], c, f"  %r = linalg.matvec ins(%a0, %a1 : {a}, {b}) outs(%a2 : {c}) -> {c}\n")
    # A batch with transposed factors, in the middle of the result, and one factor for all.
    a, b, c = tensor((5, 3, 4), "f16"), tensor((3, 6, 5), "f16"), tensor((4, 3, 6), "f32")
    case([a, b, c], c, product("%a0", "%a1", "%a2", (a, b, c), ["(b, m, n, k) -> (k, b, m)", "(b, m, n, k) -> (b, n, k)", "(b, m, n, k) -> (m, b, n)"], ["parallel"] * 3 + ["reduction"]))
    a, b, c = tensor((3, 4, 5), "f32"), tensor((5, 6), "f32"), tensor((3, 4, 6), "f32")
    case([a, b, c], c, product("%a0", "%a1", "%a2", (a, b, c), ["(b, m, n, k) -> (b, m, k)", "(b, m, n, k) -> (k, n)", "(b, m, n, k) -> (b, m, n)"], ["parallel"] * 3 + ["reduction"]))
    # A sum over two dimensions that are one.
    a, b, c = tensor((4, 2, 5), "f32"), tensor((2, 5, 6), "f32"), tensor((4, 6), "f32")
    case([a, b, c], c, product("%a0", "%a1", "%a2", (a, b, c), ["(m, n, h, k) -> (m, h, k)", "(m, n, h, k) -> (h, k, n)", "(m, n, h, k) -> (m, n)"], ["parallel"] * 2 + ["reduction"] * 2))
    # Parts of larger buffers.
    for dtype in ("f32", "bf16"):
        whole, part = tensor((9, 11), dtype), tensor((4, 5), dtype)
        b, c = tensor((5, 6), dtype), tensor((4, 6), "f32")
        case([whole, b, c], c, f"  %part = tensor.extract_slice %a0[2, 3] [4, 5] [1, 1] : {whole} to {part}\n"
             + product("%part", "%a1", "%a2", (part, b, c), ["(m, n, k) -> (m, k)", "(m, n, k) -> (k, n)", "(m, n, k) -> (m, n)"], MATMUL))
    # Rows that lie apart: the other factor is the same for all.
    whole, part, b, c = tensor((2, 6, 5), "f32"), tensor((2, 3, 5), "f32"), tensor((5, 6), "f32"), tensor((2, 3, 6), "f32")
    case([whole, b, c], c, f"  %part = tensor.extract_slice %a0[0, 2, 0] [2, 3, 5] [1, 1, 1] : {whole} to {part}\n"
         + product("%part", "%a1", "%a2", (part, b, c), ["(b, m, n, k) -> (b, m, k)", "(b, m, n, k) -> (k, n)", "(b, m, n, k) -> (b, m, n)"], ["parallel"] * 3 + ["reduction"]))


def scales():
    f32, bf16 = tensor((4, 6), "f32"), tensor((4, 6), "bf16")
    maps = ["(m, n, k) -> (m, k)", "(m, n, k) -> (k, n)", "(m, n, k) -> (m, n)"]
    a, b = tensor((4, 5), "bf16"), tensor((5, 6), "bf16")
    # A result that is rounded, one that is scaled and rounded, and what it is added to scaled, too.
    case([a, b], bf16, zeros((4, 6), "f32") + product("%a0", "%a1", "%z", (a, b, f32), maps, MATMUL, "%p")
         + elementwise("%p", f32, bf16, ["%y = arith.truncf %x : f32 to bf16"], "%y"))
    half = "  %half = arith.constant 0.5 : f32\n"
    case([a, b], bf16, half + zeros((4, 6), "f32") + product("%a0", "%a1", "%z", (a, b, f32), maps, MATMUL, "%p")
         + elementwise("%p", f32, bf16, ["%v = arith.mulf %x, %half : f32", "%y = arith.truncf %v : f32 to bf16"], "%y"))
    case([a, b, f32], f32, half + elementwise("%a2", f32, f32, ["%v = arith.mulf %half, %x : f32"], "%v", result="%c")
         + product("%a0", "%a1", "%c", (a, b, f32), maps, MATMUL, "%p")
         + elementwise("%p", f32, f32, ["%v = arith.mulf %x, %half : f32"], "%v"))
    # Factors that are extended before they are multiplied.
    wa, wb = tensor((4, 5), "f32"), tensor((5, 6), "f32")
    case([a, b, f32], f32, elementwise("%a0", a, wa, ["%w = arith.extf %x : bf16 to f32"], "%w", result="%wa")
         + elementwise("%a1", b, wb, ["%w = arith.extf %x : bf16 to f32"], "%w", result="%wb")
         + product("%wa", "%wb", "%a2", (wa, wb, f32), maps, MATMUL))
    # 8-bit floats: scales of the factors, or of the result.
    scalar, nk = tensor((), "f32"), ["(m, n, k) -> (m, k)", "(m, n, k) -> (n, k)", "(m, n, k) -> (m, n)"]
    for x, y, out in [("f8E4M3FN", "f8E4M3FN", "f32"), ("f8E5M2", "f8E4M3FN", "bf16"), ("f8E4M3FN", "f8E5M2", "f16")]:
        a, b, wide, d = tensor((16, 32), x), tensor((48, 32), y), tensor((16, 48), "f32"), tensor((16, 48), out)
        wa, wb = tensor((16, 32), "f32"), tensor((48, 32), "f32")
        scale = lambda dtype: [f"%w = arith.extf %x : {dtype} to f32", "%v = arith.mulf %w, %s0 : f32"]
        narrow = (elementwise("%p", wide, d, [f"%y = arith.truncf %x : f32 to {out}"], "%y") if out != "f32" else "")
        case([a, b, scalar, scalar], d, elementwise("%a0", a, wa, scale(x), "%v", [("%a2", scalar)], "%wa")
             + elementwise("%a1", b, wb, scale(y), "%v", [("%a3", scalar)], "%wb") + zeros((16, 48), "f32")
             + product("%wa", "%wb", "%z", (wa, wb, wide), nk, MATMUL, "%p" if narrow else "%r") + narrow)
    a, b, d = tensor((16, 32), "f8E4M3FN"), tensor((48, 32), "f8E4M3FN"), tensor((16, 48), "f32")
    case([a, b, scalar, scalar], d, zeros((16, 48), "f32") + product("%a0", "%a1", "%z", (a, b, d), nk, MATMUL, "%p")
         + elementwise("%p", d, d, ["%v = arith.mulf %x, %s0 : f32", "%w = arith.mulf %v, %s1 : f32"], "%w", [("%a2", scalar), ("%a3", scalar)]))


def refused():
    """Almost products for cuBLASLt, and one that is."""
    maps = ["(m, n, k) -> (m, k)", "(m, n, k) -> (k, n)", "(m, n, k) -> (m, n)"]
    matmul(4, 6, 5, "f32", "f32")
    f32, bf16 = tensor((4, 6), "f32"), tensor((4, 6), "bf16")
    a, b, wa, wb = tensor((4, 5), "bf16"), tensor((5, 6), "bf16"), tensor((4, 5), "f32"), tensor((5, 6), "f32")
    # Factors of two types; of a type that the result does not go with; accumulated in another than what is added to.
    case([wa, b, f32], f32, product("%a0", "%a1", "%a2", (wa, b, f32), maps, MATMUL))
    wide = tensor((4, 6), "f64")
    case([wa, wb, wide], wide, product("%a0", "%a1", "%a2", (wa, wb, wide), maps, MATMUL))
    case([a, b, f32], bf16, product("%a0", "%a1", "%a2", (a, b, f32), maps, MATMUL, "%p")
         + elementwise("%p", f32, bf16, ["%y = arith.truncf %x : f32 to bf16"], "%y"))
    # Ones before; a result that is rounded and then scaled; a factor that is rounded.
    case([a, b], f32, zeros((4, 6), "f32").replace("0.0", "1.0") + product("%a0", "%a1", "%z", (a, b, f32), maps, MATMUL))
    case([a, b], bf16, zeros((4, 6), "f32") + product("%a0", "%a1", "%z", (a, b, f32), maps, MATMUL, "%p")
         + elementwise("%p", f32, bf16, ["%y = arith.truncf %x : f32 to bf16"], "%y", result="%q") + "  %h = arith.constant 0.3 : bf16\n"
         + elementwise("%q", bf16, bf16, ["%v = arith.mulf %x, %h : bf16"], "%v"))
    case([wa, b], f32, elementwise("%a0", wa, a, ["%w = arith.truncf %x : f32 to bf16"], "%w", result="%n") + zeros((4, 6), "f32")
         + product("%n", "%a1", "%z", (a, b, f32), maps, MATMUL))
    # A scale in memory of what is not 8-bit floats; 8-bit floats across the sum, and in other sizes.
    scalar = tensor((), "f32")
    case([a, b, scalar], f32, zeros((4, 6), "f32") + product("%a0", "%a1", "%z", (a, b, f32), maps, MATMUL, "%p")
         + elementwise("%p", f32, f32, ["%v = arith.mulf %x, %s0 : f32"], "%v", [("%a2", scalar)]))
    for (m, n, k), tb in [((16, 16, 32), False), ((16, 16, 40), True)]:
        matmul(m, n, k, "f8E4M3FN", "f32", tb=tb, beta=False)
    # Every other column.
    whole = tensor((4, 10), "f32")
    case([whole, wb, f32], f32, f"  %part = tensor.extract_slice %a0[0, 0] [4, 5] [1, 2] : {whole} to {wa}\n"
         + product("%part", "%a1", "%a2", (wa, wb, f32), maps, MATMUL))
    # More than a product.
    case([wa, wb, f32], f32, product("%a0", "%a1", "%a2", (wa, wb, f32), maps, MATMUL, "%p")
         + elementwise("%p", f32, f32, ["%v = arith.addf %x, %x : f32"], "%v"))
    # Factors of 0, which cuBLASLt takes for "not read"; that f32 does not have together; a factor that is rounded as it is scaled.
    scaled = lambda value, source, dtype, factor, result: (
        f"  {result}.f = arith.constant {factor} : {dtype}\n"
        + elementwise(value, source, source, [f"%v = arith.mulf %x, {result}.f : {dtype}"], "%v", result=result))
    case([wa, wb, f32], f32, product("%a0", "%a1", "%a2", (wa, wb, f32), maps, MATMUL, "%p") + scaled("%p", f32, "f32", "0.0", "%r"))
    case([wa, wb, f32], f32, scaled("%a0", wa, "f32", "1.0e30", "%sa") + scaled("%a1", wb, "f32", "1.0e30", "%sb")
         + product("%sa", "%sb", "%a2", (wa, wb, f32), maps, MATMUL))
    case([a, b, f32], f32, scaled("%a0", a, "bf16", "0.3", "%sa") + product("%sa", "%a1", "%a2", (a, b, f32), maps, MATMUL))
    # Element by element.
    same = "(m, n) -> (m, n)"
    case([f32, f32, f32], f32, product("%a0", "%a1", "%a2", (f32, f32, f32), [same, same, same], ["parallel"] * 2))


{"layouts": layouts, "odd": odd, "shapes": shapes, "scales": scales, "empty": empty, "refused": refused}[sys.argv[1]]()
print('ncclx.grid @g ["tp" = 2]')
print("\n".join(text))
formal = ", ".join(f"%a{i}: {t}" for i, t in enumerate(arguments))
print(f"func.func @f({formal}, %x: tensor<2xf32>) -> ({', '.join(results + ['tensor<4xf32>'])}) {{")
print("".join(calls), end="")
print('  %g = ncclx.all_gather %x dim 0 over @g["tp"] : tensor<2xf32> -> tensor<4xf32>')
names = ", ".join([f"%r{i}" for i in range(len(calls))] + ["%g"])
print(f"  return {names} : {', '.join(results + ['tensor<4xf32>'])}\n}}")

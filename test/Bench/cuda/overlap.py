"""Graphs of products beside collectives, for 2 ranks: overlap.py FOLDER [small | PART]

Writes NAME.with.mlir (or NAME.plain.mlir, which ncclx-overlap is to schedule), NAME.without.mlir (the same products, and what
would have been communicated is an input), NAME.only.mlir (the collectives alone, one after the other) and cases.inc, which
overlap.cpp includes. Shapes are those of issue 8, of cases with PART in their names; `small` ones are for tests. Layers
are backwards of Llama layers, one behind the other as in training, with a product of two numbers an element for attention and
with a sum for each norm.
"""
import os
import sys

folder, small = sys.argv[1], sys.argv[2:] == ["small"]
part = "" if small else "".join(sys.argv[2:])
RANKS = 2
cases = []


def tensor(shape, dtype="bf16"):
    return "tensor<" + "".join(f"{s}x" for s in shape) + dtype + ">"


class Graph:
    def __init__(self, communicates):
        self.communicates, self.inputs, self.text, self.outputs, self.count = communicates, [], [], [], 0

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def add(self, line):
        self.text.append("  " + line)

    def input(self, shape):
        self.inputs.append(tensor(shape))
        return f"%in{len(self.inputs) - 1}", list(shape)

    def output(self, value):
        self.outputs.append(value)

    def unused(self, value):
        """A result that only collectives take: without them it is an output, so that it is made."""
        if not self.communicates:
            self.outputs.append(value)

    def product(self, a, b, dims, plus=None):
        """The bf16 product of a and b, dims = (of a, of b, of the result) as letters, added to `plus`."""
        sizes = dict(zip(dims[0], a[1])) | dict(zip(dims[1], b[1]))
        letters = [d for d in dims[2]] + [d for d in sizes if d not in dims[2]]
        kinds = ", ".join('"parallel"' if d in dims[2] else '"reduction"' for d in letters)
        maps = ", ".join(f"affine_map<({', '.join(letters)}) -> ({', '.join(d)})>" for d in dims)
        shape = [sizes[d] for d in dims[2]]
        e, z, p, o = (self.name() for _ in range(4))
        wide, narrow = tensor(shape, "f32"), tensor(shape)
        if plus:
            z = self.elementwise([plus[0]], [narrow], wide, ["%r = arith.extf %x0 : bf16 to f32"], len(shape))
        else:
            self.add(f"{e} = tensor.empty() : {wide}")
            self.add(f"{z} = linalg.fill ins(%zero : f32) outs({e} : {wide}) -> {wide}")
        self.add(f"{p} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({a[0]}, {b[0]} : {tensor(a[1])}, {tensor(b[1])}) outs({z} : {wide}) {{")
        self.add("^bb0(%x: bf16, %y: bf16, %acc: f32):")
        self.add("  %xw = arith.extf %x : bf16 to f32\n    %yw = arith.extf %y : bf16 to f32")
        self.add("  %m = arith.mulf %xw, %yw : f32\n    %s = arith.addf %acc, %m : f32\n    linalg.yield %s : f32")
        self.add(f"}} -> {wide}")
        self.add(f"{o} = tensor.empty() : {narrow}")
        return self.elementwise([p], [wide], narrow, ["%r = arith.truncf %x0 : f32 to bf16"], len(shape), o), shape

    def elementwise(self, values, types, result, lines, rank, dest=None):
        name = self.name()
        if not dest:
            dest = self.name()
            self.add(f"{dest} = tensor.empty() : {result}")
        d = ", ".join(f"d{i}" for i in range(rank))
        maps = ", ".join([f"affine_map<({d}) -> ({d})>"] * (len(values) + 1))
        kinds = ", ".join(['"parallel"'] * rank)
        element = lambda t: t.rsplit("x", 1)[-1].rstrip(">")
        formal = ", ".join(f"%x{i}: {element(t)}" for i, t in enumerate(types))
        self.add(f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({', '.join(values)} : {', '.join(types)}) outs({dest} : {result}) {{")
        self.add(f"^bb0({formal}, %old: {element(result)}):")
        for line in lines:
            self.add("  " + line)
        self.add(f"  linalg.yield %r : {element(result)}\n  }} -> {result}")
        return name

    def collective(self, kind, x, rows=None):
        """all_gather or reduce_scatter along the first dimension, which becomes `rows`; or what the other rank gives."""
        shape = [rows or x[1][0]] + x[1][1:]
        if not self.communicates:
            return self.input(shape)
        r = self.name()
        self.add(f"{r} = {self.words(kind, x, shape)}")
        return r, shape

    def words(self, kind, x, shape):
        reduction = "sum accumulate f32 order any " if kind == "reduce_scatter" else ""
        words = "shift 1 " if kind == "permute" else "dim 0 " + reduction
        return f"ncclx.{kind} {x[0]} {words}over @g[\"tp\"] : {tensor(x[1])} -> {tensor(shape)}"

    def start(self, kind, x, rows=None):
        """A future of what `collective` gives."""
        shape = [rows or x[1][0]] + x[1][1:]
        if not self.communicates:
            return self.input(shape)
        f = self.name()
        self.add(f"{f} = ncclx.start {{\n    %c = {self.words(kind, x, shape)}")
        self.add(f"  ncclx.yield %c : {tensor(shape)}\n  }} : !ncclx.future<{tensor(shape)}>")
        return f, shape

    def finish(self, future):
        if not self.communicates:
            return future
        r = self.name()
        self.add(f"{r} = ncclx.await {future[0]} : !ncclx.future<{tensor(future[1])}> -> {tensor(future[1])}")
        return r, future[1]

    def cut(self, x, at, size):
        r = self.name()
        self.add(f"{r} = tensor.extract_slice {x[0]}{at} {size} {[1] * len(at)} : {tensor(x[1])} to {tensor(size)}")
        return r, size

    def paste(self, x, into, at):
        r = self.name()
        self.add(f"{r} = tensor.insert_slice {x[0]} into {into[0]}{at} {x[1]} {[1] * len(at)} : {tensor(x[1])} into {tensor(into[1])}")
        return r, into[1]

    def empty(self, shape):
        r = self.name()
        self.add(f"{r} = tensor.empty() : {tensor(shape)}")
        return r, shape

    def write(self, path):
        x = self.input([1])
        if not self.communicates:  # some collective there must be
            y = self.name()
            self.add(f'{y} = ncclx.all_gather {x[0]} dim 0 over @g["tp"] : tensor<1xbf16> -> tensor<2xbf16>')
            self.output((y, [2]))
        formal = ", ".join(f"%in{i}: {t}" for i, t in enumerate(self.inputs))
        types = ", ".join(tensor(o[1]) for o in self.outputs)
        with open(path, "w") as f:
            f.write(f'ncclx.grid @g ["tp" = {RANKS}]\nfunc.func @f({formal}) -> ({types}) {{\n  %zero = arith.constant 0.0 : f32\n  %one = arith.constant 1.0 : f32\n')
            f.write("\n".join(self.text))
            f.write(f"\n  return {', '.join(o[0] for o in self.outputs)} : {types}\n}}\n")


def alone(collectives):
    def build(g):
        for kind, count in collectives:
            gathers = kind == "AllGather"
            x = g.input([count // RANKS if gathers else count])
            g.output(g.collective("all_gather" if gathers else "reduce_scatter", x, count if gathers else count // RANKS))

    return build


def case(name, title, build, collectives, plain=False, layers=1, async_tp=""):
    if part not in name:
        return
    for word, communicates, how in [("plain" if plain else "with", True, build), ("without", False, build), ("only", True, alone(collectives))]:
        graph = Graph(communicates)
        how(graph)
        graph.write(os.path.join(folder, f"{name}.{word}.mlir"))
    cases.append((name, title, collectives, layers, async_tp))


def pair(m, n, k, mib):
    rows = mib * 1024 * 1024 // 2 // k

    def build(g):
        a, b, x = g.input([m, k]), g.input([n, k]), g.input([rows // RANKS, k])
        future = g.start("all_gather", x, rows)
        g.output(g.product(a, b, ("mk", "nk", "mn")))
        whole = g.finish(future)
        if g.communicates:
            g.output(whole)

    case(f"pair_{m}_{n}_{k}", f"product {m} x {n} x {k} beside all_gather of {mib} MiB", build, [("AllGather", rows * k)])


def gather(s, h, f):
    """x gathered, times w: the own rows while the other's travel. The caller places the two results one behind the other."""

    def build(g):
        w = g.input([h, f])
        if not g.communicates:
            g.output(g.product(g.input([s, h]), w, ("mk", "kn", "mn")))
            return
        own = g.input([s // RANKS, h])
        other = g.start("permute", own)
        g.output(g.product(own, w, ("mk", "kn", "mn")))
        g.output(g.product(g.finish(other), w, ("mk", "kn", "mn")))

    case(f"gather_{s}_{h}_{f}", f"all_gather of {s} x {h}, times {h} x {f}", build, [("AllGather", s * h)], async_tp=f"gather {s} {h} {f}")


def scatter(s, h, f, parts=2):
    """x times w, reduce_scattered: the other's rows first, which travel while the own ones are made, in parts that are added to
    what has come. The caller's x lies in parts."""
    step = s // RANKS // parts

    def build(g):
        w = g.input([f, h])
        if not g.communicates:
            g.output(g.product(g.input([s, f]), w, ("mk", "kn", "mn")))
            return
        futures = [g.start("permute", g.product(g.input([step, f]), w, ("mk", "kn", "mn"))) for _ in range(parts)]
        for future in futures:
            own = g.input([step, f])
            g.output(g.product(own, w, ("mk", "kn", "mn"), plus=g.finish(future)))

    case(f"scatter_{s}_{h}_{f}", f"{s} x {f} times {f} x {h}, reduce_scatter", build, [("ReduceScatter", s * h)], async_tp=f"scatter {s} {f} {h}")


def layers(label, h, heads, kv, f, s, count=4):
    q, f2 = heads * 128 // RANKS if not small else h // RANKS, f // RANKS
    nq = q + 2 * (kv * 128 // RANKS if not small else h // RANKS // 4)
    widen = ["%a = arith.extf %x0 : bf16 to f32", "%b = arith.extf %x1 : bf16 to f32"]
    narrow = "%r = arith.truncf %c : f32 to bf16"

    def both(g, x, y, lines, dest=None):
        t = tensor(x[1])
        return g.elementwise([x[0], y[0]], [t, t], t, widen + lines + [narrow], 2, dest=dest), x[1]

    def build(g):
        shard = [s // RANKS, h]
        dy = g.input(shard)
        w2, w1, wo, wq = g.input([h, f2]), g.input([2 * f2, h]), g.input([h, q]), g.input([nq, h])
        act, gate, up, ctx, qkv = g.input([s, f2]), g.input([s, f2]), g.input([s, f2]), g.input([s, q]), g.input([s, nq])
        for _ in range(count):
            ln2, ln1 = g.input(shard), g.input(shard)  # of each layer: nothing is gathered twice
            a0 = g.collective("all_gather", dy, s)
            d = g.product(a0, w2, ("mk", "kn", "mn"))
            g.output(g.product(a0, act, ("km", "kn", "mn")))
            made = g.empty([s, 2 * f2])
            for x, at, lines in [
                    (up, 0, ["%c = arith.mulf %a, %b : f32"]),
                    (gate, f2, ["%n = arith.negf %b : f32", "%e = math.exp %n : f32", "%p = arith.addf %one, %e : f32", "%u = arith.divf %b, %p : f32", "%c = arith.mulf %a, %u : f32"])]:
                made = g.paste(both(g, d, x, lines, g.cut(made, [0, at], [s, f2])[0]), made, [0, at])
            z = g.product(made, w1, ("mk", "kn", "mn"))
            g.unused(z)
            r0 = g.collective("reduce_scatter", z, s // RANKS)
            g.output(g.product(made, g.collective("all_gather", ln2, s), ("km", "kn", "mn")))
            dy = both(g, r0, ln2, ["%c = arith.addf %a, %b : f32"])
            g.unused(dy)
            a2 = g.collective("all_gather", dy, s)
            dctx = g.product(a2, wo, ("mk", "kn", "mn"))
            g.output(g.product(a2, ctx, ("km", "kn", "mn")))
            # Attention: what it gives needs the gradient of its result.
            dqkv = g.empty([s, nq])
            dqkv = g.paste(both(g, dctx, g.cut(qkv, [0, 0], [s, q]), ["%c = arith.mulf %a, %b : f32"], g.cut(dqkv, [0, 0], [s, q])[0]), dqkv, [0, 0])
            rest = nq - q
            dqkv = g.paste(both(g, g.cut(dctx, [0, 0], [s, rest]), g.cut(qkv, [0, q], [s, rest]), ["%c = arith.mulf %a, %b : f32"], g.cut(dqkv, [0, q], [s, rest])[0]), dqkv, [0, q])
            z2 = g.product(dqkv, wq, ("mk", "kn", "mn"))
            g.unused(z2)
            r1 = g.collective("reduce_scatter", z2, s // RANKS)
            g.output(g.product(dqkv, g.collective("all_gather", ln1, s), ("km", "kn", "mn")))
            dy = both(g, r1, ln1, ["%c = arith.addf %a, %b : f32"])
            g.unused(dy)
        if g.communicates:
            g.output(dy)

    case(f"layers_{label}", f"{count} Llama {label} layers backward without attention, {s} tokens", build, ([("AllGather", s * h)] * 4 + [("ReduceScatter", s * h)] * 2) * count, plain=True, layers=count)


if small:
    pair(16, 24, 32, 1)
    gather(32, 16, 24)
    scatter(32, 16, 24)
    layers("small", 16, 0, 0, 32, 16, 2)
else:
    for shape in [(4096, 8192, 8192, 128), (8192, 4096, 8192, 128), (4096, 4096, 8192, 64)]:
        pair(*shape)
    for shape in [(8192, 8192, 14336), (8192, 8192, 5120), (4096, 4096, 7168), (8192, 4096, 3072)]:
        gather(*shape)
        scatter(*shape)
    layers("8B", 4096, 32, 8, 14336, 8192)
    layers("70B", 8192, 64, 8, 28672, 8192)
with open(os.path.join(folder, "cases.inc"), "w") as f:
    for name, *_ in cases:
        f.write("".join(f'#include "{name}_{word}.h"\n' for word in ["with", "without", "only"]))
    f.write("static const Case cases[] = {\n")
    for name, title, collectives, layers, async_tp in cases:
        list_ = ", ".join(f"{{Collective::{kind}, {count}u}}" for kind, count in collectives)
        f.write(f'    {{"{title}", SCHEDULE({name}_with), SCHEDULE({name}_without), SCHEDULE({name}_only), {{{list_}}}, {layers}, "{async_tp}"}},\n')
    f.write("};\n")

#!/usr/bin/env python3
"""Writes a prefill of a few layers, tensor-parallel over 8, as TokenWeave measured it: prefill.py llama-70b|mixtral-8x22b TOKENS.

Residual and norm are in the all_reduce's kernel. Experts' rows are known at run time: their products are kernels
that say how they may be cut and what they multiply. Attention sees all tokens."""
import sys

MODELS = {"llama-70b": (8192, 64, 8, 128, 28672, 0, 0), "mixtral-8x22b": (6144, 48, 8, 128, 16384, 8, 2)}
RANKS, LAYERS = 8, 4
h, heads, kv_heads, d, f, experts, k = MODELS[sys.argv[1]]
S = int(sys.argv[2])
q, kv, f = heads * d // RANKS, kv_heads * d // RANKS, f // RANKS
text, functions = [], set()


def T(*shape):
    return "tensor<%sxbf16>" % "x".join(map(str, shape))


def matmul(name, x, rows, inner, columns):
    text.append(f"  %{name}.w = tensor.empty() : {T(inner, columns)}")
    text.append(f"  %{name}.e = tensor.empty() : {T(rows, columns)}")
    text.append(f"  %{name} = linalg.matmul ins(%{x}, %{name}.w : {T(rows, inner)}, {T(inner, columns)}) "
                f"outs(%{name}.e : {T(rows, columns)}) -> {T(rows, columns)}")
    return name


def call(name, kernel, x, before, after, attributes, flops=0, bytes=0):
    functions.add(f"func.func private @{kernel}({T(*before)}) -> {T(*after)}")
    text.append(f"  %{name} = ncclx.call @{kernel}(%{x}) {{flops = {flops}, bytes = {bytes}, sms = 0{attributes}}} : "
                f"({T(*before)}) -> {T(*after)}")
    return name


def experts_product(name, x, columns, inner):
    cut = f", ncclx.cut = array<i64: 0, 0>, ncclx.grouped_product = array<i64: {experts}, {k}, {columns}, {inner}>"
    return call(name, "experts.%d" % columns, x, (S, inner), (S, columns), cut)


x = "x"
for i in range(LAYERS):
    p = f"l{i}."
    qkv = matmul(p + "qkv", x, S, h, q + 2 * kv)
    attention = call(p + "attention", "attention", qkv, (S, q + 2 * kv), (S, q), "", 2 * S * S * q,
                     2 * S * (2 * q + 2 * kv))
    o = matmul(p + "o", attention, S, q, h)
    text.append(f'  %{p}ar1 = ncclx.all_reduce %{o} sum accumulate bf16 order any over @g["tp"] : {T(S, h)} -> {T(S, h)}')
    if experts:
        up = experts_product(p + "fc1", p + "ar1", 2 * f, h)
    else:
        up = matmul(p + "fc1", p + "ar1", S, h, 2 * f)
    act = call(p + "act", "act", up, (S, 2 * f), (S, f), ", ncclx.cut = array<i64: 0, 0>", 0, 6 * S * f * max(k, 1))
    down = experts_product(p + "fc2", act, h, f) if experts else matmul(p + "fc2", act, S, f, h)
    text.append(f'  %{p}ar2 = ncclx.all_reduce %{down} sum accumulate bf16 order any over @g["tp"] : {T(S, h)} -> {T(S, h)}')
    x = p + "ar2"
print('ncclx.grid @g ["tp" = %d]' % RANKS)
print("\n".join(sorted(functions)))
print(f"func.func @prefill(%x: {T(S, h)}) -> {T(S, h)} {{")
print("\n".join(text))
print(f"  return %{x} : {T(S, h)}\n}}")

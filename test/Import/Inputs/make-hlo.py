"""Writes HLO text of an unrolled transformer's training step, sharded as FSDP does it.

make-hlo.py LAYERS [DEVICES]: 33 layers are 3 MB with 1,650 collectives and 693 dots, about as much as
XLA gives for Llama-3 8B on 8 devices.
"""
import sys

LAYERS = int(sys.argv[1])
DEVICES = int(sys.argv[2]) if len(sys.argv) > 2 else 8
T, H, F, KV, VOCAB = 8192, 4096, 14336, 1024, 128256
GROUPS = f"replica_groups=[1,{DEVICES}]<=[{DEVICES}], use_global_device_ids=true"
# Each weight's name, rows (sharded) and columns.
WEIGHTS = [("q", H, H), ("k", H, KV), ("v", H, KV), ("o", H, H), ("gate", H, F), ("up", H, F),
           ("down", F, H)]

out, params, results = [], [], []
reducers, count = [], {}


def name(kind):
    count[kind] = count.get(kind, 0) + 1
    return f"{kind}.{count[kind]}"


def shape(element, *dims):
    layout = "{" + ",".join(str(i) for i in reversed(range(len(dims)))) + "}" if dims else ""
    return f"{element}[{','.join(map(str, dims))}]{layout}"


def emit(kind, of, operands, attributes="", op=None):
    result = name(kind)
    names = ", ".join("%" + operand for operand in operands)
    out.append(f"  %{result} = {of} {op or kind}({names}){', ' + attributes if attributes else ''}, "
               'metadata={op_name="jit(train_step)/main"}')
    return result


def constant(value, element="f32"):
    result = name("constant")
    out.append(f"  %{result} = {element}[] constant({value})")
    return result


def parameter(element, *dims):
    result = name("param")
    out.append(f"  %{result} = {shape(element, *dims)} parameter({len(params)})")
    params.append((result, f"{element}[{','.join(map(str, dims))}]"))
    return result


def reduction(element):
    result = name("region")
    reducers.append(f"%{result} (x: {element}[], y: {element}[]) -> {element}[] {{\n"
                    f"  %x = {element}[] parameter(0)\n  %y = {element}[] parameter(1)\n"
                    f"  ROOT %sum = {element}[] add(%x, %y)\n}}\n")
    return result


def channel():
    count["channel"] = count.get("channel", 0) + 1
    return count["channel"]


def gather(weight, rows, columns):
    half = emit("convert_element_type", shape("bf16", rows // DEVICES, columns), [weight],
                op="convert")
    return emit("all-gather", shape("bf16", rows, columns), [half],
                f"channel_id={channel()}, {GROUPS}, dimensions={{0}}")


def all_reduce(value, element, *dims):
    return emit("all-reduce", shape(element, *dims), [value],
                f"channel_id={channel()}, {GROUPS}, to_apply=%{reduction(element)}")


def elementwise(kind, of, *operands):
    return emit(kind, of, operands)


def norm(x, weight):
    wide, narrow = shape("f32", T, H), shape("bf16", T, H)
    x32 = emit("convert_element_type", wide, [x], op="convert")
    square = elementwise("multiply", wide, x32, x32)
    mean = emit("reduce", shape("f32", T), [square, constant(0)],
                f"dimensions={{1}}, to_apply=%{reduction('f32')}")
    size = emit("broadcast", shape("f32", T), [constant(H)], "dimensions={}")
    root = elementwise("rsqrt", shape("f32", T), elementwise("divide", shape("f32", T), mean, size))
    scaled = elementwise("multiply", wide, x32, emit("broadcast", wide, [root], "dimensions={0}"))
    gain = emit("broadcast", wide, [weight], "dimensions={1}")
    return emit("convert_element_type", narrow, [elementwise("multiply", wide, scaled, gain)],
                op="convert")


def dot(x, y, of, left, right):
    return emit("dot", of, [x, y], f"lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}")


def rotate(x, columns):
    """As rotary embeddings do it: halves, products, sums, and the parts put together again."""
    of, half = shape("bf16", T, columns), shape("bf16", T, columns // 2)
    cut = columns // 2
    a = emit("slice", half, [x], f"slice={{[0:{T}], [0:{cut}]}}")
    b = emit("slice", half, [x], f"slice={{[0:{T}], [{cut}:{columns}]}}")
    sine = emit("broadcast", half, [constant(0.5, "bf16")], "dimensions={}")
    parts = [elementwise("subtract", half, elementwise("multiply", half, a, sine),
                         elementwise("multiply", half, b, sine)),
             elementwise("add", half, elementwise("multiply", half, a, sine),
                         elementwise("multiply", half, b, sine))]
    return emit("concatenate", of, parts, "dimensions={1}")


def adam(weight, moment, velocity, gradient, dims):
    of = shape("f32", *dims)

    def full(value):
        return emit("broadcast", of, [constant(value)], "dimensions={}")
    g = gradient
    norms = []
    for _ in range(3):
        total = emit("reduce", "f32[]", [elementwise("multiply", of, g, g), constant(0)],
                     "dimensions={" + ",".join(str(i) for i in range(len(dims))) + "}, to_apply=%" +
                     reduction("f32"))
        norms.append(all_reduce(total, "f32"))
    scale = emit("broadcast", of, [elementwise("sqrt", "f32[]", norms[0])], "dimensions={}")
    g = elementwise("divide", of, g, scale)
    m = elementwise("add", of, elementwise("multiply", of, moment, full(0.9)),
                    elementwise("multiply", of, g, full(0.1)))
    v = elementwise("add", of, elementwise("multiply", of, velocity, full(0.999)),
                    elementwise("multiply", of, elementwise("multiply", of, g, g), full(0.001)))
    step = elementwise("divide", of, elementwise("divide", of, m, full(0.5)),
                       elementwise("add", of, elementwise("sqrt", of, elementwise("divide", of, v, full(0.5))),
                                   full(1e-8)))
    decay = elementwise("multiply", of, weight, full(0.1))
    w = elementwise("subtract", of, weight,
                    elementwise("multiply", of, elementwise("add", of, step, decay), full(1e-3)))
    clipped = elementwise("minimum", of, elementwise("maximum", of, w, full(-1e6)), full(1e6))
    finite = emit("compare", shape("pred", *dims), [clipped, clipped], "direction=EQ")
    results.extend([(elementwise("select", of, finite, clipped, weight), of), (m, of), (v, of)])
    results.extend((n, "f32[]") for n in norms[1:])


x = parameter("bf16", T, H)
table = "{" + ", ".join(str(i * (H // DEVICES)) for i in range(DEVICES)) + "}"
tableF = "{" + ", ".join(str(i * (F // DEVICES)) for i in range(DEVICES)) + "}"
layers = []
for _ in range(LAYERS):
    layer = {}
    for weight, rows, columns in WEIGHTS:
        layer[weight] = [parameter("f32", rows // DEVICES, columns) for _ in range(3)]
    for weight in ("norm1", "norm2"):
        layer[weight] = [parameter("f32", H) for _ in range(3)]
    layers.append(layer)
ident = "partition-id.1"
out.append(f"  %{ident} = u32[] partition-id()")
zero = constant(0, "s32")
places = {}
for rows, text in ((H, table), (F, tableF)):
    result = name("constant")
    out.append(f"  %{result} = s32[{DEVICES}]{{0}} constant({text})")
    row = emit("dynamic-slice", "s32[1]{0}", [result, ident], "dynamic_slice_sizes={1}")
    places[rows] = emit("reshape", "s32[]", [row])

wide, ffn, kv = shape("bf16", T, H), shape("bf16", T, F), shape("bf16", T, KV)
saved = []
for layer in layers:
    n1 = norm(x, layer["norm1"][0])
    q = rotate(dot(n1, gather(layer["q"][0], H, H), wide, 1, 0), H)
    k = rotate(dot(n1, gather(layer["k"][0], H, KV), kv, 1, 0), KV)
    v = dot(n1, gather(layer["v"][0], H, KV), kv, 1, 0)
    a = emit("custom-call", wide, [q, k, v],
             'custom_call_target="te_fused_attn_forward_ffi", backend_config={attn_heads = 32 : i64, '
             'input_batch = 1 : i64, kv_max_seqlen = 8192 : i64, mask_type = 3 : i64, q_max_seqlen = '
             '8192 : i64, qk_head_dim = 128 : i64, v_head_dim = 128 : i64}')
    o = dot(a, gather(layer["o"][0], H, H), wide, 1, 0)
    x1 = elementwise("add", wide, x, o)
    n2 = norm(x1, layer["norm2"][0])
    g = dot(n2, gather(layer["gate"][0], H, F), ffn, 1, 0)
    u = dot(n2, gather(layer["up"][0], H, F), ffn, 1, 0)
    act = elementwise("multiply", ffn, elementwise("logistic", ffn, g), u)
    d = dot(act, gather(layer["down"][0], F, H), wide, 1, 0)
    saved.append((n1, q, k, v, a, n2, g, u, act))
    x = elementwise("add", wide, x1, d)

dy = x
gradients = []
for layer, (n1, q, k, v, a, n2, g, u, act) in zip(reversed(layers), reversed(saved)):
    grads = {}

    def wgrad(weight, left, right, rows, columns):
        whole = dot(left, right, shape("bf16", rows, columns), 0, 0)
        whole = all_reduce(whole, "bf16", rows, columns)
        part = emit("dynamic-slice", shape("bf16", rows // DEVICES, columns), [whole, places[rows], zero],
                    f"dynamic_slice_sizes={{{rows // DEVICES},{columns}}}")
        grads[weight] = emit("convert_element_type", shape("f32", rows // DEVICES, columns), [part],
                             op="convert")

    def ngrad(weight, gradient):
        total = emit("reduce", shape("bf16", H), [gradient, constant(0, "bf16")],
                     f"dimensions={{0}}, to_apply=%{reduction('bf16')}")
        total = all_reduce(total, "bf16", H)
        grads[weight] = emit("convert_element_type", shape("f32", H), [total], op="convert")
    dact = dot(dy, gather(layer["down"][0], F, H), ffn, 1, 1)
    wgrad("down", act, dy, F, H)
    dg, du = elementwise("multiply", ffn, dact, u), elementwise("multiply", ffn, dact, g)
    dn2 = elementwise("add", wide, dot(dg, gather(layer["gate"][0], H, F), wide, 1, 1),
                      dot(du, gather(layer["up"][0], H, F), wide, 1, 1))
    wgrad("gate", n2, dg, H, F)
    wgrad("up", n2, du, H, F)
    ngrad("norm2", dn2)
    dx1 = elementwise("add", wide, dy, dn2)
    da = dot(dx1, gather(layer["o"][0], H, H), wide, 1, 1)
    wgrad("o", a, dx1, H, H)
    back = emit("custom-call", f"({wide}, {kv}, {kv})", [q, k, v, da],
                'custom_call_target="te_fused_attn_backward_ffi", backend_config={attn_heads = 32 : '
                'i64, input_batch = 1 : i64, kv_max_seqlen = 8192 : i64, mask_type = 3 : i64, '
                'q_max_seqlen = 8192 : i64, qk_head_dim = 128 : i64, v_head_dim = 128 : i64}')
    parts = [emit("get-tuple-element", of, [back], f"index={i}")
             for i, of in enumerate((wide, kv, kv))]
    dq, dk = rotate(parts[0], H), rotate(parts[1], KV)
    dn1 = dot(dq, gather(layer["q"][0], H, H), wide, 1, 1)
    for weight, part in (("k", dk), ("v", parts[2])):
        dn1 = elementwise("add", wide, dn1, dot(part, gather(layer[weight][0], H, KV), wide, 1, 1))
    wgrad("q", n1, dq, H, H)
    wgrad("k", n1, dk, H, KV)
    wgrad("v", n1, parts[2], H, KV)
    ngrad("norm1", dn1)
    dy = elementwise("add", wide, dx1, dn1)
    gradients.append((layer, grads))
for layer, grads in gradients:
    for weight, rows, columns in WEIGHTS:
        adam(*layer[weight], grads[weight], (rows // DEVICES, columns))
    for weight in ("norm1", "norm2"):
        adam(*layer[weight], grads[weight], (H,))
results.append((dy, wide))
types = ", ".join(of for _, of in results)
out.append(f"  ROOT %tuple = ({types}) tuple({', '.join('%' + r for r, _ in results)})")
print(f"HloModule unrolled, num_partitions={DEVICES}\n")
print("\n".join(reducers))
print("ENTRY %main (" + ", ".join(f"{n}: {of}" for n, of in params) + f") -> ({types}) {{")
print("\n".join(out))
print("}")

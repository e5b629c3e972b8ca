"""Predicted against measured: predicted.py FILE...

Files are JSON lines of `ncclx-bench --backend=cuda --machine=M` (cells, with what M says of each) or of overlap.cpp (then
--machine=M is needed here: pairs of a product and an all_gather on copy engines are predicted by M's products, engine `copy`
and power). Prints the error of each, the medians over 1 MiB, and how often the form that is predicted to be the faster one is.
"""
import json
import re
import statistics
import sys

machine = next((json.load(open(a[10:])) for a in sys.argv[1:] if a.startswith("--machine=")), None)
lines = [json.loads(l) for a in sys.argv[1:] if not a.startswith("--") for l in open(a) if l.startswith("{")]


def pair(m, n, k, sent):
    """Microseconds of a product beside a gather in which each rank sends so many bytes, under the power cap."""
    gemm, power = machine["gemm"], machine["power"]
    copy = next(e for e in machine["engines"] if e["name"] == "copy")
    flops, peak = 2 * m * n * k, gemm["tflops"] * 1e12
    joules = flops * gemm["pj_per_flop"] * 1e-12 * (gemm["tflops"] / gemm.get("pj_measured_at_tflops", gemm["tflops"])) ** 2
    moving = copy["base_us"] * 1e-6 + sent / copy["gb_per_s"] / 1e9
    taken = lambda clock: max(flops / peak / clock, moving)
    drawn = lambda clock: joules * clock**2 + sent * copy["pj_per_byte"] * 1e-12 + power["idle_w"] * taken(clock)
    low, high = 0.1, 1.0
    if drawn(high) > power["cap_w"] * taken(high):
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if drawn(middle) > power["cap_w"] * taken(middle) else (middle, high)
    return taken(high) * 1e6


cells, pairs, forms = [], [], {}
for line in lines:
    if "predicted_us" in line:
        measured = line.get("graph_us", line["us"])
        error = line["predicted_us"] / measured - 1
        key = line["collective"], line["dtype"], line["bytes"]
        forms.setdefault(key, {})[line["program"]] = line["predicted_us"], measured
        print(f"{line['collective']:15} {line['bytes']:11} {line['program']:8} {measured:10.1f} us, predicted {line['predicted_us']:10.1f}: {error:+.1%}")
        if line["bytes"] > 1 << 20:
            cells.append(abs(error))
    elif found := re.match(r"product (\d+) x (\d+) x (\d+) beside all_gather of (\d+) MiB", line.get("case", "")):
        m, n, k, mib = map(int, found.groups())
        expected = pair(m, n, k, mib * 2**20 / 2)
        error = expected / line["ours_us"] - 1
        print(f"{line['case']}: {line['ours_us']:.1f} us, predicted {expected:.1f}: {error:+.1%}")
        pairs.append(abs(error))
both = [f for f in forms.values() if len(f) == 2]
right = sum(min(f, key=lambda form: f[form][0]) == min(f, key=lambda form: f[form][1]) for f in both)
if both:
    loss = max(f[min(f, key=lambda form: f[form][0])][1] / min(m for _, m in f.values()) for f in both)
    print(f"the faster form is predicted in {right} of {len(both)} cells; the chosen one takes at most {loss:.2f} of the other")
if cells:
    print(f"median error over 1 MiB: {statistics.median(cells):.1%} of {len(cells)} cells")
if pairs:
    print(f"median error of pairs: {statistics.median(pairs):.1%} of {len(pairs)}")

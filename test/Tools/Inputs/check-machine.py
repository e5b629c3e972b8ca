"""Checks a machine file that ncclx-bench --calibrate wrote of two ranks: check-machine.py FILE [WATTS CAP], of each of two packages."""
import json, sys

machine = json.load(open(sys.argv[1]))
names = [e["name"] for e in machine["engines"]]
assert names == ["host all_gather", "host all_reduce", "copy"], names
for engine in machine["engines"][:2]:
    assert engine["collectives"] == [engine["name"].split()[1]]
    assert engine["gb_per_s"] > 0 and "2 sizes, " in engine["source"], engine
gemm = machine["gemm"]
assert "products of f32, 48 to 384 a side, 2 ranks at once" in gemm["source"], gemm
assert gemm["tflops"] != 0.005 and 1e-5 < gemm["tflops"] < 1, gemm  # the base's; a core's
assert machine["kernel"]["launch_us"] >= 0
if len(sys.argv) == 2:
    assert "power" not in machine and "pj_per_flop" not in gemm
else:
    watts, cap = float(sys.argv[2]), float(sys.argv[3])
    power = machine["power"]
    # Two packages for two ranks: a rank has what one package draws.
    assert abs(power["idle_w"] / watts - 1) < 0.2, power
    assert power["cap_w"] == cap, power
    # They draw no more while the ranks compute.
    busy = gemm["pj_per_flop"] * gemm["tflops"]
    assert gemm["pj_measured_at_tflops"] == gemm["tflops"] and 0 <= busy < watts, gemm

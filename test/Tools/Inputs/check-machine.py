"""Checks a machine file that ncclx-bench --calibrate wrote of two ranks: check-machine.py FILE [CAP], of one of two packages.
How much the fake counters show when they are read depends on how busy this machine is: their sums are EnergyTest.cpp's."""
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
    power = machine["power"]
    # Two packages for two ranks: a rank has what one package may draw.
    assert power["idle_w"] > 0 and power["cap_w"] == float(sys.argv[2]), power
    assert gemm["pj_measured_at_tflops"] == gemm["tflops"] and gemm["pj_per_flop"] >= 0, gemm

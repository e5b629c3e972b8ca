"""Breaks a module in one place at a time, and prints what the importer says of each."""
import subprocess
import sys

tool, path = sys.argv[1:]
good = open(path).read()
CASES = [
    ("HloModule flow", "Module flow"),
    ("num_partitions=4", "num_partitions=0"),
    ("f32[4,4]{1,0} negate(%y.1)", "f33[4,4]{1,0} negate(%y.1)"),
    ("f32[4,4]{1,0} negate(%y.1)", "f32[4,4]{1,0} negate(%nobody)"),
    ("f32[4,4]{1,0} negate(%y.1)", "f32[4,5]{1,0} negate(%y.1)"),
    ("f32[4,4]{1,0} negate(%y.1)", "f32[<=4,4]{1,0} negate(%y.1)"),
    ("f32[4,4]{1,0} negate(%y.1)", "f32[4,4{1,0} negate(%y.1)"),
    ("f32[4,4]{1,0} negate(%y.1)", "f32[4,4]{1,0} negate(%y.1"),
    ("f32[4,4]{1,0} negate(%y.1)", "f32[99999999999,99999999999]{1,0} negate(%y.1)"),
    ("%twice = s32[]", "%i.4 = s32[]"),
    ("w: f32[], j: s32[]) -> (f32[], s32[]) {", "w: f32[], j: s32[] -> (f32[], s32[]) {"),
    ("f32[] parameter(2)", "f32[] parameter(1)"),
    ("rhs_contracting_dims={1}", "rhs_contracting_dims={2}"),
    ("index=1\n  %w.1", "index=3\n  %w.1"),
    ("to_apply=%most", "to_apply=%nothing"),
    ("condition=%less, body=%step", "condition=%less, body=%double"),
    ("dimensions={1}\n  ROOT", "dimensions={2}\n  ROOT"),
    ("padding=0_0x1_3", "padding=0_0x1_4"),
    ("constant(-inf)", "constant(much)"),
    ("constant(7)", "constant(99999999999)"),
    ("replica_groups=[1,4]<=[4]", "replica_groups=[2,4]<=[4]"),
    ("replica_groups=[1,4]<=[4]", "replica_groups={{0,1},{2,7}}"),
    ("replica_groups=[1,4]<=[4]", "replica_groups=mesh['x'=4] {'y'}"),
    ("ENTRY %main", "%main"),
]
for old, new in CASES:
    if good.count(old) < 1:
        print(f"the module has no '{old}'")
        continue
    run = subprocess.run([tool, "--import-hlo"], input=good.replace(old, new, 1), text=True,
                         capture_output=True, timeout=60)
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    print(f"{new!r}: exit {run.returncode}, {len(errors)} error: {errors[0] if errors else ''}")

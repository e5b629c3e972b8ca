"""Runs the overlap passes in several orders, each first and last, and checks that each collective stands once in what
they give.
"""
import re
import subprocess
import sys

tool, path, machine = sys.argv[1:]
PASSES = ["pair-bulk", "reschedule-ag-wgrad", "hoist-collectives", "overlap"]
COLLECTIVE = re.compile(r"ncclx\.(all_gather|all_reduce|reduce_scatter|permute) ")


def collectives(text):
    return sorted(COLLECTIVE.findall(text))


expected = collectives(subprocess.run([tool, path], capture_output=True, text=True, check=True).stdout)
orders = 0
rotations = [names[i:] + names[:i] for names in (PASSES, PASSES[::-1]) for i in range(len(PASSES))]
for order in rotations:
    run = subprocess.run([tool, path, *(f"--ncclx-{name}=machine={machine}" for name in order), "--ncclx-verify-legality"],
                         capture_output=True, text=True)
    if run.returncode or collectives(run.stdout) != expected:
        sys.exit(f"{order}: {run.stderr[:1000]}\n{collectives(run.stdout)}")
    orders += 1
print(f"{orders} orders, {len(expected)} collectives each")

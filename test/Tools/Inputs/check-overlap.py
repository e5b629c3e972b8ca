"""Two reports of one collective, beside a compute-bound and a memory-bound kernel of one length."""
import json
import sys


def read(path):
    report = json.load(open(path))
    [collective] = report["collectives"]
    exposed = report["target"]["exposed_us"][collective["name"]]
    return report["target"]["compute_us"], collective["predicted_us"] - exposed


(compute_long, compute_hidden), (memory_long, memory_hidden) = read(sys.argv[1]), read(sys.argv[2])
assert abs(compute_long - memory_long) < 0.1 * compute_long, (compute_long, memory_long)
assert memory_hidden < 0.5 * compute_hidden, (compute_hidden, memory_hidden)
assert compute_hidden <= compute_long

"""Writes a timeline of diagnose-carried.mlir's schedule: a gather, then four products, beside each of which but the last the
next gather runs; the gather that is named waits for the product that it should run beside."""
import json
import sys

AG, MM = 130, 211
events = []


def span(name, at, took):
    gather = name.startswith("all_gather")
    events.append({"ph": "X", "cat": name if gather else "compute", "name": name + (": put" if gather else ""), "ts": at,
                   "dur": took, "pid": 0, "tid": int(gather)})


span("all_gather.0", 0, AG)
at = AG
for i in range(1, 5):
    span("matmul", at, MM)
    if i < 4:
        late = sys.argv[1] == str(i)
        span(f"all_gather.{i}", at + (MM if late else 0), AG)
        at += AG if late else 0
    at += MM
print(json.dumps([{"name": "process_name", "ph": "M", "pid": 0, "tid": 0,
                   "args": {"name": "rank 0 (measured here)"}}] + events))

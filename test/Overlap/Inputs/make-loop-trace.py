"""Writes a timeline of diagnose-loops.mlir's schedule, of 4 iterations; in the one that is named the gather waits for the
product that it should run beside."""
import json
import sys

AG, MM = 130, 211
events, at = [], 0
for i in range(4):
    late = sys.argv[1] == str(i)
    begin = at + MM if late else at
    events.append({"ph": "X", "cat": f"all_gather.{i}", "name": f"all_gather.{i}: put", "ts": begin, "dur": AG, "pid": 0, "tid": 0})
    events.append({"ph": "X", "cat": "compute", "name": "matmul", "ts": at, "dur": MM, "pid": 0, "tid": 1})
    at += MM + (AG if late else 0)
    events.append({"ph": "X", "cat": "compute", "name": "matmul", "ts": at, "dur": MM, "pid": 0, "tid": 1})
    at += MM
print(json.dumps([{"name": "process_name", "ph": "M", "pid": 0, "tid": 0,
                   "args": {"name": "rank 0 (measured here)"}}] + events))

"""Writes a timeline of diagnose.mlir's schedule: as promised, with a gather that waits, with a pair that slows down,
or as PyTorch's profiler has it, with a kernel that nobody promised; or with links of half the speed.
"""
import json
import sys

kind = sys.argv[1]
# Name, category and microseconds: gather, dgrad, gather beside wgrad, last product.
AG, MM = 260 if kind == "half" else 130, 211
start = {"all_gather.0": (0, AG), "dgrad": (AG, MM), "all_gather.1": (AG + MM, AG), "wgrad": (AG + MM + 1, MM),
         "last": (AG + 2 * MM + 1, MM)}
if kind == "late":
    start["all_gather.1"] = (AG + 2 * MM + 1, AG)
    start["last"] = (2 * AG + 2 * MM + 1, MM)
if kind == "slow":
    start["wgrad"] = (AG + MM + 1, 3 * MM)
    start["all_gather.1"] = (AG + MM, 4 * AG)
    start["last"] = (AG + 5 * MM, MM)
if kind == "kineto":
    start["all_gather.1"] = (AG + MM + 160, AG)
    start["extra"] = (AG + MM + 1, 158)
    start["last"] = (2 * AG + MM + 160, MM)
events = []
for name, (at, took) in start.items():
    gather = name.startswith("all_gather")
    if kind == "kineto":
        kernel = {"extra": "memset_kernel"}.get(name, "ncclDevKernel_AllGather_RING" if gather else "nvjet_gemm")
        events.append({"ph": "X", "cat": "kernel", "name": kernel, "ts": at, "dur": took, "pid": 0, "tid": int(gather)})
    elif gather:  # in two parts, as our engine tells it
        events.append({"ph": "X", "cat": name, "name": name + ": put", "ts": at, "dur": 5, "pid": 0, "tid": 0})
        events.append({"ph": "X", "cat": name, "name": name + ": arrived", "ts": at + 5, "dur": took - 5, "pid": 0, "tid": 0})
    else:
        events.append({"ph": "X", "cat": "compute", "name": "matmul", "ts": at, "dur": took, "pid": 0, "tid": 1})
if kind == "kineto":
    print(json.dumps({"schemaVersion": 1, "traceEvents": events}))
else:
    print(json.dumps([{"name": "process_name", "ph": "M", "pid": 0, "tid": 0,
                       "args": {"name": "rank 0 (measured here)"}}] + events))

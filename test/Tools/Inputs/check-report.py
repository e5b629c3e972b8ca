"""check-report.py REPORT TRACE: the report has exactly the keys that tools/ncclx-run/README.md lists, and
the timeline has what was measured and what was predicted."""
import json
import sys

number, text = (int, float), str
TIMING = {"makespan_us": number, "compute_us": number, "exposed_us": {}}
SCHEMA = {
    "schema": text, "ok": bool, "graph": text, "function": text, "ranks": int, "topology": text,
    "rate": text, "transport": text,
    "collectives": [{"name": text, "kind": text, "algorithm": text, "bytes": int, "group_size": int,
                     "predicted_us": number, "bound_us": number, "bound_by": text, "ratio": number}],
    "proof": {"verdict": text, "text": text, "mode": text, "processes": int, "runs": int,
              "events": int},
    "memory": {"input_bytes": int, "output_bytes": int, "scratch_bytes": int, "peak_bytes": int},
    "target": TIMING,
    "this_machine": {"name": text, "calibrated_now": bool, "predicted": TIMING, "measured": TIMING,
                     "runs_us": [number]},
    "outputs": [{"index": int, "type": text, "elements": int, "different": int,
                 "unspecified": int}],
    "seconds": {"compile": number, "prove": number, "generate": number, "interpret": number},
}


def check(value, schema, path):
    if isinstance(schema, list):
        assert isinstance(value, list) and value, path
        for each in value:
            check(each, schema[0], path + "[]")
    elif isinstance(schema, dict):
        assert isinstance(value, dict), path
        if schema:
            assert set(value) == set(schema), f"{path}: {sorted(set(value) ^ set(schema))}"
        for key, each in value.items():
            check(each, schema.get(key, number), f"{path}.{key}")
    else:
        assert isinstance(value, schema) and (schema is bool or not isinstance(value, bool)), path


report = json.load(open(sys.argv[1], encoding="utf-8"))
check(report, SCHEMA, "report")
assert report["schema"] == "ncclx-run/1" and report["ok"] and report["ranks"] == 4
assert report["proof"]["verdict"] == "ok" and report["proof"]["processes"] == 1
assert [c["name"] for c in report["collectives"]] == ["all_gather.0", "all_reduce.0"]
assert list(report["target"]["exposed_us"]) == ["all_gather.0", "all_reduce.0"]
assert report["memory"]["input_bytes"] == 20 and report["memory"]["output_bytes"] == 136
assert [o["elements"] for o in report["outputs"]] == [68, 68]
assert len(report["this_machine"]["runs_us"]) == 2

events = json.load(open(sys.argv[2], encoding="utf-8"))
events = events["traceEvents"] if isinstance(events, dict) else events
processes = {e["pid"]: e["args"]["name"] for e in events
             if e["ph"] == "M" and e["name"] == "process_name"}
timed = {processes[e["pid"]] for e in events if e["ph"] == "X" and e["dur"] >= 0 and e["ts"] >= 0}
assert {f"rank {r} (measured here)" for r in range(4)} <= timed, timed
assert any("predicted" in name for name in timed), timed

"""check-timeline.py TRACE [MICROSECONDS]: the measured timeline of GPUs has what the prediction beside it has: the same
ops of each rank once, on the same lanes in the same order, none of which ends before it begins, or begins before the one
before it has ended; and no wait of a rank ends before the other ranks have come to the collective that it is of, the ranks'
clocks agreeing within so much."""
import collections
import json
import sys

EXCHANGES = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all")
events = json.load(open(sys.argv[1], encoding="utf-8"))
slack = float(sys.argv[2]) if len(sys.argv) > 2 else 0
process = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
lane = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
measured, predicted = collections.defaultdict(list), collections.defaultdict(list)
for e in events:
    if e["ph"] != "X" or e["args"].get("kind") in ("entry", "exit"):
        continue
    into = measured if process[e["pid"]].endswith("(measured here)") else predicted
    # Predictions say what kind of collective it is; compute is called by its function in both.
    words = e["name"].split(" ")
    name = " ".join(words[1:]) if into is predicted and len(words) > 1 and words[1].endswith(":") else e["name"]
    rank = int(process[e["pid"]].split()[1])
    assert e["dur"] >= 0, e
    into[rank, lane[e["pid"], e["tid"]]].append((e["ts"], e["ts"] + e["dur"], name, e["cat"]))
assert measured and set(measured) == set(predicted), (sorted(measured), sorted(predicted))
ops = 0
for at, ran in measured.items():
    assert [op[2] for op in ran] == [op[2] for op in predicted[at]], (at, ran, predicted[at])
    for before, op in zip(ran, ran[1:]):
        assert before[1] <= op[0] + 0.1, (at, before, op)  # floats of a long time
    ops += len(ran)
first = {}
for (rank, _), ran in measured.items():
    for begin, _, _, collective in ran:
        first[collective, rank] = min(begin, first.get((collective, rank), begin))
ranks = {rank for rank, _ in measured}
crossed = 0
for (rank, where), ran in measured.items():
    for collective in {op[3] for op in ran}:
        if not collective.startswith(EXCHANGES) and collective != "r":
            continue
        last = max(op[1] for other, there in measured.items() if other[0] == rank for op in there if op[3] == collective)
        for other in ranks - {rank}:
            crossed += 1
            assert last + slack >= first[collective, other], (collective, rank, other)
print(f"ok: {ops} ops of {len(ranks)} ranks, {crossed} orders between ranks")

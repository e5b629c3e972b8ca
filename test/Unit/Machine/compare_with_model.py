#!/usr/bin/env python3
"""Compares the verdicts of the machine with those of the reference's executable model.

  compare_with_model.py MACHINE_VERDICTS MODEL_DIRECTORY [--rep] [SCHEDULE...]

Every mutator at every op of every schedule; exits 1 when the two disagree on yes or no.
"""
import collections
import os
import subprocess
import sys

SCHEDULES = ["direct 4", "direct 4 counted", "ring 4", "ring 3 pieces=2", "ring 2,3", "ring 2,2,2",
             "ring 6 slots=1", "doubling 3", "two-shot 4", "one-shot 4", "bruck 5", "pipeline 4"]
# The model forgets that a lane has passed a wait for a higher value once it passes one for a lower;
# the machine keeps the highest, and every order of this mutant is right.
KNOWN = {("direct 4 counted", ("value", 15))}
# A reduce that became a copy has one source here; the model's copy keeps (and ignores) the others.
MUTATORS = {"m_drop": "drop", "m_notify": "notify", "m_peer": "peer", "m_data_peer": "data_peer",
            "m_dst": "dst", "m_src": "src", "m_token": "token", "m_value": "value",
            "m_copy": "copy", "m_twice": "twice", "m_early": "early"}


def make(model, bruck, text):
    words = text.split()
    options = dict(w.split("=") for w in words if "=" in w)
    sizes = [int(x) for x in words[1].split(",")]
    if words[0] == "direct":
        return model.direct_all_gather(sizes[0], counted="counted" in words)
    if words[0] == "ring":
        return model.ring_all_reduce(sizes, pieces=int(options.get("pieces", 1)),
                                     slots=int(options.get("slots", 2)))
    return {"doubling": model.rd_all_gather, "two-shot": model.two_shot_all_reduce,
            "one-shot": model.one_shot_packets, "bruck": bruck.bruck_all_gather,
            "pipeline": model.pipeline_send_recv}[words[0]](sizes[0])


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    rep = "--rep" in sys.argv
    tool, directory = args[:2]
    sys.path.insert(0, directory)
    import ctran_bruck as bruck
    import ctran_machine as model
    total, bad = collections.Counter(), 0
    for text in args[2:] or SCHEDULES:
        out = subprocess.run([tool] + (["--rep"] if rep else []) + ["--message", text], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        ours = {}
        for line in out.splitlines():
            _, mutator, index, verdict, message = line.split("\t", 4)
            ours[mutator, int(index)] = (verdict, message)
        program = lambda: make(model, bruck, text)
        mode = "rep" if rep else "full"
        theirs = {("-", 0): model.Machine(program()).prove(mode)}
        p = program()
        point = tuple(model.Coord(a, g, 0, False) for a, g in enumerate(p.grid))
        ops = sum(1 for _ in p.body(model.Ctx(p, point, 0)))
        for function in model.MUTATORS:
            for index in range(ops):
                mutant, hit = model.mutate(program(), index, function)
                try:
                    verdict = model.Machine(mutant).prove(mode)
                except Exception as error:  # e.g. a path beyond the model's dimensions
                    verdict = ("crash", repr(error))
                if hit[0]:
                    theirs[MUTATORS[function.__name__], index] = verdict
        count = collections.Counter()
        for key in sorted(set(ours) | set(theirs)):
            a, b = ours.get(key, ("absent", "")), theirs.get(key, ("absent", ""))
            count["mutants"] += 1
            count["refused by both"] += a[0] != "ok" and b[0] != "ok"
            count["accepted by both"] += a[0] == "ok" and b[0] == "ok"
            count["same complaint"] += a[0] == b[0]
            if (a[0] == "ok") != (b[0] == "ok") or "absent" in (a[0], b[0]):
                if (text, key) in KNOWN:
                    count["known difference"] += 1
                    continue
                bad += 1
                count["DISAGREE"] += 1
                print(f"DISAGREE {text} {key}: machine {a}, model {b}")
        print(text, dict(count), flush=True)
        total += count
    print("total", dict(total))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())

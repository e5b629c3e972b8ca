"""rules.py FILE: the rules that memory and order obey, each on programs that keep it and on the same with one thing wrong. A
program that keeps it must be proved, one that does not be refused, with the verdict named. A line a rule."""
import subprocess
import sys

HEAD = """ctran.program @p grid ["x" = 3] {visible} {{
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %x = ctran.coord "x"
  %next = ctran.shift %x by %c1 : !ctran.coord<"x">
  %prev = ctran.shift %x by %c2 : !ctran.coord<"x">
"""
# Each rank puts its input into the next one's scratch memory, which is copied to the output when it is there.
SHIFT = HEAD + """  %in = ctran.window "in" input 0 : memref<SIZExf32>
  %out = ctran.window "out" output 0 : memref<SIZExf32>
  %stage = ctran.window "stage" scratch : memref<SIZExf32>
  %w = ctran.window "w" scratch peers put : memref<SIZExf32>
  %wn = ctran.peer_view %w at (%next : "x") : !ctran.window
  %data = ctran.slots "data" [] per_run 1
  %datan = ctran.peer_view %data at (%next : "x") : !ctran.slots
  %ready = ctran.slots "ready" [] per_run 1
  %readyp = ctran.peer_view %ready at (%prev : "x") : !ctran.slots
  %rin = ctran.range %in
  %rout = ctran.range %out
  %rstage = ctran.range %stage
  %rw = ctran.range %w
  %rwn = ctran.range %wn
  %sd = ctran.slot %data
  %sdn = ctran.slot %datan
  %sr = ctran.slot %ready
  %srp = ctran.slot %readyp
  %given = ctran.source %rin holds "a"[%x : "x"] after %entry on host[%c1]
  %told = ctran.signal %srp after %entry on host
  %granted = ctran.wait %sr >= %c1 after %given on nic
  %staged = ctran.copy %rin to %rstage after %given on ce
  %sent = ctran.copy %rstage to %rwn notify %sdn after %granted, %staged on nic
  %over = ctran.copy %rin to %rstage after %sent on ce
  %here = ctran.wait %sd >= %c1 after %entry on host
  %seen = ctran.flush after %here on host
  %kept = ctran.copy %rw to %rout after %seen on compute
  %end = ctran.sink %rout holds "a"[%prev : "x"] after %kept on host[%c2]
  ctran.return %end, %sent, %over, %told, %kept : !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token
}}
"""
# Four pieces go through a queue of PLACES places, with as many credits.
QUEUE = HEAD + """  %in = ctran.window "in" input 0 : memref<16xf32>
  %out = ctran.window "out" output 0 : memref<16xf32>
  %q = ctran.window "q" scratch peers put : memref<12xf32>
  %inp = ctran.reindex %in [4]
  %outp = ctran.reindex %out [4]
  %qp = ctran.reindex %q [3]
  %qn = ctran.peer_view %qp at (%next : "x") : !ctran.window
  %data = ctran.slots "data" [] per_run 4
  %datan = ctran.peer_view %data at (%next : "x") : !ctran.slots
  %room = ctran.slots "room" [] per_run 4 credits 3
  %roomp = ctran.peer_view %room at (%prev : "x") : !ctran.slots
  %sd = ctran.slot %data
  %sdn = ctran.slot %datan
  %sr = ctran.slot %room
  %srp = ctran.slot %roomp
  %rin = ctran.range %inp
  %rout = ctran.range %outp
  %given = ctran.source %rin holds "a"[%x : "x"] after %entry on host[%c1]
  %sent = scf.for %k = %c0 to %c4 step %c1 iter_args(%t = %given) -> !ctran.token {
    %k1 = arith.addi %k, %c1 : index
    %place = arith.remui %k, %c3 : index
    %free = ctran.wait %sr >= %k1 after %t on ce
    %from = ctran.range %inp[%k]
    %to = ctran.range %qn[%place]
    %put = ctran.copy %from to %to notify %sdn after %free on nic
    scf.yield %put : !ctran.token
  }
  %got = scf.for %k = %c0 to %c4 step %c1 iter_args(%t = %entry) -> !ctran.token {
    %k1 = arith.addi %k, %c1 : index
    %place = arith.remui %k, %c3 : index
    %here = ctran.wait %sd >= %k1 after %t on host
    %seen = ctran.flush after %here on host
    %from = ctran.range %qp[%place]
    %to = ctran.range %outp[%k]
    %kept = ctran.copy %from to %to after %seen on host
    %told = ctran.signal %srp after %kept on host
    scf.yield %told : !ctran.token
  }
  %end = ctran.sink %rout holds "a"[%prev : "x"] after %got on host[%c2]
  ctran.return %end, %sent, %got : !ctran.token, !ctran.token, !ctran.token
}}
"""
# Two blocks write a window piece by piece, and two read it, each behind its own.
BLOCKS = HEAD + """  %in = ctran.window "in" input 0 : memref<7xf32>
  %mid = ctran.window "mid" scratch : memref<7xf32>
  %out = ctran.window "out" output 0 : memref<7xf32>
  %inw = ctran.reindex %in [2]
  %midw = ctran.reindex %mid [2]
  %midr = ctran.reindex %mid [2]
  %outr = ctran.reindex %out [2]
  %rin = ctran.range %inw
  %rout = ctran.range %outr
  %given = ctran.source %rin holds "a"[%x : "x"] after %entry on host[%c1]
  %i0 = ctran.range %inw[%c0]
  %i1 = ctran.range %inw[%c1]
  %w0 = ctran.range %midw[%c0]
  %w1 = ctran.range %midw[%c1]
  %r0 = ctran.range %midr[%c0]
  %r1 = ctran.range %midr[%c1]
  %o0 = ctran.range %outr[%c0]
  %o1 = ctran.range %outr[%c1]
  %a0 = ctran.copy %i0 to %w0 after %given on sm
  %a1 = ctran.copy %i1 to %w1 after %given on sm[%c1]
  %b0 = ctran.copy %r0 to %o0 on sm
  %b1 = ctran.copy %r1 to %o1 on sm[%c1]
  %end = ctran.sink %rout holds "a"[%x : "x"] after %b0, %b1 on host[%c2]
  ctran.return %end, %a0, %a1 : !ctran.token, !ctran.token, !ctran.token
}}
"""
RULES = [
    ("V1 a put that is consumed is told of, and as many are awaited as come", SHIFT, [], [
        ([("notify %sdn ", "")], "deadlock"), ([("%sd >= %c1", "%sd >= %c2")], "deadlock"),
        ([("%here = ctran.wait %sd >= %c1 after %entry on host\n", ""), ("flush after %here", "flush after %entry")], "race"),
        ([("to %rwn notify %sdn after %granted, %staged on nic", "to %rwn notify %sdn after %granted, %staged on nic\n"
           "  %again = ctran.copy %rstage to %rwn notify %sdn after %sent on nic"),
          ("return %end,", "return %end, %again,"), (" : !ctran.token, ", " : !ctran.token, !ctran.token, ")], "balance|signal|race")]),
    ("V2 what a nic brought is flushed before its use", SHIFT,
     [[("visible", "rx_visible"), ("%seen = ctran.flush after %here on host\n", ""), ("%seen", "%here")]],
     [([("%seen = ctran.flush after %here on host\n", ""), ("%seen", "%here")], "race|undefined")]),
    ("V3 the source of a put stays until it is complete", SHIFT, [],
     [([("to %rstage after %sent on ce", "to %rstage after %granted on ce")], "race"),
      ([("after %granted, %staged on nic", "after %granted on nic"), ("return %end,", "return %end, %staged,"),
        (" : !ctran.token, ", " : !ctran.token, !ctran.token, ")], "race|undefined")]),
    ("V4 a put waits until its place is free, in this run as in the next", SHIFT,
     [[("\"w\" scratch", "\"w\" scratch generations 2")]],
     [([("after %given on nic", "after %given on sm"), ("after %granted, %staged on nic", "after %staged on nic"),
        ("return %end,", "return %end, %granted,"),
        (" : !ctran.token, ", " : !ctran.token, !ctran.token, ")], "race")]),
    ("V8 what one sends the other takes, and nobody waits in a circle", SHIFT, [],
     [([("%told = ctran.signal %srp after %entry on host\n", ""),
        ("%kept = ctran.copy", "%told = ctran.signal %srp after %seen on host\n  %kept = ctran.copy")], "deadlock"),
      ([("%granted = ctran.wait %sr >= %c1 after %given on nic", "%granted = ctran.wait %sr >= %c2 after %given on nic")],
       "deadlock")]),
    ("V10 a copy of nothing is told of at both ends", SHIFT.replace("SIZE", "0"), [],
     [([("notify %sdn ", "")], "deadlock")]),
    ("V11 blocks that never meet cut the work alike", BLOCKS, [],
     [([("%midr = ctran.reindex %mid [2]", "%midr = ctran.reindex %mid [2 granule 3]"),
        ("%outr = ctran.reindex %out [2]", "%outr = ctran.reindex %out [2 granule 3]")], "race"),
      ([("%r0 to %o0 on sm", "%r0 to %o0 on sm[%c1]"), ("%r1 to %o1 on sm[%c1]", "%r1 to %o1 on sm")], "race")]),
    ("V12 no loop runs as long as a rank, or what it received, says", QUEUE, [],
     [([("%sent = scf.for", "%mine = ctran.coord_value %x : !ctran.coord<\"x\">\n  %sent = scf.for"),
        ("%k = %c0 to %c4", "%k = %c0 to %mine")], "bound")]),
    ("V14 a queue of three places wraps by remainder", QUEUE, [],
     [([("%place = arith.remui %k, %c3", "%place = arith.andi %k, %c3")], "invalid|race|result")]),
    ("V15 no more is on its way than there is room for", QUEUE,
     [[("credits 3", "credits 2")], [("credits 3", "credits 1")]],
     [([("credits 3", "credits 4")], "race"),
      ([("    %told = ctran.signal %srp after %kept on host\n    scf.yield %told", "    scf.yield %kept")], "deadlock|balance")]),
]


def verdict(text, edits):
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    text = text.replace("{visible}", "").replace("{{", "{").replace("}}", "}").replace("SIZE", "4")
    done = subprocess.run(["ncclx-opt", "--ctran-verify=undecided=error", "-o", "/dev/null"], input=text, capture_output=True,
                          text=True)
    return (done.stderr.splitlines() or ["proved"])[0]


for name, text, keeps, breaks in RULES:
    wrong = []
    for edits in [[]] + keeps:
        edits = [("{visible}", new) if old == "visible" else (old, new) for old, new in edits]
        said = verdict(text, edits)
        if said != "proved":
            wrong.append(("should be proved", edits, said))
    for edits, expected in breaks:
        said = verdict(text, edits)
        if not any(word in said for word in expected.split("|")) or "error:" not in said:
            wrong.append(("should be " + expected, edits, said))
    print(f"{name}: {1 + len(keeps)} proved, {len(breaks)} refused" if not wrong else f"{name}: WRONG {wrong}")

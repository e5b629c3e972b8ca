"""Reads a pass's remarks; prints exposed communication and the peak, and fails where they break a bound.

within.py BUDGET PART < remarks: the peak grows by at most BUDGET bytes, and at most PART of the communication
that was exposed still is.
"""
import re
import sys

budget, part = int(sys.argv[1]), float(sys.argv[2])
text = sys.stdin.read()
found = re.search(r"exposed ([\d.]+) us of ([\d.]+) us before, ([\d.]+) us of ([\d.]+) us after; "
                  r"memory peak (\d+) bytes before, (\d+) after", text)
if not found:
    sys.exit("no remark of the pass:\n" + text[:2000])
before, whole, after, left = map(float, found.groups()[:4])
peak, now = map(int, found.groups()[4:])
print(f"exposed {before / 1e3:.1f} of {whole / 1e3:.1f} ms before, {after / 1e3:.1f} of {left / 1e3:.1f} ms "
      f"after; peak {peak / 1e9:.2f} GB, then {now / 1e9:.2f} GB")
if now > peak + budget:
    sys.exit(f"the peak grew by {now - peak} bytes, the budget is {budget}")
if after > part * before or left > whole:
    sys.exit("too much stays exposed")

"""Counts the calls in the functions of host code: calls.py FILE"""
import re
import sys

calls, parts, now = {}, [], None
for line in open(sys.argv[1]):
    if found := re.match(r"\s*func\.func (private )?@([\w.]+)\(.*\{$", line):
        now = found[2]
        calls[now] = []
        parts += [now] if found[1] else []
    elif found := re.search(r"\bcall @([\w.]+)\(", line):
        calls[now].append(found[1])
most = max((len(calls[part]) for part in parts), default=0)
print(f"parts: {len(parts)}")
print(f"calls of a part: {most}")
print(f"parts called: {sorted(c for inside in calls.values() for c in inside if c in parts) == sorted(parts)}")

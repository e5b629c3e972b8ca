"""Every case of test/KnownCases.md names tests that are there; no case is listed twice."""
import os
import re
import sys

root = sys.argv[1]
table = sys.argv[2] if len(sys.argv) > 2 else os.path.join(root, "test", "KnownCases.md")
units = set()
for folder, _, names in os.walk(os.path.join(root, "test", "Unit")):
    for name in names:
        if name.endswith(".cpp"):
            with open(os.path.join(folder, name)) as text:
                units.update(f"{suite}.{test}" for suite, test in
                             re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", text.read(), re.M))
wrong, seen = [], set()
with open(table) as text:
    for number, line in enumerate(text, 1):
        if not re.match(r"\| [CP]\d", line):
            continue
        cases, _, tests = (cell.strip() for cell in line.strip().strip("|").split("|"))
        for case in cases.split(", "):
            if case in seen:
                wrong.append(f"line {number}: case {case} stands here again")
            seen.add(case)
        named = re.findall(r"`([^`]+)`", tests)
        found = [t for t in named if t in units or os.path.exists(os.path.join(root, t))]
        wrong += [f"line {number}: no test {t}" for t in named
                  if t not in found and not (("." not in t) and any(u.startswith(t + ".") for u in units))]
        if not found:
            wrong.append(f"line {number}: {cases} has no test")
for text in wrong:
    print(text)
print(len(seen), "cases")
sys.exit(bool(wrong))

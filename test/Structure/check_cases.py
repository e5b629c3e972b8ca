"""check_cases.py ROOT [TABLE]: every row that an issue asks for is in test/CASES.md once, in order, and each test that it
names is there. Prints how many rows have a test, and of each issue those that have none."""
import os
import re
import sys

# What each issue asks for; a range takes rows with letters along.
WANTED = {
    3: "C1-17 C19 C28-33 C49-51 C53 C55 P1-8 P11 P15 P17-17c P20 P24 P26 P36",
    4: "P45-48 P51-52",
    5: "C44-46 R3 R5 R9 R22 P22 P28 P41 P55",
    6: "V1-4 V8 V10-12 V14-15 P3 P21 P26-27 P31-37 P56 C1-12",
    7: "O1 O3 O5 O7-9 O11-12 O14-15 O18 O20-23 P12-13 P24 P38-41 P43 P54",
    8: "C13-19 C28-43 C47 C54 V5-7 V13 P1-10 P14-20 P23 P25 P28-29 P42 P49-50 P53 P55 O2 O4 O6 O8 O10 O13 O16-19 O21",
}
LISTS = "CRVOP"  # in the order of the table
LETTERED = ["P17a", "P17b", "P17c"]


def key(row):
    letter, number, suffix = re.fullmatch(r"([CRVOP])(\d+)([a-c]?)", row).groups()
    return LISTS.index(letter), int(number), suffix


def rows(words):
    for word in words.split():
        letter, first, last = re.fullmatch(r"([CRVOP])(\d+)(?:-(\d+)[a-c]?)?", word).groups()
        for number in range(int(first), int(last or first) + 1):
            yield f"{letter}{number}"
            if last:
                yield from (row for row in LETTERED if row[:-1] == f"{letter}{number}")


def unit_tests(root):
    found = set()
    for folder, _, names in os.walk(os.path.join(root, "test", "Unit")):
        for name in names:
            if name.endswith(".cpp"):
                with open(os.path.join(folder, name), encoding="utf-8") as text:
                    found.update(".".join(names) for names in
                                 re.findall(r"^\s*TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", text.read(), re.M))
    return found


def missing(root, units, name):
    """What is wrong with the name of a test; '' if nothing."""
    if not name.startswith("test/"):
        return "" if name in units else f"no test {name}"
    path, _, place = name.partition(":")
    if not os.path.isfile(os.path.join(root, path)):
        return f"no file {path}"
    with open(os.path.join(root, path), encoding="utf-8") as text:
        return "" if place in text.read() else f"'{place}' is not in {path}"


root = sys.argv[1]
table = sys.argv[2] if len(sys.argv) > 2 else os.path.join(root, "test", "CASES.md")
units, wrong, seen, held, none, last = unit_tests(root), [], set(), 0, {}, (0,)
with open(table, encoding="utf-8") as text:
    lines = text.read().splitlines()
for number, line in enumerate(lines, 1):
    if not re.match(r"\| [CRVOP]\d", line):
        continue
    row, issues, _, tests = (cell.strip() for cell in line.strip("|").split(" | "))
    if key(row) < last:
        wrong.append(f"line {number}: {row} is out of order")
    last = key(row)
    words = re.split(r"\b(open|none): ", tests)
    wrong += [f"line {number}: {problem}" for name in re.findall(r"`([^`]+)`", tests)
              if (problem := missing(root, units, name))]
    is_held, is_none = "`" in words[0], "none" in words
    if not is_held and not is_none:
        wrong.append(f"line {number}: {row} has no test, and does not say none")
    for issue in map(int, issues.split(", ")):
        if (issue, row) in seen:
            wrong.append(f"line {number}: {row} of issue {issue} stands here again")
        seen.add((issue, row))
        held += is_held and not is_none
        if is_none:
            none.setdefault(issue, []).append(row)
wanted = {(issue, row) for issue, words in WANTED.items() for row in rows(words)}
wrong += [f"{row} of issue {issue} is missing" for issue, row in sorted(wanted - seen)]
wrong += [f"{row} is not asked for by issue {issue}" for issue, row in sorted(seen - wanted)]
print("\n".join(wrong + [f"{len(seen)} rows, {held} with a test"]))
for issue, names in sorted(none.items()):
    print(f"issue {issue}, none: {' '.join(names)}")
sys.exit(bool(wrong))

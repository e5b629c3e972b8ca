"""Prints a system file without the first <nvlink> of count 5 of the GPU with dev="3"."""
import sys

inside = done = False
for line in open(sys.argv[1], encoding="utf-8"):
    inside = inside or '<gpu dev="3"' in line
    if inside and not done and "<nvlink" in line and 'count="5"' in line:
        done = True
        continue
    sys.stdout.write(line)
assert done

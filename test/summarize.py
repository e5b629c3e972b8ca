"""Adds up lit's JSON and ctest's JUnit files: failures with their output, skipped tests by name, the
ten slowest, and the closing line `N passed, N failed`. Exit code 1 when a test failed or none ran."""
import argparse
import json
import os
import sys
import xml.etree.ElementTree as ET

parser = argparse.ArgumentParser()
parser.add_argument("--lit")
parser.add_argument("--lit-log")
parser.add_argument("junit", nargs="*")
args = parser.parse_args()

tests = []  # (name, outcome, seconds, output)
broken = []
if args.lit:
    try:
        for t in json.load(open(args.lit))["tests"]:
            code = t["code"]
            outcome = ("passed" if code in ("PASS", "XFAIL", "FLAKYPASS") else
                       "skipped" if code in ("UNSUPPORTED", "SKIPPED", "EXCLUDED") else "failed")
            tests.append((t["name"], outcome, t.get("elapsed") or 0.0, t.get("output", "")))
    except (OSError, ValueError, KeyError) as e:
        broken.append(f"lit gave no result file ({e}); see {args.lit_log}")
for path in args.junit:
    suite = os.path.splitext(os.path.basename(path))[0]
    try:
        cases = ET.parse(path).getroot().iter("testcase")
        for c in cases:
            status = c.get("status", "")
            skipped = c.find("skipped") is not None or status in ("notrun", "disabled")
            failed = c.find("failure") is not None or status == "fail"
            out = c.findtext("system-out") or ""
            if not skipped and not failed and "[  SKIPPED ]" in out:
                skipped = True
            tests.append((f"{suite}: {c.get('name')}",
                          "failed" if failed else "skipped" if skipped else "passed",
                          float(c.get("time") or 0), out))
    except (OSError, ET.ParseError) as e:
        broken.append(f"{suite}: ctest gave no result file ({e})")

for name, outcome, _, output in tests:
    if outcome == "failed":
        print(f"\nFAILED {name}\n" + "\n".join(output.strip().splitlines()[-60:]))
for b in broken:
    print("FAILED " + b)
skipped = [t[0] for t in tests if t[1] == "skipped"]
if skipped:
    print(f"\nskipped ({len(skipped)}):")
    for name in skipped:
        print("  " + name)
print("\nten slowest:")
for name, _, seconds, _ in sorted(tests, key=lambda t: -t[2])[:10]:
    print(f"  {seconds:7.2f} s  {name}")
passed = sum(t[1] == "passed" for t in tests)
failed = sum(t[1] == "failed" for t in tests) + len(broken)
print()
print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
sys.exit(1 if failed or not passed else 0)

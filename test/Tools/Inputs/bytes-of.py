"""bytes-of.py TRACE OP BYTES...: what OP moved as measured, in all events, is these bytes, in any order."""
import json
import sys

events = json.load(open(sys.argv[1]))
events = events["traceEvents"] if isinstance(events, dict) else events
found = sorted(int(e["args"]["bytes"]) for e in events
               if e.get("name") == sys.argv[2] and "bytes" in e.get("args", {}))
expected = sorted(int(b) for b in sys.argv[3:])
if found != expected:
    sys.exit(f"{sys.argv[2]} moved {found} bytes, expected {expected}")

"""Prints a machine file with engines for all_gather: engines.py BASE KERNEL_US STREAMS_US"""
import json
import sys

machine = json.load(open(sys.argv[1]))
for form, us in zip(["kernel", "streams"], sys.argv[2:]):
    machine["engines"].append({"name": f"{form} all_gather", "collectives": ["all_gather"], "gb_per_s": 300,
                               "base_us": float(us), "source": "a test"})
print(json.dumps(machine))

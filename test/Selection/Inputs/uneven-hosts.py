"""uneven-hosts.py SIZE...: a machine of hosts of so many GPUs, each GPU with a port of a switch and a NIC."""
import json
import sys

nodes, links = [{"name": "net", "kind": "net"}], []
rank = 0


def link(a, b, kind, rate):
    links.append({"from": a, "to": b, "kind": kind, "raw": rate, "latency_ns": 500, "both_ways": True})


for number, size in enumerate(map(int, sys.argv[1:])):
    host = f"host{number}"
    nodes.append({"name": f"{host}.switch", "kind": "nvswitch", "host": host})
    for _ in range(size):
        nodes += [{"name": f"gpu{rank}", "kind": "gpu", "host": host, "rank": rank, "gpu": "H100-SXM"},
                  {"name": f"nic{rank}", "kind": "nic", "host": host}]
        link(f"gpu{rank}", f"{host}.switch", "nvlink", "400 GB/s")
        link(f"gpu{rank}", f"nic{rank}", "nic", "50 GB/s")
        link(f"nic{rank}", "net", "net", "50 GB/s")
        rank += 1
print(json.dumps({"format": "ncclx-topology", "version": 1, "name": "uneven", "nodes": nodes, "links": links,
                  "hosts": [{"name": f"host{i}"} for i in range(len(sys.argv) - 1)]}))

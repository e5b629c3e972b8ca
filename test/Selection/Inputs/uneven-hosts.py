"""uneven-hosts.py [process] SIZE[:PORTS][@RACK]...: a machine of hosts of so many GPUs, each of the first PORTS (else of
all) with a NIC, behind a switch; or of so many processes that share a memory, and one way out."""
import json
import sys

words = sys.argv[1:]
processes = words[0] == "process"
if processes:
    words = words[1:]
nodes, links, hosts = [{"name": "net", "kind": "net"}], [], []
rank = 0


def link(a, b, kind, rate):
    links.append({"from": a, "to": b, "kind": kind, "raw": rate, "latency_ns": 500, "both_ways": True})


for number, word in enumerate(words):
    word, _, rack = word.partition("@")
    size, _, ports = word.partition(":")
    host = f"host{number}"
    hosts.append({"name": host, **({"rack": rack} if rack else {})})
    if processes:
        nodes.append({"name": f"{host}.memory", "kind": "memory", "host": host, "throughput": "20 GB/s"})
        link(f"{host}.memory", "net", "tcp", "1 GB/s")
    else:
        nodes.append({"name": f"{host}.switch", "kind": "nvswitch", "host": host})
    for member in range(int(size)):
        if processes:
            nodes.append({"name": f"rank{rank}", "kind": "process", "host": host, "rank": rank})
            link(f"rank{rank}", f"{host}.memory", "shm", "5 GB/s")
        else:
            nodes.append({"name": f"gpu{rank}", "kind": "gpu", "host": host, "rank": rank, "gpu": "H100-SXM"})
            link(f"gpu{rank}", f"{host}.switch", "nvlink", "400 GB/s")
            if member < int(ports or size):
                nodes.append({"name": f"nic{rank}", "kind": "nic", "host": host})
                link(f"gpu{rank}", f"nic{rank}", "nic", "50 GB/s")
                link(f"nic{rank}", "net", "net", "50 GB/s")
        rank += 1
print(json.dumps({"format": "ncclx-topology", "version": 1, "name": "uneven", "nodes": nodes, "links": links,
                  "hosts": hosts}))

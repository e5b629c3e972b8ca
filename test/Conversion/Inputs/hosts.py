"""Machines of equal hosts, and graphs of one collective on them.

hosts.py HOSTS MEMBERS [process]   writes a machine: GPUs behind a switch with a port each, or processes
hosts.py module HOSTS MEMBERS      wraps a graph from stdin in a module that has the machine
hosts.py graph COLLECTIVE RANKS SIZE [TYPE [WORDS]]   writes a graph of a collective by tiers"""
import json
import sys


def machine(hosts, members, kind="gpu"):
    nodes, links = [{"name": "net", "kind": "net"}], []

    def link(a, b, kind, rate, latency):
        links.append({"from": a, "to": b, "kind": kind, "raw": rate, "latency_ns": latency, "both_ways": True})
    middle = "nvswitch" if kind == "gpu" else "memory"
    nodes.append({"name": "middle", "kind": middle, **({} if kind == "gpu" else {"throughput": "20 GB/s"})})
    for r in range(members):
        nodes.append({"name": f"rank{r}", "kind": kind, "rank": r, **({"gpu": "H100-SXM"} if kind == "gpu" else {})})
        link(f"rank{r}", "middle", "nvlink" if kind == "gpu" else "shm", "400 GB/s" if kind == "gpu" else "5 GB/s", 500)
        if kind == "gpu":
            nodes.append({"name": f"nic{r}", "kind": "nic"})
            link(f"rank{r}", f"nic{r}", "nic", "50 GB/s", 500)
            link(f"nic{r}", "net", "net", "50 GB/s", 500)
    if kind != "gpu":
        link("middle", "net", "tcp", "1 GB/s", 10000)
    return {"format": "ncclx-topology", "version": 1, "name": f"{hosts}x{members}", "nodes": nodes, "links": links,
            "replicate": {"hosts": hosts}}


def graph(collective, ranks, size, element="f32", words="sum"):
    """Of `size` rows in the larger of both tensors; a second dimension of 3 makes rows no vectors."""
    shard = -(-size // ranks)
    words = f"{words} accumulate {element} order any"
    shapes = {"all_gather": ("dim 0", shard, size), "reduce_scatter": (f"dim 0 {words}", size, shard),
              "all_reduce": (words, size, size), "all_to_all": ("split 0 concat 0", shard * ranks, shard * ranks),
              "broadcast": (f"root [{max(0, ranks - 3)}]", size, size)}
    how, i, o = shapes[collective]
    i, o = f"tensor<{i}x3x{element}>", f"tensor<{o}x3x{element}>"
    return (f"ncclx.grid @g [\"x\" = {ranks}]\nfunc.func @f(%a: {i}) -> {o} {{\n"
            f"  %r = ncclx.{collective} %a {how} over @g[\"x\"] algorithm hierarchical : {i} -> {o}\n"
            f"  return %r : {o}\n}}\n")


def attribute(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {attribute(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(attribute, value)) + "]"
    return json.dumps(value)


if __name__ == "__main__":
    if sys.argv[1] == "graph":
        print(graph(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:]))
    elif sys.argv[1] == "module":
        of = attribute(machine(int(sys.argv[2]), int(sys.argv[3])))
        print(f"module attributes {{ncclx.topology = #ncclx.topology<{of}>}} {{\n{sys.stdin.read()}}}")
    else:
        print(json.dumps(machine(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])))

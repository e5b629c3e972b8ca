#!/usr/bin/env python3
"""Writes the machine descriptions of this folder (see README.md): generate.py [FOLDER]"""
import json
import os
import sys

G = "GB/s"


def document(name, comment, nodes, links, **more):
    return {"format": "ncclx-topology", "version": 1, "name": name, "comment": comment, **more,
            "nodes": nodes, "links": links}


def gpu(rank, model):
    return {"name": f"gpu{rank}", "kind": "gpu", "rank": rank, "gpu": model}


def link(a, b, kind, count=1, **more):
    return {"from": a, "to": b, "kind": kind, "count": count, **more, "both_ways": True}


def switched(name, comment, model, gpus, wires, sharp, nic=None, **more):
    """GPUs behind one NVSwitch complex; with `nic`, a port of that rate for each GPU."""
    switch = {"name": "nvswitch", "kind": "nvswitch", "multicast": sharp, "reduces": sharp}
    nodes = [gpu(r, model) for r in range(gpus)] + [switch]
    links = [link(f"gpu{r}", "nvswitch", "nvlink", wires) for r in range(gpus)]
    if nic:
        nodes += [{"name": f"nic{r}", "kind": "nic"} for r in range(gpus)]
        nodes.append({"name": "net", "kind": "net"})
        links += [link(f"gpu{r}", f"nic{r}", "nic", raw=nic, latency_ns=500) for r in range(gpus)]
        links += [link(f"nic{r}", "net", "net", raw=nic, latency_ns=500) for r in range(gpus)]
    return document(name, comment, nodes, links, **more)


def mesh(name, comment, model, gpus, kind, wires):
    links = [link(f"gpu{a}", f"gpu{b}", kind, wires) for a in range(gpus) for b in range(a)]
    return document(name, comment, [gpu(r, model) for r in range(gpus)], links)


def from_edges(name, comment, model, gpus, kind, edges):
    links = [link(f"gpu{a}", f"gpu{b}", kind, wires) for a, b, wires in edges]
    return document(name, comment, [gpu(r, model) for r in range(gpus)], links)


def dgx1():
    """The hybrid cube mesh: two squares with their diagonals, and a link between twins."""
    edges = []
    for base in (0, 4):
        a, b, c, d = range(base, base + 4)
        edges += [(a, b, 1), (a, c, 1), (a, d, 2), (b, c, 2), (b, d, 1), (c, d, 2)]
    edges += [(0, 4, 2), (1, 5, 2), (2, 6, 1), (3, 7, 1)]
    return from_edges("dgx1-v100", "DGX-1 with V100: hybrid cube mesh, six NVLinks a GPU",
                      "V100-SXM2", 8, "nvlink", edges)


def torus(side):
    def at(x, y):
        return (x % side) * side + y % side
    edges = [(at(x, y), at(x + 1, y), 1) for x in range(side) for y in range(side)]
    edges += [(at(x, y), at(x, y + 1), 1) for x in range(side) for y in range(side)]
    return from_edges(f"torus-{side}x{side}", "A two-dimensional torus, 25 GB/s a link and direction",
                      "A100-SXM-80GB", side * side, "nvlink", edges)


def h200_xml():
    """An NCCL system file: 8 H200 over four NVSwitches (5, 5, 4 and 4 links), a NIC beside each."""
    out = ['<!-- 8 x H200 on NVSwitch, written by generate.py; bus ids are made up. -->',
           '<system version="1">']
    switches = [("0000:c4:00.0", 5), ("0000:c5:00.0", 5), ("0000:c6:00.0", 4), ("0000:c7:00.0", 4)]
    for socket in range(2):
        affinity = "ffffffff,00000000" if socket else "00000000,ffffffff"
        out.append(f'  <cpu numaid="{socket}" affinity="{affinity}" arch="x86_64" '
                   'vendor="GenuineIntel" familyid="6" modelid="207">')
        for i in range(4):
            r = socket * 4 + i
            bus = 0x10 + 0x14 * r
            gen5 = 'link_speed="32.0 GT/s PCIe" link_width="16"'
            out.append(f'    <pci busid="0000:{bus:02x}:00.0" class="0x060400" vendor="0x1000" '
                       f'device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x0001" {gen5}>')
            out.append(f'      <pci busid="0000:{bus + 2:02x}:00.0" class="0x030200" '
                       'vendor="0x10de" device="0x2335" subsystem_vendor="0x10de" '
                       f'subsystem_device="0x18be" {gen5}>')
            out.append(f'        <gpu dev="{r}" sm="90" rank="{r}" gdr="1">')
            for bus_id, count in switches:
                out.append(f'          <nvlink target="{bus_id}" count="{count}" tclass="0x068000"/>')
            out.append('        </gpu>')
            out.append('      </pci>')
            out.append(f'      <pci busid="0000:{bus + 4:02x}:00.0" class="0x020700" '
                       'vendor="0x15b3" device="0x1021" subsystem_vendor="0x15b3" '
                       f'subsystem_device="0x0041" {gen5}>')
            out.append('        <nic>')
            out.append(f'          <net name="mlx5_{r}" dev="{r}" speed="400000" port="1" '
                       f'latency="0.000000" guid="0x{0x1000 + r:x}" maxconn="131072" gdr="1"/>')
            out.append('        </nic>')
            out.append('      </pci>')
            out.append('    </pci>')
        out.append('  </cpu>')
    out.append('</system>')
    return "\n".join(out) + "\n"


def mi250():
    """16 dies, two a package with four links between them, and three to neighbouring packages, as
    the model of ForestColl counts them: seven links of 50 GB/s a die."""
    edges = [(2 * p, 2 * p + 1, 4) for p in range(8)]
    # Packages form a ring of eight with chords; each die has three links to other packages.
    for p in range(8):
        edges.append((2 * p + 1, 2 * ((p + 1) % 8), 1))
        edges.append((2 * p, 2 * ((p + 2) % 8) + 1, 1))
    for p in range(4):
        edges.append((2 * p, 2 * (p + 4), 1))
        edges.append((2 * p + 1, 2 * (p + 4) + 1, 1))
    return from_edges("mi250x16", "8 MI250 of two dies: seven 50 GB/s links a die, four of them to "
                      "its twin; between packages a ring with chords, not AMD's own drawing",
                      "MI250-GCD", 16, "xgmi", edges)


def all_files():
    yield "h200x8-nvswitch.xml", h200_xml()
    documents = [
        switched("h200x2-nvswitch", "Two H200 behind NVSwitch", "H200-SXM", 2, 18, True),
        switched("h200x8-nvswitch", "The machine of h200x8-nvswitch.xml without its PCI tree",
                 "H200-SXM", 8, 18, True),
        switched("dgx-a100", "DGX A100: 12 NVLinks a GPU", "A100-SXM-80GB", 8, 12, False),
        switched("gb200-nvl72", "GB200 NVL72: one NVLink domain over 18 trays", "GB200", 72, 18,
                 True),
        switched("dgx-h100-2", "2 DGX H100, a 400 Gb/s NIC for each GPU", "H100-SXM", 8, 18, True,
                 nic=f"50 {G}", replicate={"hosts": 2}),
        switched("dgx-h100-16", "16 DGX H100, a 400 Gb/s NIC for each GPU", "H100-SXM", 8, 18, True,
                 nic=f"50 {G}", replicate={"hosts": 16}),
        mesh("h100x4-mesh", "4 H100, six NVLinks between each two", "H100-SXM", 4, "nvlink", 6),
        mesh("mi300x8-mesh", "8 MI300X, one xGMI link between each two", "MI300X", 8, "xgmi", 1),
        dgx1(), mi250(), torus(4),
    ]
    for name, factor in (("cluster-131072", "1"), ("cluster-131072-oversubscribed", "14/5")):
        # GPU to GPU: 2 us in a rack, 7, 15 and 30 times that across racks, zones, data centres.
        tiers = [{"tier": "rack", "hosts": 2, "oversubscription": "1", "latency_ns": 6000},
                 {"tier": "zone", "hosts": 512, "oversubscription": factor, "latency_ns": 8000},
                 {"tier": "data_center", "hosts": 4096, "oversubscription": factor,
                  "latency_ns": 15000}]
        documents.append(switched(
            name, "131,072 GPUs: hosts of 8, racks of 2 hosts, zones of 256 racks, data centres of "
            f"8 zones; oversubscription {factor} above the rack", "H100-SXM", 8, 18, True,
            nic=f"50 {G}", replicate={"hosts": 16384, "network": tiers}))
    for value in documents:
        head = {k: v for k, v in value.items() if k not in ("nodes", "links")}
        text = json.dumps(head)[:-1]
        for key in ("nodes", "links"):
            rows = ",\n  ".join(json.dumps(row) for row in value[key])
            text += f',\n "{key}": [\n  {rows}]'
        yield value["name"] + ".json", text + "}\n"


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for name, text in all_files():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()

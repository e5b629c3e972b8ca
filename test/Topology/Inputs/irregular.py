"""irregular.py KIND: a machine without symmetry. torus: 64 GPUs, an 8 x 8 torus less three links. xml: an NCCL
system file of 1,000 nodes, nested 12 deep."""
import json
import sys

if sys.argv[1] == "torus":
    edges = {tuple(sorted((8 * x + y, other)))
             for x in range(8) for y in range(8) for other in (8 * ((x + 1) % 8) + y, 8 * x + (y + 1) % 8)}
    edges = [edge for edge in sorted(edges) if edge not in ((0, 1), (20, 28), (45, 46))]
    json.dump({"format": "ncclx-topology", "version": 1, "name": "torus",
               "nodes": [{"name": f"gpu{i}", "kind": "gpu", "rank": i} for i in range(64)],
               "links": [{"from": f"gpu{a}", "to": f"gpu{b}", "kind": "nvlink", "raw": "25 GB/s",
                          "both_ways": True} for a, b in edges]}, sys.stdout)
else:
    count = 0

    def pci(inside):
        global count
        count += 1
        return (f'<pci busid="{count // 256:04x}:{count % 256:02x}:00.0" class="0x060400" '
                f'link_speed="32.0 GT/s PCIe" link_width="16">{inside}</pci>\n')
    print('<system version="1"><cpu numaid="0" arch="x86_64">')
    for gpu in range(91):
        text = f'<gpu dev="{gpu}" sm="90" rank="{gpu}"/>'
        for _ in range(11):
            text = pci(text)
        print(text)
    print("</cpu></system>")

"""make-sysfs.py DIR [one-node]: a copy of the /sys and /proc of a machine that does not exist: two NUMA
nodes, two GPUs behind a bridge each, two verbs devices of which the second has a port that is down."""
import os
import sys

root, one_node = sys.argv[1], "one-node" in sys.argv[2:]


def write(path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def link(path, target):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(os.path.relpath(os.path.join(root, target), os.path.dirname(path)), path)


def device(folder, kind, vendor, product, node, speed="32.0 GT/s PCIe", width=16):
    base = f"sys/devices/{folder}"
    for name, text in (("class", kind), ("vendor", vendor), ("device", product),
                       ("numa_node", str(node)), ("max_link_speed", speed),
                       ("max_link_width", str(width))):
        write(f"{base}/{name}", text)
    link(f"sys/bus/pci/devices/{os.path.basename(folder)}", base)


write("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143")
for node in range(1 if one_node else 2):
    base = f"sys/devices/system/node/node{node}"
    write(f"{base}/cpulist", f"{node * 4}-{node * 4 + 3},{8 + node * 4}-{8 + node * 4 + 3}")
    write(f"{base}/meminfo", f"Node {node} MemTotal:       {100000000 * (node + 1)} kB")
write("sys/devices/system/node/node7/cpulist", "")  # memory alone
for node, (bridge, gpu, nic) in enumerate((("17", "19", "1a"), ("39", "3b", "3c"))):
    base = f"pci0000:{bridge}/0000:{bridge}:01.0"
    node = 0 if one_node else node
    device(base, "0x060400", "0x8086", "0x352a", node)
    device(f"{base}/0000:{gpu}:00.0", "0x030200", "0x10de", "0x2335", node)
    device(f"{base}/0000:{nic}:00.0", "0x020700", "0x15b3", "0x1021", -1 if one_node else node)
for index, (nic, state) in enumerate((("1a", "4: ACTIVE"), ("3c", "1: DOWN"))):
    bridge = ("17", "39")[index]
    link(f"sys/class/infiniband/mlx5_{index}/device",
         f"sys/devices/pci0000:{bridge}/0000:{bridge}:01.0/0000:{nic}:00.0")
    write(f"sys/class/infiniband/mlx5_{index}/node_guid", "0000:0000:0000:0001")
    for port in (1, 2) if index == 0 else (1,):
        write(f"sys/class/infiniband/mlx5_{index}/ports/{port}/state", state)
        write(f"sys/class/infiniband/mlx5_{index}/ports/{port}/rate", "400 Gb/sec (4X NDR)")

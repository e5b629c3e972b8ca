"""make-kfd.py DIR [SCENE]: the /sys of a machine that does not exist, with AMD's GPUs. SCENE: mesh, four
MI300X of one link to each other (by default); dies, two MI250 of four links between their dies and one
between packages; lost, the mesh with one GPU's links to another gone; hidden, GPUs that may not be seen."""
import os
import sys

root, scene = sys.argv[1], (sys.argv[2:] or ["mesh"])[0]
dies = scene == "dies"


def write(path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def properties(path, **values):
    write(path + "/properties", "".join(f"{name} {value}\n" for name, value in values.items()))


write("proc/cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n\n")
write("sys/devices/system/node/node0/cpulist", "0-15\n")
write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       100000000 kB\n")
nodes = "sys/class/kfd/kfd/topology/nodes"
properties(f"{nodes}/0", cpu_cores_count=16, simd_count=0, vendor_id=0, location_id=0)
for gpu in range(4):
    bus = 0x11 + 0x20 * gpu
    node = f"{nodes}/{gpu + 1}"
    if scene == "hidden":
        write(f"{node}/properties", "")
        continue
    properties(node, cpu_cores_count=0, simd_count=416 if dies else 1216, simd_per_cu=4,
               gfx_target_version=90010 if dies else 90402, vendor_id=0x1002,
               device_id=0x740c if dies else 0x74a1, location_id=bus << 8, domain=0)
    properties(f"{node}/io_links/0", type=2, node_from=gpu + 1, node_to=0, min_bandwidth=0,
               max_bandwidth=0)
    peers = [other for other in range(4)
             if other != gpu and not (scene == "lost" and {gpu, other} == {1, 2})]
    for number, other in enumerate(peers):
        wires = 4 if dies and other == gpu ^ 1 else 1
        properties(f"{node}/io_links/{number + 1}", type=11, node_from=gpu + 1, node_to=other + 1,
                   weight=15, min_bandwidth=50000, max_bandwidth=50000 * wires)
    base = f"sys/devices/pci0000:{bus - 1:02x}/0000:{bus - 1:02x}:01.0/0000:{bus:02x}:00.0"
    gpu_id = "0x740c" if dies else "0x74a1"
    for folder, kind, vendor, device in ((base, "0x120000", "0x1002", gpu_id),
                                         (os.path.dirname(base), "0x060400", "0x1022", "0x1500")):
        for name, text in (("class", kind), ("vendor", vendor), ("device", device), ("numa_node", "0"),
                           ("max_link_speed", "32.0 GT/s PCIe"), ("max_link_width", "16")):
            write(f"{folder}/{name}", text + "\n")
    for folder in (base, os.path.dirname(base)):
        link = os.path.join(root, "sys/bus/pci/devices", os.path.basename(folder))
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(os.path.relpath(os.path.join(root, folder), os.path.dirname(link)), link)

"""What --ncclx-explain says, for published.py and measured.py."""
import json
import pathlib
import re
import subprocess

root = pathlib.Path(__file__).parent.parent.parent
ELEMENT = 4  # bytes


class Explainer:
    def __init__(self, bin_folder):
        self.bin = pathlib.Path(bin_folder)

    def run(self, tool, *arguments, text=None):
        return subprocess.run([self.bin / tool, *arguments], input=text, capture_output=True, text=True)

    def imported(self, path, bytes_of_chunk=64 * ELEMENT):
        way = "--import-msccl-xml" if path.suffix == ".xml" else "--import-mscclpp-json"
        return self.run("ncclx-translate", way, path, f"--chunk-elements={max(1, bytes_of_chunk // ELEMENT)}")

    def written(self, path, machine, bytes_of_chunk):
        """Of a file: its collective, bytes, ranks, both times and the choice; or nothing, and why."""
        said = self.run("ncclx-opt", f"--ncclx-explain=topology={machine}", "-", "-o", "/dev/null",
                        text=self.imported(path, bytes_of_chunk).stdout)
        found = re.search(r"^@\S+, (\w+) of .* \((\d+) bytes\) over (\d+) of .*\n  written +([\d.]+) us.*\n"
                          r"  runs +(\w+): .*?, ([\d.]+) us", said.stdout, re.M)
        if not found:
            return None, (said.stderr or said.stdout).strip()[:200]
        return {"collective": found[1], "ranks": int(found[3]), "bytes": int(found[2]), "written_us": float(found[4]),
                "algorithm": found[5], "chosen_us": float(found[6])}, None

    def predicted(self, machine, collective, size, ranks):
        """Microseconds by algorithm, and the one that is chosen."""
        said = self.run("ncclx-opt", f"--ncclx-explain=topology={machine} collective={collective} bytes={size} ranks={ranks}",
                        "/dev/null", "-o", "/dev/null").stdout
        times = {name: float(us) for name, us in re.findall(r"^  (\w+) +([\d.]+) +[\d.-]+ +[\d.]+ ", said, re.M)}
        return times, re.search(r"runs +(\w+)", said)[1]


def range_of(path):
    """The sizes that a file says it is for, as far as collectives go."""
    text = path.read_text()
    if path.suffix == ".xml":
        low, high = (re.search(rf'\b{name}="(\d+)"', text) for name in ("minBytes", "maxBytes"))
        low, high = (int(found[1]) if found else 0 for found in (low, high))
    else:
        plan = json.loads(text)
        low, high = plan.get("min_message_size", 0), plan.get("max_message_size", 0)
    low = max(low, 1 << 10)
    return low, min(high, 1 << 30) if high >= low else max(low, 64 << 20)

"""Runs a command beside energy counters of its own: fake-rapl.py FOLDER WATTS COMMAND...

Below FOLDER stand two packages as Linux' powercap shows them, one of them by two interfaces, a zone of a core and one
without a counter. Each package draws WATTS, and its counter begins anew at 4000 J, soon after the start."""
import os, shutil, subprocess, sys, threading, time

folder, watts, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
shutil.rmtree(folder, ignore_errors=True)


def put(zone, **files):
    os.makedirs(os.path.join(folder, zone), exist_ok=True)
    for name, text in files.items():
        path = os.path.join(folder, zone, name)
        with open(path + ".new", "w") as f:
            f.write(f"{text}\n")
        os.replace(path + ".new", path)


packages = [("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1"), ("intel-rapl-mmio:0", "package-0")]
for zone, name in packages:
    put(zone, name=name, energy_uj=3_990_000_000, max_energy_range_uj=4_000_000_000, constraint_0_power_limit_uw=200_000_000)
put("intel-rapl:0:0", name="core", energy_uj=5)
put("intel-rapl", enabled=1)
start, done = time.monotonic(), threading.Event()


def count():
    while not done.wait(0.002):
        for zone, _ in packages:
            put(zone, energy_uj=int(3_990_000_000 + (time.monotonic() - start) * watts * 1e6) % 4_000_000_000)


thread = threading.Thread(target=count)
thread.start()
code = subprocess.call(command)
done.set()
thread.join()
sys.exit(code)

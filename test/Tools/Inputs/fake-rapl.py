"""Runs a command beside energy counters of its own: fake-rapl.py FOLDER WATTS COMMAND...

Below FOLDER stand two packages as Linux' powercap shows them, one of them by two interfaces, a zone of a core and one
without a counter. Each package draws WATTS; its counter is a pipe, so that who reads it gets what it is then, however busy
the machine is. It begins anew every 4000 J."""
import os, shutil, subprocess, sys, threading, time

folder, watts, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
shutil.rmtree(folder, ignore_errors=True)


def put(zone, **files):
    os.makedirs(os.path.join(folder, zone), exist_ok=True)
    for name, text in files.items():
        with open(os.path.join(folder, zone, name), "w") as f:
            f.write(f"{text}\n")


def count(path):
    while True:
        try:
            with open(path, "w") as f:  # until somebody reads
                f.write(f"{int(time.monotonic() * watts * 1e6) % 4_000_000_000}\n")
        except BrokenPipeError:
            pass
        time.sleep(0.02)  # the reader has gone


packages = [("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1"), ("intel-rapl-mmio:0", "package-0")]
for zone, name in packages:
    put(zone, name=name, max_energy_range_uj=4_000_000_000, constraint_0_power_limit_uw=20_000_000_000)
    path = os.path.join(folder, zone, "energy_uj")
    os.mkfifo(path)
    threading.Thread(target=count, args=(path,), daemon=True).start()
put("intel-rapl:0:0", name="core", energy_uj=5)
put("intel-rapl", enabled=1)
code = subprocess.call(command)
shutil.rmtree(folder)  # pipes block whoever looks through files
sys.stdout.flush()
os._exit(code)

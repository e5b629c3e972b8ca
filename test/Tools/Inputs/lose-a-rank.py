"""lose-a-rank.py SIGNAL COMMAND...: sends SIGNAL (KILL or STOP) to rank 1 of a running ncclx-run. It must
end with code 4 and name the rank, and leave no process behind."""
import os
import signal
import subprocess
import sys
import time

command = sys.argv[2:]
run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
children = []
deadline = time.monotonic() + 120
while len(children) < 2 and run.poll() is None and time.monotonic() < deadline:
    with open(f"/proc/{run.pid}/task/{run.pid}/children", encoding="ascii") as file:
        children = file.read().split()
    time.sleep(0.01)
if len(children) != 2:
    run.kill()
    sys.exit(f"found {len(children)} ranks, expected 2")


def ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rsplit(")", 1)[1].split()[11])


# Both compute, so they have met.
while any(ticks(pid) < 20 for pid in children) and time.monotonic() < deadline:
    time.sleep(0.01)
os.kill(int(children[1]), getattr(signal, "SIG" + sys.argv[1]))
try:
    out, err = run.communicate(timeout=200)
except subprocess.TimeoutExpired:
    run.kill()
    sys.exit("it hangs")
last = (out.splitlines() or [""])[-1]
if run.returncode != 4 or not last.startswith("error: ") or "rank 1" not in last:
    sys.exit(f"exit code {run.returncode}, last line '{last}'\n{err}")
left = [pid for pid in children if os.path.exists("/proc/" + pid)]
if left:
    sys.exit(f"left behind: {left}")
print(last)

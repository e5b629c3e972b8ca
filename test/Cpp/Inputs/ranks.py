"""ranks.py N PROGRAM...: starts PROGRAM RANK HOST:PORT once a rank, the last for all that are left; fails if one of them does."""
import socket
import subprocess
import sys

n, programs = int(sys.argv[1]), sys.argv[2:]
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{s.getsockname()[1]}"
ranks = [subprocess.Popen([programs[min(r, len(programs) - 1)], str(r), address]) for r in range(n)]
sys.exit(any([r.wait(timeout=120) for r in ranks]))

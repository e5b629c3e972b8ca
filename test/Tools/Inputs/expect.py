"""expect.py CODE TEXT COMMAND...: the command ends with CODE, and its last line of standard output is
`ok: ...` (code 0) or `error: ...` with TEXT in it."""
import subprocess
import sys

code, text, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250)
last = (done.stdout.splitlines() or [""])[-1]
good = (done.returncode == code and last.startswith("ok: " if code == 0 else "error: ")
        and text in last)
if not good:
    sys.exit(f"exit code {done.returncode}, expected {code}\nlast line '{last}', expected '{text}'\n"
             f"{done.stdout}{done.stderr}")

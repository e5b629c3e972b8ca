"""make-msccl.py RANKS CHANNELS [FAULT|COUNT]: an MSCCL XML all-reduce: on each channel a ring of its own,
in place, COUNT (1) chunks a step. 2 (n-1) + 1 steps a thread block, n CHANNELS thread blocks. FAULT breaks one thing."""
import sys

n, channels = int(sys.argv[1]), int(sys.argv[2])
fault = sys.argv[3] if len(sys.argv) > 3 else ""
count = int(fault) if fault.isdigit() else 1
chunks = n * channels * count
print(f'<algo name="ring" proto="Simple" nchannels="{channels}" nchunksperloop="{chunks}" ngpus="{n}" '
      'coll="allreduce" inplace="1" outofplace="0" minBytes="0" maxBytes="0">')
for r in range(n):
    print(f'  <gpu id="{r}" i_chunks="{chunks}" o_chunks="0" s_chunks="0">')
    for c in range(channels):
        send, recv = (r + 1) % n, (r - 1) % n
        if fault == "peer" and r == 1 and c == 0:
            send = (r + 2) % n
        print(f'    <tb id="{c}" send="{send}" recv="{recv}" chan="{c}">')
        steps = [("s", r)]
        steps += [("rrs", (r - k) % n) for k in range(1, n - 1)]
        steps += [("rrcs", (r + 1) % n)]
        steps += [("rcs", (r - k) % n) for k in range(0, n - 2)]
        steps += [("r", (r + 2) % n)]
        if n == 2:
            steps = [("s", r), ("rrcs", (r + 1) % n), ("r", r)]
        for s, (kind, chunk) in enumerate(steps):
            at = (chunk * channels + c) * count
            hit = r == 1 and c == 0
            if fault == "copy" and hit and kind == "rrcs":
                kind = "rcs"
            if fault == "chunk" and hit and kind == "rrs":
                at = (at + 1) % chunks
            dep, deps = (-1, -1)
            if fault == "cycle" and r == 1 and s == 0 and c < 2:
                dep, deps = 1 - c, 1
            if fault == "missing" and hit and s == 0:
                dep, deps = 7, 0
            print(f'      <step s="{s}" type="{kind}" srcbuf="i" srcoff="{at}" dstbuf="i" dstoff="{at}" cnt="{count}" '
                  f'depid="{dep}" deps="{deps}" hasdep="0"/>')
        print('    </tb>')
    print('  </gpu>')
print('</algo>')

"""PyTorch's async tensor parallelism on 2 GPUs, one command at a time, as a contender of overlap.cpp.

A command is a line "gather|scatter ROWS SHARED COLUMNS SECONDS": the product of bf16 matrices ROWS x SHARED and SHARED x
COLUMNS, behind an all_gather of the first or in front of a reduce_scatter of the result, for about so long. The answer is a line
with microseconds a call, the slower GPU. Between commands no GPU has work, so that others can be timed in turn.
"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = 2


def serve(rank, pipe):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK=str(rank), WORLD_SIZE=str(RANKS))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    group = dist.group.WORLD.group_name
    try:
        import torch.distributed._symmetric_memory as symmetric
        symmetric.enable_symm_mem_for_group(group)
    except Exception:  # versions that need it not
        pass
    calls = {}

    def prepare(kind, rows, shared, columns):
        random = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
        b = random(shared, columns)
        if kind == "gather":
            a = random(rows // RANKS, shared)
            return lambda: torch.ops.symm_mem.fused_all_gather_matmul(a, [b], gather_dim=0, group_name=group)
        a = random(rows, shared)
        return lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, "sum", scatter_dim=0, group_name=group)

    def timed(call, count):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        taken = torch.tensor([(time.perf_counter() - start) / count], device="cuda", dtype=torch.float64)
        dist.all_reduce(taken, op=dist.ReduceOp.MAX)
        return taken.item()

    while words := pipe.recv():
        key = words[0], *map(int, words[1:4])
        if key not in calls:
            calls.clear()  # the memory of one at a time
            calls[key] = prepare(*key)
            timed(calls[key], 3)
        count = max(1, int(float(words[4]) / timed(calls[key], 5)))
        pipe.send(timed(calls[key], count) * 1e6)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.set_start_method("spawn")
    pipes = []
    for rank in range(RANKS):
        mine, theirs = mp.Pipe()
        mp.Process(target=serve, args=(rank, theirs), daemon=True).start()
        theirs.close()
        pipes.append(mine)
    for line in sys.stdin:
        for pipe in pipes:
            pipe.send(line.split())
        print(max(pipe.recv() for pipe in pipes), flush=True)
    for pipe in pipes:
        pipe.send(None)

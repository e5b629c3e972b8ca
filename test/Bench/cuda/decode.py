"""A decode step of layers of a Llama 70B at TP=2 as one captured graph: decode.py FOLDER, which decode.sh fills.

Of each batch size, in turn in each round: the products alone; with NCCL's all_reduces in the graph; with ours in the graph,
which are kernels compiled ahead of time on torch's streams and tensors. Every bit of what both give is compared. Ranks are
processes, each with a GPU. JSON lines: medians of microseconds a layer, of the slower rank.
"""
import ctypes
import json
import os
import statistics
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS, LAYERS, HIDDEN, QKV, ATTENTION, FFN = 2, 4, 8192, 5120, 4096, 14336
BATCHES = [1, 16, 64, 256]
ROUNDS, REPLAYS = 15, 20
ALLGATHER = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class Config(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("rank", ctypes.c_int32), ("nranks", ctypes.c_int32),
                ("device", ctypes.c_int32), ("reserved", ctypes.c_int32), ("timeout_ms", ctypes.c_int64),
                ("allgather", ALLGATHER), ("context", ctypes.c_void_p), ("driver", ctypes.c_char_p),
                ("failure", ctypes.c_void_p)]


def main(rank, folder, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=RANKS, device_id=torch.device("cuda", rank))
    host = dist.new_group(backend="gloo")
    library = ctypes.CDLL(os.path.join(folder, "decode.so"))
    library.ncclxrtCudaLastError.restype = ctypes.c_char_p

    def check(result):
        if result:
            print(f"error: rank {rank}: {library.ncclxrtCudaLastError(comm).decode()}", flush=True)
            os._exit(1)

    @ALLGATHER
    def allgather(context, mine, size, all_):
        own = torch.frombuffer(bytearray(ctypes.string_at(mine, size)), dtype=torch.uint8)
        pieces = [torch.empty_like(own) for _ in range(RANKS)]
        dist.all_gather(pieces, own, group=host)
        ctypes.memmove(all_, bytes(torch.cat(pieces).numpy()), size * RANKS)
        return 0

    comm = ctypes.c_void_p()
    config = Config(ctypes.sizeof(Config), rank, RANKS, rank, 0, 0, allgather, None, None, None)
    check(library.ncclxrtCudaInit(ctypes.byref(config), ctypes.byref(comm)))
    torch.manual_seed(rank)
    weight = lambda rows, columns: (torch.randn(rows, columns, device="cuda") / rows**0.5).bfloat16()
    layers = [(weight(HIDDEN, QKV), weight(ATTENTION, HIDDEN), weight(HIDDEN, 2 * FFN), weight(FFN, HIDDEN)) for _ in range(LAYERS)]
    plans, keep = [], []
    for batch in BATCHES:
        x = torch.randn(batch, HIDDEN, device="cuda").bfloat16()
        dist.broadcast(x, 0)
        parts = [torch.empty(batch, HIDDEN, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
        sums = [torch.empty_like(p) for p in parts]
        ours = []
        for part, total in zip(parts, sums):
            plan = ctypes.c_void_p()
            buffers = (ctypes.c_void_p * 2)(part.data_ptr(), total.data_ptr())
            check(getattr(library, f"reduce{batch}_prepare")(comm, buffers, ctypes.byref(plan)))
            ours.append(plan)
        plans += ours
        launch = getattr(library, f"reduce{batch}_launch")

        def reduce(which, i):
            if which == "compute":
                return parts[i]
            if which == "nccl":
                dist.all_reduce(parts[i])
                return parts[i]
            check(launch(ours[i], ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), None))
            return sums[i]

        def step(which):
            y = x
            for qkv, out, up, down in layers:
                torch.mm((y @ qkv)[:, :ATTENTION], out, out=parts[0])
                y = y + reduce(which, 0)
                both = y @ up
                torch.mm(torch.nn.functional.silu(both[:, :FFN]) * both[:, FFN:], down, out=parts[1])
                y = y + reduce(which, 1)
            return y

        graphs, results = {}, {}
        stream = torch.cuda.Stream()
        for which in ["compute", "nccl", "ours"]:
            with torch.cuda.stream(stream):
                step(which)
                torch.cuda.synchronize()
                dist.barrier()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                    results[which] = step(which)
            graphs[which] = graph
        keep.append((x, parts, sums, graphs, results))
        times = {which: [] for which in graphs}
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for turn in range(ROUNDS + 2):
            for which, graph in graphs.items():
                torch.cuda.synchronize()
                dist.barrier(group=host)
                with torch.cuda.stream(stream):
                    graph.replay()
                    begin.record()
                    for _ in range(REPLAYS):
                        graph.replay()
                    end.record()
                torch.cuda.synchronize()
                slowest = torch.tensor([begin.elapsed_time(end) * 1000 / REPLAYS / LAYERS])
                dist.all_reduce(slowest, op=dist.ReduceOp.MAX, group=host)
                if turn > 1:
                    times[which].append(slowest.item())
        wrong = torch.tensor([int((results["ours"] != results["nccl"]).sum())])
        dist.all_reduce(wrong, group=host)
        if rank == 0:
            median = {which: statistics.median(t) for which, t in times.items()}
            ratio = statistics.median(o / n for o, n in zip(times["ours"], times["nccl"]))
            print(json.dumps({"kind": "decode", "batch": batch, "all_reduce_bytes": 2 * batch * HIDDEN,
                              **{f"{which}_us": round(m, 2) for which, m in median.items()},
                              "ours_over_nccl": round(ratio, 3), "wrong": wrong.item(),
                              "card": torch.cuda.get_device_name(), "nccl": list(torch.cuda.nccl.version())}), flush=True)
        if wrong.item():
            os._exit(1)
    torch.cuda.synchronize()
    dist.barrier()
    for graph in [g for kept in keep for g in kept[3].values()]:
        graph.reset()
    for plan in plans:
        check(library.ncclxrtCudaPlanDestroy(plan))
    check(library.ncclxrtCudaDestroy(comm))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(main, (sys.argv[1], 29000 + os.getpid() % 2000), nprocs=RANKS)
    print("ok")

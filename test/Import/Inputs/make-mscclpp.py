"""make-mscclpp.py KIND RANKS [FAULT]: an MSCCL++ plan. KIND: put, get and port are all-gathers in place, one chunk a rank;
rres, packet, recopy and switch are all-reduces in place; stage is an all-to-all through scratch memory by two blocks with a semaphore,
and blocks one by two blocks with a barrier and a nop that depends. FAULT breaks one thing."""
import json
import sys

kind, n = sys.argv[1], int(sys.argv[2])
fault = sys.argv[3] if len(sys.argv) > 3 else ""
reduces = kind in ("rres", "packet", "recopy", "switch")
exchange = kind in ("stage", "blocks")


def local(buffer, index, size=1):
    return {"type": buffer, "index": index, "size": size}


def op(name, **more):
    return {"name": name, **more}


def chan(name, ids, kind="memory"):
    return op(name, channel_ids=ids, channel_type=kind)


def gpu(r):
    peers = [p for p in range(n) if p != r]
    all_ids = list(range(len(peers)))
    way = "port" if kind == "port" else "memory"
    remote = {"put": "o", "get": "o", "port": "o", "rres": "i", "packet": "s", "recopy": "s"}.get(kind, "o")

    def there(p, index, size=1):
        return {"buffer_id": peers.index(p), "index": index, "size": size}

    def meet(prefix=""):
        return [chan(prefix + "signal", all_ids), chan(prefix + "wait", all_ids), op("nop")]

    semaphores, second = [], None
    if kind == "put":
        ops = meet("rlx")
        ops += [op("put", src_buff=[local("o", r)] * len(peers), dst_buff=[there(p, r) for p in peers],
                   channel_type="memory"), op("nop")]
        ops += meet()
    elif kind == "get":
        ops = meet("rlx")
        ops += [op("get", src_buff=[there(p, p) for p in peers], dst_buff=[local("o", p) for p in peers],
                   channel_type="memory"), op("nop")]
        ops += meet()
    elif kind == "port":
        ops = [chan("signal", all_ids, "port"), chan("wait", all_ids, "port"), op("nop")]
        ops += [op("pwsf" if r else "pws", src_buff=[local("o", r)] * len(peers), dst_buff=[there(p, r) for p in peers],
                   channel_ids=all_ids, channel_type="port")]
        ops += [chan("flush", all_ids, "port"), chan("wait", all_ids, "port")]
    elif kind == "rres":
        ops = meet("rlx")
        ops += [op("rres", src_buff=[local("i", r)] + [there(p, r) for p in peers],
                   dst_buff=[local("i", r)] + [there(p, r) for p in peers], channel_type="memory", reduce_op="sum")]
        ops += [op("nop")] + meet()
    elif kind == "packet":
        # Packets of rank q lie in slot q, or q - 1 behind the own.
        def slot(q, at):
            return q - (q > at)
        ops = [op("ppkt", src_buff=[local("i", 0)] * len(peers), dst_buff=[there(p, slot(r, p)) for p in peers],
                  channel_type="memory")]
        ops += [op("repkt", src_buff=[local("i", 0)] + [local("s", k) for k in range(n - 1)],
                   dst_buff=[local("i", 0)], channel_type="memory", reduce_op="sum")]
    elif kind == "recopy":
        # Along a chain to the last rank and back: recspkt keeps a packet of its sum for who unpacks it here.
        first, last = r == 0, r == n - 1
        ops = []
        if first:
            ops += [op("cpkt", src_buff=[local("i", 0)], dst_buff=[local("s", 0)]),
                    op("rppkt", src_buff=[local("s", 0)], dst_buff=[there(1, 1)], channel_type="memory")]
        elif last:
            ops += [op("recspkt", src_buff=[local("i", 0), local("s", 1)],
                       dst_buff=[local("i", 0), local("s", 3), there(r - 1, 2)], channel_type="memory"),
                    op("upkt", src_buff=[local("s", 3)], dst_buff=[local("i", 0)])]
        else:
            ops += [op("respkt", src_buff=[local("i", 0), local("s", 1)], dst_buff=[local("s", 4), there(r + 1, 1)],
                       channel_type="memory")]
        if not last:
            if not first:
                ops += [op("rppkt", src_buff=[local("s", 2)], dst_buff=[there(r - 1, 2)], channel_type="memory")]
            ops += [op("upkt", src_buff=[local("s", 2)], dst_buff=[local("i", 0)])]
    elif kind == "switch":
        ops = meet("rlx")
        ops += [op("glres", src_buff=[{"switch_channel_id": 0, "index": r, "size": 1}],
                   dst_buff=[{"switch_channel_id": 0, "index": r, "size": 1}], channel_type="switch", reduce_op="sum")]
        ops += [op("nop")] + meet()
    elif kind == "stage":
        semaphores = [{"init_value": 1}, {"init_value": 0}]
        ops, second = [], meet("rlx")
        for p in range(n):
            ops += [op("sem_acquire", semaphore_ids=[0]), op("nop"),
                    op("copy", src_buff=[local("i", p)], dst_buff=[local("s", 0)]), op("nop"),
                    op("sem_release", semaphore_ids=[1])]
            to = op("copy", src_buff=[local("s", 0)], dst_buff=[local("o", r)]) if p == r else op(
                "put", src_buff=[local("s", 0)], dst_buff=[there(p, r)], channel_type="memory")
            second += [op("sem_acquire", semaphore_ids=[1]), op("nop"), to, op("nop"), op("sem_release", semaphore_ids=[0])]
        second += meet()
    elif kind == "blocks":
        ops = [op("copy", src_buff=[local("i", r)], dst_buff=[local("o", r)])] + meet("rlx")
        ops += [op("barrier", barrier_id=0, num_threadblocks=2)]
        ops += [op("put", src_buff=[local("i", p)], dst_buff=[there(p, r)], channel_type="memory") for p in peers[::2]]
        second = [op("barrier", barrier_id=0, num_threadblocks=2)]
        second += [op("put", src_buff=[local("i", p)], dst_buff=[there(p, r)], channel_type="memory") for p in peers[1::2]]
        ops += [op("nop", deps=[{"tb": 1, "step": len(second) - 1}])] + meet()
    if r == 1:
        if fault == "wait":
            ops.remove(next(o for o in ops if o["name"] == "rlxwait"))
        if fault == "silent":
            ops = [o for o in ops if o["name"] != "rlxwait" and o["name"] != "rlxsignal"]
        if fault == "source":
            next(o for o in ops if "src_buff" in o)["src_buff"][0]["index"] ^= 1
        if fault == "word":
            ops.append(op("teleport"))
        if fault == "attribute":
            ops[0]["tb_group"] = 1
        if fault == "min":
            next(o for o in ops if "reduce_op" in o)["reduce_op"] = "min"
        if fault == "twice":
            ops.append(ops[0])
        if fault == "flagless":
            ops[0]["dst_buff"][0]["index"] += n - 1
        if fault == "nop":
            ops = [o for o in ops if o["name"] != "nop"]
        if fault == "cycle":
            ops.insert(0, op("nop", deps=[{"tb": 1, "step": 0}]))
            second.insert(0, op("nop", deps=[{"tb": 0, "step": 0}]))
        if fault == "order":
            ops.sort(key=lambda o: o["name"] in ("signal", "rlxsignal"))
        if fault == "room":
            next(o for o in ops if "dst_buff" in o)["dst_buff"][0]["index"] = 99
        if fault == "reach":
            ops.append(op("get", src_buff=[local("o", 0)], dst_buff=[local("o", 0)], channel_type="memory"))
        if fault == "come":
            next(o for o in ops if o["name"] == "barrier")["num_threadblocks"] = 3
    block = {"id": 0, "ops": ops, "channels": [{"channel_type": way, "channel_ids": all_ids}],
             "remote_buffer_refs": [{"access_channel_type": way, "remote_buffer_ids": all_ids}]}
    if kind == "switch":
        block["channels"].append({"channel_type": "switch", "channel_ids": [0]})
    blocks = [block]
    if second:
        blocks.append({**block, "id": 1, "ops": second})
        if kind == "stage":
            block["channels"], block["remote_buffer_refs"] = [], []
    channels = [{"channel_type": way, "connected_to": peers}]
    if kind == "switch":
        channels.append({"channel_type": "switch", "buffer_type": "i", "rank_groups": [{"size": n, "ranks": list(range(n))}]})
    scratch = {"packet": 2 * n, "recopy": 5, "stage": 1}.get(kind, 0)
    chunks = 1 if kind in ("packet", "recopy") else n
    return {"id": r, "input_chunks": chunks if reduces or exchange else 1, "output_chunks": chunks,
            "scratch_chunks": scratch, "threadblocks": blocks, "channels": channels,
            "remote_buffers": [{"rank": p, "type": remote, "access_channel_types": [way]} for p in peers],
            "semaphores": semaphores}


packets = kind in ("packet", "recopy")
plan = {"name": kind, "collective": "allreduce" if reduces else "alltoall" if exchange else "allgather",
        "protocol": "LL" if packets else "Simple", "inplace": not exchange, "reuse_resources": False,
        "gpus": [gpu(r) for r in range(n)], "num_threads_per_block": 1024,
        "use_double_scratch_buffer": packets and fault != "single", "buffer_alignment": 16, "min_message_size": 0,
        "max_message_size": 2**64 - 1}
if fault == "default":
    del plan["min_message_size"], plan["inplace"]
json.dump(plan, sys.stdout, indent=1)
print()

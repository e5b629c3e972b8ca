//===- PlanOps.cpp - The ops of a program on streams ------------------------===//
//
// Group B with a status of 0: each op checks what it is given and, but in the rehearsal, enqueues.
//
//===----------------------------------------------------------------------===//
#include "Plan.h"

#include "../Reduce.h"

#include <utility>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

ncclxrtResult_t Plan::fail(ncclxrtResult_t code, const std::string &reason) {
  if (failure.ok()) {
    std::string op = currentOp >= 0 && currentOp < int64_t(shape.ops.size())
                         ? shape.ops[currentOp].name
                         : fmt::format("op {}", currentOp);
    failure = error(code, "rank {}, plan '{}', run {}, {}: {}", comm.rank(), shape.name, runNumber,
                    op, reason);
  }
  return failure.code();
}

ncclxrtResult_t Plan::enter(int64_t op, int64_t lane, bool joins) {
  if (!failure.ok())
    return failure.code();
  currentOp = op;
  if (op < 0 || op >= int64_t(shape.ops.size()) || lane < 0 || lane >= int64_t(shape.lanes.size()))
    return fail(ncclxrtInvalidArgument,
                fmt::format("there is no op {} or lane {}, the plan has {} and {}", op, lane,
                            shape.ops.size(), shape.lanes.size()));
  if (rehearsing) {
    ++rehearsed;
    return ncclxrtSuccess;
  }
  Lane &at = lanes[placeOf(lane)];
  ++at.given;
  if (auto code = joins ? ncclxrtSuccess : check(release(at)))
    return code;
  if (at.used)
    return ncclxrtSuccess;
  at.used = true;
  return check(comm.call(comm.cuda().waitEvent(at.stream, entered, 0), "cuStreamWaitEvent"));
}

ncclxrtResult_t Plan::startTime(int64_t op, int64_t lane) {
  if (!times || rehearsing)
    return ncclxrtSuccess;
  size_t place = placeOf(lane);
  return check(times->begin(place, lanes[place].stream, op, lane));
}

int64_t Plan::address(int64_t window) {
  if (window < 0 || window >= int64_t(shape.windows.size())) {
    (void)fail(ncclxrtInvalidArgument,
               fmt::format("there is no window {}, the plan has {}", window, shape.windows.size()));
    return 0;
  }
  const Shape::Window &w = shape.windows[window];
  return reinterpret_cast<int64_t>(memory[window][comm.rank()] +
                                   runNumber % w.generations * w.pitch);
}

bool Plan::findRank(int64_t peer, int &rank) const {
  rank = peer < 0 ? comm.rank() : int(peer);
  return peer >= -1 && peer < comm.nranks();
}

ncclxrtResult_t Plan::place(int64_t lane, const char *what, const Where &where, bool isTarget,
                            int64_t moved, int64_t unit, device::Pieces &pieces) {
  int rank;
  if (!findRank(where.peer, rank))
    return fail(ncclxrtInvalidArgument, fmt::format("{}: there is no rank {}, the job has {}", what,
                                                    where.peer, comm.nranks()));
  if (std::string wrong = shape.wrongRange(what, where, isTarget, moved, unit); !wrong.empty())
    return fail(ncclxrtInvalidArgument, wrong);
  const Shape::Window &w = shape.windows[where.window];
  Range range = Range{where.offset, where.rows, where.stride, where.rowBytes}.canonical();
  pieces = {memory[where.window][rank] + runNumber % w.generations * w.pitch +
                (range.rows ? range.offset : 0),
            range.rows, range.stride, range.rowBytes};
  if (rehearsing && rank != comm.rank())
    replay.reach(placeOf(lane), rank);
  return ncclxrtSuccess;
}

ncclxrtResult_t Plan::order(int64_t op, int64_t lane, int64_t other) {
  if (auto code = enter(op, lane))
    return code;
  if (other < 0 || other >= int64_t(shape.lanes.size()))
    return fail(ncclxrtInvalidArgument, fmt::format("there is no lane {}", other));
  if (oneStream || lane == other)
    return ncclxrtSuccess;
  if (rehearsing) {
    replay.order(size_t(lane), size_t(other));
    return ncclxrtSuccess;
  }
  Lane &later = lanes[lane], &earlier = lanes[other];
  if (!earlier.used || later.follows[other] == earlier.given)
    return ncclxrtSuccess;
  later.follows[other] = earlier.given;
  if (times) // how long it waits there is nobody's time
    if (auto code = check(times->end(size_t(lane), later.stream)))
      return code;
  if (auto code = check(release(earlier)))
    return code;
  if (auto code =
          check(comm.call(comm.cuda().record(earlier.event, earlier.stream), "cuEventRecord")))
    return code;
  return check(
      comm.call(comm.cuda().waitEvent(later.stream, earlier.event, 0), "cuStreamWaitEvent"));
}

//===--- signals and waits that become one node ----------------------------------------------===//

Status Plan::write(Lane &lane, uint64_t *slot, uint64_t value) {
  return capturing ? hold(lane, writeOp, slot, value) : comm.raise(lane.stream, slot, value);
}

Status Plan::await(Lane &lane, const uint64_t *slot, uint64_t value) {
  return capturing ? hold(lane, awaitOp, slot, value) : comm.await(lane.stream, slot, value);
}

/// In order, and a write comes after all that the stream has done (CU_STREAM_WRITE_VALUE_DEFAULT).
/// Where kernels run beside copies a write is a batch's last: with waits behind it, sums of a
/// captured all_reduce stood still until copies were done (945 and 818 us of 256 MiB on 2 H200s).
Status Plan::hold(Lane &lane, int kind, const uint64_t *slot, uint64_t value) {
  static_assert(waitAtLeast == writeDefault);
  lane.held.push_back({kind, 0, reinterpret_cast<Address>(slot), value, waitAtLeast, 0, {}});
  bool ends = kind == writeOp && (computes || !reductions.empty());
  return times || ends || lane.held.size() == mostMemoryOps ? release(lane) : Status();
}

Status Plan::release(Lane &lane) {
  if (lane.held.empty())
    return {};
  std::vector<MemoryOp> ops = std::exchange(lane.held, {});
  return comm.call(comm.cuda().memoryOps(lane.stream, unsigned(ops.size()), ops.data(), 0),
                   "cuStreamBatchMemOp");
}

//===--- ops ---------------------------------------------------------------------------------===//

Status Plan::copyPieces(Lane &lane, const device::Pieces &to, const device::Pieces &from) {
  const Driver &cuda = comm.cuda();
  auto at = [](const char *p) { return reinterpret_cast<Address>(p); };
  if (to.rows == 1 && from.rows == 1)
    return comm.call(cuda.copy(at(to.at), at(from.at), size_t(to.rowBytes), lane.stream),
                     "cuMemcpyAsync");
  // One copy where both have rows of one size, or one is whole.
  constexpr int64_t longest = 0x7fffffff;
  int64_t width = to.rows == 1 ? from.rowBytes : to.rowBytes;
  int64_t height = to.rows == 1 ? from.rows : to.rows;
  int64_t toPitch = to.rows == 1 ? width : to.stride;
  int64_t fromPitch = from.rows == 1 ? width : from.stride;
  if ((to.rows == 1 || from.rows == 1 || to.rowBytes == from.rowBytes) && fromPitch >= width &&
      toPitch <= longest && fromPitch <= longest) {
    Copy2D copy{};
    copy.fromType = copy.toType = unifiedMemory;
    copy.from = at(from.at), copy.fromPitch = size_t(fromPitch);
    copy.to = at(to.at), copy.toPitch = size_t(toPitch);
    copy.width = size_t(width), copy.height = size_t(height);
    return comm.call(cuda.copy2D(&copy, lane.stream), "cuMemcpy2DAsync");
  }
  auto base = [](char *p) { return reinterpret_cast<std::byte *>(p); };
  Cursor into(base(to.at), {0, to.rows, to.stride, to.rowBytes});
  Cursor source(base(from.at), {0, from.rows, from.stride, from.rowBytes});
  while (!into.done()) {
    int64_t n = std::min(into.contiguous(), source.contiguous());
    if (Status s =
            comm.call(cuda.copy(reinterpret_cast<Address>(into.data()),
                                reinterpret_cast<Address>(source.data()), size_t(n), lane.stream),
                      "cuMemcpyAsync");
        !s.ok())
      return s;
    into.advance(n);
    source.advance(n);
  }
  return {};
}

ncclxrtResult_t Plan::copy(int64_t op, int64_t lane, const Where &dst, const Where &src,
                           int64_t notifySlots, int64_t notifyPeer, int64_t notifyIndex) {
  device::Pieces to, from;
  if (auto code = start(op, lane))
    return code;
  if (auto code = place(lane, "destination", dst, true, 0, 1, to))
    return code;
  if (auto code = place(lane, "source", src, false, 0, 1, from))
    return code;
  if (to.rows * to.rowBytes != from.rows * from.rowBytes)
    return fail(ncclxrtInvalidArgument,
                fmt::format("the source has {} bytes, the destination {}",
                            from.rows * from.rowBytes, to.rows * to.rowBytes));
  tellBytes(lane, to.rows * to.rowBytes);
  if (!rehearsing && to.rows)
    if (auto code = check(copyPieces(lanes[placeOf(lane)], to, from)))
      return code;
  return notifySlots < 0 ? ncclxrtSuccess : raise(lane, notifySlots, notifyPeer, notifyIndex);
}

ncclxrtResult_t Plan::raise(int64_t lane, int64_t slots, int64_t peer, int64_t index) {
  int rank;
  if (std::string wrong = shape.wrongSlots(slots, index, 1); !wrong.empty())
    return fail(ncclxrtInvalidArgument, wrong);
  if (!findRank(peer, rank))
    return fail(ncclxrtInvalidArgument,
                fmt::format("there is no rank {}, the job has {}", peer, comm.nranks()));
  Raised &who = raised[slots][rank];
  int32_t stream = oneStream ? 0 : int32_t(lane);
  const Shape::Slots &array = shape.slots[slots];
  int64_t place = runNumber % array.generations * array.count + index;
  if (rehearsing) {
    who.by[index] = who.by[index] == nobody || who.by[index] == stream ? stream : several;
    if (writers[slots] == 1)
      replay.raise(size_t(stream), rank, int64_t(array.first) + place);
    else
      replay.giveUp();
    return ncclxrtSuccess;
  }
  uint64_t *slot = counters[rank] + (capturing ? captureFirst : 0) + array.first + place;
  // The value that the counter gets is known where one stream alone raises it.
  if (writers[slots] == 1 && who.by[index] == stream)
    return check(write(lanes[stream], slot, ++(capturing ? who.captured : who.count)[place]));
  return check(launchOwn(lanes[stream], raiseKernel, 1, 1, &slot));
}

Status Plan::launchOwn(Lane &lane, Function function, unsigned blocks, unsigned threads,
                       void *argument) {
  if (!function)
    return error(ncclxrtInvalidUsage, "the program does in this run what it did not rehearse");
  if (Status s = release(lane); !s.ok())
    return s;
  void *parameters[] = {argument};
  return comm.call(comm.cuda().launch(function, blocks, 1, 1, threads, 1, 1, 0, lane.stream,
                                      parameters, nullptr),
                   "cuLaunchKernel");
}

ncclxrtResult_t Plan::reduce(int64_t op, int64_t lane, int64_t kind, int64_t dtype, int64_t acc,
                             double scale, int64_t divisor, const Where &dst, const Where &a,
                             int64_t count, int64_t step, const Where &b) {
  if (auto code = start(op, lane))
    return code;
  if (divisor < 1 || kind != int32_t(kind) || dtype != int32_t(dtype) || acc != int32_t(acc))
    return fail(ncclxrtInvalidArgument,
                fmt::format("reduction of kind {}, dtype {}, divisor {}", kind, dtype, divisor));
  std::pair<int, int> key;
  if (auto code = check(findReduction(
          {int32_t(kind), int32_t(dtype), int32_t(acc), scale != 1, divisor != 1}, key)))
    return code;
  bool hasB = b.window != -1;
  int64_t unit = sizeOf(dtype), moved = 0;
  if (count < 0 || (count == 0 && !hasB) || step < 0 ||
      (count > 1 && __builtin_mul_overflow(count - 1, step, &moved)))
    return fail(ncclxrtInvalidArgument, fmt::format("{} sources at step {}", count, step));
  device::ReduceJob job{};
  if (auto code = place(lane, "destination", dst, true, 0, unit, job.to))
    return code;
  if (count)
    if (auto code = place(lane, "a", a, false, moved, unit, job.a))
      return code;
  if (hasB)
    if (auto code = place(lane, "b", b, false, 0, unit, job.b))
      return code;
  job.bytes = job.to.rows * job.to.rowBytes;
  if ((count && job.a.rows * job.a.rowBytes != job.bytes) ||
      (hasB && job.b.rows * job.b.rowBytes != job.bytes))
    return fail(ncclxrtInvalidArgument,
                fmt::format("a source has not the {} bytes of the destination", job.bytes));
  if (rehearsing) {
    reductions.insert(key);
    return ncclxrtSuccess;
  }
  if (!job.bytes)
    return ncclxrtSuccess;
  tellBytes(lane, job.bytes);
  job.count = count, job.step = step, job.scale = scale, job.divisor = divisor;
  // A thread of the widest path takes 64 bytes at a time.
  int64_t blocks = (job.bytes + 64 * device::reduceThreads - 1) / (64 * device::reduceThreads);
  // 32 blocks add at 0.4 TB/s on an H200, slower than the wire brings the next piece; two an SM at
  // what its memory bears (test/Bench/cuda). Where products compute, their blocks keep their SMs to
  // the end: what is added gets none before, and then all, while the next one waits.
  int64_t most = std::clamp<int64_t>(job.bytes >> 16, 32, 2 * int64_t(processors));
  if (computes)
    most = std::max<int64_t>(most, 4 * int64_t(processors));
  auto kernel = reduceKernels.find(key);
  return check(launchOwn(lanes[placeOf(lane)],
                         kernel == reduceKernels.end() ? nullptr : kernel->second,
                         unsigned(std::min(blocks, most)), device::reduceThreads, &job));
}

//===--- sizes known at run time -------------------------------------------------------------===//

ncclxrtResult_t Plan::count(int64_t op, int64_t lane, int64_t window, int64_t offset, int64_t bytes,
                            int64_t max) {
  device::Pieces at;
  if (auto code = start(op, lane))
    return code;
  if ((bytes != sizeof(int32_t) && bytes != sizeof(int64_t)) || max < 0)
    return fail(
        ncclxrtInvalidArgument,
        fmt::format("a size of {} bytes, at most {}; expected 4 or 8, and at least 0", bytes, max));
  if (auto code =
          place(lane, "the size", {window, -1, offset, 1, bytes, bytes}, false, 0, bytes, at))
    return code;
  size_t number = counted++;
  if (rehearsing) {
    counts.push_back(
        {max, comm.numberOf(fmt::format("plan '{}', {}: the size at byte {} of window '{}'",
                                        shape.name, shape.ops[size_t(op)].name, offset,
                                        shape.windows[size_t(window)].name))});
    return ncclxrtSuccess;
  }
  if (number >= counts.size())
    return fail(ncclxrtInvalidUsage, "the program reads more sizes than it rehearsed");
  device::SizeJob job{at.at,
                      bytes,
                      max,
                      reinterpret_cast<int64_t *>(sizes) + number,
                      comm.controlOnDevice(),
                      counts[number].place};
  return check(launchOwn(lanes[placeOf(lane)], sizeKernel, 1, 1, &job));
}

ncclxrtResult_t Plan::copySized(int64_t op, int64_t lane, const Where &dst, const Where &src,
                                int64_t notifySlots, int64_t notifyPeer, int64_t notifyIndex,
                                int64_t size, int64_t dstUnit, int64_t srcUnit) {
  if (auto code = start(op, lane))
    return code;
  if (size < 0 || size >= int64_t(counted))
    return fail(ncclxrtInvalidArgument,
                fmt::format("there is no size {}, {} have been read", size, counted));
  device::SizedCopy job{};
  if (auto code = place(lane, "destination", dst, true, 0, 1, job.to))
    return code;
  if (auto code = place(lane, "source", src, false, 0, 1, job.from))
    return code;
  int64_t most = counts[size_t(size)].most, bytes = 0, other = 0;
  auto fits = [&](const Where &where, int64_t unit, int64_t &all) {
    return unit >= 0 && !__builtin_mul_overflow(most, unit, &all) && all <= where.rowBytes &&
           !__builtin_mul_overflow(all, where.rows, &all);
  };
  if (!fits(dst, dstUnit, bytes) || !fits(src, srcUnit, other) || bytes != other)
    return fail(ncclxrtInvalidArgument,
                fmt::format("{} units of {} and {} bytes do not fit into {} and {} rows of {} and "
                            "{} bytes alike",
                            most, dstUnit, srcUnit, dst.rows, src.rows, dst.rowBytes,
                            src.rowBytes));
  // Rows as they are: a size is one of each.
  job.to = {job.to.at, dst.rows, dst.stride, dst.rowBytes};
  job.from = {job.from.at, src.rows, src.stride, src.rowBytes};
  job.toUnit = dstUnit, job.fromUnit = srcUnit;
  job.size = reinterpret_cast<const int64_t *>(sizes) + size;
  job.clears = dst.peer < 0;
  if (!rehearsing && dst.rows && dst.rowBytes) {
    // Up to 64 blocks, of which 48 take from a peer what its link brings and 16 clear.
    constexpr int64_t ofBlock = 32 << 10;
    int64_t blocks = std::clamp<int64_t>(dst.rows * dst.rowBytes / ofBlock, 1, 64);
    if (auto code = check(launchOwn(lanes[placeOf(lane)], sizedCopyKernel, unsigned(blocks),
                                    device::sizedThreads, &job)))
      return code;
  }
  return notifySlots < 0 ? ncclxrtSuccess : raise(lane, notifySlots, notifyPeer, notifyIndex);
}

ncclxrtResult_t Plan::signal(int64_t op, int64_t lane, int64_t slots, int64_t peer, int64_t index) {
  if (auto code = start(op, lane, true))
    return code;
  return raise(lane, slots, peer, index);
}

ncclxrtResult_t Plan::wait(int64_t op, int64_t lane, int64_t slots, int64_t index, int64_t count,
                           int64_t value) {
  if (auto code = start(op, lane, true))
    return code;
  if (std::string wrong = shape.wrongSlots(slots, index, count); !wrong.empty())
    return fail(ncclxrtInvalidArgument, wrong);
  if (value <= 0)
    return ncclxrtSuccess;
  const Shape::Slots &array = shape.slots[slots];
  int64_t first =
      int64_t(array.first) + runNumber % array.generations * int64_t(array.count) + index;
  size_t place = placeOf(lane);
  uint64_t *own = counters[comm.rank()] + (capturing ? captureFirst : 0);
  for (int64_t i = first; i < first + count; ++i) {
    if (rehearsing) {
      replay.wait(place, i, value);
      continue;
    }
    if (auto code = check(await(lanes[place], own + i, uint64_t(value))))
      return code;
    if (capturing && replay.empties(i, value))
      if (auto code = check(write(lanes[place], own + i, 0)))
        return code;
  }
  return ncclxrtSuccess;
}

ncclxrtResult_t Plan::argument(int64_t window) {
  if (!failure.ok())
    return failure.code();
  arguments.push_back(Address(address(window)));
  return failure.code();
}

ncclxrtResult_t Plan::launch(int64_t op, int64_t lane, int64_t kernel) {
  std::vector<Address> given = std::move(arguments);
  arguments.clear();
  if (auto code = enter(op, lane))
    return code;
  if (kernel < 0 || kernel >= int64_t(kernels.size()) ||
      int64_t(given.size()) != kernels[kernel].arguments)
    return fail(ncclxrtInvalidArgument,
                fmt::format("kernel {} is launched with {} arguments", kernel, given.size()));
  Kernel &k = kernels[kernel];
  if (rehearsing) {
    rehearsed += k.scratchBytes != 0 || k.gemm; // and an order
    if (k.gemm)
      k.gemm->rehearse(k.rehearsed = given);
    return ncclxrtSuccess;
  }
  if (k.gemm) {
    // One product at a time uses the workspace.
    if (auto code = order(op, lane, std::exchange(workspaceLane, lane)))
      return code;
    if (auto code = startTime(op, lane))
      return code;
    return check(k.gemm->launch(comm, given, workspace, lanes[placeOf(lane)].stream));
  }
  std::vector<void *> parameters;
  for (Address &a : given)
    parameters.push_back(&a);
  if (k.scratch) {
    parameters.push_back(&k.scratch);
    // One launch at a time uses it.
    if (auto code = order(op, lane, std::exchange(k.scratchLane, lane)))
      return code;
  }
  if (auto code = startTime(op, lane))
    return code;
  return check(
      comm.call(comm.cuda().launch(k.function, unsigned(k.blocks), 1, 1, unsigned(k.threads), 1, 1,
                                   0, lanes[placeOf(lane)].stream, parameters.data(), nullptr),
                "cuLaunchKernel"));
}

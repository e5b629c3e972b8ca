//===- Exec.cpp - The ops of a running program ----------------------------===//
//
// Group B. A failure formats its sentence and ends the job; the path without one neither allocates
// nor locks, and is kept free of what only failures need, since small ops cost little else.
//
//===----------------------------------------------------------------------===//
#include "Floats.h"
#include "Plan.h"
#include "Reduce.h"
#include "Wire.h"

#include <bit>
#include <cstring>

using namespace ncclxrt;

/// Asks for the line of memory that a store is going to: stores to what others have read leave in
/// order, each when its line has come.
static inline void prepareStore(const void *line) {
#if defined(__x86_64__) // without -mprfchw the builtin asks for a line to read
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char *>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

/// A failure whose sentence nobody makes until it is needed.
template <typename Text>
[[gnu::cold, gnu::noinline]] ncclxrtResult_t Plan::refuse(ncclxrtResult_t code, Text text) {
  return fail(code, text());
}

[[gnu::always_inline]] inline ncclxrtResult_t Plan::enter(int64_t op, int64_t lane) {
  if (ncclxrtResult_t code = comm.failure(); code != ncclxrtSuccess)
    return code;
  ++step;
  currentOp = op;
  comm.place.op.store(op, std::memory_order_relaxed);
  bool known = uint64_t(op) < shape.ops.size() && uint64_t(lane) < shape.lanes.size();
  return known && !hasBadWindow ? ncclxrtSuccess : refuseEntry(op, lane);
}

ncclxrtResult_t Plan::refuseEntry(int64_t op, int64_t lane) {
  if (op < 0 || op >= int64_t(shape.ops.size()))
    return fail(ncclxrtInvalidArgument,
                fmt::format("there is no op {}, the plan has {}", op, shape.ops.size()));
  if (lane < 0 || lane >= int64_t(shape.lanes.size()))
    return fail(ncclxrtInvalidArgument,
                fmt::format("there is no lane {}, the plan has {}", lane, shape.lanes.size()));
  return fail(ncclxrtInvalidArgument,
              fmt::format("the address of window {} was asked for, the plan has {}", badWindow,
                          shape.windows.size()));
}

int64_t Plan::address(int64_t window) {
  if (window < 0 || window >= int64_t(shape.windows.size())) {
    badWindow = window;
    hasBadWindow = true;
    return 0;
  }
  return int64_t(reinterpret_cast<intptr_t>(own->base() + windows[size_t(window)].at));
}

[[gnu::always_inline]] inline bool Plan::resolvePeer(int64_t peer, int &rank) const {
  if (peer < -1 || peer >= comm.nranks())
    return false;
  rank = peer < 0 ? comm.rank() : int(peer);
  return true;
}

ncclxrtResult_t Plan::resolve(const char *what, const Where &where, bool isTarget, int64_t moved,
                              int64_t unit, Range &range, int &rank) {
  if (!resolvePeer(where.peer, rank))
    return fail(ncclxrtInvalidArgument, fmt::format("{}: there is no rank {}, the job has {}", what,
                                                    where.peer, comm.nranks()));
  if (std::string wrong = shape.wrongRange(what, where, isTarget, moved, unit); !wrong.empty())
    return fail(ncclxrtInvalidArgument, wrong);
  bool empty = where.rows == 0 || where.rowBytes == 0;
  // An empty range touches nothing, wherever it says that it lies.
  range = {windows[size_t(where.window)].at + (empty ? 0 : where.offset), where.rows, where.stride,
           where.rowBytes};
  return ncclxrtSuccess;
}

[[gnu::always_inline]] inline bool Plan::isRow(const Where &where, int &rank) const {
  if (!resolvePeer(where.peer, rank) || uint64_t(where.window) >= windows.size())
    return false;
  int64_t bytes = windows[size_t(where.window)].bytes;
  return where.rows == 1 && where.offset >= 0 && where.stride >= 0 && where.rowBytes > 0 &&
         where.offset <= bytes && where.rowBytes <= bytes - where.offset;
}

[[gnu::always_inline]] inline bool Plan::hasSlots(int64_t slots, int64_t index,
                                                  int64_t count) const {
  if (uint64_t(slots) >= this->slots.size())
    return false;
  int64_t all = this->slots[size_t(slots)].count;
  return index >= 0 && count >= 0 && index <= all && count <= all - index;
}

[[gnu::always_inline]] inline ncclxrtResult_t Plan::resolveSlot(int64_t slots, int64_t index,
                                                                int64_t count, int64_t &slot) {
  if (!hasSlots(slots, index, count))
    return refuse(ncclxrtInvalidArgument,
                  [=, this] { return shape.wrongSlots(slots, index, count); });
  slot = this->slots[size_t(slots)].at + index;
  return ncclxrtSuccess;
}

[[gnu::always_inline]] inline ncclxrtResult_t Plan::raise(int rank, int64_t slots, int64_t slot) {
  if (Segment *peer = peers[size_t(rank)].get()) {
    const SlotsNow &now = this->slots[size_t(slots)];
    if (now.isOnlyOurs) {
      prepareStore(&peer->slot(slot - now.at + now.next()));
      peer->set(slot, sent.next(rank, slot));
    } else
      peer->raise(slot);
    return ncclxrtSuccess;
  }
  return raiseFar(rank, slot);
}

ncclxrtResult_t Plan::raiseFar(int rank, int64_t slot) {
  if (Status s = comm.transport().raise(id, rank, slot); !s.ok())
    return fail(s);
  return ncclxrtSuccess;
}

int64_t Plan::traceBegin(int64_t op, int64_t lane, int64_t bytes) {
  if (traceSize == shape.traceCapacity)
    return -1;
  trace[traceSize] = {op, lane, runNumber, nowNs(), 0, bytes};
  return traceSize++;
}

void Plan::traceEnd(int64_t event) {
  if (event >= 0)
    trace[event].end_ns = nowNs();
}

[[gnu::always_inline]] inline ncclxrtResult_t Plan::copy(int64_t op, int64_t lane, const Where &dst,
                                                         const Where &src, int64_t notifySlots,
                                                         int64_t notifyPeer, int64_t notifyIndex) {
  if (auto code = enter(op, lane))
    return code;
  // Most are one row of memory that this rank maps.
  int dstRank, srcRank, notifyRank;
  if (isRow(dst, dstRank) && isRow(src, srcRank) && dst.rowBytes == src.rowBytes &&
      peers[size_t(dstRank)] && peers[size_t(srcRank)] && !tracing()) {
    bool notifies = notifySlots != -1;
    if (!notifies ||
        (hasSlots(notifySlots, notifyIndex, 1) && resolvePeer(notifyPeer, notifyRank))) {
      std::byte *to = peers[size_t(dstRank)]->base() + dst.offset;
      const std::byte *from = peers[size_t(srcRank)]->base() + src.offset;
      const WindowNow &target = windows[size_t(dst.window)], &source = windows[size_t(src.window)];
      prepareStore(to + target.next());
      std::memmove(to + target.at, from + source.at, size_t(dst.rowBytes));
      return notifies ? raise(notifyRank, notifySlots, slots[size_t(notifySlots)].at + notifyIndex)
                      : ncclxrtSuccess;
    }
  }
  return copyAny(op, lane, dst, src, notifySlots, notifyPeer, notifyIndex);
}

ncclxrtResult_t Plan::copyAny(int64_t op, int64_t lane, Where dst, Where src, int64_t notifySlots,
                              int64_t notifyPeer, int64_t notifyIndex) {
  Range to, from;
  int dstRank, srcRank, notifyRank = 0;
  int64_t slot = -1;
  if (auto code = resolve("destination", dst, true, 0, 1, to, dstRank))
    return code;
  if (auto code = resolve("source", src, false, 0, 1, from, srcRank))
    return code;
  if (to.bytes() != from.bytes())
    return fail(ncclxrtInvalidArgument, fmt::format("the source has {} bytes, the destination {}",
                                                    from.bytes(), to.bytes()));
  if (notifySlots != -1) {
    if (auto code = resolveSlot(notifySlots, notifyIndex, 1, slot))
      return code;
    if (!resolvePeer(notifyPeer, notifyRank))
      return fail(ncclxrtInvalidArgument, fmt::format("notify: there is no rank {}, the job has {}",
                                                      notifyPeer, comm.nranks()));
  }
  if (!peers[srcRank])
    return fail(ncclxrtUnsupported,
                fmt::format("a get: the source is in rank {}'s memory, which transport {} cannot "
                            "load from",
                            srcRank, comm.transport().name()));
  int64_t event = tracing() ? traceBegin(op, lane, to.bytes()) : -1;
  if (peers[dstRank]) {
    copyRange(peers[dstRank]->base(), to, peers[srcRank]->base(), from);
    traceEnd(event);
    return slot < 0 ? ncclxrtSuccess : raise(notifyRank, notifySlots, slot);
  }
  if (slot >= 0 && notifyRank != dstRank)
    return fail(ncclxrtUnsupported,
                fmt::format("the put goes to rank {} and notifies rank {}, but over transport {} "
                            "only the rank it goes to knows when it has landed",
                            dstRank, notifyRank, comm.transport().name()));
  bool async = shape.lanes[lane].kind == ncclxrtLaneNic;
  Status s = comm.transport().put({id, dstRank, peers[srcRank]->base(), from, to, slot,
                                   async ? &lanes[lane] : nullptr,
                                   async && event >= 0 ? &trace[event].end_ns : nullptr});
  if (!s.ok())
    return fail(s);
  if (!async)
    traceEnd(event);
  return ncclxrtSuccess;
}

inline ncclxrtResult_t Plan::reduce(int64_t op, int64_t lane, int64_t kind, int64_t dtype,
                                    int64_t acc, double scale, int64_t divisor, const Where &dst,
                                    const Where &a, int64_t count, int64_t step, const Where &b) {
  if (auto code = enter(op, lane))
    return code;
  if (kind < ncclxrtReduceSum || kind > ncclxrtReduceProd)
    return fail(ncclxrtInvalidArgument, fmt::format("{} is no kind of reduction", kind));
  if (!accumulates(dtype, acc))
    return fail(ncclxrtInvalidArgument,
                fmt::format("dtype {} cannot be accumulated in dtype {}", dtype, acc));
  if (scale != 1 && !isFloat(dtype))
    return fail(ncclxrtInvalidArgument,
                fmt::format("dtype {} is scaled by {}, but only floats are", dtype, scale));
  if (divisor < 1)
    return fail(ncclxrtInvalidArgument,
                fmt::format("a divisor of {}, expected at least 1", divisor));
  bool hasB = b.window != -1;
  int64_t unit = sizeOf(dtype), moved = 0;
  if (count < 0 || (count == 0 && !hasB) || step < 0 ||
      (count > 1 && __builtin_mul_overflow(count - 1, step, &moved)))
    return fail(ncclxrtInvalidArgument,
                fmt::format("{} sources at step {}{}: expected at least one and a step >= 0", count,
                            step, hasB ? " and b" : ""));
  Range ranges[3];
  int ranks[3] = {};
  auto place = [&](int i) {
    return Placed{peers[ranks[i]] ? peers[ranks[i]]->base() : nullptr, ranges[i].canonical()};
  };
  const Where *operands[3] = {&dst, count ? &a : nullptr, hasB ? &b : nullptr};
  const char *names[3] = {"destination", "a", "b"};
  for (int i = 0; i < 3; ++i) {
    if (!operands[i])
      continue;
    if (auto code =
            resolve(names[i], *operands[i], i == 0, i == 1 ? moved : 0, unit, ranges[i], ranks[i]))
      return code;
    if (ranges[i].bytes() != ranges[0].bytes())
      return fail(ncclxrtInvalidArgument,
                  fmt::format("{} has {} bytes, the destination {}", names[i], ranges[i].bytes(),
                              ranges[0].bytes()));
    if (!peers[ranks[i]])
      return fail(ncclxrtUnsupported,
                  fmt::format("{} is in rank {}'s memory, which transport {} cannot reach",
                              names[i], ranks[i], comm.transport().name()));
  }
  further.clear();
  if (hasB)
    further.push_back(place(2));
  if (namedOf == op)
    for (const Where &operand : named) {
      if (auto code = resolve("an operand", operand, false, 0, unit, ranges[2], ranks[2]))
        return code;
      if (ranges[2].bytes() != ranges[0].bytes())
        return fail(ncclxrtInvalidArgument,
                    fmt::format("an operand has {} bytes, the destination {}", ranges[2].bytes(),
                                ranges[0].bytes()));
      if (!peers[ranks[2]])
        return fail(
            ncclxrtUnsupported,
            fmt::format("an operand is in rank {}'s memory, which transport {} cannot reach",
                        ranks[2], comm.transport().name()));
      further.push_back(place(2));
    }
  namedOf = -1;
  int64_t event = tracing() ? traceBegin(op, lane, ranges[0].bytes()) : -1;
  reduceRanges(
      {ncclxrtReduceKind_t(kind), ncclxrtDtype_t(dtype), ncclxrtDtype_t(acc), scale, divisor},
      place(0), place(1), count, step, further);
  traceEnd(event);
  return ncclxrtSuccess;
}

ncclxrtResult_t Plan::operand(int64_t op, int64_t lane, const Where &source) {
  if (auto code = enter(op, lane))
    return code;
  if (namedOf != op)
    named.clear();
  namedOf = op;
  named.push_back(source);
  return ncclxrtSuccess;
}

[[gnu::always_inline]] inline ncclxrtResult_t Plan::signal(int64_t op, int64_t lane, int64_t slots,
                                                           int64_t peer, int64_t index) {
  int64_t slot;
  int rank;
  if (auto code = enter(op, lane))
    return code;
  if (auto code = resolveSlot(slots, index, 1, slot))
    return code;
  if (!resolvePeer(peer, rank))
    return refuse(ncclxrtInvalidArgument, [=, this] {
      return fmt::format("there is no rank {}, the job has {}", peer, comm.nranks());
    });
  int64_t event = tracing() ? traceBegin(op, lane, 0) : -1;
  auto code = raise(rank, slots, slot);
  traceEnd(event);
  return code;
}

[[gnu::always_inline]] inline ncclxrtResult_t
Plan::wait(int64_t op, int64_t lane, int64_t slots, int64_t index, int64_t count, int64_t value) {
  int64_t first;
  if (auto code = enter(op, lane))
    return code;
  if (auto code = resolveSlot(slots, index, count, first))
    return code;
  int64_t event = tracing() ? traceBegin(op, lane, 0) : -1;
  if (value > 0) {
    bool early = true;
    for (int64_t i = 0; i < count && early; ++i)
      early = own->slot(first + i).value.load(std::memory_order_acquire) >= uint64_t(value);
    if (!early)
      if (auto code = await(slots, index, first, count, value))
        return code;
  }
  traceEnd(event);
  return comm.failure(); // an abort satisfies every wait
}

ncclxrtResult_t Plan::await(int64_t slots, int64_t index, int64_t first, int64_t count,
                            int64_t value) {
  comm.place.phase.store(RankState::Waiting, std::memory_order_relaxed);
  int64_t deadline = 0; // set by the first slot that must sleep
  for (int64_t i = 0; i < count; ++i)
    if (!comm.transport().await(*own, first + i, uint64_t(value), comm.timeoutNs(), deadline,
                                comm.waitPolicy()))
      return fail(ncclxrtTimeout,
                  fmt::format("waited {} ms for slots '{}'[{}] >= {}, found {}; {}",
                              comm.timeoutNs() / nsPerMs, shape.slots[size_t(slots)].name,
                              index + i, value, own->slot(first + i).value.load(),
                              comm.describeOthers()));
  comm.place.phase.store(RankState::Working, std::memory_order_relaxed);
  return ncclxrtSuccess;
}

ncclxrtResult_t Plan::count(int64_t op, int64_t lane, int64_t window, int64_t offset, int64_t bytes,
                            int64_t max) {
  Range range;
  int rank;
  counted = 0;
  if (auto code = enter(op, lane))
    return code;
  if (bytes != sizeof(int32_t) && bytes != sizeof(int64_t))
    return fail(ncclxrtInvalidArgument, fmt::format("a size of {} bytes, expected 4 or 8", bytes));
  if (auto code =
          resolve("the size", {window, -1, offset, 1, bytes, bytes}, false, 0, bytes, range, rank))
    return code;
  int64_t event = tracing() ? traceBegin(op, lane, 0) : -1;
  const char *at = reinterpret_cast<const char *>(own->base()) + range.offset;
  int64_t value;
  if (int32_t narrow; bytes == sizeof(narrow)) {
    std::memcpy(&narrow, at, sizeof(narrow));
    value = narrow;
  } else {
    std::memcpy(&value, at, sizeof(value));
  }
  traceEnd(event);
  if (value < 0 || value > max)
    return fail(ncclxrtInvalidArgument,
                fmt::format("the size at byte {} of window '{}' is {}, expected 0 to {}", offset,
                            shape.windows[size_t(window)].name, value, max));
  counted = value;
  return ncclxrtSuccess;
}

ncclxrtResult_t Plan::gather(const char *kind, const std::string &what, const void *mine,
                             size_t bytes, std::vector<std::string> &parts) {
  comm.place.phase.store(RankState::Waiting, std::memory_order_relaxed);
  Status met = comm.meet(kind, what, std::string(static_cast<const char *>(mine), bytes), parts);
  comm.place.phase.store(RankState::Working, std::memory_order_relaxed);
  return met.ok() ? ncclxrtSuccess : met.code();
}

// A meeting of all ranks: what runs of other branches have left cannot reach into this one.
ncclxrtResult_t Plan::choose(int64_t op, int64_t lane, int64_t window, int64_t branches) {
  struct Choice {
    int64_t plan, run, branches, branch;
  };
  if (auto code = enter(op, lane))
    return code;
  branch = -1;
  Range range;
  int rank;
  if (auto code = resolve("the choice", {window, -1, 0, 1, 8, 8}, false, 0, 8, range, rank))
    return code;
  Choice mine{id, runNumber, branches, 0};
  std::memcpy(&mine.branch, own->base() + range.offset, sizeof(mine.branch));
  if (mine.branch < 0 || mine.branch >= branches)
    return fail(ncclxrtInvalidArgument,
                fmt::format("the choice in window '{}' is {}, expected 0 to {}",
                            shape.windows[size_t(window)].name, mine.branch, branches - 1));
  int64_t event = tracing() ? traceBegin(op, lane, 0) : -1;
  std::vector<std::string> parts;
  if (auto code = gather("choose", fmt::format("all ranks to choose a branch of '{}'", shape.name),
                         &mine, sizeof(mine), parts))
    return code;
  traceEnd(event);
  Choice first = Reader(parts[0]).get<Choice>();
  for (size_t r = 1; r < parts.size(); ++r) {
    Choice other = Reader(parts[r]).get<Choice>();
    if (other.plan != first.plan || other.run != first.run || other.branches != first.branches)
      return fail(
          ncclxrtPlanMismatch,
          fmt::format("rank 0 chooses a branch for run {} of plan number {}, rank {} for run "
                      "{} of plan number {}",
                      first.run, first.plan, r, other.run, other.plan));
    if (other.branch != first.branch)
      return fail(ncclxrtPlanMismatch,
                  fmt::format("rank 0 chooses branch {}, rank {} branch {}: what they depend on is "
                              "not the same on all ranks, as the graph promises",
                              first.branch, r, other.branch));
  }
  if (branchRuns.size() < size_t(branches))
    branchRuns.resize(size_t(branches));
  branch = mine.branch;
  branchRun = branchRuns[size_t(branch)]++;
  for (WindowNow &w : windows)
    w.moveTo(branchRun);
  for (SlotsNow &s : slots)
    s.moveTo(branchRun);
  return ncclxrtSuccess;
}

/// Bytes of a number that ranks may agree on, or 0.
static int64_t widthOf(int64_t dtype) {
  switch (dtype) {
  case ncclxrtF64:
  case ncclxrtI64:
  case ncclxrtU64:
    return 8;
  case ncclxrtF32:
  case ncclxrtI32:
  case ncclxrtU32:
    return 4;
  case ncclxrtBf16:
  case ncclxrtF16:
  case ncclxrtI16:
  case ncclxrtU16:
    return 2;
  case ncclxrtI8:
  case ncclxrtU8:
    return 1;
  default:
    return 0;
  }
}

static std::string numberText(int64_t dtype, uint64_t bits) {
  switch (dtype) {
  case ncclxrtF64:
    return fmt::format("{}", std::bit_cast<double>(bits));
  case ncclxrtF32:
    return fmt::format("{}", std::bit_cast<float>(uint32_t(bits)));
  case ncclxrtBf16:
    return fmt::format("{}", float(Bf16{uint16_t(bits)}));
  case ncclxrtF16:
    return fmt::format("{}", float(F16{uint16_t(bits)}));
  case ncclxrtI64:
    return fmt::format("{}", int64_t(bits));
  case ncclxrtI32:
    return fmt::format("{}", int32_t(bits));
  case ncclxrtI16:
    return fmt::format("{}", int16_t(bits));
  case ncclxrtI8:
    return fmt::format("{}", int8_t(bits));
  default:
    return fmt::format("{}", bits);
  }
}

ncclxrtResult_t Plan::agree(int64_t op, int64_t lane, int64_t window, int64_t dtype) {
  struct Number {
    int64_t plan, run, op;
    uint64_t bits;
  };
  if (auto code = enter(op, lane))
    return code;
  int64_t width = widthOf(dtype);
  if (!width)
    return fail(ncclxrtInvalidArgument, fmt::format("ranks cannot agree on dtype {}", dtype));
  Range range;
  int rank;
  if (auto code =
          resolve("the number", {window, -1, 0, 1, width, width}, false, 0, width, range, rank))
    return code;
  Number mine{id, runNumber, op, 0};
  std::memcpy(&mine.bits, own->base() + range.offset, size_t(width)); // little-endian
  int64_t event = tracing() ? traceBegin(op, lane, 0) : -1;
  std::vector<std::string> parts;
  if (auto code = gather("agree", fmt::format("all ranks to agree in '{}'", shape.name), &mine,
                         sizeof(mine), parts))
    return code;
  traceEnd(event);
  Number first = Reader(parts[0]).get<Number>();
  for (size_t r = 1; r < parts.size(); ++r) {
    Number other = Reader(parts[r]).get<Number>();
    if (other.plan != first.plan || other.run != first.run || other.op != first.op)
      return fail(ncclxrtPlanMismatch,
                  fmt::format("rank 0 is at op {} in run {} of plan number {}, rank {} at op {} in "
                              "run {} of plan number {}",
                              first.op, first.run, first.plan, r, other.op, other.run, other.plan));
    if (other.bits != first.bits)
      return fail(ncclxrtPlanMismatch,
                  fmt::format("rank 0 has {}, rank {} has {}: not the same on all ranks, as the "
                              "graph assumes",
                              numberText(dtype, first.bits), r, numberText(dtype, other.bits)));
  }
  return ncclxrtSuccess;
}

ncclxrtResult_t Plan::flush(int64_t op, int64_t lane) {
  // On shm a signal's acquire, on tcp the progress thread's store before the signal, has made
  // everything visible.
  return enter(op, lane);
}

ncclxrtResult_t Plan::complete(int64_t op, int64_t lane) {
  if (auto code = enter(op, lane))
    return code;
  LaneProgress &progress = lanes[lane];
  if (progress.issued == progress.completed.load(std::memory_order_acquire))
    return ncclxrtSuccess;
  int64_t event = tracing() ? traceBegin(op, lane, 0) : -1;
  comm.place.phase.store(RankState::Waiting, std::memory_order_relaxed);
  if (Status s = comm.transport().complete(progress); !s.ok())
    return fail(s);
  comm.place.phase.store(RankState::Working, std::memory_order_relaxed);
  traceEnd(event);
  return ncclxrtSuccess;
}

ncclxrtResult_t Plan::computeBegin(int64_t op, int64_t lane) {
  if (auto code = enter(op, lane))
    return code;
  if (computing)
    return fail(ncclxrtInvalidUsage, "compute_begin, but another computation has not ended");
  computing = true;
  computeEvent = tracing() ? traceBegin(op, lane, 0) : -1;
  return ncclxrtSuccess;
}

ncclxrtResult_t Plan::computeEnd(int64_t op, int64_t lane) {
  if (computing)
    traceEnd(computeEvent);
  if (auto code = enter(op, lane))
    return code;
  if (!computing)
    return fail(ncclxrtInvalidUsage, "compute_end without compute_begin");
  computing = false;
  return ncclxrtSuccess;
}

//===- The C interface ----------------------------------------------------===//

/// The running plan of an exec, or null.
static Plan *running(int64_t exec) {
  Plan *plan = reinterpret_cast<Plan *>(intptr_t(exec));
  return plan && plan->inRun() ? plan : nullptr;
}

/// A call of a compiled program: passes a failed status on, and turns what a failing path throws
/// (it formats a sentence) into a status.
template <typename Body> static int32_t call(int32_t status, int64_t exec, Body body) {
  if (status != 0)
    return status;
  Plan *plan = running(exec);
  if (!plan)
    return ncclxrtInvalidUsage;
  try {
    return body(*plan);
  } catch (...) {
    return ncclxrtOutOfMemory;
  }
}

extern "C" {

int64_t ncclxrt_rank(int64_t exec) {
  Plan *plan = running(exec);
  return plan ? plan->comm.rank() : -1;
}

int64_t ncclxrt_run(int64_t exec) {
  Plan *plan = running(exec);
  return plan ? plan->currentRun() : -1;
}

int64_t ncclxrt_address(int64_t exec, int64_t window) {
  Plan *plan = running(exec);
  return plan ? plan->address(window) : 0;
}

int32_t ncclxrt_copy(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t dst_window,
                     int64_t dst_peer, int64_t dst_offset, int64_t dst_rows, int64_t dst_stride,
                     int64_t dst_row_bytes, int64_t src_window, int64_t src_peer,
                     int64_t src_offset, int64_t src_rows, int64_t src_stride,
                     int64_t src_row_bytes, int64_t notify_slots, int64_t notify_peer,
                     int64_t notify_index) {
  return call(status, exec, [&](Plan &plan) {
    return plan.copy(op, lane,
                     {dst_window, dst_peer, dst_offset, dst_rows, dst_stride, dst_row_bytes},
                     {src_window, src_peer, src_offset, src_rows, src_stride, src_row_bytes},
                     notify_slots, notify_peer, notify_index);
  });
}

int32_t ncclxrt_reduce(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t kind,
                       int64_t dtype, int64_t acc_dtype, int64_t scale, int64_t divisor,
                       int64_t dst_window, int64_t dst_peer, int64_t dst_offset, int64_t dst_rows,
                       int64_t dst_stride, int64_t dst_row_bytes, int64_t a_window, int64_t a_peer,
                       int64_t a_offset, int64_t a_rows, int64_t a_stride, int64_t a_row_bytes,
                       int64_t count, int64_t a_step, int64_t b_window, int64_t b_peer,
                       int64_t b_offset, int64_t b_rows, int64_t b_stride, int64_t b_row_bytes) {
  return call(status, exec, [&](Plan &plan) {
    return plan.reduce(op, lane, kind, dtype, acc_dtype, std::bit_cast<double>(scale), divisor,
                       {dst_window, dst_peer, dst_offset, dst_rows, dst_stride, dst_row_bytes},
                       {a_window, a_peer, a_offset, a_rows, a_stride, a_row_bytes}, count, a_step,
                       {b_window, b_peer, b_offset, b_rows, b_stride, b_row_bytes});
  });
}

int32_t ncclxrt_operand(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t window,
                        int64_t peer, int64_t offset, int64_t rows, int64_t stride,
                        int64_t row_bytes) {
  return call(status, exec, [&](Plan &plan) {
    return plan.operand(op, lane, {window, peer, offset, rows, stride, row_bytes});
  });
}

int32_t ncclxrt_signal(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t slots,
                       int64_t peer, int64_t index) {
  return call(status, exec, [&](Plan &plan) { return plan.signal(op, lane, slots, peer, index); });
}

int32_t ncclxrt_wait(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t slots,
                     int64_t index, int64_t count, int64_t value) {
  return call(status, exec,
              [&](Plan &plan) { return plan.wait(op, lane, slots, index, count, value); });
}

int32_t ncclxrt_count(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t window,
                      int64_t offset, int64_t bytes, int64_t max) {
  return call(status, exec,
              [&](Plan &plan) { return plan.count(op, lane, window, offset, bytes, max); });
}

int64_t ncclxrt_size(int64_t exec) {
  Plan *plan = running(exec);
  return plan ? plan->size() : 0;
}

int32_t ncclxrt_choose(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t window,
                       int64_t branches) {
  return call(status, exec, [&](Plan &plan) { return plan.choose(op, lane, window, branches); });
}

int64_t ncclxrt_branch(int64_t exec) {
  Plan *plan = running(exec);
  return plan ? plan->chosen() : -1;
}

int32_t ncclxrt_agree(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t window,
                      int64_t dtype) {
  return call(status, exec, [&](Plan &plan) { return plan.agree(op, lane, window, dtype); });
}

int32_t ncclxrt_flush(int32_t status, int64_t exec, int64_t op, int64_t lane) {
  return call(status, exec, [&](Plan &plan) { return plan.flush(op, lane); });
}

int32_t ncclxrt_complete(int32_t status, int64_t exec, int64_t op, int64_t lane) {
  return call(status, exec, [&](Plan &plan) { return plan.complete(op, lane); });
}

int32_t ncclxrt_join(int32_t a, int32_t b) { return a ? a : b; }

int32_t ncclxrt_compute_begin(int32_t status, int64_t exec, int64_t op, int64_t lane) {
  return call(status, exec, [&](Plan &plan) { return plan.computeBegin(op, lane); });
}

int32_t ncclxrt_compute_end(int32_t status, int64_t exec, int64_t op, int64_t lane) {
  return call(status, exec, [&](Plan &plan) { return plan.computeEnd(op, lane); });
}

} // extern "C"

//===- PlanAbi.cpp - The C interface of plans on streams ------------------===//
#include "Plan.h"

#include <memory>

using namespace ncclxrt;

struct ncclxrtCudaPlan {
  cuda::Comm &comm;
  std::unique_ptr<cuda::Runnable> plan;
  std::vector<ncclxrtTraceEvent_t> timeline;
};

static ncclxrtResult_t handle(cuda::Comm &comm, const Status &status,
                              std::unique_ptr<cuda::Runnable> made, ncclxrtCudaPlan_t *plan) {
  if (status.ok()) {
    *plan = new ncclxrtCudaPlan{comm, std::move(made), {}};
    ++comm.users;
  }
  return comm.remember(status);
}

ncclxrtResult_t ncclxrtCudaPlanPrepare(ncclxrtCudaComm_t joined, const ncclxrtCudaPlanDesc_t *desc,
                                       ncclxrtProgram_t program, ncclxrtCudaPlan_t *plan) {
  if (!joined || !plan)
    return ncclxrtInvalidArgument;
  *plan = nullptr;
  cuda::Comm &comm = cuda::commOf(joined);
  std::unique_ptr<cuda::Runnable> made;
  Status status = cuda::Plan::prepare(comm, desc, program, made);
  return handle(comm, status, std::move(made), plan);
}

ncclxrtResult_t ncclxrtCudaKernelPrepare(ncclxrtCudaComm_t joined,
                                         const ncclxrtCudaKernelPlanDesc_t *desc,
                                         ncclxrtCudaPlan_t *plan) {
  if (!joined || !plan)
    return ncclxrtInvalidArgument;
  *plan = nullptr;
  cuda::Comm &comm = cuda::commOf(joined);
  std::unique_ptr<cuda::Runnable> made;
  Status status = cuda::prepareKernel(comm, desc, made);
  return handle(comm, status, std::move(made), plan);
}

ncclxrtResult_t ncclxrtCudaPlanBuffer(ncclxrtCudaPlan_t plan, size_t window, int32_t generation,
                                      void **data, size_t *bytes) {
  if (!plan || !data || !bytes)
    return ncclxrtInvalidArgument;
  return plan->comm.remember(plan->plan->buffer(window, generation, data, bytes));
}

ncclxrtResult_t ncclxrtCudaPlanRun(ncclxrtCudaPlan_t plan, void *stream) {
  if (!plan)
    return ncclxrtInvalidArgument;
  return plan->comm.remember(plan->plan->run(static_cast<cuda::Stream>(stream)));
}

namespace {
/// A buffer that is not the plan's own memory.
struct Foreign {
  const ncclxrtCudaBuffer_t &buffer;
  size_t index, bytes;
  void *given, *own;
};
} // namespace

template <typename Act>
static Status forEachForeign(cuda::Runnable &plan, const ncclxrtCudaBuffer_t *buffers, size_t count,
                             void *const *memory, Act act) {
  for (size_t i = 0; memory && i < count; ++i) {
    Foreign at{buffers[i], i, 0, memory[i], nullptr};
    if (Status s = plan.buffer(buffers[i].window, 0, &at.own, &at.bytes); !s.ok())
      return s;
    if (at.given && at.given != at.own && at.bytes)
      if (Status s = act(at); !s.ok())
        return s;
  }
  return {};
}

static Status check(cuda::Comm &comm, cuda::Runnable &plan, const ncclxrtCudaBuffer_t *buffers,
                    size_t count, void *const *memory) {
  return forEachForeign(plan, buffers, count, memory, [&](const Foreign &at) {
    cuda::Address base;
    size_t size;
    return comm.isOwnMemory(reinterpret_cast<cuda::Address>(at.given), at.bytes,
                            fmt::format("the memory given for buffer {}", at.index), base, size);
  });
}

/// Before a run from the caller's memory to the plan's, after it back.
static Status move(cuda::Comm &comm, cuda::Runnable &plan, cuda::Stream stream,
                   const ncclxrtCudaBuffer_t *buffers, size_t count, void *const *memory,
                   bool before) {
  return forEachForeign(plan, buffers, count, memory, [&](const Foreign &at) {
    if (before ? !at.buffer.in : !at.buffer.out)
      return Status();
    return before ? comm.copy(stream, at.own, at.given, at.bytes)
                  : comm.copy(stream, at.given, at.own, at.bytes);
  });
}

ncclxrtResult_t ncclxrtCudaPlanLaunch(ncclxrtCudaPlan_t plan, void *on,
                                      const ncclxrtCudaBuffer_t *buffers, size_t count,
                                      void *const *memory) {
  if (!plan || (count && !buffers))
    return ncclxrtInvalidArgument;
  cuda::Comm &comm = plan->comm;
  auto stream = static_cast<cuda::Stream>(on);
  Status s = comm.enter();
  if (s.ok())
    s = comm.isOwnStream(stream);
  if (s.ok())
    s = check(comm, *plan->plan, buffers, count, memory);
  if (!s.ok())
    return comm.refuse(s); // nothing has been enqueued
  s = move(comm, *plan->plan, stream, buffers, count, memory, true);
  if (s.ok())
    s = plan->plan->run(stream);
  if (s.ok())
    s = move(comm, *plan->plan, stream, buffers, count, memory, false);
  return comm.remember(s);
}

ncclxrtResult_t ncclxrtCudaPlanWait(ncclxrtCudaPlan_t plan) {
  return plan ? plan->comm.remember(plan->plan->drain()) : ncclxrtInvalidArgument;
}

ncclxrtResult_t ncclxrtCudaPlanTrace(ncclxrtCudaPlan_t plan, int32_t captured,
                                     const ncclxrtTraceEvent_t **events, size_t *count,
                                     int64_t *errorNs) {
  if (!plan || !events || !count || !errorNs)
    return ncclxrtInvalidArgument;
  plan->timeline.clear();
  Status s = plan->plan->timeline(captured != 0, plan->timeline, *errorNs);
  *events = plan->timeline.data();
  *count = plan->timeline.size();
  return s.code() == ncclxrtInvalidUsage ? plan->comm.refuse(s) : plan->comm.remember(s);
}

ncclxrtResult_t ncclxrtCudaPlanDestroy(ncclxrtCudaPlan_t plan) {
  if (plan)
    --plan->comm.users;
  delete plan;
  return ncclxrtSuccess;
}

//===--- group B -----------------------------------------------------------------------------===//

static cuda::Plan &planOf(int64_t exec) { return *reinterpret_cast<cuda::Plan *>(exec); }

int64_t ncclxrtCuda_rank(int64_t exec) { return planOf(exec).rank(); }
int64_t ncclxrtCuda_run(int64_t exec) { return planOf(exec).currentRun(); }

int32_t ncclxrtCuda_copy(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t dw,
                         int64_t dp, int64_t doff, int64_t dr, int64_t ds, int64_t drb, int64_t sw,
                         int64_t sp, int64_t soff, int64_t sr, int64_t ss, int64_t srb, int64_t ns,
                         int64_t np, int64_t ni) {
  return status ? status
                : planOf(exec).copy(op, lane, {dw, dp, doff, dr, ds, drb},
                                    {sw, sp, soff, sr, ss, srb}, ns, np, ni);
}

int32_t ncclxrtCuda_copy_sized(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t dw,
                               int64_t dp, int64_t doff, int64_t dr, int64_t ds, int64_t drb,
                               int64_t sw, int64_t sp, int64_t soff, int64_t sr, int64_t ss,
                               int64_t srb, int64_t ns, int64_t np, int64_t ni, int64_t size,
                               int64_t du, int64_t su) {
  return status ? status
                : planOf(exec).copySized(op, lane, {dw, dp, doff, dr, ds, drb},
                                         {sw, sp, soff, sr, ss, srb}, ns, np, ni, size, du, su);
}

int32_t ncclxrtCuda_count(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t window,
                          int64_t offset, int64_t bytes, int64_t max) {
  return status ? status : planOf(exec).count(op, lane, window, offset, bytes, max);
}

int64_t ncclxrtCuda_size(int64_t exec) { return planOf(exec).size(); }

int32_t ncclxrtCuda_reduce(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t kind,
                           int64_t dtype, int64_t acc, int64_t scale, int64_t divisor, int64_t dw,
                           int64_t dp, int64_t doff, int64_t dr, int64_t ds, int64_t drb,
                           int64_t aw, int64_t ap, int64_t aoff, int64_t ar, int64_t as,
                           int64_t arb, int64_t count, int64_t step, int64_t bw, int64_t bp,
                           int64_t boff, int64_t br, int64_t bs, int64_t brb) {
  return status ? status
                : planOf(exec).reduce(op, lane, kind, dtype, acc, __builtin_bit_cast(double, scale),
                                      divisor, {dw, dp, doff, dr, ds, drb},
                                      {aw, ap, aoff, ar, as, arb}, count, step,
                                      {bw, bp, boff, br, bs, brb});
}

int32_t ncclxrtCuda_signal(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t slots,
                           int64_t peer, int64_t index) {
  return status ? status : planOf(exec).signal(op, lane, slots, peer, index);
}

int32_t ncclxrtCuda_wait(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t slots,
                         int64_t index, int64_t count, int64_t value) {
  return status ? status : planOf(exec).wait(op, lane, slots, index, count, value);
}

int32_t ncclxrtCuda_flush(int32_t status, int64_t exec, int64_t op, int64_t lane) {
  return status ? status : planOf(exec).flush(op, lane);
}

int32_t ncclxrtCuda_order(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t other) {
  return status ? status : planOf(exec).order(op, lane, other);
}

int32_t ncclxrtCuda_argument(int32_t status, int64_t exec, int64_t window) {
  return status ? status : planOf(exec).argument(window);
}

int32_t ncclxrtCuda_launch(int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t kernel) {
  return status ? status : planOf(exec).launch(op, lane, kernel);
}

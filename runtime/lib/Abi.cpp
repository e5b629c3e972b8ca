//===- Abi.cpp - The C interface ------------------------------------------===//
#include "Plan.h"

#include <bit>
#include <exception>

using namespace ncclxrt;

struct ncclxrtComm : Comm {
  using Comm::Comm;
};
struct ncclxrtPlan {
  std::unique_ptr<Plan> plan;
};

static thread_local std::string lastErrorWithoutComm, lastErrorGiven;

/// Runs the body of a call; nothing that it throws gets out.
template <typename Body> static Status guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return Status(ncclxrtOutOfMemory, "out of memory");
  } catch (const std::exception &e) {
    return Status(ncclxrtInternalError, e.what());
  }
}

static ncclxrtResult_t note(const Status &status) {
  if (!status.ok())
    lastErrorWithoutComm = status.text();
  return status.code();
}

template <typename Body> static ncclxrtResult_t withComm(ncclxrtComm_t comm, Body body) {
  if (!comm)
    return note(error(ncclxrtInvalidArgument, "the communicator is null"));
  return guarded([&] { return comm->remember(guarded(body)); }).code();
}

template <typename Body> static ncclxrtResult_t withPlan(ncclxrtPlan_t plan, Body body) {
  if (!plan)
    return note(error(ncclxrtInvalidArgument, "the plan is null"));
  return guarded([&] { return plan->plan->comm.remember(guarded(body)); }).code();
}

Status ncclxrt::makeComm(const Comm::Config &config, ncclxrtComm_t *comm) {
  *comm = nullptr;
  auto made = std::make_unique<ncclxrtComm>(config);
  Status s = guarded([&] { return made->init(); });
  if (!s.ok()) {
    made->fail(s); // the others may wait for this rank
    return made->failureStatus();
  }
  *comm = made.release();
  return {};
}

extern "C" {

int32_t ncclxrtVersion(void) { return NCCLXRT_ABI_VERSION; }

const char *ncclxrtResultString(ncclxrtResult_t result) {
  switch (result) {
  case ncclxrtSuccess:
    return "success";
  case ncclxrtInvalidArgument:
    return "invalid argument";
  case ncclxrtInvalidUsage:
    return "invalid usage";
  case ncclxrtSystemError:
    return "system error";
  case ncclxrtOutOfMemory:
    return "out of memory";
  case ncclxrtTimeout:
    return "timeout";
  case ncclxrtPeerFailed:
    return "peer failed";
  case ncclxrtPlanMismatch:
    return "plan mismatch";
  case ncclxrtAborted:
    return "aborted";
  case ncclxrtUnsupported:
    return "unsupported";
  case ncclxrtVersionMismatch:
    return "version mismatch";
  case ncclxrtInternalError:
    return "internal error";
  }
  return "unknown result";
}

const char *ncclxrtGetLastError(ncclxrtComm_t comm) {
  (void)guarded([&]() -> Status {
    lastErrorGiven = comm ? comm->lastError() : lastErrorWithoutComm;
    return {};
  });
  return lastErrorGiven.c_str();
}

ncclxrtResult_t ncclxrtCommInit(const ncclxrtCommConfig_t *config, ncclxrtComm_t *comm) {
  if (!comm)
    return note(error(ncclxrtInvalidArgument, "CommInit: the out-parameter is null"));
  *comm = nullptr;
  return note(guarded([&]() -> Status {
    Comm::Config resolved;
    if (Status s = Comm::resolve(config, resolved); !s.ok())
      return s;
    return makeComm(resolved, comm);
  }));
}

ncclxrtResult_t ncclxrtCommDestroy(ncclxrtComm_t comm) {
  if (!comm)
    return ncclxrtSuccess;
  if (size_t count = comm->planCountAlive())
    return withComm(comm, [&] {
      return error(ncclxrtInvalidUsage, "CommDestroy: {} plans are not destroyed", count);
    });
  Status s = guarded([&] { return comm->leave(); });
  delete comm;
  return note(s);
}

ncclxrtResult_t ncclxrtCommAbort(ncclxrtComm_t comm, const char *reason) {
  if (!comm)
    return note(error(ncclxrtInvalidArgument, "the communicator is null"));
  return guarded([&]() -> Status {
           comm->fail(error(ncclxrtAborted, "rank {} aborted: {}", comm->rank(),
                            reason && *reason ? reason : "no reason given"));
           return {};
         })
      .code();
}

ncclxrtResult_t ncclxrtPlanPrepare(ncclxrtComm_t comm, const ncclxrtPlanDesc_t *desc,
                                   ncclxrtPlan_t *plan) {
  if (plan)
    *plan = nullptr;
  return withComm(comm, [&]() -> Status {
    if (!plan)
      return error(ncclxrtInvalidArgument, "PlanPrepare: the out-parameter is null");
    if (comm->failure() != ncclxrtSuccess) {
      comm->addPlace(fmt::format("rank {} came to prepare plan '{}'", comm->rank(),
                                 desc && desc->name ? desc->name : ""));
      return comm->failureStatus();
    }
    auto handle = std::make_unique<ncclxrtPlan>();
    if (Status s = Plan::prepare(*comm, desc, handle->plan); !s.ok())
      return s;
    *plan = handle.release();
    return {};
  });
}

ncclxrtResult_t ncclxrtPlanBuffer(ncclxrtPlan_t plan, size_t window, int32_t generation,
                                  void **data, size_t *bytes) {
  return withPlan(plan, [&] { return plan->plan->buffer(window, generation, data, bytes); });
}

ncclxrtResult_t ncclxrtPlanRun(ncclxrtPlan_t plan, ncclxrtProgram_t program) {
  if (!plan || !program)
    return note(error(ncclxrtInvalidArgument, "PlanRun: the plan or the program is null"));
  Plan &p = *plan->plan;
  if (p.comm.failure() != ncclxrtSuccess)
    return p.comm.failure();
  if (p.inRun())
    return withPlan(plan, [] { return error(ncclxrtInvalidUsage, "PlanRun inside a run"); });
  ncclxrtResult_t result = ncclxrtSuccess;
  Status s = guarded([&]() -> Status {
    result = p.run(program);
    return {};
  });
  return s.ok() ? result : p.comm.fail(s);
}

ncclxrtResult_t ncclxrtPlanTrace(ncclxrtPlan_t plan, const ncclxrtTraceEvent_t **events,
                                 size_t *count) {
  return withPlan(plan, [&]() -> Status {
    if (!events || !count)
      return error(ncclxrtInvalidArgument, "PlanTrace: an out-parameter is null");
    *events = plan->plan->traceEvents();
    *count = plan->plan->traceCount();
    return {};
  });
}

ncclxrtResult_t ncclxrtPlanTraceClear(ncclxrtPlan_t plan) {
  return withPlan(plan, [&]() -> Status {
    plan->plan->clearTrace();
    return {};
  });
}

ncclxrtResult_t ncclxrtPlanDestroy(ncclxrtPlan_t plan) {
  if (!plan)
    return ncclxrtSuccess;
  if (plan->plan->inRun())
    return withPlan(plan, [] { return error(ncclxrtInvalidUsage, "PlanDestroy inside a run"); });
  return guarded([&]() -> Status {
           delete plan;
           return {};
         })
      .code();
}

} // extern "C"

//===- Group B ------------------------------------------------------------===//

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

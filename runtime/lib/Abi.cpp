//===- Abi.cpp - The C interface ------------------------------------------===//
#include "Plan.h"

#include <exception>

using namespace ncclxrt;

struct ncclxrtComm : Comm {
  using Comm::Comm;
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

int32_t ncclxrtCommAllgather(void *joined, const void *mine, size_t bytes, void *all) {
  auto *comm = static_cast<ncclxrtComm_t>(joined);
  return withComm(comm, [&] { return comm->gather(mine, bytes, all); });
}

const char *ncclxrtCommFailure(void *joined) {
  auto *comm = static_cast<ncclxrtComm_t>(joined);
  if (!comm || comm->failure() == ncclxrtSuccess)
    return nullptr;
  return guarded([&]() -> Status {
           lastErrorGiven = comm->failureStatus().text();
           return {};
         }).ok()
             ? lastErrorGiven.c_str()
             : "the job has failed, and memory is short";
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
  if (p.comm.failure() != ncclxrtSuccess) {
    p.comm.addPlace(p.describeNextRun());
    return p.comm.failure();
  }
  if (p.inRun())
    return withPlan(plan, [] { return error(ncclxrtInvalidUsage, "PlanRun inside a run"); });
  try {
    return p.run(program);
  } catch (...) {
    return p.comm.fail(guarded([]() -> Status { throw; }));
  }
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

//===- Abi.cpp - The C interface of the CUDA part -------------------------===//
#include "Comm.h"

#include <cstring>
#include <new>

using namespace ncclxrt;

struct ncclxrtCudaComm : cuda::Comm {
  using Comm::Comm;
};

cuda::Comm &cuda::commOf(ncclxrtCudaComm_t comm) { return *comm; }

static thread_local std::string lastInitError, lastErrorText;

void cuda::tellThread(const std::string &sentence) { lastInitError = sentence; }

static ncclxrtResult_t refuse(const char *call) {
  lastInitError = std::string(call) + " was given no communicator or no place for its result";
  return ncclxrtInvalidArgument;
}

ncclxrtResult_t ncclxrtCudaDevices(const char *driver, int32_t *count, int32_t *architecture,
                                   char *name, size_t size) {
  if (!count || !architecture || !name || !size)
    return refuse("ncclxrtCudaDevices");
  const cuda::Driver *loaded = cuda::Driver::load(driver, lastInitError);
  if (!loaded)
    return ncclxrtUnsupported;
  int device = 0, major = 0, minor = 0;
  int result = loaded->deviceCount(count);
  *architecture = 0;
  *name = 0;
  if (result == cuda::success && *count > 0) {
    result = loaded->deviceGet(&device, 0);
    loaded->deviceAttribute(&major, cuda::capabilityMajor, device);
    loaded->deviceAttribute(&minor, cuda::capabilityMinor, device);
    loaded->deviceName(name, int(size), device);
    *architecture = major * 10 + minor;
  }
  if (result == cuda::success)
    return ncclxrtSuccess;
  lastInitError = "the GPUs cannot be counted: " + loaded->text(result);
  return ncclxrtSystemError;
}

ncclxrtResult_t ncclxrtCudaInit(const ncclxrtCudaConfig_t *config, ncclxrtCudaComm_t *comm) {
  if (!config || !comm)
    return refuse("ncclxrtCudaInit");
  *comm = nullptr;
  ncclxrtCudaConfig_t own = NCCLXRT_CUDA_CONFIG_INIT;
  if (config->struct_size < offsetof(ncclxrtCudaConfig_t, context) + sizeof(void *) ||
      config->struct_size > sizeof own) {
    lastInitError = "ncclxrtCudaInit: struct_size is not that of ncclxrtCudaConfig_t";
    return ncclxrtVersionMismatch;
  }
  std::memcpy(&own, config, config->struct_size);
  auto *made = new (std::nothrow) ncclxrtCudaComm(own);
  if (!made) {
    lastInitError = "out of memory";
    return ncclxrtOutOfMemory;
  }
  Status status = made->init();
  if (!status.ok()) {
    lastInitError = status.text();
    delete made;
    return status.code();
  }
  *comm = made;
  return ncclxrtSuccess;
}

ncclxrtResult_t ncclxrtCudaDestroy(ncclxrtCudaComm_t comm) {
  if (comm && comm->users)
    return comm->refuse(error(ncclxrtInvalidUsage,
                              "rank {} has {} plans and graphs to destroy before its communicator",
                              comm->rank(), comm->users));
  delete comm;
  return ncclxrtSuccess;
}

ncclxrtResult_t ncclxrtCudaWindow(ncclxrtCudaComm_t comm, void *memory, size_t bytes,
                                  void **peers) {
  return comm && peers ? comm->remember(comm->window(memory, bytes, peers))
                       : refuse("ncclxrtCudaWindow");
}

ncclxrtResult_t ncclxrtCudaSlots(ncclxrtCudaComm_t comm, size_t count, uint32_t **peers) {
  return comm && peers ? comm->remember(comm->slots(count, peers)) : refuse("ncclxrtCudaSlots");
}

ncclxrtResult_t ncclxrtCudaGuard(ncclxrtCudaComm_t comm, void **control, uint64_t *timeout_ns) {
  if (!comm || !control || !timeout_ns)
    return refuse("ncclxrtCudaGuard");
  comm->guard(control, timeout_ns);
  return ncclxrtSuccess;
}

ncclxrtResult_t ncclxrtCudaSignal(ncclxrtCudaComm_t comm, void *stream, uint32_t *slot) {
  return comm && slot ? comm->remember(comm->signal(static_cast<cuda::Stream>(stream), slot))
                      : refuse("ncclxrtCudaSignal");
}

ncclxrtResult_t ncclxrtCudaWait(ncclxrtCudaComm_t comm, void *stream, uint32_t *slot,
                                uint32_t value, int32_t consume) {
  return comm && slot ? comm->remember(comm->wait(static_cast<cuda::Stream>(stream), slot, value,
                                                  consume != 0))
                      : refuse("ncclxrtCudaWait");
}

ncclxrtResult_t ncclxrtCudaWatch(ncclxrtCudaComm_t comm, void *stream) {
  return comm ? comm->remember(comm->watch(static_cast<cuda::Stream>(stream)))
              : refuse("ncclxrtCudaWatch");
}

ncclxrtResult_t ncclxrtCudaStream(ncclxrtCudaComm_t comm, void **stream) {
  return comm && stream ? comm->remember(comm->makeStream(stream)) : refuse("ncclxrtCudaStream");
}

ncclxrtResult_t ncclxrtCudaCopy(ncclxrtCudaComm_t comm, void *stream, void *to, const void *from,
                                size_t bytes) {
  if (!comm)
    return refuse("ncclxrtCudaCopy");
  return comm->remember(comm->copy(static_cast<cuda::Stream>(stream), to, from, bytes));
}

ncclxrtResult_t ncclxrtCudaSynchronize(ncclxrtCudaComm_t comm, void *stream) {
  if (!comm)
    return refuse("ncclxrtCudaSynchronize");
  if (Status s = comm->synchronize(static_cast<cuda::Stream>(stream)); !s.ok())
    return comm->remember(s);
  return comm->query().code();
}

struct ncclxrtCudaGraph {
  cuda::Comm &comm;
  cuda::GraphExec exec;
};

ncclxrtResult_t ncclxrtCudaCaptureBegin(ncclxrtCudaComm_t comm, void *stream) {
  if (!comm)
    return refuse("ncclxrtCudaCaptureBegin");
  Status s = comm->enter();
  if (s.ok())
    s = comm->call(
        comm->cuda().beginCapture(static_cast<cuda::Stream>(stream), cuda::captureOfThread),
        "cuStreamBeginCapture");
  return comm->remember(s);
}

ncclxrtResult_t ncclxrtCudaCaptureEnd(ncclxrtCudaComm_t comm, void *stream,
                                      ncclxrtCudaGraph_t *graph) {
  if (!comm || !graph)
    return refuse("ncclxrtCudaCaptureEnd");
  *graph = nullptr;
  const cuda::Driver &cuda = comm->cuda();
  cuda::Graph captured = nullptr;
  cuda::GraphExec exec = nullptr;
  Status s = comm->call(cuda.endCapture(static_cast<cuda::Stream>(stream), &captured),
                        "cuStreamEndCapture");
  if (s.ok())
    s = comm->call(cuda.instantiate(&exec, captured, 0), "cuGraphInstantiate");
  // Now, not in the first launch: it allocates, for which the driver can wait for all streams of
  // the GPU, and among those ranks that share it some wait for this one by then.
  if (s.ok())
    s = comm->upload(exec);
  if (captured)
    cuda.destroyGraph(captured);
  if (s.ok()) {
    *graph = new ncclxrtCudaGraph{*comm, exec};
    ++comm->users;
  } else if (exec) {
    cuda.destroyGraphExec(exec);
  }
  return comm->remember(s);
}

ncclxrtResult_t ncclxrtCudaGraphLaunch(ncclxrtCudaGraph_t graph, void *on) {
  if (!graph)
    return refuse("ncclxrtCudaGraphLaunch");
  cuda::Comm &comm = graph->comm;
  auto stream = static_cast<cuda::Stream>(on);
  Status s = comm.query();
  if (s.ok())
    s = comm.enter();
  if (s.ok())
    s = comm.call(comm.cuda().launchGraph(graph->exec, stream), "cuGraphLaunch");
  if (s.ok())
    s = comm.watch(stream);
  return comm.remember(s);
}

ncclxrtResult_t ncclxrtCudaGraphDestroy(ncclxrtCudaGraph_t graph) {
  if (graph) {
    if (graph->comm.enter().ok())
      graph->comm.cuda().destroyGraphExec(graph->exec);
    --graph->comm.users;
  }
  delete graph;
  return ncclxrtSuccess;
}

ncclxrtResult_t ncclxrtCudaAbort(ncclxrtCudaComm_t comm, const char *reason) {
  if (!comm)
    return refuse("ncclxrtCudaAbort");
  comm->abort(Status(ncclxrtAborted, reason ? reason : "aborted"));
  return ncclxrtSuccess;
}

ncclxrtResult_t ncclxrtCudaQuery(ncclxrtCudaComm_t comm) {
  return comm ? comm->query().code() : refuse("ncclxrtCudaQuery");
}

const char *ncclxrtCudaLastError(ncclxrtCudaComm_t comm) {
  lastErrorText = comm ? comm->lastError() : lastInitError;
  return lastErrorText.c_str();
}

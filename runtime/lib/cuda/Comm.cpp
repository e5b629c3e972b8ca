//===- Comm.cpp - Windows, stream signals and the watchdog ----------------===//
#include "Comm.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

Status Comm::call(int result, const char *what) const {
  if (result == success)
    return {};
  return error(result == outOfMemory ? ncclxrtOutOfMemory : ncclxrtSystemError,
               "{} failed: {} (rank={}, device={})", what, driver->text(result), config.rank,
               config.device);
}

Status Comm::exchange(const void *mine, size_t bytes, void *all, const char *what) {
  if (config.allgather(config.context, mine, bytes, all) == 0)
    return {};
  const char *why = config.failure ? config.failure(config.context) : nullptr;
  return error(ncclxrtPeerFailed, "the exchange of {} failed (rank={}){}{}", what, config.rank,
               why ? ": " : "", why ? why : "");
}

Status Comm::init() {
  if (config.nranks < 1 || config.rank < 0 || config.rank >= config.nranks || !config.allgather)
    return error(ncclxrtInvalidArgument, "rank {} of {} ranks{}", config.rank, config.nranks,
                 config.allgather ? "" : " without an allgather");
  if (config.timeout_ms < 0)
    return error(ncclxrtInvalidArgument, "timeout_ms is at least 0, found {} (rank={})",
                 config.timeout_ms, config.rank);
  if (config.timeout_ms == 0)
    config.timeout_ms = 30000;
  std::string why;
  driver = Driver::load(config.driver, why);
  if (!driver)
    return error(ncclxrtUnsupported, "{} (rank={})", why, config.rank);
  int count = 0, major = 0, minor = 0, wide = 0;
  if (Status s = call(driver->deviceCount(&count), "cuDeviceGetCount"); !s.ok())
    return s;
  if (config.device < 0 || config.device >= count)
    return error(ncclxrtInvalidArgument, "rank {} is to use GPU {}, but there are {}", config.rank,
                 config.device, count);
  if (Status s = call(driver->deviceGet(&device, config.device), "cuDeviceGet"); !s.ok())
    return s;
  driver->deviceAttribute(&major, capabilityMajor, device);
  driver->deviceAttribute(&minor, capabilityMinor, device);
  driver->deviceAttribute(&wide, has64BitStreamOps, device);
  capability = major * 10 + minor;
  if (Status s = call(driver->deviceUuid(&uuid, device), "cuDeviceGetUuid"); !s.ok())
    return s;
  if (!wide)
    return error(ncclxrtUnsupported, "GPU {} has no stream operations of 64 bits (rank={})",
                 config.device, config.rank);
  if (Status s = call(driver->retainContext(&context, device), "cuDevicePrimaryCtxRetain"); !s.ok())
    return s;
  if (Status s = enter(); !s.ok())
    return s;
  void *block = nullptr;
  Address at = 0;
  if (Status s =
          call(driver->allocateHost(&block, sizeof(device::Control), mappedHost), "cuMemHostAlloc");
      !s.ok())
    return s;
  control = static_cast<device::Control *>(block);
  std::memset(block, 0, sizeof(device::Control));
  if (Status s = call(driver->hostAddress(&at, control, 0), "cuMemHostGetDevicePointer"); !s.ok())
    return s;
  mapped = reinterpret_cast<device::Control *>(at);
  block = nullptr;
  if (Status s = call(driver->allocateHost(&block, releaseChunk * 12, 0), "cuMemHostAlloc");
      !s.ok())
    return s;
  releaseCounts = static_cast<uint64_t *>(block);
  releaseValues = reinterpret_cast<uint32_t *>(releaseCounts + releaseChunk);
  std::fill_n(releaseCounts, releaseChunk, device::abortCount);
  std::fill_n(releaseValues, releaseChunk, device::abortValue);
  if (Status s = call(driver->createStream(&releaseStream, nonBlocking), "cuStreamCreate"); !s.ok())
    return s;
  watchdog = std::thread([this] { guardLoop(); });
  return {};
}

Comm::~Comm() {
  leaving = true;
  if (watchdog.joinable())
    watchdog.join();
  if (!context)
    return;
  (void)enter();
  for (Stream stream : streams)
    driver->destroyStream(stream);
  for (Deadline &d : deadlines)
    driver->destroyEvent(d.event);
  for (Event event : freeEvents)
    driver->destroyEvent(event);
  for (const Owned &m : memory)
    if (m.imported && !m.mapped) {
      driver->ipcClose(m.memory);
    } else if (m.imported) {
      driver->unmap(m.memory, m.mapped);
      driver->freeReserved(m.memory, m.mapped);
    }
  std::vector<int32_t> closed(config.nranks);
  int32_t one = 1;
  if (importing && query().ok())
    (void)exchange(&one, sizeof one, closed.data(), "memory that is let go");
  for (auto it = memory.rbegin(); it != memory.rend(); ++it)
    if (!it->imported)
      driver->free(it->memory);
  if (releaseStream)
    driver->destroyStream(releaseStream);
  if (releaseCounts)
    driver->freeHost(releaseCounts);
  if (control)
    driver->freeHost(control);
  driver->releaseContext(device);
}

//===--- memory ---------------------------------------------------------------------------===//

Status Comm::isOwnStream(Stream stream) const {
  Context its = nullptr;
  if (Status s = call(driver->streamContext(stream, &its), "cuStreamGetCtx"); !s.ok())
    return s;
  return its == context ? Status()
                        : error(ncclxrtInvalidArgument,
                                "the stream is of another GPU than {}, which rank {} has", device,
                                config.rank);
}

Status Comm::clear(Address at, size_t bytes) {
  if (Status s = call(driver->fill(at, 0, bytes, releaseStream), "cuMemsetD8Async"); !s.ok())
    return s;
  return synchronize(releaseStream);
}

Status Comm::fetch(void *to, Address at, size_t bytes) {
  if (Status s = copy(releaseStream, to, reinterpret_cast<const void *>(at), bytes); !s.ok())
    return s;
  return synchronize(releaseStream);
}

Status Comm::upload(GraphExec graph) {
  if (Status s = call(driver->uploadGraph(graph, releaseStream), "cuGraphUpload"); !s.ok())
    return s;
  return synchronize(releaseStream);
}

Status Comm::makeStream(void **stream) {
  if (Status s = enter(); !s.ok())
    return s;
  if (Status s = call(driver->createStream(&streams.emplace_back(), nonBlocking), "cuStreamCreate");
      !s.ok()) {
    streams.pop_back();
    return s;
  }
  *stream = streams.back();
  return {};
}

Status Comm::copy(Stream stream, void *to, const void *from, size_t bytes) {
  if (Status s = enter(); !s.ok() || !bytes)
    return s;
  return call(
      driver->copy(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes, stream),
      "cuMemcpyAsync");
}

//===--- signals of streams ----------------------------------------------------------------===//

Status Comm::signal(Stream stream, uint32_t *slot) {
  // The default write is a release of the stream's earlier work for the whole system.
  return call(driver->writeValue32(stream, reinterpret_cast<Address>(slot), 1, writeDefault),
              "cuStreamWriteValue32");
}

Status Comm::wait(Stream stream, uint32_t *slot, uint32_t value, bool consume) {
  // At least, not equal: the value that an abort writes ends the wait, too.
  if (Status s =
          call(driver->waitValue32(stream, reinterpret_cast<Address>(slot), value, waitAtLeast),
               "cuStreamWaitValue32");
      !s.ok() || !consume)
    return s;
  return call(driver->writeValue32(stream, reinterpret_cast<Address>(slot), 0, writeDefault),
              "cuStreamWriteValue32");
}

Status Comm::raise(Stream stream, uint64_t *slot, uint64_t value) {
  return call(driver->writeValue64(stream, reinterpret_cast<Address>(slot), value, writeDefault),
              "cuStreamWriteValue64");
}

Status Comm::await(Stream stream, const uint64_t *slot, uint64_t value) {
  return call(driver->waitValue64(stream, reinterpret_cast<Address>(slot), value, waitAtLeast),
              "cuStreamWaitValue64");
}

Status Comm::watch(Stream stream) {
  std::lock_guard<std::mutex> hold(lock);
  int64_t at = nowNs() + config.timeout_ms * nsPerMs;
  if (deadlines.size() < maxDeadlines) {
    Deadline d{nullptr, at};
    if (freeEvents.empty()) {
      if (Status s = call(driver->createEvent(&d.event, noTiming), "cuEventCreate"); !s.ok())
        return s;
    } else {
      d.event = freeEvents.back();
      freeEvents.pop_back();
    }
    deadlines.push_back(d);
  }
  // When many are under way the last one moves on with the stream.
  deadlines.back().at = at;
  return call(driver->record(deadlines.back().event, stream), "cuEventRecord");
}

//===--- the watchdog ------------------------------------------------------------------------===//

void Comm::abort(Status reason) {
  {
    std::lock_guard<std::mutex> hold(lock);
    if (failure.ok())
      failure = std::move(reason);
  }
  __atomic_store_n(&control->abort, 1u, __ATOMIC_RELEASE);
}

uint32_t Comm::numberOf(const std::string &place) {
  std::lock_guard<std::mutex> hold(lock);
  auto at = std::find(places.begin(), places.end(), place);
  return uint32_t((at == places.end() ? places.insert(at, place) : at) - places.begin());
}

uint32_t Comm::numberOf(const std::vector<std::string> &more) {
  std::lock_guard<std::mutex> hold(lock);
  auto at = std::search(places.begin(), places.end(), more.begin(), more.end());
  if (at == places.end())
    at = places.insert(at, more.begin(), more.end());
  return uint32_t(at - places.begin());
}

std::string Comm::placeOf(uint32_t number) {
  std::lock_guard<std::mutex> hold(lock);
  return number < places.size() ? places[number] : "a size";
}

Status Comm::query() {
  if (__atomic_load_n(&control->failed, __ATOMIC_ACQUIRE) == 2) {
    const device::Failure &f = control->failure;
    if (f.kind == device::sizeOutOfRange)
      abort(error(ncclxrtInvalidArgument, "rank {}, {} is {}, expected 0 to {}", config.rank,
                  placeOf(f.step), int64_t(f.found), f.expected));
    else
      abort(error(ncclxrtTimeout,
                  "step {} of rank {}: block {} waited more than {} ms for rank {} (expected {}, "
                  "found {})",
                  f.step, config.rank, f.block, config.timeout_ms, f.peer, f.expected, f.found));
  }
  std::lock_guard<std::mutex> hold(lock);
  return failure;
}

void Comm::checkDeadlines() {
  bool late = false;
  {
    std::lock_guard<std::mutex> hold(lock);
    while (!deadlines.empty() && driver->queryEvent(deadlines.front().event) == success) {
      freeEvents.push_back(deadlines.front().event);
      deadlines.pop_front();
    }
    late = !deadlines.empty() && nowNs() > deadlines.front().at;
  }
  if (late)
    abort(error(ncclxrtTimeout, "the stream of rank {} was not done within {} ms", config.rank,
                config.timeout_ms));
}

void Comm::releaseStreams() {
  // Again and again: a wait that consumes leaves 0 for the next one.
  std::lock_guard<std::mutex> hold(lock);
  auto release = [&](const std::vector<std::pair<Address, size_t>> &all, const void *values,
                     size_t size) {
    for (auto [slots, count] : all)
      for (size_t at = 0; at < count; at += releaseChunk)
        driver->copy(slots + at * size, reinterpret_cast<Address>(values),
                     std::min(releaseChunk, count - at) * size, releaseStream);
  };
  release(streamSlots, releaseValues, sizeof(uint32_t));
  release(planCounters, releaseCounts, sizeof(uint64_t));
  driver->synchronize(releaseStream);
}

/// A rank that has died raises no counter any more.
void Comm::checkJob() {
  if (!config.failure || !query().ok())
    return;
  if (const char *why = config.failure(config.context))
    abort(error(ncclxrtPeerFailed, "{} (rank={})", why, config.rank));
}

void Comm::guardLoop() {
  (void)enter();
  while (!leaving) {
    checkJob();
    checkDeadlines();
    bool aborted = __atomic_load_n(&control->abort, __ATOMIC_ACQUIRE) != 0;
    if (aborted)
      releaseStreams();
    std::this_thread::sleep_for(std::chrono::milliseconds(aborted ? 1 : 10));
  }
}

ncclxrtResult_t Comm::remember(Status status) {
  if (!status.ok()) {
    std::lock_guard<std::mutex> hold(lock);
    if (failure.ok())
      failure = status;
  }
  return status.code();
}

ncclxrtResult_t Comm::refuse(const Status &status) {
  std::lock_guard<std::mutex> hold(lock);
  refusal = status.text();
  return status.code();
}

std::string Comm::lastError() {
  std::lock_guard<std::mutex> hold(lock);
  return failure.ok() ? refusal : failure.text();
}

//===- Timeline.cpp - When ops of a run were done -------------------------===//
#include "Timeline.h"

#include <algorithm>
#include <cmath>
#include <thread>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

//===--- the clock ---------------------------------------------------------------------------===//

Status Clock::init() {
  const Driver &cuda = comm.cuda();
  if (Status s = comm.call(cuda.createStream(&stream, nonBlocking), "cuStreamCreate"); !s.ok())
    return s;
  void *block = nullptr;
  if (Status s = comm.call(cuda.allocateHost(&block, sizeof(Words), mappedHost), "cuMemHostAlloc");
      !s.ok())
    return s;
  words = new (block) Words{};
  return comm.call(cuda.hostAddress(&mapped, words, 0), "cuMemHostGetDevicePointer");
}

Clock::~Clock() {
  if (stream)
    comm.cuda().destroyStream(stream);
  if (words)
    comm.cuda().freeHost(words);
}

Status Clock::find(const std::function<Status(Stream, int)> &stamp, Moment &moment) {
  __atomic_store_n(&words->go, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&words->done, 0, __ATOMIC_RELEASE);
  auto at = [&](size_t offset) { return reinterpret_cast<uint64_t *>(mapped + offset); };
  Status s;
  for (int i = 0; s.ok() && i < tries; ++i) {
    s = comm.await(stream, at(offsetof(Words, go)), uint64_t(i) + 1);
    if (s.ok())
      s = stamp(stream, i);
    if (s.ok())
      s = comm.raise(stream, at(offsetof(Words, done)), uint64_t(i) + 1);
  }
  moment = {0, 0, INT64_MAX};
  int64_t deadline = nowNs() + comm.timeoutMs() * nsPerMs;
  for (int i = 0; s.ok() && i < tries; ++i) {
    // The stream comes to its wait before it is asked, and so answers at once.
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    int64_t asked = nowNs();
    __atomic_store_n(&words->go, uint64_t(i) + 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&words->done, __ATOMIC_ACQUIRE) < uint64_t(i) + 1) {
      if (nowNs() > deadline) {
        s = error(ncclxrtTimeout, "the GPU of rank {} did not tell its time within {} ms",
                  comm.rank(), comm.timeoutMs());
        break;
      }
      std::this_thread::yield();
    }
    int64_t half = (nowNs() - asked) / 2;
    if (s.ok() && half < moment.errorNs)
      moment = {i, asked + half, half};
  }
  __atomic_store_n(&words->go, uint64_t(tries), __ATOMIC_RELEASE); // whatever became of it
  Status done = comm.synchronize(stream);
  return s.ok() ? done : s;
}

//===--- marks on streams --------------------------------------------------------------------===//

Status Timeline::init(size_t count, size_t mostSpans, size_t streams) {
  capacity = mostSpans;
  under.resize(streams);
  marks.resize(count);
  moments.resize(Clock::tries);
  for (std::vector<Event> *events : {&marks, &moments})
    for (Event &event : *events)
      if (Status s = comm.call(comm.cuda().createEvent(&event, withTiming), "cuEventCreate");
          !s.ok())
        return s;
  return {};
}

Timeline::~Timeline() {
  for (std::vector<Event> *events : {&marks, &moments})
    for (Event event : *events)
      if (event)
        comm.cuda().destroyEvent(event);
}

void Timeline::start(int64_t number, bool captured) {
  run = number, inGraph = captured;
  used = 0;
  spans.clear();
  std::fill(under.begin(), under.end(), -1);
}

Status Timeline::mark(Stream stream, size_t &which) {
  which = used++;
  if (which >= marks.size())
    return error(ncclxrtInternalError, "the program does in this run what it did not rehearse");
  // Of an event that is recorded plainly, a graph keeps only what comes after what.
  return comm.call(
      comm.cuda().recordFlags(marks[which], stream, inGraph ? recordInGraph : withTiming),
      "cuEventRecordWithFlags");
}

Status Timeline::end(size_t place, Stream stream) {
  if (under[place] < 0)
    return {};
  return mark(stream, spans[size_t(std::exchange(under[place], -1))].end);
}

Status Timeline::begin(size_t place, Stream stream, int64_t op, int64_t lane) {
  if (spans.size() == capacity)
    return end(place, stream);
  size_t here;
  if (Status s = mark(stream, here); !s.ok())
    return s;
  if (under[place] >= 0)
    spans[size_t(under[place])].end = here;
  under[place] = int64_t(spans.size());
  spans.push_back({{op, lane, run, 0, 0, 0}, here, here});
  return {};
}

void Timeline::moved(size_t place, int64_t bytes) {
  if (under[place] >= 0)
    spans[size_t(under[place])].event.bytes += bytes;
}

Status Timeline::read(Clock &clock, std::vector<ncclxrtTraceEvent_t> &events, int64_t &errorNs) {
  const Driver &cuda = comm.cuda();
  Clock::Moment moment;
  if (Status s = clock.find(
          [&](Stream stream, int i) {
            return comm.call(cuda.record(moments[i], stream), "cuEventRecord");
          },
          moment);
      !s.ok())
    return s;
  errorNs = moment.errorNs;
  auto timeOf = [&](size_t mark, int64_t &ns) {
    float ms = 0;
    int result = cuda.elapsed(&ms, marks[mark], moments[moment.which]);
    ns = moment.hostNs - std::llround(double(ms) * 1e6);
    return comm.call(result, "cuEventElapsedTime");
  };
  for (const Span &span : spans) {
    ncclxrtTraceEvent_t &event = events.emplace_back(span.event);
    Status s = timeOf(span.begin, event.start_ns);
    if (s.ok())
      s = timeOf(span.end, event.end_ns);
    if (!s.ok())
      return s;
  }
  return {};
}

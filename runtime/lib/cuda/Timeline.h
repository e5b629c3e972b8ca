//===- Timeline.h - When ops of a run were done -------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_CUDA_TIMELINE_H
#define NCCLXRT_LIB_CUDA_TIMELINE_H

#include "Comm.h"

#include <functional>

namespace ncclxrt::cuda {

/// Finds out when something that a stream did was, on the host's CLOCK_MONOTONIC, which all ranks
/// of the host share: the stream waits for a word of the host, does it, and answers; of several
/// tries the one that took the host least is the closest.
class Clock {
public:
  static constexpr int tries = 16;
  struct Moment {
    int which;               ///< of the tries
    int64_t hostNs, errorNs; ///< the middle between question and answer, and half of the way
  };

  explicit Clock(Comm &comm) : comm(comm) {}
  ~Clock();
  Status init();
  /// `stamp` enqueues what is to be placed in time, try by try.
  Status find(const std::function<Status(Stream, int)> &stamp, Moment &moment);
  /// A word of a try that the device may write, as the device and the host see it.
  Address wordOf(int which) const { return mapped + offsetof(Words, told) + which * 8; }
  uint64_t told(int which) const { return words->told[which]; }

private:
  struct Words {
    alignas(64) uint64_t go;
    alignas(64) uint64_t done;
    alignas(64) uint64_t told[tries];
  };
  Comm &comm;
  Stream stream = nullptr;
  Words *words = nullptr; // in host memory
  Address mapped = 0;     // the same, as the GPU sees it
};

/// Marks between the ops of a plan's streams: events, of which none waits. An op begins where its
/// stream is ready for it and ends where the stream comes to what follows.
class Timeline {
public:
  explicit Timeline(Comm &comm) : comm(comm) {}
  ~Timeline();
  Status init(size_t marks, size_t capacity, size_t streams);

  /// Forgets the run before. `inGraph`: this one is captured, and its marks are part of the graph.
  void start(int64_t run, bool inGraph);
  /// The next thing that stream `place` is given belongs to `op`.
  Status begin(size_t place, Stream stream, int64_t op, int64_t lane);
  /// The next thing belongs to nobody.
  Status end(size_t place, Stream stream);
  /// Bytes that the op moves which the stream is given now.
  void moved(size_t place, int64_t bytes);

  /// The ops of the run, when all of it is done.
  Status read(Clock &clock, std::vector<ncclxrtTraceEvent_t> &events, int64_t &errorNs);

private:
  struct Span {
    ncclxrtTraceEvent_t event; ///< without its times
    size_t begin, end;         ///< marks
  };
  Comm &comm;
  std::vector<Event> marks;
  std::vector<Event> moments; ///< of the clock's tries
  size_t used = 0, capacity = 0;
  std::vector<Span> spans;
  std::vector<int64_t> under; ///< by stream: the span under way, or -1
  int64_t run = 0;
  bool inGraph = false;

  Status mark(Stream stream, size_t &which);
};

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_TIMELINE_H

//===- Trace.cpp - Timelines for Perfetto and chrome://tracing ----------------===//

#include "ncclx/Machine/Trace.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

namespace mlir::ctran::machine {

std::vector<TraceEvent> traceEvents(const Schedule &schedule, const TimeResult &result,
                                    const std::string &suffix) {
  std::vector<TraceEvent> events;
  for (const TimedOp &op : result.ops) {
    // The proof's own words take no time and are on nobody's timeline.
    if (op.kind == OpKind::Source || op.kind == OpKind::Sink)
      continue;
    TraceEvent event;
    event.rank = op.rank;
    event.process = "rank " + std::to_string(op.rank) + suffix;
    event.lane = toString(op.lane);
    event.name = op.location < schedule.locations.size() ? schedule.locations[op.location].op
                                                         : std::string(toString(op.kind));
    event.category =
        op.collective >= 0 ? schedule.collectives[op.collective].name : toString(op.kind);
    event.startSeconds = op.start;
    event.durationSeconds = op.end - op.start;
    event.args = {{"kind", toString(op.kind)},
                  {"run", std::to_string(op.run)},
                  {"step", std::to_string(op.step)}};
    if (op.location < schedule.locations.size() && !schedule.locations[op.location].file.empty())
      event.args.emplace_back("source", schedule.locations[op.location].file + ":" +
                                            std::to_string(schedule.locations[op.location].line));
    events.push_back(std::move(event));
  }
  return events;
}

void writeTrace(llvm::raw_ostream &os, const std::vector<TraceEvent> &events) {
  using llvm::json::fixUTF8;
  std::map<std::pair<int64_t, std::string>, int64_t> processes;
  std::map<std::pair<int64_t, std::string>, int64_t> threads; // of a process: lane
  for (const TraceEvent &event : events)
    processes.try_emplace({event.rank, event.process}, 0);
  int64_t next = 0;
  for (auto &process : processes)
    process.second = next++;
  for (const TraceEvent &event : events)
    threads.try_emplace({processes[{event.rank, event.process}], event.lane}, 0);
  next = 0;
  for (auto &thread : threads)
    thread.second = next++;

  llvm::json::OStream json(os, 0);
  json.array([&] {
    auto meta = [&](const char *what, int64_t pid, int64_t tid, const char *key, auto value) {
      json.object([&] {
        json.attribute("name", what);
        json.attribute("ph", "M");
        json.attribute("pid", pid);
        json.attribute("tid", tid);
        json.attributeObject("args", [&] { json.attribute(key, value); });
      });
    };
    for (const auto &[key, pid] : processes) {
      meta("process_name", pid, 0, "name", fixUTF8(key.second));
      meta("process_sort_index", pid, 0, "sort_index", pid);
    }
    for (const auto &[key, tid] : threads)
      meta("thread_name", key.first, tid, "name", fixUTF8(key.second));
    for (const TraceEvent &event : events)
      json.object([&] {
        int64_t pid = processes[{event.rank, event.process}];
        json.attribute("name", fixUTF8(event.name));
        json.attribute("cat", fixUTF8(event.category));
        json.attribute("ph", "X");
        json.attribute("ts", event.startSeconds * 1e6);
        json.attribute("dur", event.durationSeconds * 1e6);
        json.attribute("pid", pid);
        json.attribute("tid", threads[{pid, event.lane}]);
        json.attributeObject("args", [&] {
          for (const auto &[name, value] : event.args)
            json.attribute(name, fixUTF8(value));
        });
      });
  });
  os << "\n";
}

} // namespace mlir::ctran::machine

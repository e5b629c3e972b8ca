//===- Timeline.h - How long a schedule takes ------------------------------*- C++ -*-===//
#ifndef NCCLX_OVERLAP_TIMELINE_H
#define NCCLX_OVERLAP_TIMELINE_H

#include "ncclx/Overlap/Problem.h"

namespace mlir::ncclx::overlap {

struct Timeline;

/// The state of a device that works through a schedule: one kernel at a time, and collectives in
/// flight. What runs at once shares each resource: where shares add up to more than 1, all that use
/// it slow down alike. Plain data, so that a solver may copy it and try.
class Clock {
public:
  /// `problem` outlives this. `frequency`: of the highest clock.
  Clock(const Problem &problem, double frequency);

  struct Flight {
    unsigned op;
    double rest; ///< seconds left, were it alone
  };

  double now = 0;
  std::vector<Flight> flights; ///< not complete, in the order of their starts

  void start(unsigned op);
  /// Lets time pass until the collective is complete; the seconds that this took.
  double await(unsigned op);
  /// Runs a kernel to its end.
  void run(unsigned op);
  /// Seconds that a collective still needs, the ones before it in its queue included, with no
  /// kernel beside it.
  double rest(unsigned op) const;
  bool inFlight(unsigned op) const;
  /// What a kernel takes at this clock if it is launched now and nothing else slows it down: its
  /// waves on the SMs that collectives in flight leave (Sharing::fixed).
  double secondsNow(unsigned op) const;
  /// Where overlaps and exposed time are noted, if anywhere.
  Timeline *record = nullptr;

private:
  const Problem *problem;
  double frequency;

  /// Lets kernel and collectives go on until the kernel is done or a collective is. `left`: of the
  /// kernel, in seconds alone.
  void advance(std::optional<unsigned> kernel, double &left);
  /// Whether no flight before this one is of its queue.
  bool heads(size_t flight) const;
};

/// One collective beside one kernel.
struct Beside {
  unsigned collective, kernel;
  double seconds;
};

/// A schedule in time.
struct Timeline {
  double seconds = 0;
  double joules = 0;              ///< idle power included
  double frequency = 1;           ///< the clock that the power cap leaves, of the highest
  std::vector<double> begin, end; ///< of each op; a collective ends at its await at the latest
  std::vector<double> exposed;    ///< of each collective: seconds in which nothing else runs
  std::vector<Beside> beside;
  double totalExposed() const;
};

/// Times a schedule that check() accepts. Under a power cap the clock is the highest at which the
/// mean power stays below it; where even the lowest does not, time is stretched.
Timeline evaluate(const Problem &problem, const Schedule &schedule);

/// The same at a given clock, power not regarded. Solvers compare schedules by it.
double secondsAt(const Problem &problem, const Schedule &schedule, double frequency);

/// Energy above idle of all ops at a clock: the same for every schedule.
double joulesAt(const Problem &problem, double frequency);

/// Of ops that may all run at once: no schedule is shorter, and this says what stops it.
struct Floor {
  double seconds = 0;
  std::string limit; ///< "compute", a resource, "queue N" or "power"
};
Floor floorOf(const Problem &problem);

} // namespace mlir::ncclx::overlap
#endif // NCCLX_OVERLAP_TIMELINE_H

//===- OverlapPasses.cpp - Communication beside computation -------------------------===//
//
// Four passes on one problem: they differ in the solver alone.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "FunctionProblem.h"
#include "ncclx/Overlap/Solve.h"

#include "mlir/IR/Remarks.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_PAIRBULK
#define GEN_PASS_DEF_RESCHEDULEAGWGRAD
#define GEN_PASS_DEF_HOISTCOLLECTIVES
#define GEN_PASS_DEF_OVERLAP
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;
using overlap::Exposure;
using overlap::Schedule;
using overlap::Solution;

namespace {

/// A solver: the problem, what is given, the limits.
using Solver = llvm::function_ref<Solution(overlap::Problem &, const Schedule &,
                                           const overlap::SolveOptions &)>;

struct Request {
  StringRef pass;
  overlap::SolveOptions options;
  bool requireOverlap;
};

/// The kernel that runs beside the collective for longest, and for how long anything does.
std::pair<std::optional<unsigned>, double> partnerOf(const overlap::Timeline &line, unsigned op) {
  std::optional<unsigned> best;
  double longest = 0, sum = 0;
  for (const overlap::Beside &beside : line.beside) {
    if (beside.collective != op)
      continue;
    sum += beside.seconds;
    if (beside.seconds > longest) {
      longest = beside.seconds;
      best = beside.kernel;
    }
  }
  return {best, sum};
}

LogicalResult report(func::FuncOp function, const FunctionProblem &f, const Solution &solution,
                     const Request &request) {
  MLIRContext *context = function.getContext();
  auto named = [&](StringRef name) {
    return remark::RemarkOpts::name(name).category(request.pass).function(function.getSymName());
  };
  overlap::Timeline before = overlap::evaluate(f.problem, f.given);
  remark::analysis(function.getLoc(), named("Overlap"))
      << remark::add("exposed {0:F1} us of {1:F1} us before, {2:F1} us of {3:F1} us after; memory "
                     "peak {4} bytes before, {5} after; schedule {6:x}",
                     before.totalExposed() * 1e6, before.seconds * 1e6,
                     solution.timeline.totalExposed() * 1e6, solution.timeline.seconds * 1e6,
                     solution.peakBefore, solution.peak, overlap::fingerprint(solution.schedule))
      << remark::metric("PeakBytesBefore", solution.peakBefore)
      << remark::metric("PeakBytes", solution.peak)
      << remark::metric("KernelsWithoutCost", int64_t(f.withoutCost));
  if (!context->getRemarkEngine() && !request.requireOverlap)
    return success();

  for (unsigned i = 0; i < f.sites.size(); ++i) {
    if (!f.sites[i].collective)
      continue;
    auto [partner, seconds] = partnerOf(solution.timeline, i);
    if (partner)
      remark::passed(f.sites[i].op->getLoc(), named("OverlapPlaced")) << remark::add(
          "{0} runs beside {1} for {2:F1} us of {3:F1} us", f.problem.ops[i].name,
          f.problem.ops[*partner].name, seconds * 1e6, f.problem.ops[i].seconds * 1e6);
  }
  LogicalResult result = success();
  for (const Exposure &e : overlap::explain(f.problem, f.given, solution, request.options)) {
    CollectiveOpInterface collective = f.sites[e.collective].collective;
    std::string text =
        llvm::formatv("exposed for {0:F1} us of {1:F1} us: {2}", e.seconds * 1e6,
                      f.problem.ops[e.collective].seconds * 1e6, overlap::toString(e.reason));
    remark::missed(collective.getLoc(), named("OverlapExposed"))
        << remark::add("{0} stays {1}", f.problem.ops[e.collective].name, text)
        << remark::suggest("{0}", e.lift);
    if (request.requireOverlap) {
      InFlightDiagnostic error = collective->emitOpError("must overlap, but stays ") << text;
      error.attachNote(collective.getLoc()) << "what would lift it: " << e.lift;
      result = failure();
    }
  }
  return result;
}

LogicalResult schedule(ModuleOp module, StringRef machineFile, const Request &request,
                       Solver solver) {
  if (machineFile.empty())
    return module.emitError() << request.pass << " needs machine=FILE";
  overlap::CostModelResult cost = overlap::readCostModelFile(machineFile);
  if (!cost.model)
    return module.emitError(cost.error);
  if (request.options.memoryBudget < 0 || !(request.options.margin >= 0))
    return module.emitError() << request.pass << ": memory-budget and margin are at least 0, found "
                              << *request.options.memoryBudget << " and " << request.options.margin;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() ||
        !function.walk([](CollectiveOpInterface) { return WalkResult::interrupt(); })
             .wasInterrupted())
      continue;
    std::string why;
    FailureOr<FunctionProblem> f = FunctionProblem::read(function, *cost.model, why);
    if (failed(f)) {
      remark::missed(function.getLoc(), remark::RemarkOpts::name("OverlapRefused")
                                            .category(request.pass)
                                            .function(function.getSymName()))
          << remark::reason("{0}", why);
      if (request.requireOverlap)
        return function.emitError("cannot be scheduled: ") << why;
      continue;
    }
    Solution solution = solver(f->problem, f->given, request.options);
    if (std::optional<std::string> wrong = overlap::check(f->problem, solution.schedule))
      return function.emitError("schedule is wrong: ") << *wrong;
    f->apply(solution.schedule);
    if (failed(report(function, *f, solution, request)))
      return failure();
  }
  return success();
}

Solution named(const overlap::Problem &problem, const Schedule &given, Schedule found) {
  Solution solution;
  solution.before = overlap::evaluate(problem, given).seconds;
  solution.peakBefore = overlap::peakBytes(problem, given);
  solution.timeline = overlap::evaluate(problem, found);
  solution.peak = overlap::peakBytes(problem, found);
  solution.schedule = std::move(found);
  return solution;
}

/// A pass whose solver is `Derived::solve`, with the options that all of them share.
template <typename Derived, typename Base> struct OverlapPass : Base {
  using Base::Base;
  void runOnOperation() final {
    Request request{this->getArgument(), {}, this->requireOverlap};
    request.options.memoryBudget = int64_t(this->memoryBudget);
    request.options.margin = this->margin;
    auto solver = [&](overlap::Problem &problem, const Schedule &given,
                      const overlap::SolveOptions &options) {
      return static_cast<Derived *>(this)->solve(problem, given, options);
    };
    if (failed(schedule(this->getOperation(), this->machineFile, request, solver)))
      this->signalPassFailure();
  }
};

struct PairBulk : OverlapPass<PairBulk, ncclx::impl::PairBulkBase<PairBulk>> {
  using OverlapPass::OverlapPass;
  Solution solve(overlap::Problem &problem, const Schedule &given,
                 const overlap::SolveOptions &options) {
    return named(problem, given, pairBulk(problem, given, options));
  }
};

struct RescheduleAGWgrad
    : OverlapPass<RescheduleAGWgrad, ncclx::impl::RescheduleAGWgradBase<RescheduleAGWgrad>> {
  using OverlapPass::OverlapPass;
  Solution solve(overlap::Problem &problem, const Schedule &given,
                 const overlap::SolveOptions &options) {
    return named(problem, given, pairSinks(problem, given, options, maxDistance));
  }
};

struct HoistCollectives
    : OverlapPass<HoistCollectives, ncclx::impl::HoistCollectivesBase<HoistCollectives>> {
  using OverlapPass::OverlapPass;
  Solution solve(overlap::Problem &problem, const Schedule &given,
                 const overlap::SolveOptions &options) {
    return named(problem, given, hoistStarts(problem, given, options));
  }
};

struct Overlap : OverlapPass<Overlap, ncclx::impl::OverlapBase<Overlap>> {
  using OverlapPass::OverlapPass;
  Solution solve(overlap::Problem &problem, const Schedule &given,
                 const overlap::SolveOptions &options) {
    fenceDeferral(problem, maxDistance);
    return overlap::solve(problem, given, options);
  }
};

} // namespace

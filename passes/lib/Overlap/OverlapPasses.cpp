//===- OverlapPasses.cpp - Communication beside computation -------------------------===//
//
// Four passes on one problem: they differ in the solver alone.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "FunctionProblem.h"
#include "MachinePass.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/Overlap/Diagnose.h"
#include "ncclx/Overlap/Solve.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
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

/// Of each op that is a collective, the kernel that runs beside it for longest, and for how long
/// anything does.
struct Partner {
  std::optional<unsigned> kernel;
  double longest = 0, seconds = 0;
};
std::vector<Partner> partnersOf(const overlap::Timeline &line, size_t ops) {
  std::vector<Partner> partners(ops);
  for (const overlap::Beside &beside : line.beside) {
    Partner &partner = partners[beside.collective];
    partner.seconds += beside.seconds;
    if (beside.seconds > partner.longest) {
      partner.longest = beside.seconds;
      partner.kernel = beside.kernel;
    }
  }
  return partners;
}

/// Schedules the blocks of one function, loops before what they stand in.
class Scheduler {
public:
  Scheduler(func::FuncOp function, const overlap::CostModel &cost, const Request &request,
            Solver solver)
      : function(function), cost(cost), request(request), solver(solver) {}

  LogicalResult run() {
    if (!function.getBody().hasOneBlock())
      return refuse(function, "the body is not one block");
    std::optional<Totals> totals;
    if (failed(schedule(function.getBody().front(), 1, totals)))
      return failure();
    if (!totals)
      return success();
    remark::analysis(function.getLoc(), named("Overlap"))
        << remark::add(
               "exposed {0:F1} us of {1:F1} us before, {2:F1} us of {3:F1} us after; "
               "memory peak {4} bytes before, {5} after; schedule {6:x}; at least {7:F1} us, "
               "by {8}",
               totals->exposedBefore * 1e6, totals->secondsBefore * 1e6, totals->exposed * 1e6,
               totals->seconds * 1e6, totals->peakBefore, totals->peak, totals->fingerprint,
               totals->floor.seconds * 1e6, totals->floor.limit)
        << remark::metric("PeakBytesBefore", totals->peakBefore)
        << remark::metric("PeakBytes", totals->peak)
        << remark::metric("KernelsWithoutCost", int64_t(totals->withoutCost));
    LogicalResult result = success();
    if (function.getContext()->getRemarkEngine() || request.requireOverlap)
      for (const Done &block : done)
        if (failed(report(block)))
          result = failure();
    return result;
  }

private:
  /// Of a block, with the loops in it.
  struct Totals {
    double secondsBefore = 0, exposedBefore = 0, seconds = 0, exposed = 0, joules = 0;
    int64_t peakBefore = 0, peak = 0;
    uint64_t fingerprint = 0;
    unsigned withoutCost = 0;
    overlap::Floor floor; ///< of the block, loops as they are scheduled: what saturates first

    /// Another block of the same op: it runs behind this one, or in its place.
    void follow(const Totals &next) {
      secondsBefore += next.secondsBefore;
      exposedBefore += next.exposedBefore;
      seconds += next.seconds;
      exposed += next.exposed;
      joules += next.joules;
      note(next);
    }
    void choose(const Totals &other) { // whichever takes longest counts
      Totals both = other.seconds > seconds ? other : *this;
      both.peak = peak, both.peakBefore = peakBefore;
      both.fingerprint = fingerprint, both.withoutCost = withoutCost;
      both.note(other);
      *this = both;
    }

  private:
    void note(const Totals &other) {
      peak = std::max(peak, other.peak);
      peakBefore = std::max(peakBefore, other.peakBefore);
      fingerprint = fingerprint * 31 + other.fingerprint;
      withoutCost += other.withoutCost;
    }
  };

  func::FuncOp function;
  const overlap::CostModel &cost;
  const Request &request;
  Solver solver;
  LoopCosts loops;

  remark::RemarkOpts named(StringRef name) {
    return remark::RemarkOpts::name(name).category(request.pass).function(function.getSymName());
  }
  LogicalResult refuse(Operation *where, const std::string &why) {
    remark::missed(where->getLoc(), named("OverlapRefused")) << remark::reason("{0}", why);
    if (request.requireOverlap)
      return where->emitError("cannot be scheduled: ") << why;
    return success();
  }
  LogicalResult schedule(Block &block, double times, std::optional<Totals> &totals);
  void promise(Operation *where, const FunctionProblem &f, const Solution &solution);
  /// A block that is done, for the remarks on it.
  struct Done {
    FunctionProblem f;
    Solution solution;
    double times; ///< how often it runs
  };
  std::vector<Done> done;
  LogicalResult report(const Done &block);
};

LogicalResult Scheduler::schedule(Block &block, double times, std::optional<Totals> &result) {
  Totals totals;
  for (Operation &op : block) {
    SmallVector<Block *> inner = blocksIn(&op);
    if (inner.empty())
      continue;
    double count = timesOf(&op);
    std::optional<Totals> sum;
    for (Block *part : inner) {
      std::optional<Totals> own;
      if (failed(schedule(*part, times * count, own)))
        return failure();
      if (!own)
        continue;
      if (!sum)
        sum = own;
      else if (isa<scf::WhileOp>(op))
        sum->follow(*own);
      else
        sum->choose(*own);
    }
    if (!sum)
      continue;
    loops[&op] = {sum->seconds * count, sum->joules * count, sum->peak, sum->peakBefore};
    totals.secondsBefore += (sum->secondsBefore - sum->seconds) * count;
    totals.exposedBefore += sum->exposedBefore * count;
    totals.exposed += sum->exposed * count;
    totals.fingerprint ^= sum->fingerprint * 0x9e3779b97f4a7c15;
    totals.withoutCost += sum->withoutCost;
  }
  std::string why;
  FailureOr<FunctionProblem> f = FunctionProblem::read(block, cost, loops, why);
  if (failed(f))
    return refuse(block.getParentOp(), why);
  // Loops may have taken a part of the budget already.
  Request here = request;
  totals.peakBefore = f->peakBefore();
  int64_t taken = overlap::peakBytes(f->problem, f->given) - totals.peakBefore;
  here.options.memoryBudget = std::max<int64_t>(0, *request.options.memoryBudget - taken);
  Solution solution = solver(f->problem, f->given, here.options);
  if (std::optional<std::string> wrong = overlap::check(f->problem, solution.schedule))
    return block.getParentOp()->emitError("schedule is wrong: ") << *wrong;
  bool changed = solution.schedule != f->given;
  if (changed)
    f->apply(solution.schedule);
  // What overlaps is promised, whoever has placed it; a loop's promises are part of those of what
  // it stands in. How often a loop of unknown length has run, a trace tells. Of branches there is
  // no saying which was taken.
  bool counted = isa<func::FuncOp, scf::ForOp>(block.getParentOp());
  bool promises = changed ||
                  (here.options.memoryBudget != 0 && !solution.timeline.beside.empty()) ||
                  llvm::any_of(block.getOps<scf::ForOp>(),
                               [](scf::ForOp loop) { return loop->hasAttr(kContractAttrName); });
  if (counted && promises)
    promise(block.getParentOp(), *f, solution);
  overlap::Timeline before = overlap::evaluate(f->problem, f->given);
  totals.secondsBefore += before.seconds;
  totals.exposedBefore += before.totalExposed();
  totals.seconds = solution.timeline.seconds;
  totals.exposed += solution.timeline.totalExposed();
  totals.joules = solution.timeline.joules - f->problem.power.idleWatts * solution.timeline.seconds;
  totals.peak = solution.peak;
  totals.floor = overlap::floorOf(f->problem);
  totals.fingerprint ^= overlap::fingerprint(solution.schedule);
  totals.withoutCost += f->withoutCost;
  result = totals;
  done.push_back({std::move(*f), std::move(solution), times});
  return success();
}

/// Where a future goes that a block's op has started: which of its loops, and which of the loop's
/// values it becomes there.
std::optional<std::array<int64_t, 2>> handedTo(StartOp start) {
  for (OpOperand &use : start.getFuture().getUses())
    if (auto loop = dyn_cast<scf::ForOp>(use.getOwner()))
      for (auto [i, candidate] : llvm::enumerate(start->getBlock()->getOps<scf::ForOp>()))
        if (candidate == loop)
          return {{int64_t(i), int64_t(use.getOperandNumber()) - loop.getNumControlOperands()}};
  return std::nullopt;
}

/// Writes down what the schedule promises, on the op whose block it is.
void Scheduler::promise(Operation *where, const FunctionProblem &f, const Solution &solution) {
  Builder b(where->getContext());
  // The places of the problem's ops in the contract.
  std::vector<unsigned> ops, place(f.problem.ops.size());
  for (overlap::Step step : solution.schedule)
    if (step.kind != overlap::StepKind::await && !f.problem.ops[step.op].partOf) {
      place[step.op] = ops.size();
      ops.push_back(step.op);
    }
  std::vector<FunctionProblem::Resumed> resumed = f.resumed();
  SmallVector<Attribute> list;
  for (const overlap::Promise &p :
       overlap::contractOf(f.problem, solution.schedule, solution.timeline)) {
    unsigned op = ops[list.size()];
    SmallVector<NamedAttribute> entry = {
        b.getNamedAttr("name", b.getStringAttr(p.name)),
        b.getNamedAttr("kind", b.getStringAttr(p.collective ? "collective"
                                               : p.product  ? "product"
                                                            : "kernel")),
        b.getNamedAttr("us", b.getF64FloatAttr(p.seconds * 1e6))};
    if (!p.beside.empty()) {
      entry.push_back(b.getNamedAttr("hidden_us", b.getF64FloatAttr(p.hidden * 1e6)));
      SmallVector<int64_t> beside(p.beside.begin(), p.beside.end());
      entry.push_back(b.getNamedAttr("beside", b.getDenseI64ArrayAttr(beside)));
    }
    for (const FunctionProblem::Resumed &r : resumed)
      if (r.rest == op)
        entry.push_back(b.getNamedAttr(
            "resumes", b.getDenseI64ArrayAttr({int64_t(place[r.start]), int64_t(r.argument)})));
    if (CollectiveOpInterface collective = f.sites[op].collective)
      if (auto start = dyn_cast<StartOp>(collective->getParentOp()))
        if (auto handed = handedTo(start))
          entry.push_back(b.getNamedAttr("handed_to", b.getDenseI64ArrayAttr(*handed)));
    list.push_back(b.getDictionaryAttr(entry));
  }
  where->setAttr(kContractAttrName, b.getArrayAttr(list));
}

LogicalResult Scheduler::report(const Done &block) {
  const auto &[f, solution, times] = block;
  std::string often = times > 1 ? llvm::formatv(", {0:F0} times", times).str() : std::string();
  std::vector<Partner> partners = partnersOf(solution.timeline, f.problem.ops.size());
  for (unsigned i = 0; i < f.sites.size(); ++i) {
    auto [partner, longest, seconds] = partners[i];
    if (f.sites[i].collective && partner)
      remark::passed(CollectiveOpInterface(f.sites[i].collective).getLoc(), named("OverlapPlaced"))
          << remark::add("{0} runs beside {1} for {2:F1} us of {3:F1} us{4}", f.problem.ops[i].name,
                         f.problem.ops[*partner].name, seconds * 1e6,
                         f.problem.ops[i].seconds * 1e6, often);
  }
  LogicalResult result = success();
  for (const Exposure &e : overlap::explain(f.problem, f.given, solution, request.options)) {
    CollectiveOpInterface collective = f.sites[e.collective].collective;
    std::string text = llvm::formatv("exposed for {0:F1} us of {1:F1} us{2}: {3}", e.seconds * 1e6,
                                     f.problem.ops[e.collective].seconds * 1e6, often,
                                     overlap::toString(e.reason));
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
template <typename Derived, typename Base> struct OverlapPass : MachinePass<Derived, Base> {
  using MachinePass<Derived, Base>::MachinePass;
  void run(func::FuncOp function, const overlap::CostModel &cost) {
    Request request{this->getArgument(), {}, this->requireOverlap};
    request.options.memoryBudget = int64_t(this->memoryBudget);
    request.options.margin = this->margin;
    auto solver = [&](overlap::Problem &problem, const Schedule &given,
                      const overlap::SolveOptions &options) {
      return static_cast<Derived *>(this)->solve(problem, given, options);
    };
    if (failed(Scheduler(function, cost, request, solver).run()))
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

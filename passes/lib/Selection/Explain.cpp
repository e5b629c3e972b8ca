//===- Explain.cpp - What would run, why, and how far from the bound ----------------------===//
#include "Explain.h"
#include "ReadTarget.h"

#include "ncclx/Conversion/Passes.h"
#include "ncclx/Conversion/ProgramGrid.h"
#include "ncclx/NCCLX/Sizes.h"
#include "ncclx/Topology/Resources.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_EXPLAIN
#include "ncclx/Selection/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

std::string mlir::ncclx::sizeText(int64_t bytes) {
  static const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(
      value == double(int64_t(value)) ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}

double mlir::ncclx::secondsOf(const std::optional<topology::LowerBound> &bound) {
  return bound && !bound->unreachable ? bound->seconds.toDouble() : 0;
}

/// That of what runs.
static const std::optional<topology::LowerBound> &boundOf(const Choice &choice) {
  return choice.algorithm ? choice.boundOf(*choice.algorithm) : choice.bound;
}

static std::string ratio(double seconds, double of) {
  return of > 0 ? llvm::formatv("{0:F3}", seconds / of).str() : "-";
}

/// Axes of its program that span the groups of `op`.
static FailureOr<size_t> axesOf(CollectiveOpInterface op) {
  FailureOr<ProgramGrid> grid = ProgramGrid::of(op->getParentOfType<FunctionOpInterface>());
  if (failed(grid))
    return failure();
  return grid->axesOf(op).size();
}

/// Of its first group; nothing where that is large, or some member cannot be reached.
static std::optional<unsigned> eccentricityOf(CollectiveOpInterface op,
                                              const SelectionTarget &target) {
  constexpr int64_t mostMembers = 256; // all pairs are routed
  if (getGroupSize(op) > mostMembers)
    return std::nullopt;
  SmallVector<int64_t> first = lookupGrid(op).getGroups(op.getAxes(), op.getGroupsAttr()).front();
  std::vector<unsigned> group(first.begin(), first.end());
  topology::ResourceModel resources(*target.topology, target.rate);
  return topology::eccentricity(resources, group);
}

LogicalResult mlir::ncclx::explain(CollectiveOpInterface op, const SelectionTarget &target,
                                   llvm::raw_ostream &os) {
  FailureOr<size_t> axes = axesOf(op);
  if (failed(axes))
    return failure();
  FailureOr<Choice> found = choose(op, *axes, target, std::nullopt, /*alternatives=*/true);
  if (failed(found))
    return failure();
  const Choice &choice = *found;
  const std::optional<topology::LowerBound> &known = boundOf(choice);
  double bound = secondsOf(known);
  os << op->getName().stripDialect() << " of " << sizeText(choice.bytes) << " (" << choice.bytes
     << " bytes) over " << getGroupSize(op) << " of " << lookupGrid(op).getNumRanks()
     << " ranks on " << target.topology->name << ", " << topology::name(target.rate) << " rates\n";
  if (choice.algorithm) {
    const Candidate &chosen = choice.chosen();
    os << "  runs   " << stringifyAlgorithm(chosen.algorithm) << ": " << choice.reason << ", "
       << llvm::format("%.2f us", *chosen.seconds * 1e6);
    if (bound > 0)
      os << llvm::format(", %.3f of the bound", *chosen.seconds / bound);
    os << "\n";
  } else {
    os << "  runs   nothing: no algorithm can carry it\n";
  }
  for (const std::string &rule : choice.overruled)
    os << "  passed " << rule << "\n";
  if (!known)
    os << "  bound  none is known\n";
  else if (known->unreachable)
    os << "  bound  a rank cannot be reached: " << known->detail << "\n";
  else
    os << "  bound  " << llvm::format("%.2f us", bound * 1e6) << " by " << known->argument << ": "
       << known->detail << " (" << topology::name(known->links) << ")\n";
  // Of many pieces a chain holds those that wait for each other's places, too.
  constexpr int64_t mostBytesOfHops = 1 << 20;
  bool tellHops = choice.bytes <= mostBytesOfHops;
  if (std::optional<unsigned> farthest = tellHops ? eccentricityOf(op, target) : std::nullopt)
    os << "  hops   " << *farthest << " to the farthest member: the topology's eccentricity\n";
  double best = 0;
  for (const Candidate &candidate : choice.candidates)
    if (candidate.seconds && (best == 0 || *candidate.seconds < best))
      best = *candidate.seconds;
  os << "  algorithm    predicted us   of bound    of best" << (tellHops ? "   hops" : "")
     << "        scratch\n";
  for (const Candidate &candidate : choice.candidates) {
    std::string name = stringifyAlgorithm(candidate.algorithm).str();
    if (candidate.seconds)
      os << llvm::format(
          "  %-10s %14.2f %10s %10s%s %14s\n", name.c_str(), *candidate.seconds * 1e6,
          ratio(*candidate.seconds, secondsOf(choice.boundOf(candidate.algorithm))).c_str(),
          ratio(*candidate.seconds, best).c_str(),
          tellHops ? llvm::formatv(" {0,6}", candidate.hops).str().c_str() : "",
          sizeText(candidate.scratch).c_str());
    else
      os << llvm::format("  %-10s refused: %s\n", name.c_str(), candidate.refused.c_str());
  }
  return success();
}

//===--- by size --------------------------------------------------------------------------===//

LogicalResult mlir::ncclx::printSelector(CollectiveOpInterface op, const SelectionTarget &target,
                                         int64_t least, int64_t most, llvm::raw_ostream &os) {
  if (op.getDataflow().isCounted())
    return op->emitOpError("has counts of its own, and no table by size");
  FailureOr<size_t> axes = axesOf(op);
  if (failed(axes))
    return failure();
  std::vector<Choice> rows;
  auto same = [](const Choice &a, const Choice &b) {
    return a.algorithm == b.algorithm && a.reason == b.reason;
  };
  auto add = [&](int64_t bytes) -> LogicalResult {
    FailureOr<Choice> next = choose(op, *axes, target, bytes);
    if (failed(next))
      return failure();
    // Where the choice changes, the place is looked for between the two sizes.
    if (!rows.empty() && !same(rows.back(), *next)) {
      Choice low = rows.back(), high = *next;
      while (high.bytes - low.bytes > std::max<int64_t>(1, low.bytes / 32)) {
        FailureOr<Choice> middle =
            choose(op, *axes, target, low.bytes + (high.bytes - low.bytes) / 2);
        if (failed(middle))
          return failure();
        (same(*middle, low) ? low : high) = *middle;
      }
      if (high.bytes != next->bytes)
        rows.push_back(high);
    }
    rows.push_back(*next);
    return success();
  };
  for (int64_t bytes = least; bytes<most; bytes = bytes> most / 2 ? most : bytes * 2)
    if (failed(add(bytes)))
      return failure();
  if (failed(add(most)))
    return failure();
  os << "selector of " << op->getName().stripDialect() << " over " << getGroupSize(op) << " of "
     << lookupGrid(op).getNumRanks() << " ranks on " << target.topology->name << ", "
     << topology::name(target.rate) << " rates\n";
  os << llvm::format("  %14s  %-10s %14s %14s %9s  %s\n", "bytes", "algorithm", "predicted us",
                     "bound us", "of bound", "");
  const Choice *last = nullptr;
  for (const Choice &row : rows) {
    if (!row.algorithm)
      return op->emitOpError("has no algorithm that can carry it");
    double bound = secondsOf(boundOf(row)), seconds = *row.chosen().seconds;
    std::string mark = !last ? row.reason : !same(*last, row) ? "from here on: " + row.reason : "";
    os << llvm::format("  %14lld  %-10s %14.2f %14.2f %9s  %s", (long long)row.bytes,
                       stringifyAlgorithm(*row.algorithm).str().c_str(), seconds * 1e6, bound * 1e6,
                       ratio(seconds, bound).c_str(), mark.c_str());
    os << "\n";
    last = &row;
  }
  return success();
}

OwningOpRef<ModuleOp> mlir::ncclx::graphOf(StringRef kind, int64_t ranks, int64_t bytes,
                                           Location loc) {
  // Whole shards, so that every collective takes it.
  int64_t shard = std::max<int64_t>(1, llvm::divideCeil(llvm::divideCeil(bytes, 4), ranks));
  int64_t whole = shard * ranks;
  auto is = [&](std::initializer_list<StringRef> names) { return llvm::is_contained(names, kind); };
  std::string words;
  if (is({"all_gather", "gather", "reduce_scatter", "scatter"}))
    words += " dim 0";
  if (is({"broadcast", "reduce", "gather", "scatter"}))
    words += " root [0]";
  if (is({"reduce_scatter", "all_reduce", "reduce"}))
    words += " sum accumulate f32 order any";
  if (kind == "all_to_all")
    words += " split 0 concat 0";
  if (kind == "permute")
    words += " shift 1";
  int64_t in = is({"all_gather", "gather"}) ? shard : whole;
  int64_t out = is({"reduce_scatter", "scatter"}) ? shard : whole;
  std::string text = llvm::formatv(
      "ncclx.grid @ranks [\"x\" = {0}]\nfunc.func @asked(%a: tensor<{1}xf32>) -> tensor<{2}xf32> "
      "{{\n"
      "  %r = ncclx.{3} %a{4} over @ranks[\"x\"] : tensor<{1}xf32> -> tensor<{2}xf32>\n"
      "  return %r : tensor<{2}xf32>\n}\n",
      ranks, in, out, kind, words);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, loc.getContext());
  if (!module)
    emitError(loc, "ncclx-explain: '") << kind << "' is no collective that has a size";
  return module;
}

//===--- the pass -------------------------------------------------------------------------===//

namespace {
struct Explain : ncclx::impl::ExplainBase<Explain> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<OwnedTarget> target =
        readTarget(getOperation(), "ncclx-explain", topologyFile, loadStore, ruleFile);
    if (failed(target))
      return signalPassFailure();
    target->inNetwork = inNetwork;
    target->scratchLimit = scratchLimit;
    OwningOpRef<ModuleOp> asked;
    ModuleOp module = getOperation();
    if (!collective.empty()) {
      if (ranks < 1 || bytes < 1) {
        emitError(module.getLoc(), "ncclx-explain: collective=")
            << collective << " needs ranks and bytes";
        return signalPassFailure();
      }
      asked = graphOf(collective, ranks, bytes, module.getLoc());
      if (!asked)
        return signalPassFailure();
      module = *asked;
    }
    if (failed(requireKnownSizes(module)))
      return signalPassFailure();
    WalkResult walked = module.walk([&](CollectiveOpInterface op) {
      LogicalResult said = minBytes > 0 ? printSelector(op, target->get(), minBytes,
                                                        std::max(minBytes, maxBytes), llvm::outs())
                                        : explain(op, target->get(), llvm::outs());
      return WalkResult(said);
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    if (minBytes > 0)
      return;
    llvm::DenseSet<Operation *> named;
    module.walk([&](CollectiveOpInterface op) { named.insert(getSchedule(op)); });
    for (auto program : module.getOps<ctran::ProgramOp>())
      if (!named.contains(program) && failed(explainWritten(program, target->get(), llvm::outs())))
        return signalPassFailure();
  }
};
} // namespace

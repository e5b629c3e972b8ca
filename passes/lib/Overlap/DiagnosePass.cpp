//===- DiagnosePass.cpp - Hold a measured timeline against the contract -------------------===//
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/Overlap/Diagnose.h"
#include "ncclx/Overlap/Passes.h"
#include "ncclx/Support/ReadFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_DIAGNOSE
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// A promise, and what goes on from one iteration of a loop to the next.
struct Entry {
  overlap::Promise promise;
  std::optional<std::pair<unsigned, unsigned>> resumes;  ///< place of its start; the loop's value
  std::optional<std::pair<unsigned, unsigned>> handedTo; ///< number of the loop; its value
};
using Entries = std::vector<Entry>;

/// The contract that an attribute says; nothing where it says none.
std::optional<Entries> readContract(Attribute attribute) {
  auto list = dyn_cast_or_null<ArrayAttr>(attribute);
  if (!list)
    return std::nullopt;
  Entries contract;
  for (Attribute element : list) {
    auto entry = dyn_cast<DictionaryAttr>(element);
    auto name = entry ? entry.getAs<StringAttr>("name") : StringAttr();
    auto kind = entry ? entry.getAs<StringAttr>("kind") : StringAttr();
    auto us = entry ? entry.getAs<FloatAttr>("us") : FloatAttr();
    if (!name || !kind || !us)
      return std::nullopt;
    Entry &made = contract.emplace_back();
    overlap::Promise &promise = made.promise;
    promise.name = name.str();
    promise.collective = kind == "collective";
    promise.product = kind == "product";
    promise.seconds = us.getValueAsDouble() * 1e-6;
    if (auto hidden = entry.getAs<FloatAttr>("hidden_us"))
      promise.hidden = hidden.getValueAsDouble() * 1e-6;
    if (auto beside = entry.getAs<DenseI64ArrayAttr>("beside"))
      for (int64_t place : beside.asArrayRef()) {
        if (place < 0 || place >= int64_t(list.size()))
          return std::nullopt;
        promise.beside.push_back(place);
      }
    auto pair = [&](StringRef key, int64_t most, auto &to) {
      auto numbers = entry.getAs<DenseI64ArrayAttr>(key);
      if (!numbers)
        return !entry.contains(key);
      if (numbers.size() != 2 ||
          llvm::any_of(numbers.asArrayRef(), [](int64_t n) { return n < 0; }) || numbers[0] >= most)
        return false;
      to.emplace(numbers[0], numbers[1]);
      return true;
    };
    if (!pair("resumes", list.size(), made.resumes) || !pair("handed_to", 1 << 20, made.handedTo))
      return std::nullopt;
  }
  return contract;
}

/// How often loops have run whose length the graph does not say.
using Trips = llvm::DenseMap<Operation *, uint64_t>;

/// The contract of an op's block with its loops written out: what they promise, as often as they
/// run. What goes on from one iteration to the next is one promise, where it begins. Nothing where
/// what the op carries is no contract.
std::optional<Entries> writtenOut(Operation *op, Block &block, const Trips &runs) {
  constexpr size_t kMost = 10'000'000; ///< ops
  std::optional<Entries> own = readContract(op->getAttr(kContractAttrName));
  if (!own)
    return std::nullopt;
  Entries all;
  SmallVector<scf::ForOp> loops(block.getOps<scf::ForOp>());
  SmallVector<unsigned> place(own->size());
  SmallVector<size_t> placed; ///< of `own`, which are no loops
  size_t next = 0;
  /// One iteration; `before`: places of the ops of the one before.
  auto append = [&](const Entries &body, const SmallVector<unsigned> &before) {
    SmallVector<unsigned> at(body.size());
    for (auto [i, entry] : llvm::enumerate(body))
      if (!entry.resumes) {
        at[i] = all.size();
        all.push_back({entry.promise, std::nullopt, std::nullopt});
      }
    for (auto [i, entry] : llvm::enumerate(body)) {
      std::optional<unsigned> to = at[i];
      if (entry.resumes) { // in front of the loop, or an iteration ago
        to.reset();
        if (!before.empty())
          to = before[entry.resumes->first];
        else
          for (size_t j = 0; j < own->size(); ++j)
            if ((*own)[j].handedTo == std::pair(unsigned(next - 1), entry.resumes->second))
              to = place[j];
      }
      if (!to)
        continue;
      overlap::Promise &promise = all[*to].promise;
      if (!entry.resumes)
        promise.beside.clear();
      else
        promise.hidden += entry.promise.hidden;
      if (entry.resumes && !before.empty())
        promise.seconds += entry.promise.seconds;
      for (unsigned kernel : entry.promise.beside)
        promise.beside.push_back(at[kernel]);
    }
    return at;
  };
  for (auto [i, entry] : llvm::enumerate(*own)) {
    place[i] = all.size();
    scf::ForOp loop =
        entry.promise.name == "for" && next < loops.size() ? loops[next++] : scf::ForOp();
    if (!loop || !loop->hasAttr(kContractAttrName)) {
      all.push_back(entry);
      placed.push_back(i);
      continue;
    }
    std::optional<APInt> known = loop.getStaticTripCount();
    uint64_t trips = known ? known->getLimitedValue() : runs.lookup(loop);
    std::optional<Entries> body = writtenOut(loop, *loop.getBody(), runs);
    if (!body || trips > kMost / std::max<size_t>(1, body->size()))
      return std::nullopt;
    SmallVector<unsigned> before;
    for (uint64_t trip = 0; trip < trips; ++trip)
      before = append(*body, before);
    if (!before.empty()) // the last ones take as long, whatever they are awaited by
      for (const Entry &rest : *body)
        if (rest.resumes)
          all[before[rest.resumes->first]].promise.seconds += rest.promise.seconds;
  }
  for (size_t i : placed) {
    Entry &entry = all[place[i]];
    // What a loop has promised of such an op has its places already.
    size_t known = (*own)[i].promise.beside.size();
    for (unsigned &beside : llvm::MutableArrayRef(entry.promise.beside).take_front(known))
      beside = place[beside];
    if (entry.resumes)
      entry.resumes->first = place[entry.resumes->first];
  }
  return all;
}

/// Collectives are numbered by kind in the order of their starts.
overlap::Contract numbered(const Entries &entries) {
  overlap::Contract contract;
  std::map<std::string, unsigned> counts;
  for (const Entry &entry : entries) {
    overlap::Promise &promise = contract.emplace_back(entry.promise);
    if (promise.collective) {
      std::string kind = promise.name.substr(0, promise.name.rfind('.'));
      promise.name = kind + "." + std::to_string(counts[kind]++);
    }
  }
  return contract;
}

/// How many collectives of each kind start in a contract.
std::map<std::string, uint64_t> startsIn(const Entries &entries) {
  std::map<std::string, uint64_t> counts;
  for (const Entry &entry : entries)
    if (entry.promise.collective && !entry.resumes)
      ++counts[entry.promise.name.substr(0, entry.promise.name.rfind('.'))];
  return counts;
}

/// How often the function's loops of unknown length have run: as often as gives the trace's number
/// of the collectives that are in one of them alone. Nothing, and why, where that is no number.
std::optional<Trips> tripsBy(func::FuncOp function, const std::vector<overlap::TraceSpan> &spans,
                             std::string &why) {
  Trips trips;
  Block &block = function.getBody().front();
  std::vector<std::pair<scf::ForOp, std::map<std::string, uint64_t>>> loops;
  std::map<std::string, unsigned> users; // loops that have a kind
  WalkResult walked = function.walk([&](scf::ForOp loop) {
    if (loop.getStaticTripCount() || !loop->hasAttr(kContractAttrName))
      return WalkResult::advance();
    if (loop->getBlock() != &block) {
      why = "a loop of unknown length stands in another: how often each has run, no trace tells";
      return WalkResult::interrupt();
    }
    if (std::optional<Entries> body = writtenOut(loop, *loop.getBody(), trips)) {
      loops.push_back({loop, startsIn(*body)});
      for (auto &[kind, count] : loops.back().second)
        ++users[kind];
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return std::nullopt;
  std::optional<Entries> once = writtenOut(function, block, trips);
  if (!once)
    return trips; // no contract, as the caller will say
  std::map<std::string, uint64_t> fixed = startsIn(*once);
  for (auto &[loop, counts] : loops) {
    std::optional<uint64_t> times;
    for (auto &[kind, count] : counts) {
      if (users[kind] > 1)
        continue;
      uint64_t seen = llvm::count_if(spans, [&, &kind = kind](const overlap::TraceSpan &span) {
        StringRef name = span.category;
        return name.consume_front(kind) && name.starts_with(".");
      });
      if (seen < fixed[kind] || (seen - fixed[kind]) % count != 0 ||
          (times && *times != (seen - fixed[kind]) / count)) {
        why = llvm::formatv("the trace has {0} {1}, which no number of runs of a loop gives that "
                            "starts {2} each time",
                            seen, kind, count);
        return std::nullopt;
      }
      times = (seen - fixed[kind]) / count;
    }
    if (!times) {
      why =
          "a loop of unknown length has no kind of collective to itself: how often it has run, no "
          "trace tells";
      return std::nullopt;
    }
    trips[loop] = *times;
  }
  return trips;
}

struct Diagnose : ncclx::impl::DiagnoseBase<Diagnose> {
  using DiagnoseBase::DiagnoseBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto fail = [&](const Twine &what) {
      module.emitError(what);
      signalPassFailure();
    };
    if (trace.empty())
      return fail("ncclx-diagnose needs trace=FILE");
    if (!(tolerance >= 0))
      return fail("ncclx-diagnose: tolerance is at least 0");
    std::string problem;
    std::optional<std::string> text = readFile(trace, problem);
    if (!text)
      return fail(Twine(trace) + ": " + problem);
    overlap::TraceResult read = overlap::readTrace(*text, trace, rank);
    if (!read.spans)
      return fail(read.error);
    if (machine.empty() != corrected.empty())
      return fail("ncclx-diagnose: machine=FILE and corrected=FILE go together");
    bool any = false;
    overlap::Rates rates;
    for (func::FuncOp function : module.getOps<func::FuncOp>()) {
      Attribute attribute = function->getAttr(kContractAttrName);
      if (!attribute || function.isExternal())
        continue;
      if (any && !corrected.empty())
        return fail("ncclx-diagnose: corrected=FILE is for modules with one contract");
      any = true;
      std::string why;
      std::optional<Trips> trips = tripsBy(function, *read.spans, why);
      if (!trips) {
        function.emitError() << "cannot be held against " << trace << ": " << why;
        return signalPassFailure();
      }
      std::optional<Entries> contract = writtenOut(function, function.getBody().front(), *trips);
      if (!contract) {
        function.emitError() << kContractAttrName << " is no contract";
        return signalPassFailure();
      }
      overlap::Diagnosis diagnosis = overlap::diagnose(numbered(*contract), *read.spans, tolerance);
      for (const overlap::Finding &finding : diagnosis.findings) {
        if (requireOverlap) {
          emitError(function.getLoc()) << finding.text;
          signalPassFailure();
        } else {
          emitWarning(function.getLoc()) << finding.text;
        }
      }
      emitRemark(function.getLoc())
          << diagnosis.kept << " of " << diagnosis.promised << " overlaps are as promised";
      rates = std::move(diagnosis.rates);
    }
    if (!any)
      return fail("no function has a contract: run ncclx-overlap, or another pass that places "
                  "overlaps, and keep what it gives");
    if (!corrected.empty())
      if (std::string error = correct(rates); !error.empty())
        fail(error);
  }

  /// Writes the machine file anew; what is wrong, or nothing.
  std::string correct(const overlap::Rates &rates) {
    std::string problem;
    std::optional<std::string> text = readFile(machine, problem);
    if (!text)
      return machine + ": " + problem;
    overlap::Corrected result = overlap::correctMachine(*text, machine, rates, trace);
    if (!result.text)
      return result.error;
    std::error_code bad;
    llvm::raw_fd_ostream out(corrected, bad);
    out << *result.text;
    out.close();
    if (!bad && out.has_error())
      bad = out.error();
    out.clear_error();
    return bad ? corrected + ": " + bad.message() : "";
  }
};

} // namespace

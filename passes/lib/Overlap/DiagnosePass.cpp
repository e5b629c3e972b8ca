//===- DiagnosePass.cpp - Hold a measured timeline against the contract -------------------===//
#include "ncclx/Overlap/Diagnose.h"
#include "ncclx/Overlap/Passes.h"
#include "ncclx/Support/ReadFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_DIAGNOSE
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// The contract that an attribute says; nothing where it says none.
std::optional<overlap::Contract> readContract(Attribute attribute) {
  auto list = dyn_cast_or_null<ArrayAttr>(attribute);
  if (!list)
    return std::nullopt;
  overlap::Contract contract;
  for (Attribute element : list) {
    auto entry = dyn_cast<DictionaryAttr>(element);
    auto name = entry ? entry.getAs<StringAttr>("name") : StringAttr();
    auto kind = entry ? entry.getAs<StringAttr>("kind") : StringAttr();
    auto us = entry ? entry.getAs<FloatAttr>("us") : FloatAttr();
    if (!name || !kind || !us)
      return std::nullopt;
    overlap::Promise promise;
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
    contract.push_back(std::move(promise));
  }
  return contract;
}

/// The contract of an op's block with its loops written out: what they promise, as often as they
/// run. Nothing where what the op carries is no contract.
std::optional<overlap::Contract> writtenOut(Operation *op, Block &block) {
  constexpr size_t kMost = 10'000'000; ///< ops
  std::optional<overlap::Contract> own = readContract(op->getAttr(kContractAttrName));
  if (!own)
    return std::nullopt;
  overlap::Contract all;
  SmallVector<scf::ForOp> loops(block.getOps<scf::ForOp>());
  SmallVector<unsigned> place(own->size()), placed;
  size_t next = 0;
  auto append = [&](const overlap::Contract &part) {
    unsigned base = all.size();
    for (overlap::Promise promise : part) {
      for (unsigned &beside : promise.beside)
        beside += base;
      all.push_back(std::move(promise));
    }
  };
  for (auto [i, promise] : llvm::enumerate(*own)) {
    place[i] = all.size();
    scf::ForOp loop = promise.name == "for" && next < loops.size() ? loops[next++] : scf::ForOp();
    if (!loop || !loop->hasAttr(kContractAttrName)) {
      all.push_back(promise);
      placed.push_back(place[i]);
      continue;
    }
    std::optional<APInt> trips = loop.getStaticTripCount();
    std::optional<overlap::Contract> body = writtenOut(loop, *loop.getBody());
    if (!trips || !body || trips->getLimitedValue() > kMost / std::max<size_t>(1, body->size()))
      return std::nullopt;
    for (uint64_t trip = 0; trip < trips->getLimitedValue(); ++trip)
      append(*body);
  }
  for (unsigned at : placed)
    for (unsigned &beside : all[at].beside)
      beside = place[beside];
  // Collectives are numbered by kind in the order of their starts.
  std::map<std::string, unsigned> counts;
  for (overlap::Promise &promise : all)
    if (promise.collective) {
      std::string kind = promise.name.substr(0, promise.name.rfind('.'));
      promise.name = kind + "." + std::to_string(counts[kind]++);
    }
  return all;
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
      std::optional<overlap::Contract> contract = writtenOut(function, function.getBody().front());
      if (!contract) {
        function.emitError() << kContractAttrName << " is no contract";
        return signalPassFailure();
      }
      overlap::Diagnosis diagnosis = overlap::diagnose(*contract, *read.spans, tolerance);
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

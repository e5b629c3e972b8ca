//===- Diagnose.cpp - A measured timeline against what was promised ----------------------===//
//
// Ops of a trace are found by name and order: the n-th span called "matmul" is the n-th of the
// contract. Where a profiler knows kernels by names of its own, kinds stand for names: NCCL's
// kernels for collectives, those of GEMM libraries for products.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Diagnose.h"
#include "JsonDepth.h"

#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

using namespace mlir::ncclx::overlap;
using llvm::StringRef;

Contract mlir::ncclx::overlap::contractOf(const Problem &problem, const Schedule &schedule,
                                          const Timeline &line) {
  Contract contract;
  std::vector<unsigned> place(problem.ops.size());
  std::map<std::string, unsigned> counts;
  for (Step step : schedule) {
    if (step.kind == StepKind::await)
      continue;
    const Op &op = problem.ops[step.op];
    if (op.partOf) {
      place[step.op] = place[*op.partOf];
      contract[place[step.op]].seconds += op.seconds;
      continue;
    }
    Promise promise;
    promise.name = op.name.substr(0, op.name.find(' '));
    if (op.collective)
      promise.name += fmt::format(".{}", counts[promise.name]++);
    else if (size_t dot = promise.name.find('.'); dot != std::string::npos)
      promise.name.erase(0, dot + 1); // the dialect
    promise.collective = op.collective;
    promise.product = op.tiles > 0;
    promise.seconds = op.seconds;
    place[step.op] = contract.size();
    contract.push_back(std::move(promise));
  }
  for (const Beside &beside : line.beside) {
    Promise &promise = contract[place[beside.collective]];
    promise.hidden += beside.seconds;
    unsigned kernel = place[beside.kernel];
    if (std::find(promise.beside.begin(), promise.beside.end(), kernel) == promise.beside.end())
      promise.beside.push_back(kernel);
  }
  return contract;
}

//===--- Traces ---------------------------------------------------------------------------===//

/// The kind of collective that a kernel of NCCL or RCCL is; empty if it is none.
static std::string collectiveOfKernel(StringRef name) {
  if (!name.contains_insensitive("nccl"))
    return "";
  for (auto [kernel, kind] : {std::pair("AllGather", "all_gather"),
                              {"ReduceScatter", "reduce_scatter"},
                              {"AllReduce", "all_reduce"},
                              {"AllToAll", "all_to_all"},
                              {"SendRecv", "permute"},
                              {"Broadcast", "broadcast"},
                              {"Reduce", "reduce"}})
    if (name.contains_insensitive(kernel))
      return kind;
  return "";
}

static bool isProductKernel(StringRef name) {
  for (const char *word : {"gemm", "cutlass", "nvjet", "xmma", "cublas", "matmul"})
    if (name.contains_insensitive(word))
      return true;
  return false;
}

TraceResult mlir::ncclx::overlap::readTrace(StringRef text, StringRef fileName, int64_t rank) {
  auto fail = [&](const std::string &what) {
    return TraceResult{std::nullopt, fmt::format("{}: {}", fileName.str(), what)};
  };
  if (nestsTooDeep(text))
    return fail(fmt::format("nests more than {} deep", deepest));
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(text);
  if (!json)
    return fail(llvm::toString(json.takeError()));
  const llvm::json::Array *events = json->getAsArray();
  if (const llvm::json::Object *object = json->getAsObject())
    events = object->getArray("traceEvents");
  if (!events)
    return fail("expected a list of events, or an object with 'traceEvents'");
  // Ours names its processes; a profiler's file is of one rank.
  std::optional<int64_t> process;
  std::string wanted = fmt::format("rank {} (measured here)", rank);
  for (const llvm::json::Value &value : *events) {
    const llvm::json::Object *event = value.getAsObject();
    const llvm::json::Object *args = event ? event->getObject("args") : nullptr;
    if (args && event->getString("name") == StringRef("process_name") &&
        args->getString("name") == StringRef(wanted))
      process = event->getInteger("pid");
  }
  std::vector<TraceSpan> spans;
  std::map<std::string, size_t> whole; // collectives of ours, which are many spans
  for (const llvm::json::Value &value : *events) {
    const llvm::json::Object *event = value.getAsObject();
    if (!event || event->getString("ph") != StringRef("X"))
      continue;
    std::optional<double> start = event->getNumber("ts"), took = event->getNumber("dur");
    std::optional<StringRef> name = event->getString("name"), category = event->getString("cat");
    if (!start || !took || !name || !(*took >= 0) || !std::isfinite(*start + *took))
      return fail("an event has no name, 'ts' and 'dur' of at least 0");
    TraceSpan span{name->str(), category.value_or("").str(), *start * 1e-6, *took * 1e-6};
    if (process) {
      if (event->getInteger("pid") != process)
        continue;
      if (span.category != "compute") {
        auto [it, isNew] = whole.try_emplace(span.category, spans.size());
        if (!isNew) {
          TraceSpan &all = spans[it->second];
          double end = std::max(all.end(), span.end());
          all.start = std::min(all.start, span.start);
          all.seconds = end - all.start;
          continue;
        }
        span.name = span.category;
      }
    } else if (span.category != "kernel" && span.category != "gpu_memcpy") {
      continue;
    }
    spans.push_back(std::move(span));
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TraceSpan &a, const TraceSpan &b) { return a.start < b.start; });
  if (spans.empty())
    return fail(fmt::format("has no spans of rank {} (ours) and no kernels (Kineto)", rank));
  if (!process) { // kinds for names
    std::map<std::string, unsigned> counts;
    for (TraceSpan &span : spans) {
      std::string kind = collectiveOfKernel(span.name);
      span.category = !kind.empty()                ? fmt::format("{}.{}", kind, counts[kind]++)
                      : isProductKernel(span.name) ? "product"
                                                   : "other";
    }
  }
  return {std::move(spans), ""};
}

//===--- Diagnosis ------------------------------------------------------------------------===//

namespace {
/// Finds and judges the ops of a contract in a trace.
class Judge {
public:
  Judge(const Contract &contract, const std::vector<TraceSpan> &spans, double tolerance)
      : contract(contract), spans(spans), tolerance(tolerance), span(contract.size()),
        op(spans.size()) {}
  Diagnosis run();

private:
  const Contract &contract;
  const std::vector<TraceSpan> &spans;
  double tolerance;
  std::vector<std::optional<unsigned>> span; ///< of each op
  std::vector<std::optional<unsigned>> op;   ///< of each span
  double scale = 1;                          ///< measured seconds for one of the contract
  Diagnosis diagnosis;

  void match();
  void judge(unsigned collective);
  std::string causeOf(double begin, double from, unsigned late) const;
  double besides(const TraceSpan &collective) const;
  bool alone(const TraceSpan &own) const;
  Rates rates() const;
};

void Judge::match() {
  // Spans by what they are called; then ops one after the other.
  std::map<std::string, std::vector<unsigned>> called;
  bool kinds = std::any_of(spans.begin(), spans.end(),
                           [](const TraceSpan &s) { return s.category == "product"; });
  for (unsigned i = 0; i < spans.size(); ++i) {
    const TraceSpan &s = spans[i];
    bool compute = s.category == "compute";
    called[compute ? s.name : s.category].push_back(i);
  }
  std::map<std::string, size_t> next;
  std::map<std::string, unsigned> wanted;
  for (unsigned i = 0; i < contract.size(); ++i) {
    const Promise &promise = contract[i];
    if (kinds && !promise.collective && !promise.product)
      continue; // a profiler tells them by no name that we know
    std::string name = kinds && promise.product ? "product" : promise.name;
    ++wanted[name];
    const std::vector<unsigned> &list = called[name];
    if (size_t at = next[name]++; at < list.size()) {
      span[i] = list[at];
      op[list[at]] = i;
    }
  }
  for (const auto &[name, count] : wanted)
    if (size_t found = called[name].size(); found != count) {
      unsigned first = 0;
      while (contract[first].name != name && !(name == "product" && contract[first].product))
        ++first;
      diagnosis.findings.push_back(
          {Finding::missing, first,
           fmt::format("the trace has {} spans of '{}', the contract {}", found, name, count)});
    }
}

/// Seconds of a collective in which some kernel runs.
double Judge::besides(const TraceSpan &collective) const {
  double sum = 0, until = collective.start;
  for (unsigned i = 0; i < spans.size(); ++i) {
    if (op[i] && contract[*op[i]].collective)
      continue;
    double from = std::max(until, spans[i].start), to = std::min(collective.end(), spans[i].end());
    if (to > from) {
      sum += to - from;
      until = to;
    }
  }
  return sum;
}

/// What ended last in front of `late`'s begin, behind `from`: nothing promised keeps it waiting.
std::string Judge::causeOf(double begin, double from, unsigned late) const {
  std::optional<unsigned> last;
  for (unsigned i = 0; i < spans.size(); ++i)
    if (op[i] != late && spans[i].end() <= begin + 1e-9 && spans[i].end() > from &&
        (!last || spans[i].end() > spans[*last].end()))
      last = i;
  if (!last)
    return fmt::format("'{}' began {:.1f} us late, and nothing ran in front of it: a wait that is "
                       "not in the contract",
                       contract[late].name, (begin - from) * 1e6);
  return fmt::format(
      "'{}' began {:.1f} us late, behind {} '{}'", contract[late].name, (begin - from) * 1e6,
      op[*last] ? "a wait for" : "an op that is not in the contract,", spans[*last].name);
}

void Judge::judge(unsigned number) {
  const Promise &promise = contract[number];
  ++diagnosis.promised;
  if (!span[number] || std::any_of(promise.beside.begin(), promise.beside.end(),
                                   [&](unsigned k) { return !span[k]; }))
    return; // named as missing
  const TraceSpan &own = spans[*span[number]];
  const TraceSpan &first = spans[*span[promise.beside.front()]];
  double ratio = promise.hidden / promise.seconds, measured = besides(own);
  double part = own.seconds > 0 ? measured / own.seconds : 1;
  if (part < ratio - tolerance) {
    std::string cause = own.start > first.start
                            ? causeOf(own.start, first.start, number)
                            : causeOf(first.start, own.start, promise.beside.front());
    diagnosis.findings.push_back(
        {Finding::lost, number,
         fmt::format("lost overlap: '{}' ran beside kernels for {:.0f} % of its {:.1f} us, "
                     "promised were {:.0f} %: {}",
                     promise.name, part * 100, own.seconds * 1e6, ratio * 100, cause)});
    return;
  }
  double begin = own.start, end = own.end(), apart = promise.seconds;
  std::string partners;
  for (unsigned kernel : promise.beside) {
    const TraceSpan &s = spans[*span[kernel]];
    begin = std::min(begin, s.start);
    end = std::max(end, s.end());
    apart += contract[kernel].seconds;
    partners += fmt::format("{}'{}'", partners.empty() ? "" : ", ", contract[kernel].name);
  }
  if (end - begin > apart * scale * (1 + tolerance)) {
    diagnosis.findings.push_back(
        {Finding::harmful, number,
         fmt::format(
             "harmful overlap: '{}' and {} took {:.1f} us together, apart they take {:.1f} us",
             promise.name, partners, (end - begin) * 1e6, apart * scale * 1e6)});
    return;
  }
  ++diagnosis.kept;
}

static double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

bool Judge::alone(const TraceSpan &own) const {
  return std::none_of(spans.begin(), spans.end(), [&](const TraceSpan &s) {
    return &s != &own && s.start < own.end() && own.start < s.end();
  });
}

Rates Judge::rates() const {
  std::vector<double> products;
  std::map<std::string, std::vector<double>> collectives;
  for (unsigned i = 0; i < contract.size(); ++i) {
    const Promise &promise = contract[i];
    if (!span[i] || promise.seconds <= 0 || !(promise.product || promise.collective))
      continue;
    const TraceSpan &own = spans[*span[i]];
    if (!alone(own))
      continue; // beside others it says nothing of itself
    std::string kind = promise.name.substr(0, promise.name.find('.'));
    (promise.product ? products : collectives[kind]).push_back(own.seconds / promise.seconds);
  }
  Rates rates;
  if (!products.empty())
    rates.products = median(products);
  for (const auto &[kind, ratios] : collectives)
    if (double ratio = median(ratios); ratio > 0)
      rates.collectives[kind] = ratio;
  if (rates.products && *rates.products <= 0)
    rates.products.reset();
  return rates;
}

Diagnosis Judge::run() {
  match();
  // What an op takes on this machine for what the contract says: the median of those that ran
  // alone, since pairs that slow each other down may be most of the rest; of all where none did.
  std::vector<double> all, apart;
  for (unsigned i = 0; i < contract.size(); ++i)
    if (span[i] && contract[i].seconds > 0) {
      const TraceSpan &own = spans[*span[i]];
      all.push_back(own.seconds / contract[i].seconds);
      if (alone(own))
        apart.push_back(all.back());
    }
  if (!all.empty())
    scale = median(apart.empty() ? all : apart);
  diagnosis.rates = rates();
  for (unsigned i = 0; i < contract.size(); ++i)
    if (contract[i].collective && !contract[i].beside.empty() && contract[i].seconds > 0)
      judge(i);
  return std::move(diagnosis);
}
} // namespace

Diagnosis mlir::ncclx::overlap::diagnose(const Contract &contract,
                                         const std::vector<TraceSpan> &spans, double tolerance) {
  return Judge(contract, spans, tolerance).run();
}

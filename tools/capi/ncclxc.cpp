//===- ncclxc.cpp - The compiler as a C library ----------------------------===//
#include "ncclx-c/ncclx.h"

#include "Driver.h"

#include "ncclx/Topology/IO.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <deque>
#include <exception>
#include <map>
#include <new>

using namespace mlir;
using namespace mlir::ncclx;

struct ncclxProgram {
  struct Said {
    ncclxSeverity_t severity;
    std::string text, file;
    int64_t line = 0, column = 0;
  };
  std::deque<Said> said;
  std::string graphName;
  std::optional<topology::Topology> target; // of a graph's own program, as the context
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<Compilation> compilation;
  std::optional<HostPlan> refused; // sizes out of range
  std::unique_ptr<PlanDescription> plan;
  std::string report, schedule;
  bool good = false;
  bool isSpecialized = false;          // one of another's `made`
  ncclxResult_t result = ncclxSuccess; // of that
  std::map<std::vector<int64_t>, std::unique_ptr<ncclxProgram>> made;

  ncclxResult_t compile(const ncclxCompileOptions_t &options, StringRef graph);
  ncclxResult_t specialize(ncclxProgram &of, ArrayRef<int64_t> sizes);
  bool isWhole() const { return good; }

private:
  void keep(Diagnostic &diagnostic);
  ncclxResult_t prove(Compilation &compilation);
  ncclxResult_t generate();
  ncclxResult_t proveSamples();
  std::string makeReport(StringRef topologyName) const;
};

static ncclxSeverity_t severityOf(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return ncclxNote;
  case DiagnosticSeverity::Warning:
    return ncclxWarning;
  case DiagnosticSeverity::Error:
    return ncclxError;
  case DiagnosticSeverity::Remark:
    return ncclxRemark;
  }
  return ncclxError;
}

void ncclxProgram::keep(Diagnostic &diagnostic) {
  auto add = [&](Diagnostic &d) {
    Said s{severityOf(d.getSeverity()), d.str(), "", 0, 0};
    if (auto place = d.getLocation()->findInstanceOf<FileLineColLoc>()) {
      s.file = place.getFilename().str();
      s.line = place.getLine();
      s.column = place.getColumn();
    }
    if (s.file == "-")
      s.file = graphName;
    said.push_back(std::move(s));
  };
  add(diagnostic);
  for (Diagnostic &note : diagnostic.getNotes())
    add(note);
}

std::string ncclxProgram::makeReport(StringRef topologyName) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  const HostPlan &host = compilation->plan();
  json.object([&] {
    json.attribute("version", NCCLX_C_VERSION);
    json.attribute("function", compilation->function());
    json.attribute("ranks", compilation->ranks());
    json.attribute("topology", topologyName);
    if (!host.sizes.empty())
      json.attributeObject("sizes", [&] {
        for (const HostPlan::Size &size : host.sizes)
          json.attribute(size.name, size.value);
      });
    json.attribute("proof", compilation->proof().str());
    json.attributeArray("collectives", [&] {
      for (const GraphCollective &c : compilation->collectives())
        json.object([&] {
          json.attribute("name", c.name);
          json.attribute("kind", c.kind);
          json.attribute("algorithm", c.algorithm);
          json.attribute("bytes", c.bytes);
          json.attribute("group_size", int64_t(c.group.size()));
          json.attribute("alone_us", c.aloneSeconds * 1e6);
        });
    });
    int64_t total = 0;
    json.attributeArray("windows", [&] {
      for (const HostPlan::Window &w : host.windows) {
        total += int64_t(w.bytes) * w.generations;
        json.object([&] {
          json.attribute("name", w.name);
          json.attribute("role", ctran::stringifyWindowRole(w.role));
          json.attribute("position", w.argument);
          json.attribute("bytes", int64_t(w.bytes));
          json.attribute("generations", w.generations);
          std::string type;
          llvm::raw_string_ostream(type) << w.type;
          json.attribute("type", type);
        });
      }
    });
    json.attribute("bytes_per_rank", total);
  });
  return text;
}

ncclxResult_t ncclxProgram::compile(const ncclxCompileOptions_t &options, StringRef graph) {
  graphName = options.name ? options.name : "graph";
  topology::ReadResult read =
      topology::readTopology(StringRef(options.topology, options.topology_bytes), "topology");
  for (const topology::Diagnostic &d : read.diagnostics)
    said.push_back({d.severity == topology::Severity::error     ? ncclxError
                    : d.severity == topology::Severity::warning ? ncclxWarning
                                                                : ncclxNote,
                    topology::toString(d, "topology"), "", 0, 0});
  if (!read.topology)
    return ncclxBadInput;
  target = std::move(read.topology);

  DialectRegistry registry;
  registerDriverDialects(registry);
  // No threads of its own in somebody else's process.
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    keep(diagnostic);
    return success();
  });
  compilation = std::make_unique<Compilation>(
      *context, SelectionTarget{&*target, topology::Rate::payload, options.transport_puts == 0});
  // A copy that ends in 0, which the lexer looks for.
  if (failed(compilation->parseText(graph.str(), options.function ? options.function : "")))
    return ncclxBadInput;
  if (!compilation->openSizes().empty())
    return proveSamples();
  if (ncclxResult_t result = prove(*compilation); result != ncclxSuccess)
    return result;
  return generate();
}

ncclxResult_t ncclxProgram::prove(Compilation &of) {
  if (failed(of.choose()) || failed(of.lower()))
    return ncclxBadInput;
  of.prove();
  if (of.proof())
    return ncclxSuccess;
  said.push_back({ncclxError, "the schedule is not proved: " + of.proof().str(), "", 0, 0});
  return ncclxNotProved;
}

ncclxResult_t ncclxProgram::generate() {
  if (failed(compilation->generate()))
    return ncclxBadInput;
  llvm::raw_string_ostream(schedule) << compilation->scheduleModule();
  report = makeReport(compilation->topologyName());
  plan = std::make_unique<PlanDescription>(compilation->plan(), 0);
  good = true;
  return ncclxSuccess;
}

/// Sizes for which a graph is wrong, or its schedule is not proved, show before one is used.
ncclxResult_t ncclxProgram::proveSamples() {
  ArrayRef<OpenSize> open = compilation->openSizes();
  llvm::json::Array proofs;
  for (const SmallVector<int64_t> &sizes : sampleSizes(open)) {
    std::unique_ptr<Compilation> sample = compilation->at(sizes);
    ncclxResult_t result = sample ? prove(*sample) : ncclxBadInput;
    std::string text = sizesText(open, sizes);
    if (result != ncclxSuccess) {
      said.push_back({ncclxNote, "at " + text, "", 0, 0});
      return result;
    }
    proofs.push_back(llvm::json::Object{{"sizes", text}, {"proof", sample->proof().str()}});
  }
  llvm::json::Array sizes;
  for (const OpenSize &size : open)
    sizes.push_back(llvm::json::Object{
        {"name", size.name}, {"min", size.min}, {"max", size.max}, {"multiple", size.multiple}});
  llvm::raw_string_ostream(report)
      << llvm::json::Value(llvm::json::Object{{"version", NCCLX_C_VERSION},
                                              {"function", compilation->function()},
                                              {"ranks", compilation->ranks()},
                                              {"topology", compilation->topologyName()},
                                              {"open_sizes", std::move(sizes)},
                                              {"proofs", std::move(proofs)}});
  good = true;
  return ncclxSuccess;
}

ncclxResult_t ncclxProgram::specialize(ncclxProgram &of, ArrayRef<int64_t> sizes) {
  graphName = of.graphName;
  isSpecialized = true;
  ScopedDiagnosticHandler handler(of.context.get(), [&](Diagnostic &diagnostic) {
    keep(diagnostic);
    return success();
  });
  for (auto [size, value] : llvm::zip_equal(of.compilation->openSizes(), sizes))
    if (!size.holds(value) && !refused)
      refused = of.compilation->refusedPlan(sizes);
  if (refused)
    plan = std::make_unique<PlanDescription>(*refused, 0);
  compilation = of.compilation->at(sizes);
  if (!compilation)
    return ncclxBadInput;
  if (ncclxResult_t result = prove(*compilation); result != ncclxSuccess)
    return result;
  return generate();
}

/// Reads the options of a caller that may know fewer or more of them.
static bool readOptions(const ncclxCompileOptions_t *given, ncclxCompileOptions_t &options) {
  size_t size = given ? given->struct_size : 0;
  if (size < sizeof(ncclxCompileOptions_t) || size > 4096)
    return false;
  auto *bytes = reinterpret_cast<const char *>(given);
  for (size_t i = sizeof(options); i < size; ++i)
    if (bytes[i])
      return false; // a field that this library does not know
  options = *given;
  return options.version == NCCLX_C_VERSION && options.topology &&
         (options.transport_puts == 0 || options.transport_puts == 1);
}

/// Fills a new program by `work`; what it throws becomes a result.
template <typename Work>
static ncclxResult_t make(std::unique_ptr<ncclxProgram> &program, Work work) {
  try {
    program = std::make_unique<ncclxProgram>();
    try {
      return work(*program);
    } catch (const std::bad_alloc &) {
      throw;
    } catch (const std::exception &e) {
      program->said.push_back({ncclxError, e.what(), "", 0, 0});
      return ncclxInternalError;
    }
  } catch (const std::bad_alloc &) {
    program.reset();
    return ncclxOutOfMemory;
  }
}

extern "C" {

int32_t ncclxVersion(void) { return NCCLX_C_VERSION; }

ncclxResult_t ncclxCompile(const ncclxCompileOptions_t *options, const void *graph, size_t bytes,
                           ncclxProgram_t *program) {
  if (!program)
    return ncclxInvalidArgument;
  *program = nullptr;
  ncclxCompileOptions_t known = NCCLX_COMPILE_OPTIONS_INIT;
  if (!graph || !readOptions(options, known))
    return ncclxInvalidArgument;
  std::unique_ptr<ncclxProgram> made;
  ncclxResult_t result = make(made, [&](ncclxProgram &p) {
    return p.compile(known, StringRef(static_cast<const char *>(graph), bytes));
  });
  *program = made.release();
  return result;
}

size_t ncclxProgramNumSizes(ncclxProgram_t program) {
  return program && program->isWhole() ? program->compilation->openSizes().size() : 0;
}

ncclxSize_t ncclxProgramSize(ncclxProgram_t program, size_t index) {
  if (index >= ncclxProgramNumSizes(program))
    return {"", 0, 0, 0};
  const OpenSize &size = program->compilation->openSizes()[index];
  return {size.name.c_str(), size.min, size.max, size.multiple};
}

ncclxResult_t ncclxProgramAt(ncclxProgram_t program, const int64_t *sizes, size_t num_sizes,
                             ncclxProgram_t *at) {
  if (!at)
    return ncclxInvalidArgument;
  *at = nullptr;
  if (!sizes || num_sizes == 0 || num_sizes != ncclxProgramNumSizes(program))
    return ncclxInvalidArgument;
  try {
    std::vector<int64_t> values(sizes, sizes + num_sizes);
    std::unique_ptr<ncclxProgram> &known = program->made[values];
    if (!known) {
      ncclxResult_t result =
          make(known, [&](ncclxProgram &p) { return p.specialize(*program, values); });
      if (!known)
        return result;
      known->result = result;
    }
    *at = known.get();
    return known->result;
  } catch (const std::bad_alloc &) {
    return ncclxOutOfMemory;
  }
}

size_t ncclxProgramNumDiagnostics(ncclxProgram_t program) {
  return program ? program->said.size() : 0;
}

ncclxDiagnostic_t ncclxProgramDiagnostic(ncclxProgram_t program, size_t index) {
  if (!program || index >= program->said.size())
    return {ncclxNote, "", "", 0, 0};
  const ncclxProgram::Said &s = program->said[index];
  return {s.severity, s.text.c_str(), s.file.c_str(), s.line, s.column};
}

const char *ncclxProgramReport(ncclxProgram_t program) {
  return program ? program->report.c_str() : "";
}

const char *ncclxProgramSchedule(ncclxProgram_t program) {
  return program ? program->schedule.c_str() : "";
}

int32_t ncclxProgramRanks(ncclxProgram_t program) {
  return program && program->isWhole() ? int32_t(program->compilation->ranks()) : 0;
}

const ncclxrtPlanDesc_t *ncclxProgramPlan(ncclxProgram_t program) {
  return program && program->plan ? program->plan->get() : nullptr;
}

ncclxrtProgram_t ncclxProgramEntry(ncclxProgram_t program) {
  return program && program->isWhole() ? program->compilation->entry() : nullptr;
}

void ncclxProgramDestroy(ncclxProgram_t program) {
  if (program && !program->isSpecialized)
    delete program;
}

} // extern "C"

//===- ncclxc.cpp - The compiler as a C library ----------------------------===//
#include "ncclx-c/ncclx.h"

#include "Driver.h"

#include "ncclx/Topology/IO.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <deque>
#include <exception>
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
  std::optional<topology::Topology> target;
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<Compilation> compilation;
  std::unique_ptr<PlanDescription> plan;
  std::string report, schedule;

  ncclxResult_t compile(const ncclxCompileOptions_t &options, StringRef graph);
  bool isWhole() const { return plan != nullptr; }

private:
  void keep(Diagnostic &diagnostic, StringRef graphName);
  std::string makeReport() const;
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

void ncclxProgram::keep(Diagnostic &diagnostic, StringRef graphName) {
  auto add = [&](Diagnostic &d) {
    Said s{severityOf(d.getSeverity()), d.str(), "", 0, 0};
    if (auto place = d.getLocation()->findInstanceOf<FileLineColLoc>()) {
      s.file = place.getFilename().str();
      s.line = place.getLine();
      s.column = place.getColumn();
    }
    if (s.file == "-")
      s.file = graphName.str();
    said.push_back(std::move(s));
  };
  add(diagnostic);
  for (Diagnostic &note : diagnostic.getNotes())
    add(note);
}

std::string ncclxProgram::makeReport() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  const HostPlan &host = compilation->plan();
  json.object([&] {
    json.attribute("version", NCCLX_C_VERSION);
    json.attribute("function", compilation->function());
    json.attribute("ranks", compilation->ranks());
    json.attribute("topology", target->name);
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
  std::string graphName = options.name ? options.name : "graph";
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
    keep(diagnostic, graphName);
    return success();
  });
  compilation = std::make_unique<Compilation>(
      *context, SelectionTarget{&*target, topology::Rate::payload, options.transport_puts == 0});
  // A copy that ends in 0, which the lexer looks for.
  if (failed(compilation->parseText(graph.str(), options.function ? options.function : "")) ||
      failed(compilation->choose()) || failed(compilation->lower()))
    return ncclxBadInput;
  compilation->prove();
  if (!compilation->proof()) {
    said.push_back(
        {ncclxError, "the schedule is not proved: " + compilation->proof().str(), "", 0, 0});
    return ncclxNotProved;
  }
  if (failed(compilation->generate()))
    return ncclxBadInput;
  llvm::raw_string_ostream(schedule) << compilation->scheduleModule();
  report = makeReport();
  plan = std::make_unique<PlanDescription>(compilation->plan(), 0);
  return ncclxSuccess;
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
  try {
    auto made = std::make_unique<ncclxProgram>();
    ncclxResult_t result;
    try {
      result = made->compile(known, StringRef(static_cast<const char *>(graph), bytes));
    } catch (const std::bad_alloc &) {
      throw;
    } catch (const std::exception &e) {
      made->said.push_back({ncclxError, e.what(), "", 0, 0});
      result = ncclxInternalError;
    }
    *program = made.release();
    return result;
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
  return program && program->isWhole() ? program->plan->get() : nullptr;
}

ncclxrtProgram_t ncclxProgramEntry(ncclxProgram_t program) {
  return program && program->isWhole() ? program->compilation->entry() : nullptr;
}

void ncclxProgramDestroy(ncclxProgram_t program) { delete program; }

} // extern "C"

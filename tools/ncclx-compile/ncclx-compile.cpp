//===- ncclx-compile.cpp - A graph to C++, a header and an object ------------------------===//
#include "CppCarrier.h"
#include "SizeOption.h"

#include "ncclx/Cpp/CppSource.h"
#include "ncclx/Topology/IO.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::ncclx;

namespace {

namespace cl = llvm::cl;
cl::OptionCategory category("ncclx-compile options");
cl::opt<std::string> graphFile(cl::Positional, cl::desc("GRAPH.mlir"), cl::Required,
                               cl::cat(category));
cl::opt<std::string> topologyFile("topology", cl::value_desc("FILE"), cl::Required,
                                  cl::desc("Target: a topology as JSON or NCCL system XML"),
                                  cl::cat(category));
cl::opt<std::string> directory("o", cl::value_desc("DIR"), cl::Required,
                               cl::desc("Folder for NAME.h, NAME.cpp, NAME.o and NAME.json"),
                               cl::cat(category));
cl::opt<std::string> nameOption("name", cl::value_desc("NAME"),
                                cl::desc("Prefix of files and symbols (default: the function's)"),
                                cl::cat(category));
cl::opt<std::string>
    functionOption("function", cl::value_desc("NAME"),
                   cl::desc("Function to compile (default: the one with collectives)"),
                   cl::cat(category));
cl::opt<std::string> transport("transport", cl::init("shm"), cl::value_desc("shm|tcp"),
                               cl::desc("How the ranks will talk: by tcp there is no load or store "
                                        "of a peer's memory (default shm)"),
                               cl::cat(category));
cl::list<std::string> sizeOptions("size", cl::value_desc("NAME=VALUE"),
                                  cl::desc("Value of a size that the graph leaves open"),
                                  cl::cat(category));
cl::opt<std::string>
    cpu("cpu", cl::init("native"), cl::value_desc("NAME"),
        cl::desc("CPU of the kernels, as x86-64-v3; a name gives the same bytes on "
                 "every machine (default native)"),
        cl::cat(category));

/// Exit codes, as those of ncclx-run.
enum Exit { Good = 0, BadUsage = 1, BadInput = 2, NotProved = 3 };

int finish(Exit code, const llvm::Twine &text) {
  llvm::outs() << (code == Good ? "ok: " : "error: ") << text << "\n";
  llvm::outs().flush();
  return code;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(
          argc, argv,
          "Compiles a graph of collectives and computation for a topology, proves the schedule, "
          "and\n"
          "writes it as C++ with a C interface, an object with its kernels, and a manifest.\n\n"
          "  ncclx-compile graph.mlir --topology=h200x8.xml -o build/schedule\n\n"
          "Exit codes: 0 ok; 1 bad usage; 2 the graph or topology cannot be read or compiled; 3 "
          "the\n"
          "schedule is not proved.\n",
          &llvm::errs()))
    return finish(BadUsage, "the command line is not understood (see ncclx-compile --help)");
  if (transport != "shm" && transport != "tcp")
    return finish(BadUsage, "--transport is '" + transport + "', expected shm or tcp");
  if (!nameOption.empty() && toIdentifier(nameOption) != nameOption)
    return finish(BadUsage, "--name is '" + nameOption + "', expected a C identifier");

  topology::ReadResult read = topology::readTopologyFile(topologyFile);
  for (const topology::Diagnostic &d : read.diagnostics)
    if (d.severity != topology::Severity::note)
      llvm::errs() << topology::toString(d, topologyFile) << "\n";
  if (!read.topology)
    return finish(BadInput, "the topology " + topologyFile + " cannot be used");

  DialectRegistry registry;
  registerDriverDialects(registry);
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context, llvm::errs());
  Compilation graph(context, {&*read.topology, topology::Rate::payload, transport == "shm"});
  if (failed(graph.parse(graphFile, functionOption)))
    return finish(BadInput, "the graph " + graphFile + " cannot be used");
  std::string error;
  std::vector<SmallVector<int64_t>> sizes = readSizeOptions(sizeOptions, graph.openSizes(), error);
  if (!error.empty())
    return finish(BadUsage, error);
  std::unique_ptr<Compilation> made;
  if (!graph.openSizes().empty()) {
    if (sizes.size() != 1)
      return finish(BadUsage, "files are made for one size: the graph is for several, name one of "
                              "each by --size=NAME=VALUE");
    made = graph.at(sizes.front());
    if (!made)
      return finish(BadInput, "the graph " + graphFile + " cannot be made for these sizes");
  }
  Compilation &compilation = made ? *made : graph;
  if (failed(compilation.choose()) || failed(compilation.lower()))
    return finish(BadInput, "the graph " + graphFile + " cannot be compiled");
  compilation.prove();
  if (!compilation.proof())
    return finish(NotProved, "the schedule is not proved: " + compilation.proof().str());

  CppOptions options;
  options.directory = directory;
  options.name = nameOption.empty() ? toIdentifier(compilation.function()) : nameOption;
  options.cpu = cpu == "native" ? std::string() : cpu.getValue();
  if (failed(writeCpp(compilation, options)))
    return finish(BadInput, "no code can be written to " + directory);
  return finish(Good, "proved; wrote " + options.name + ".h, .cpp, .o and .json to " + directory);
}

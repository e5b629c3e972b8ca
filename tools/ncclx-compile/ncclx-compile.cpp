//===- ncclx-compile.cpp - A graph to C++, a header and an object ------------------------===//
#include "CppCarrier.h"
#include "CudaCarrier.h"
#include "GpuForm.h"
#include "SizeOption.h"

#include "ncclx/Cpp/CppSource.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/Topology/IO.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
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
cl::opt<std::string> ruleFile("rules", cl::value_desc("FILE"),
                              cl::desc("Rule file (CSV) that is asked for algorithms before any "
                                       "prediction"),
                              cl::cat(category));
cl::opt<int64_t> scratchLimit("scratch-limit", cl::value_desc("BYTES"), cl::init(-1),
                              cl::desc("Scratch memory that collectives may take on a rank (no "
                                       "limit)"),
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

cl::opt<std::string> backend("backend", cl::init("host"), cl::value_desc("host|cuda"),
                             cl::desc("What will run the schedule: processes, or the GPUs of one "
                                      "machine (default host)"),
                             cl::cat(category));
cl::opt<std::string>
    architecture("arch", cl::value_desc("90[,100...]|source"),
                 cl::desc("Compute capabilities that kernels are compiled for, 90 for 9.0; or "
                          "source: by whom the plan is prepared (--backend=cuda)"),
                 cl::cat(category));
cl::opt<std::string> cudaKernel("cuda-kernel", cl::value_desc("BLOCKS|auto|model"),
                                cl::desc("The schedule as one kernel, as for ncclx-run"),
                                cl::cat(category));
cl::opt<std::string> cudaMachine("cuda-machine", cl::value_desc("FILE"),
                                 cl::desc("Machine file for --cuda-kernel=model"),
                                 cl::cat(category));
cl::opt<std::string> cudaNvrtc("cuda-nvrtc", cl::value_desc("FILE"),
                               cl::desc("Library with NVRTC (default: that of CUDA 13 or 12)"),
                               cl::cat(category));
cl::opt<std::string> cudaHeaders("cuda-headers", cl::value_desc("DIR"),
                                 cl::desc("CUDA's headers (default /usr/local/cuda/include)"),
                                 cl::cat(category));
cl::opt<std::string> ptxas("ptxas", cl::value_desc("PROGRAM"),
                           cl::desc("Assembler of the graph's computation (default: that on PATH, "
                                    "or of /usr/local/cuda)"),
                           cl::cat(category));

cl::opt<std::string>
    gemmOption("gemm", cl::init("cublaslt"), cl::value_desc("cublaslt|generated"),
               cl::desc("On GPUs: products of matrices by cuBLASLt, or as kernels of the bits of "
                        "the host (default cublaslt)"),
               cl::cat(category));

/// Exit codes, as those of ncclx-run.
enum Exit { Good = 0, BadUsage = 1, BadInput = 2, NotProved = 3 };

int finish(Exit code, const llvm::Twine &text) {
  llvm::outs() << (code == Good ? "ok: " : "error: ") << text << "\n";
  llvm::outs().flush();
  return code;
}

/// --arch; false if it is none.
bool readArchitectures(std::vector<int32_t> &found) {
  if (architecture == "source")
    return true;
  SmallVector<StringRef> words;
  StringRef(architecture).split(words, ',');
  for (StringRef word : words) {
    int32_t number;
    if (word.getAsInteger(10, number) || number < 10 || number > 999)
      return false;
    if (!llvm::is_contained(found, number))
      found.push_back(number);
  }
  return true;
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
          "  ncclx-compile graph.mlir --topology=h200x8.xml -o build/schedule\n"
          "  ncclx-compile graph.mlir --topology=h200x8.xml -o build/schedule --backend=cuda "
          "--arch=90\n\n"
          "Exit codes: 0 ok; 1 bad usage; 2 the graph or topology cannot be read or compiled; 3 "
          "the\n"
          "schedule is not proved.\n",
          &llvm::errs()))
    return finish(BadUsage, "the command line is not understood (see ncclx-compile --help)");
  if (transport != "shm" && transport != "tcp")
    return finish(BadUsage, "--transport is '" + transport + "', expected shm or tcp");
  if (!nameOption.empty() && toIdentifier(nameOption) != nameOption)
    return finish(BadUsage, "--name is '" + nameOption + "', expected a C identifier");

  bool cuda = backend == "cuda";
  if (!cuda && backend != "host")
    return finish(BadUsage, "--backend is '" + backend + "', expected host or cuda");
  CudaFileOptions gpu;
  if (cuda && !readArchitectures(gpu.architectures))
    return finish(BadUsage, "--arch is '" + architecture +
                                "', expected compute capabilities as 90,100, or source");
  if (cuda ? transport != "shm" || cpu != "native"
           : !architecture.empty() || !cudaKernel.empty() || !cudaNvrtc.empty() ||
                 !cudaHeaders.empty() || !ptxas.empty())
    return finish(BadUsage, "--arch, --cuda-kernel, --cuda-nvrtc, --cuda-headers and --ptxas are "
                            "for --backend=cuda; --transport and --cpu are for --backend=host");
  if (gemmOption != "cublaslt" && (gemmOption != "generated" || !cuda))
    return finish(BadUsage, "--gemm is '" + gemmOption +
                                "', expected cublaslt or generated, with --backend=cuda");
  int64_t blocks = 0;
  bool byModel = cudaKernel == "model";
  if (byModel != !cudaMachine.empty())
    return finish(BadUsage, "--cuda-kernel=model is for --backend=cuda and takes --cuda-machine");
  if (!cudaKernel.empty() && !byModel) {
    if (cudaKernel != "auto" && (StringRef(cudaKernel).getAsInteger(10, blocks) || blocks < 1))
      return finish(BadUsage, "--cuda-kernel is '" + cudaKernel +
                                  "', expected a number of blocks, auto or model");
    gpu.kernelBlocks = blocks;
  }

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
  SelectionTarget target{&*read.topology, topology::Rate::payload, transport == "shm"};
  target.scratchLimit = scratchLimit;
  std::optional<RuleTable> rules;
  if (!ruleFile.empty()) {
    std::string wrong;
    if (!(rules = RuleTable::readFile(ruleFile, wrong))) {
      llvm::errs() << wrong;
      return finish(BadInput, "the rule file " + ruleFile + " cannot be used");
    }
    target.rules = &*rules;
  }
  Compilation graph(context, target);
  if (gpu.kernelBlocks)
    graph.asOneKernel(*gpu.kernelBlocks);
  else if (cuda && gemmOption == "cublaslt")
    graph.groupProducts();
  if (failed(graph.parse(graphFile, functionOption)))
    return finish(BadInput, "the graph " + graphFile + " cannot be used");
  if (cuda)
    graph.graph()->setAttr(kDeviceSizesAttrName, UnitAttr::get(&context));
  if (byModel) {
    overlap::CostModelResult machine = overlap::readCostModelFile(cudaMachine);
    if (!machine.model)
      return finish(BadUsage, machine.error);
    if (!graph.openSizes().empty())
      return finish(BadUsage, "--cuda-kernel=model takes graphs of known sizes");
    FailureOr<GpuForm> form = fasterForm(graph, *machine.model);
    if (failed(form))
      return finish(BadInput, "no form can be chosen for the graph " + graphFile);
    if (*form == GpuForm::Kernel) {
      gpu.kernelBlocks = 0;
      graph.asOneKernel(0);
    }
  }
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

  std::string name = nameOption.empty() ? toIdentifier(compilation.function()) : nameOption;
  if (cuda) {
    gpu.directory = directory, gpu.name = name;
    gpu.nvrtc = cudaNvrtc, gpu.headers = cudaHeaders, gpu.ptxas = ptxas;
    CudaProgram program;
    program.cublasLt = gemmOption == "cublaslt";
    std::vector<StringRef> files;
    if (failed(writeCuda(compilation, gpu, program, files)))
      return finish(BadInput, "no code can be written to " + directory);
    return finish(Good, "proved; wrote " + name + llvm::join(files, ", ") + " to " + directory);
  }
  CppOptions options;
  options.directory = directory;
  options.name = name;
  options.cpu = cpu == "native" ? std::string() : cpu.getValue();
  if (failed(writeCpp(compilation, options)))
    return finish(BadInput, "no code can be written to " + directory);
  return finish(Good, "proved; wrote " + options.name + ".h, .cpp, .o and .json to " + directory);
}

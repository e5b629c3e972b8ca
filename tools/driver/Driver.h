//===- Driver.h - From a graph file to code that a rank runs ---------------*- C++ -*-===//
//
// What ncclx-run does between reading its input and starting processes; one place for every tool
// that compiles.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TOOLS_DRIVER_DRIVER_H
#define NCCLX_TOOLS_DRIVER_DRIVER_H

#include "ncclx/CTran/CTran.h"
#include "ncclx/Host/HostPlan.h"
#include "ncclx/Machine/Machine.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/NCCLX/Sizes.h"
#include "ncclx/Reference/JitModule.h"
#include "ncclx/Selection/Selection.h"
#include "ncclxrt/abi.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <string>
#include <vector>

namespace mlir::ncclx {

/// Everything the driver's stages read and write.
void registerDriverDialects(DialectRegistry &registry);

/// A collective of the graph, in the order of the text.
struct GraphCollective {
  std::string name; ///< as in the schedule: "all_gather.0"
  std::string kind, algorithm;
  int64_t bytes = 0;           ///< the larger of a rank's two buffers
  std::vector<unsigned> group; ///< ranks of one group: the one of rank 0
  unsigned root = 0;           ///< the root's place in the group, where there is one
  double aloneSeconds = 0;     ///< simulated alone on the target
};

/// One straight way through the graph, as a schedule: the graph itself, where nothing communicates
/// under a branch.
struct GraphBranch {
  std::string name; ///< of its function and program
  ctran::ProgramOp program;
  std::unique_ptr<ctran::machine::Schedule> machine;
};

/// A graph on its way to code. Stages are called in order; each reports its errors as diagnostics.
class Compilation {
public:
  /// Packs trees into the target's topology itself, where the target brings no packer.
  Compilation(MLIRContext &context, SelectionTarget target);

  /// The program is to be one kernel of a GPU of so many blocks, or 0 for as many as suit;
  /// collectives that name no algorithm have one for it.
  void asOneKernel(int64_t blocks) {
    oneKernel = true;
    kernelBlocks = blocks;
  }
  /// Products of matrices are to be kernels with what prepares and finishes them alone.
  void groupProducts() { grouped = true; }
  /// Parses the file and finds what is to be compiled: the function or written `ctran.program` that
  /// is named; or the only function with collectives; or, where there is none, the only program.
  LogicalResult parse(StringRef path, StringRef function);
  /// The same of a text in memory.
  LogicalResult parseText(StringRef text, StringRef function);
  /// The sizes that the graph leaves open. Where there are some, it is compiled for given ones
  /// alone:
  ArrayRef<OpenSize> openSizes() const { return open; }
  /// the same graph made for a value of each, parsed as it were. Null, and diagnostics, where a
  /// value is out of its range or the graph is wrong at these sizes.
  std::unique_ptr<Compilation> at(ArrayRef<int64_t> sizes);
  /// Checks legality, fixes algorithms and orders, splits branches, and times each collective
  /// alone.
  LogicalResult choose();
  /// Bufferizes a copy and turns it into programs, one a branch; reads them into the machine.
  LogicalResult lower();
  /// Proves each program; the result is of all, or of the first that is not proved.
  void prove(const ctran::machine::ProofOptions &options = {});
  /// Lowers the program and its kernels for the host: what both carriers are made of.
  LogicalResult lowerForHost();
  /// Lowers the program for streams of a GPU; its kernels stay functions on memrefs.
  LogicalResult lowerForCuda();
  /// The in-process carrier: lowers for the host and compiles in this process.
  LogicalResult generate();
  /// Compiles the lowered program in this process; it calls `symbols`.
  LogicalResult compileProgram(ArrayRef<JitSymbol> symbols);

  /// Was the schedule written, not compiled? Then the graph is what it claims to do, inputs must
  /// have sums that no order changes, and a window larger than its value holds it as the own shard.
  bool isProgram() const { return written; }
  /// The graph on tensors, algorithms and orders fixed: what the reference interpreter runs.
  ModuleOp graph() { return *graphModule; }
  StringRef function() const { return functionName; }
  int64_t ranks() const { return numRanks; }
  const std::string &topologyName() const { return target.topology->name; }
  int64_t multiprocessors() const { return multiprocessorsOf(*target.topology); }
  /// Those of all branches, one branch behind the other; then named "branch/name".
  const std::vector<GraphCollective> &collectives() const { return graphCollectives; }
  /// The place of `rank` in its group of a written program's collective.
  int64_t memberOf(int64_t rank);
  ModuleOp scheduleModule() { return *schedule; }
  const std::vector<GraphBranch> &branches() const { return graphBranches; }
  /// Of a graph without branches.
  const ctran::machine::Schedule &machine() const { return *graphBranches.front().machine; }
  const ctran::machine::ProofResult &proof() const { return proofResult; }
  const HostPlan &plan() const { return hostPlan; }
  HostPlan &plan() { return hostPlan; }
  ModuleOp hostModule() { return *host; }
  ModuleOp kernelModule() { return *kernels; }
  ncclxrtProgram_t entry() const { return program; }

  /// A plan that knows the name and the sizes alone: prepared, it tells all ranks which size is out
  /// of its range.
  HostPlan refusedPlan(ArrayRef<int64_t> sizes) const;

private:
  SmallVector<HostPlan::Size> sizesOf(ArrayRef<int64_t> values) const;
  LogicalResult find(StringRef function);
  LogicalResult lowerFor(HostTarget of);
  LogicalResult takeProgram(ctran::ProgramOp program);
  LogicalResult describeCollectives(GraphBranch &branch, llvm::StringMap<double> &times);
  /// The function or kernel that chooses a branch; null where there is one way only.
  func::FuncOp chooser();
  void describeProgram();
  SmallVector<int64_t> groupOf(int64_t rank);

  MLIRContext &context;
  SelectionTarget target;
  std::unique_ptr<topology::TreePacker> trees;
  OwningOpRef<ModuleOp> graphModule, schedule, host, kernels;
  std::string functionName;
  int64_t numRanks = 0;
  bool written = false, oneKernel = false, grouped = false;
  int64_t kernelBlocks = 0;
  std::vector<GraphCollective> graphCollectives;
  std::vector<GraphBranch> graphBranches;
  ctran::machine::ProofResult proofResult;
  HostPlan hostPlan;
  std::vector<OpenSize> open;
  SmallVector<HostPlan::Size> sizes; ///< of which this one was made
  std::unique_ptr<JitModule> kernelCode, hostCode;
  ncclxrtProgram_t program = nullptr;
};

/// The plan's tables as the runtime takes them. Points into `plan`, which must outlive it.
class PlanDescription {
public:
  PlanDescription(const HostPlan &plan, size_t traceCapacity);
  const ncclxrtPlanDesc_t *get() const { return &description; }

private:
  std::vector<ncclxrtWindowDesc_t> windows;
  std::vector<ncclxrtSlotsDesc_t> slots;
  std::vector<ncclxrtLaneDesc_t> lanes;
  std::vector<ncclxrtOpDesc_t> ops;
  std::vector<ncclxrtSizeDesc_t> sizes;
  ncclxrtPlanDesc_t description = NCCLXRT_PLAN_DESC_INIT;
};

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_DRIVER_DRIVER_H

//===- Driver.cpp - From a graph file to code that a rank runs ---------------------------===//
#include "Driver.h"

#include "ProgramMeaning.h"

#include "ncclx/Analysis/TopologyCost.h"
#include "ncclx/CTran/Reader.h"
#include "ncclx/Conversion/Passes.h"
#include "ncclx/Cpp/CppSource.h"
#include "ncclx/Jit/ScheduleJit.h"
#include "ncclx/NCCLX/Branches.h"
#include "ncclx/Reference/HostCompute.h"
#include "ncclx/Reference/Interpreter.h"
#include "ncclx/Support/ReadFile.h"
#include "ncclx/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::ncclx;

void mlir::ncclx::registerDriverDialects(DialectRegistry &registry) {
  registerInterpreterDialects(registry);
  registerHostComputeDialects(registry);
  registerCppDialects(registry);
  registry.insert<NCCLXDialect, ctran::CTranDialect>();
}

static bool communicates(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return getNamedGroups(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

Compilation::Compilation(MLIRContext &context, SelectionTarget machine)
    : context(context), target(machine) {
  target.repeatable = true;
  if (target.trees)
    return;
  trees = std::make_unique<topology::TreePacker>(*target.topology, target.rate);
  target.trees = trees.get();
}

LogicalResult Compilation::parse(StringRef path, StringRef wanted) {
  std::string problem;
  std::optional<std::string> text = readFile(path, problem);
  if (!text)
    return emitError(FileLineColLoc::get(&context, path, 0, 0)) << problem;
  graphModule = parseSourceString<ModuleOp>(*text, &context, path);
  return find(wanted);
}

LogicalResult Compilation::parseText(StringRef text, StringRef wanted) {
  graphModule = parseSourceString<ModuleOp>(text, &context);
  return find(wanted);
}

/// Says that `module` has no graph of the name `wanted`, or of no name none or several.
static LogicalResult refuseModule(ModuleOp module, StringRef wanted) {
  SmallVector<std::pair<Location, StringRef>> graphs;
  for (Operation &op : *module.getBody()) {
    if (auto function = dyn_cast<func::FuncOp>(op); function && communicates(function))
      graphs.push_back({op.getLoc(), function.getSymName()});
    if (auto program = dyn_cast<ctran::ProgramOp>(op))
      graphs.push_back({op.getLoc(), program.getSymName()});
  }
  // A module that the text does not spell out has no place; a file has a beginning.
  Location loc = module.getLoc();
  if (auto file = dyn_cast<FileLineColLoc>(loc); file && file.getLine() == 0)
    loc = FileLineColLoc::get(file.getFilename(), 1, 1);
  InFlightDiagnostic error = emitError(loc);
  if (!wanted.empty())
    error << "there is no function or ctran.program named '" << wanted << "'";
  else if (graphs.empty())
    error << "there is no graph: expected a func.func that holds ncclx collectives, or a "
             "ctran.program, and found neither";
  else
    error << "there are " << graphs.size() << " graphs, expected one: choose by --function=NAME";
  for (auto [place, name] : graphs)
    error.attachNote(place) << "'" << name << "' is a graph";
  return error;
}

LogicalResult Compilation::find(StringRef wanted) {
  if (!graphModule)
    return failure();
  SmallVector<func::FuncOp> candidates;
  for (auto function : graphModule->getOps<func::FuncOp>())
    if (wanted.empty() ? communicates(function) : function.getSymName() == wanted)
      candidates.push_back(function);
  SmallVector<ctran::ProgramOp> programs;
  for (auto program : graphModule->getOps<ctran::ProgramOp>())
    if (wanted.empty() || program.getSymName() == wanted)
      programs.push_back(program);
  if (candidates.empty() && programs.size() == 1)
    return takeProgram(programs.front());
  if (candidates.size() != 1)
    return refuseModule(*graphModule, wanted);
  func::FuncOp function = candidates.front();
  functionName = function.getSymName().str();
  if (!communicates(function))
    return function.emitOpError("has no collectives; there is nothing to schedule");
  function.walk([&](Operation *op) {
    if (std::optional<NamedGroups> named = getNamedGroups(op))
      numRanks = named->grid.getNumRanks();
  });
  if (numRanks > int64_t(target.topology->numRanks()))
    return function.emitOpError("runs on ")
           << numRanks << " ranks, but the topology '" << target.topology->name << "' has "
           << target.topology->numRanks();
  llvm::append_range(open, getOpenSizes(function));
  return success();
}

SmallVector<HostPlan::Size> Compilation::sizesOf(ArrayRef<int64_t> values) const {
  SmallVector<HostPlan::Size> sizes;
  for (auto [size, value] : llvm::zip_equal(open, values))
    sizes.push_back({size.name, size.place(), size.min, size.max, size.multiple, value});
  return sizes;
}

std::unique_ptr<Compilation> Compilation::at(ArrayRef<int64_t> values) {
  SelectionTarget machine = target;
  machine.trees = nullptr; // it may live longer than this one
  auto made = std::make_unique<Compilation>(context, machine);
  made->graphModule = graphModule->clone();
  made->functionName = functionName;
  made->numRanks = numRanks;
  made->oneKernel = oneKernel, made->grouped = grouped;
  made->kernelBlocks = kernelBlocks;
  made->sizes = sizesOf(values);
  auto function = made->graphModule->lookupSymbol<func::FuncOp>(functionName);
  // Others that are for a range are graphs of their own: nobody calls them.
  for (auto other : llvm::make_early_inc_range(made->graphModule->getOps<func::FuncOp>()))
    if (other != function && other->hasAttr(kSizesAttrName))
      other.erase();
  if (failed(specializeSizes(function, values)))
    return nullptr;
  return made;
}

HostPlan Compilation::refusedPlan(ArrayRef<int64_t> values) const {
  HostPlan plan;
  plan.name = functionName;
  plan.sizes = sizesOf(values);
  return plan;
}

LogicalResult Compilation::takeProgram(ctran::ProgramOp program) {
  written = true;
  graphBranches.push_back({program.getSymName().str(), program, nullptr});
  functionName = program.getSymName().str();
  numRanks = program.getNumRanks();
  if (numRanks > int64_t(target.topology->numRanks()))
    return program.emitOpError("runs on ")
           << numRanks << " ranks, but the topology '" << target.topology->name << "' has "
           << target.topology->numRanks();
  FailureOr<OwningOpRef<ModuleOp>> meaning = meaningOf(program);
  if (failed(meaning))
    return failure();
  schedule = std::move(graphModule);
  graphModule = std::move(*meaning);
  return success();
}

/// The group that a written program's collective puts `rank` in, in member order.
SmallVector<int64_t> Compilation::groupOf(int64_t rank) {
  auto claim = cast<ctran::CollectiveAttr>(graphBranches.front().program.getCollectives()[0]);
  SmallVector<Attribute> axes(claim.getAxes().begin(), claim.getAxes().end());
  auto grid = *graphModule->getOps<GridOp>().begin();
  return grid.getGroup(ArrayAttr::get(&context, axes), rank);
}

/// The one collective that a written program claims, for the report; its time is the program's.
void Compilation::describeProgram() {
  auto claim = cast<ctran::CollectiveAttr>(graphBranches.front().program.getCollectives()[0]);
  GraphCollective collective;
  collective.name = claim.getName().str();
  collective.kind = claim.getKind().str();
  collective.algorithm = claim.getAlgorithm().str();
  collective.bytes = claim.getBytes();
  for (int64_t rank : groupOf(0))
    collective.group.push_back(rank);
  TopologyCost cost(*target.topology, target.rate);
  collective.aloneSeconds = ctran::machine::simulate(machine(), cost).makespan;
  graphCollectives.push_back(collective);
}

int64_t Compilation::memberOf(int64_t rank) {
  SmallVector<int64_t> group = groupOf(rank);
  return llvm::find(group, rank) - group.begin();
}

/// What carries a collective is no part of what it means.
static void dropSchedules(ModuleOp graph) {
  graph.walk([](CollectiveOpInterface op) { op->removeAttr(NCCLXDialect::getScheduleAttrName()); });
  for (auto program : llvm::make_early_inc_range(graph.getOps<ctran::ProgramOp>()))
    program.erase();
}

LogicalResult Compilation::choose() {
  if (written)
    return success();
  if (oneKernel)
    graphModule->walk([](CollectiveOpInterface op) {
      if (!op.getAlgorithm() && !getSchedule(op))
        op.setAlgorithm(algorithmInKernel(op));
    });
  PassManager pm(&context);
  pm.addPass(createVerifyLegality());
  pm.addPass(createAnswerGets());
  if (failed(pm.run(*graphModule)) || failed(chooseAlgorithms(*graphModule, target)))
    return failure();
  // What is scheduled are straight lines; the reference keeps loops and branches.
  schedule = graphModule->clone();
  dropSchedules(*graphModule);
  PassManager straighten(&context);
  straighten.addPass(createUnrollCommunication());
  straighten.addPass(createSplitBranches());
  if (failed(straighten.run(*schedule)))
    return failure();
  func::FuncOp chooses = chooser();
  if (chooses && oneKernel)
    return chooses.emitError(
        "has collectives under branches or in stages, which are not one kernel of a GPU");
  if (chooses)
    for (auto name :
         chooses->getAttrOfType<ArrayAttr>(branchesAttrName).getAsRange<SymbolRefAttr>())
      graphBranches.push_back({name.getLeafReference().str(), nullptr, nullptr});
  else
    graphBranches.push_back({functionName, nullptr, nullptr});
  llvm::StringMap<double> times;
  for (GraphBranch &branch : graphBranches)
    if (failed(describeCollectives(branch, times)))
      return failure();
  return success();
}

func::FuncOp Compilation::chooser() {
  auto found = schedule->lookupSymbol<func::FuncOp>(getChooserName(functionName));
  return found && found->hasAttr(branchesAttrName) ? found : func::FuncOp();
}

LogicalResult Compilation::describeCollectives(GraphBranch &branch,
                                               llvm::StringMap<double> &times) {
  auto function = schedule->lookupSymbol<func::FuncOp>(branch.name);
  std::string prefix = branch.name == functionName ? "" : branch.name + "/";
  llvm::StringMap<int64_t> numbers;
  WalkResult walked = function.walk([&](CollectiveOpInterface op) {
    GraphCollective collective;
    collective.kind = op->getName().stripDialect().str();
    collective.name = prefix + collective.kind + "." + std::to_string(numbers[collective.kind]++);
    ctran::ProgramOp written = getSchedule(op);
    collective.algorithm =
        (written ? written.getSymName() : stringifyAlgorithm(*op.getAlgorithm())).str();
    collective.bytes = op.getPayloadBytes();
    for (int64_t rank : lookupGrid(op).getGroup(op.getAxes(), 0, op.getGroupsAttr()))
      collective.group.push_back(rank);
    collective.root = getRoot(op).value_or(0);
    auto [it, isNew] = times.try_emplace(timingKey(op));
    if (isNew) {
      FailureOr<AloneTime> time = timeAlone(op, op.getAlgorithm(), target);
      if (failed(time))
        return WalkResult::interrupt();
      if (!time->cannot.empty()) {
        op->emitOpError("has a schedule that the target cannot carry: ") << time->cannot;
        return WalkResult::interrupt();
      }
      it->second = time->seconds;
    }
    collective.aloneSeconds = it->second;
    graphCollectives.push_back(collective);
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult Compilation::lower() {
  if (!written) {
    PassManager pm(&context);
    buildBufferizePipeline(pm);
    if (grouped)
      pm.addPass(createGroupProducts());
    pm.addPass(createLowering(target, oneKernel, kernelBlocks));
    pm.addPass(createCSEPass());
    pm.addPass(createLoopInvariantCodeMotionPass());
    if (failed(pm.run(*schedule)))
      return failure();
    for (GraphBranch &branch : graphBranches)
      branch.program = schedule->lookupSymbol<ctran::ProgramOp>(branch.name);
    if (func::FuncOp kernel = chooser())
      kernel.setPrivate(); // its result is to become an argument, as any kernel's
  }
  for (GraphBranch &branch : graphBranches) {
    FailureOr<std::unique_ptr<ctran::machine::Schedule>> read = ctran::readSchedule(branch.program);
    if (failed(read))
      return failure();
    branch.machine = std::move(*read);
  }
  if (written)
    describeProgram();
  return success();
}

void Compilation::prove(const ctran::machine::ProofOptions &options) {
  for (const GraphBranch &branch : graphBranches) {
    proofResult = ctran::machine::prove(*branch.machine, options);
    if (!proofResult)
      return;
  }
}

LogicalResult Compilation::lowerFor(HostTarget of) {
  host = ModuleOp::create(schedule->getLoc());
  func::FuncOp chooses = written ? func::FuncOp() : chooser();
  if (chooses && of == HostTarget::Cuda)
    return chooses.emitError("collectives under branches and in stages are not lowered for GPUs");
  SmallVector<ctran::ProgramOp> programs;
  for (const GraphBranch &branch : graphBranches)
    programs.push_back(branch.program);
  FailureOr<HostPlan> plan = chooses ? lowerToHost(functionName, chooses, programs, *host)
                                     : lowerToHost(programs.front(), *host, of);
  if (failed(plan))
    return failure();
  hostPlan = std::move(*plan);
  hostPlan.sizes = sizes;

  // Kernels: every function but the program, on memrefs; results become arguments behind the
  // others.
  kernels = schedule->clone();
  for (auto program : llvm::make_early_inc_range(kernels->getOps<ctran::ProgramOp>()))
    program.erase();
  for (auto grid : llvm::make_early_inc_range(kernels->getOps<GridOp>()))
    grid.erase();
  PassManager pm(&context);
  pm.addPass(bufferization::createBufferResultsToOutParamsPass());
  if (failed(pm.run(*kernels)))
    return failure();
  for (auto function : kernels->getOps<func::FuncOp>())
    function.setPublic();
  return success();
}

LogicalResult Compilation::lowerForCuda() { return lowerFor(HostTarget::Cuda); }

LogicalResult Compilation::lowerForHost() {
  if (failed(lowerFor(HostTarget::Host)))
    return failure();
  // What a kernel allocates for itself ends with it.
  PassManager free(&context);
  bufferization::buildBufferDeallocationPipeline(free);
  if (failed(free.run(*kernels)))
    return failure();
  return lowerComputeToLLVM(*kernels);
}

static LogicalResult cannotCompile(ModuleOp module, llvm::Error error) {
  return module.emitError("cannot compile for this process: ") << llvm::toString(std::move(error));
}

LogicalResult Compilation::generate() {
  if (failed(lowerForHost()))
    return failure();
  auto compiled = JitModule::create(*kernels);
  if (!compiled)
    return cannotCompile(*kernels, compiled.takeError());
  kernelCode = std::move(*compiled);

  std::vector<JitSymbol> symbols;
#define NCCLX_SYMBOL(name) symbols.push_back({#name, reinterpret_cast<void *>(&name)})
  NCCLX_SYMBOL(ncclxrt_rank);
  NCCLX_SYMBOL(ncclxrt_run);
  NCCLX_SYMBOL(ncclxrt_address);
  NCCLX_SYMBOL(ncclxrt_copy);
  NCCLX_SYMBOL(ncclxrt_reduce);
  NCCLX_SYMBOL(ncclxrt_operand);
  NCCLX_SYMBOL(ncclxrt_signal);
  NCCLX_SYMBOL(ncclxrt_wait);
  NCCLX_SYMBOL(ncclxrt_count);
  NCCLX_SYMBOL(ncclxrt_size);
  NCCLX_SYMBOL(ncclxrt_choose);
  NCCLX_SYMBOL(ncclxrt_branch);
  NCCLX_SYMBOL(ncclxrt_agree);
  NCCLX_SYMBOL(ncclxrt_flush);
  NCCLX_SYMBOL(ncclxrt_complete);
  NCCLX_SYMBOL(ncclxrt_compute_begin);
  NCCLX_SYMBOL(ncclxrt_compute_end);
#undef NCCLX_SYMBOL
  for (const std::string &kernel : hostPlan.kernels) {
    llvm::Expected<void *> address = kernelCode->lookup(kernel);
    if (!address)
      return cannotCompile(*kernels, address.takeError());
    symbols.push_back({kernel, *address});
  }
  return compileProgram(symbols);
}

LogicalResult Compilation::compileProgram(ArrayRef<JitSymbol> symbols) {
  // Host code is calls and little between them: where there is much of it, as in an imported
  // program, optimizing takes longer than it will ever save.
  NativeOptions native;
  native.optLevel = hostPlan.ops.size() > 2000 ? 0 : 3;
  auto code = compileSchedule(*host, symbols, native);
  if (!code)
    return cannotCompile(*host, code.takeError());
  hostCode = std::move(*code);
  auto entryPoint = hostCode->lookupAs<int32_t(int64_t)>(hostPlan.name);
  if (!entryPoint)
    return cannotCompile(*host, entryPoint.takeError());
  program = *entryPoint;
  return success();
}

//===--- tables ------------------------------------------------------------------------------===//

static int32_t roleOf(ctran::WindowRole role) {
  switch (role) {
  case ctran::WindowRole::Input:
  case ctran::WindowRole::InOut:
    return ncclxrtRoleInput;
  case ctran::WindowRole::Output:
    return ncclxrtRoleOutput;
  case ctran::WindowRole::Scratch:
    return ncclxrtRoleScratch;
  }
  return ncclxrtRoleScratch;
}

static int32_t laneKindOf(ctran::LaneKind kind) {
  switch (kind) {
  case ctran::LaneKind::CE:
    return ncclxrtLaneCe;
  case ctran::LaneKind::Compute:
    return ncclxrtLaneCompute;
  case ctran::LaneKind::SM:
    return ncclxrtLaneSm;
  case ctran::LaneKind::Host:
    return ncclxrtLaneHost;
  case ctran::LaneKind::NIC:
    return ncclxrtLaneNic;
  }
  return ncclxrtLaneHost;
}

PlanDescription::PlanDescription(const HostPlan &plan, size_t traceCapacity) {
  for (const HostPlan::Window &w : plan.windows)
    windows.push_back({w.name.c_str(), w.bytes, w.generations, roleOf(w.role)});
  for (const HostPlan::Slots &s : plan.slots)
    slots.push_back({s.name.c_str(), s.count, s.generations, int32_t(s.writers)});
  for (const HostPlan::Lane &l : plan.lanes)
    lanes.push_back({l.name.c_str(), laneKindOf(l.kind), l.index});
  for (const HostPlan::Op &o : plan.ops)
    ops.push_back({o.name.c_str(), o.location.empty() ? nullptr : o.location.c_str()});
  for (const HostPlan::Size &s : plan.sizes)
    sizes.push_back({s.name.c_str(), s.place.c_str(), s.min, s.max, s.multiple, s.value});
  description.name = plan.name.c_str();
  description.hash = plan.hash;
  description.windows = windows.data();
  description.num_windows = windows.size();
  description.slots = slots.data();
  description.num_slots = slots.size();
  description.lanes = lanes.data();
  description.num_lanes = lanes.size();
  description.ops = ops.data();
  description.num_ops = ops.size();
  description.trace_capacity = traceCapacity;
  description.sizes = sizes.data();
  description.num_sizes = sizes.size();
}

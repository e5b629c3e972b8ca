//===- NCCLXToCTran.cpp - From a bufferized graph to a program --------------------------===//
#include "Converter.h"
#include "Kernels.h"

#include "ncclx/Conversion/Passes.h"
#include "ncclx/NCCLX/AssumeUniform.h"
#include "ncclx/NCCLX/Branches.h"
#include "ncclx/NCCLX/Topology.h"
#include "ncclx/Topology/IO.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_CONVERTNCCLXTOCTRAN
#include "ncclx/Conversion/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// Does some collective follow the tiers of the machine?
bool isHierarchical(func::FuncOp function) {
  return function
      .walk([](CollectiveOpInterface op) {
        return op.getAlgorithm() == Algorithm::Hierarchical ? WalkResult::interrupt()
                                                            : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

LogicalResult Converter::check() {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("has several blocks; a schedule is made of one");
  Operation *nested = nullptr;
  function.walk([&](Operation *op) {
    if ((isCommunication(op) || isa<FinishOp, FinishChunkOp>(op)) && !nested &&
        op->getParentOp() != function)
      nested = op;
  });
  if (nested)
    return nested->emitOpError("stands under ")
           << nested->getParentOp()->getName()
           << "; loops with constant bounds are unrolled and other control flow split into stages "
              "or branches before this pass";
  for (AssumeUniformOp op : function.getOps<AssumeUniformOp>())
    return op.emitOpError("is checked between stages; run ncclx-split-branches before this pass");
  for (Operation &op : function.getBody().front()) {
    auto isTensor = [](Type type) { return isa<TensorType>(type); };
    if (isCommunication(&op) && (llvm::any_of(op.getOperandTypes(), isTensor) ||
                                 llvm::any_of(op.getResultTypes(), isTensor)))
      return op.emitOpError("works on tensors; run ncclx-bufferize first");
  }
  if (!grid) {
    FailureOr<ProgramGrid> found = ProgramGrid::of(function);
    if (failed(found))
      return failure();
    grid = std::move(*found);
  }
  if (trees && (cutByTiers || isHierarchical(function)))
    grid->cutBy(trees->tiers());
  // Kernels read globals behind the back of windows, which is in order for constants alone.
  WalkResult globals = function.walk([](memref::GetGlobalOp op) {
    auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(op, op.getNameAttr());
    if (!global || global.getConstant())
      return WalkResult::advance();
    op.emitOpError("uses global '")
        << op.getName() << "', which is not constant; a schedule's memory is its arguments, "
        << "results and allocations";
    return WalkResult::interrupt();
  });
  return failure(globals.wasInterrupted());
}

/// Bytes of scratch memory that a rank has for `collective`.
static int64_t scratchOf(ctran::ProgramOp program, ctran::CollectiveAttr collective) {
  int64_t bytes = 0;
  for (auto window : program.getOps<ctran::WindowOp>()) {
    auto type = cast<MemRefType>(window.getType());
    if (window.getRole() == ctran::WindowRole::Scratch &&
        window.getSym().starts_with((collective.getName() + ".").str()))
      bytes += type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8) *
               window.getGenerations();
  }
  return bytes;
}

int64_t Converter::scratchTaken() {
  int64_t bytes = 0;
  for (Attribute collective : collectives)
    bytes += scratchOf(program, cast<ctran::CollectiveAttr>(collective));
  return bytes;
}

LogicalResult Converter::checkScratch() {
  int64_t bytes = scratchLimit < 0 || measured ? 0 : scratchTaken();
  if (bytes <= std::max<int64_t>(0, scratchLimit))
    return success();
  InFlightDiagnostic diag = function.emitOpError("has collectives that take ")
                            << bytes << " bytes of scratch memory on a rank, more than the "
                            << scratchLimit << " allowed";
  for (Attribute attribute : collectives) {
    auto collective = cast<ctran::CollectiveAttr>(attribute);
    diag.attachNote() << collective.getName() << ", " << collective.getAlgorithm() << ", takes "
                      << scratchOf(program, collective);
  }
  return failure();
}

LogicalResult Converter::run() {
  if (failed(check()))
    return failure();
  stageViews();
  windows.emplace(*grid, [this](StringRef name, StringRef kind, WindowOp window, ShapedType type) {
    collectives.push_back(ctran::CollectiveAttr::get(b.getContext(), name, kind, "direct",
                                                     namesOf(grid->axesOf(window)),
                                                     getPayloadBytes(type, type)));
  });
  if (failed(windows->layOut(function)))
    return failure();
  b.setInsertionPoint(function);
  SmallVector<Attribute> axes;
  for (const ProgramGrid::Axis &axis : grid->axes())
    axes.push_back(ctran::GridAxisAttr::get(b.getContext(), axis.name, axis.size));
  program = ctran::ProgramOp::create(b, function.getLoc(), function.getSymNameAttr(), StringAttr(),
                                     b.getArrayAttr(axes), b.getArrayAttr({}));
  Block &block = program.getBody().emplaceBlock();
  block.addArgument(ctran::TokenType::get(b.getContext()), function.getLoc());
  if (failed(declareBuffers()))
    return failure();

  b.setInsertionPointToEnd(&block);
  Operation *terminator = function.getBody().front().getTerminator();
  for (Operation *op = &function.getBody().front().front(); op != terminator;
       op = op->getNextNode()) {
    LogicalResult done = success();
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      done = convertCollective(collective);
    else if (auto chunk = dyn_cast<FinishChunkOp>(op))
      done = convertChunk(chunk);
    else if (auto wait = dyn_cast<FinishOp>(op))
      finish(*started[wait.getToken()]);
    else if (auto barrier = dyn_cast<BarrierOp>(op))
      convertBarrier(barrier);
    else if (Windows::isOnWindow(op))
      done = convertOnWindow(op);
    else if (auto call = dyn_cast<CallOp>(op))
      done = convertCall(call);
    else if (!isa<memref::AllocOp, memref::DeallocOp>(op) && !isScaffold(op))
      done = convertKernel(op);
    if (failed(done))
      return failure();
  }
  windows->close();
  if (failed(checkScratch()))
    return failure();
  // The exit needs every token that nothing else waits for.
  SmallVector<Value> unused;
  for (Operation &op : block)
    for (Value result : op.getResults())
      if (isa<ctran::TokenType>(result.getType()) && result.use_empty())
        unused.push_back(result);
  for (auto &[root, buffer] : buffers)
    if (buffer.window)
      // A branch may be all that waits for a token, and another rank not take it.
      for (Value token : ctran::joined(buffer.writers, buffer.readers))
        if (!llvm::is_contained(unused, token) && token != program.getEntry())
          unused.push_back(token);
  ctran::ReturnOp::create(b, terminator->getLoc(), unused);
  program.setCollectivesAttr(b.getArrayAttr(collectives));
  function.erase();
  return success();
}

namespace {

bool communicates(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return isCommunication(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The branches of `chooser` in which nothing is communicated are programs, too, on the ranks of
/// the others.
LogicalResult addQuietBranches(func::FuncOp chooser, SmallVectorImpl<func::FuncOp> &functions,
                               DenseMap<Operation *, ProgramGrid> &grids) {
  SmallVector<func::FuncOp> quiet;
  std::optional<ProgramGrid> grid;
  for (auto name :
       chooser->getAttrOfType<ArrayAttr>(branchesAttrName).getAsRange<SymbolRefAttr>()) {
    auto branch = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(chooser, name);
    if (!branch)
      return chooser.emitOpError("has a branch ") << name << ", which is no function";
    if (!communicates(branch)) {
      quiet.push_back(branch);
      continue;
    }
    FailureOr<ProgramGrid> found = ProgramGrid::of(branch);
    if (failed(found))
      return failure();
    if (grid && grid->numRanks() != found->numRanks())
      return branch.emitOpError("runs on ")
             << found->numRanks() << " ranks, but another branch on " << grid->numRanks();
    grid = *found;
  }
  for (func::FuncOp branch : quiet) {
    if (!grid)
      return chooser.emitOpError("has branches of which none communicates");
    functions.push_back(branch);
    grids.try_emplace(branch, *grid);
  }
  return success();
}

struct ConvertNCCLXToCTran : ncclx::impl::ConvertNCCLXToCTranBase<ConvertNCCLXToCTran> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (communicates(function))
        functions.push_back(function);
    DenseMap<Operation *, ProgramGrid> grids;
    for (auto chooser : getOperation().getOps<func::FuncOp>())
      if (chooser->hasAttr(branchesAttrName) && failed(addQuietBranches(chooser, functions, grids)))
        return signalPassFailure();
    // Trees need a topology, and nothing else does.
    topology::ReadResult read;
    std::optional<topology::TreePacker> own;
    auto inModule =
        getOperation()->getAttrOfType<TopologyAttr>(NCCLXDialect::getTopologyAttrName());
    if (!trees && (!topologyFile.empty() || inModule)) {
      read =
          topologyFile.empty() ? readTopology(inModule) : topology::readTopologyFile(topologyFile);
      if (!read.topology) {
        for (const topology::Diagnostic &diagnostic : read.diagnostics)
          getOperation().emitError(topology::toString(diagnostic, topologyFile));
        return signalPassFailure();
      }
      own.emplace(*read.topology, topology::Rate::payload);
    }
    ToldHints told;
    for (func::FuncOp function : functions) {
      auto known = grids.find(function);
      std::optional<ProgramGrid> grid;
      if (known != grids.end())
        grid = known->second;
      if (failed(Converter(function, grid, loadStore, oneKernel, cutByTiers, blocks, mostBlocks,
                           own ? &*own : trees, scratchLimit, measured, told)
                     .run()))
        return signalPassFailure();
    }
  }

  topology::TreePacker *trees = nullptr;
  bool measured = false;
};

} // namespace

std::unique_ptr<Pass>
mlir::ncclx::createConvertNCCLXToCTran(const ConvertNCCLXToCTranOptions &options,
                                       topology::TreePacker *trees, bool measured) {
  auto pass = std::make_unique<ConvertNCCLXToCTran>(options);
  pass->trees = trees;
  pass->measured = measured;
  return pass;
}

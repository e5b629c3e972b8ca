//===- KernelEmitter.h - A program's ops as device code -----------------*- C++ -*-===//
#ifndef NCCLX_LIB_CUDA_KERNELEMITTER_H
#define NCCLX_LIB_CUDA_KERNELEMITTER_H

#include "CudaExpressions.h"
#include "ncclx/Cuda/CudaEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::ncclx {

/// Makes one CudaKernel.
class KernelEmitter {
public:
  KernelEmitter(ctran::ProgramOp program, const CudaOptions &options)
      : program(program), options(options), e(program) {}
  LogicalResult run(CudaKernel &kernel);

private:
  ctran::ProgramOp program;
  CudaOptions options;
  CudaExpressions e;
  std::string text;
  llvm::raw_string_ostream body{text};
  unsigned indent = 1, loops = 0;
  SmallVector<CudaKernel::Step> steps;
  SmallVector<unsigned> order; ///< of them, with a timeline
  scf::ForOp blockLoop;        ///< whose variable is the lane index; null: the ops name no block
  int64_t blocks = 1;
  bool together = false; ///< blocks share every op: nothing is read that another may write
  /// Blocks that share every op wait, each, for those of their number, on counters of their own.
  bool ownSlots = false;
  /// Windows of what counts read, which peers write: every block has its own, and writes all of it.
  llvm::SmallPtrSet<Operation *, 4> told;
  SmallVector<std::string> sizes; ///< that counts read
  llvm::SmallPtrSet<Operation *, 4> packetWindows;
  /// Of a window of packets that a reduction takes whole: the copy of the own contribution.
  llvm::SmallDenseMap<Operation *, ctran::CopyOp, 4> ownPackets;
  bool aligned = true;     ///< every message of packets
  bool lines = true;       ///< every message starts on 64 bytes and has room for as many
  int64_t mostMessage = 0; ///< bytes of the longest message, and of the longest data op
  int64_t mostBytes = 0;
  bool begins = true;    ///< the kernel has done nothing but signal
  bool unsynced = false; ///< a data op since the last barrier of the block

  LogicalResult analyse();
  LogicalResult checkBlockLoop();
  bool blocksShare(ArrayRef<ctran::ScheduleOpInterface> ops);
  bool blocksShareAcrossSignals(ArrayRef<ctran::ScheduleOpInterface> ops);
  void findOwnPackets(ArrayRef<ctran::ScheduleOpInterface> ops);
  /// Whether two boxes never meet.
  bool areApart(ctran::BoxRef a, ctran::BoxRef b);
  LogicalResult emitBlock(Block &block);
  /// Whether a copy may go by turns with the others: none reads or writes what it writes.
  bool joins(ctran::CopyOp op, ArrayRef<ctran::CopyOp> others);
  LogicalResult emitPieces(ArrayRef<ctran::CopyOp> ops);
  LogicalResult emitFor(scf::ForOp loop);
  LogicalResult emitIf(scf::IfOp branch);
  LogicalResult repeatOrder(scf::ForOp loop, size_t from);
  LogicalResult emitOp(ctran::ScheduleOpInterface op);
  LogicalResult emitStep(ctran::ScheduleOpInterface op, unsigned step);
  LogicalResult emitCopy(ctran::CopyOp op, unsigned step);
  LogicalResult emitReduce(ctran::ReduceOp op, unsigned step);
  LogicalResult emitSignal(Operation *op, Value slot);
  LogicalResult emitWait(ctran::WaitOp op, unsigned step);
  LogicalResult emitCount(ctran::CountOp op, unsigned step);
  /// Whether an op writes what every block writes whole.
  bool isTold(Value range) {
    FailureOr<ctran::BoxRef> ref = ctran::resolveRange(range);
    return succeeded(ref) && told.contains(ref->window);
  }
  LogicalResult emitDests(Operation *op, ValueRange dests, SmallVectorImpl<CudaBox> &boxes,
                          bool packets);
  void fill(CudaKernel &kernel);
  void chooseShape();
  /// Takes note of a box that holds a message of packets.
  LogicalResult message(Operation *op, const CudaBox &box);
  /// The bytes that a copy or reduction moves: of the shortest of its boxes.
  std::string lengthOf(ArrayRef<CudaBox> boxes);

  raw_ostream &line() {
    body.indent(indent * 2);
    return body;
  }
  /// A data op of a block starts when the one before is complete.
  void startData() {
    if (unsynced && !together)
      line() << "__syncthreads();\n";
    unsynced = true;
  }
  bool isPacketSlot(Value slot) {
    FailureOr<ctran::SlotRef> ref = ctran::resolveSlot(slot);
    return succeeded(ref) && ref->slots.getRealisation() == ctran::Realisation::Inband;
  }
  StringRef workers() const { return together ? "gridWorkers()" : "blockWorkers()"; }
  /// Bytes of one generation of a window in memory: packets carry a flag beside each word.
  int64_t bytesOf(ctran::WindowOp window) {
    int64_t bytes =
        cast<MemRefType>(window.getType()).getNumElements() * ctran::elementBytes(window);
    return packetWindows.contains(window) ? 2 * ((bytes + 7) / 8 * 8) : bytes;
  }
  int64_t countOf(ctran::SlotsOp slots) {
    int64_t count = 1;
    if (auto dims = ctran::resolveDims(program, slots.getDims()); succeeded(dims))
      for (const ctran::machine::Dim &dim : *dims)
        count *= dim.size;
    return count;
  }
  static std::string generation(int64_t generations, int64_t size) {
    return generations == 1 ? std::string()
                            : llvm::formatv(" + int64_t(run % {0}) * {1}", generations, size).str();
  }
  std::string address(CudaBox box) {
    std::string ofBlock;
    if (ownSlots && told.contains(box.op))
      ofBlock = llvm::formatv(" + int64_t(blockIdx.x) * {0}",
                              bytesOf(box.op) * int64_t(box.op.getGenerations()));
    std::string at = llvm::formatv("a.windows[{0}][{1}]{2}{3}", box.window, box.rank, ofBlock,
                                   generation(box.op.getGenerations(), bytesOf(box.op)));
    if (box.offset == "0")
      return at;
    // A word at offset o of a window of packets lies, with its flag, at 2 * o.
    return at + " + " + (packetWindows.contains(box.op) ? "2 * " : "") + box.offset;
  }
  std::string place(CudaSlots at) {
    std::string ofBlock;
    if (ownSlots)
      ofBlock = llvm::formatv(" + int64_t(blockIdx.x) * {0}",
                              countOf(at.op) * int64_t(at.op.getGenerations()));
    return llvm::formatv("a.slots[{0}][{1}]{2}{3} + {4}", at.slots, at.rank, ofBlock,
                         generation(at.op.getGenerations(), countOf(at.op)), at.first);
  }
  std::string array(StringRef name, StringRef type, ArrayRef<std::string> items) {
    std::string list = llvm::join(items, ", ");
    return llvm::formatv("{0} *{1}[] = {{{2}};\n", type, name, list);
  }
};

} // namespace mlir::ncclx
#endif // NCCLX_LIB_CUDA_KERNELEMITTER_H

//===- Msccl.h - MSCCL's and MSCCL++'s files, to and from schedules -------*- C++ -*-===//
//
// An MSCCL XML file says for each GPU what its thread blocks do, step by step, through FIFOs
// between GPUs. As `ctran`: a thread block is an `sm` lane; a connection (sender, receiver,
// channel) is a ring of places in scratch memory with a slot that counts what has arrived and one
// that counts what has been taken; a step is a copy or a reduction with up to two destinations; a
// dependency is a token.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_IMPORT_MSCCL_H
#define NCCLX_IMPORT_MSCCL_H

#include "ncclx/CTran/CTran.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir {
class DialectRegistry;
}

namespace mlir::ncclx {

struct MscclOptions {
  int64_t chunkElements = 64; ///< elements of a chunk: the files give chunks and no sizes
  /// Places of each FIFO (NCCL has 8). `ctran-verify="fifo-slots=N"` proves with fewer.
  int64_t fifoSlots = 8;
};

void registerImportDialects(DialectRegistry &registry);

/// The program that the file `name` with contents `text` describes, for f32. What is wrong with the
/// file is an error at its line, and gives null; an attribute that is missing and has a default, a
/// limit of MSCCL's interpreter that is passed, or a collective without a known result is a
/// warning. A remark says how many FIFO places the program needs, the longest chain of transfers,
/// and how much the busiest rank sends over the least that the collective can.
OwningOpRef<ModuleOp> importMscclXml(llvm::StringRef text, llvm::StringRef name,
                                     MLIRContext *context, const MscclOptions &options = {});

/// The same of an MSCCL++ execution plan (JSON). An op, or an attribute of one, that is not
/// understood is an error that names it.
OwningOpRef<ModuleOp> importMscclppJson(llvm::StringRef text, llvm::StringRef name,
                                        MLIRContext *context, const MscclOptions &options = {});

/// Writes the schedule of one collective as an MSCCL XML file; what that format cannot say (gets,
/// sums that scale, pieces without a common measure, ...) is an error at the op. Its chunks are
/// numbers of the sizes at hand: for others the file means the same pieces in proportion.
LogicalResult exportMscclXml(ctran::ProgramOp program, llvm::raw_ostream &os);

} // namespace mlir::ncclx
#endif // NCCLX_IMPORT_MSCCL_H

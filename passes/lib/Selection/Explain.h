//===- Explain.h - Words of an explanation ------------------------------------*- C++ -*-===//
#ifndef NCCLX_LIB_SELECTION_EXPLAIN_H
#define NCCLX_LIB_SELECTION_EXPLAIN_H

#include "ncclx/CTran/CTran.h"
#include "ncclx/Selection/Selection.h"

namespace mlir::ncclx {

/// "976.56 KiB".
std::string sizeText(int64_t bytes);
/// 0 where none is known.
double secondsOf(const std::optional<topology::LowerBound> &bound);
/// A graph of one collective over all of `ranks`, of f32, its payload rounded up to whole shards.
/// Null, with an error, where there is no such collective.
OwningOpRef<ModuleOp> graphOf(StringRef kind, int64_t ranks, int64_t bytes, Location loc);
/// Prints how long a schedule that somebody wrote takes, beside what would be chosen for the same
/// collective.
LogicalResult explainWritten(ctran::ProgramOp program, const SelectionTarget &target,
                             llvm::raw_ostream &os);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_SELECTION_EXPLAIN_H

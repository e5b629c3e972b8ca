//===- Reader.h - From a ctran.program to the abstract machine --------*- C++ -*-===//
#ifndef NCCLX_CTRAN_READER_H
#define NCCLX_CTRAN_READER_H

#include "ncclx/CTran/CTran.h"
#include "ncclx/Machine/Schedule.h"

#include <memory>

namespace mlir::ctran {

/// Makes the schedule that a verified program describes. The region is compiled once into a flat
/// list of instructions, so the schedule outlives the IR, and its streams touch none of it: they
/// may be stepped on other threads, each stream on one at a time. Every run begins with Entry and
/// ends with Exit, which waits for the tokens of `ctran.return`.
///
/// `ops`, when given, receives the op of each index of Schedule::locations. Fails with a diagnostic
/// on a program that does not verify.
///
/// A stream's result Asymmetric also reports what has no meaning on any rank (a division by zero,
/// an interval of negative length); `why` says so.
FailureOr<std::unique_ptr<machine::Schedule>>
readSchedule(ProgramOp program, SmallVectorImpl<Operation *> *ops = nullptr);

} // namespace mlir::ctran
#endif // NCCLX_CTRAN_READER_H

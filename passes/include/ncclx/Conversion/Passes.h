//===- Passes.h - From graphs to schedules -------------------------------*- C++ -*-===//
#ifndef NCCLX_CONVERSION_PASSES_H
#define NCCLX_CONVERSION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "ncclx/CTran/CTran.h"
#include "ncclx/NCCLX/NCCLX.h"

#include <optional>
#include <string>

namespace mlir::func {
class FuncDialect;
}
namespace mlir::linalg {
class LinalgDialect;
}
namespace mlir::memref {
class MemRefDialect;
}

namespace mlir::ncclx::topology {
class TreePacker;
enum class TreeFlow;
} // namespace mlir::ncclx::topology

namespace mlir::ncclx {

/// Why `algorithm` cannot carry `op`, whose groups have so many axes in its program (ProgramGrid; 0
/// where no axes span them), or nothing if it can.
std::optional<std::string> whyNot(CollectiveOpInterface op, Algorithm algorithm, size_t axes);

/// Why `op` cannot be direct in the blocks of one kernel, block by block, or nothing if it can.
std::optional<std::string> whyNotInBlocks(CollectiveOpInterface op);

/// Whether its function has no other collective.
bool isAlone(CollectiveOpInterface op);

/// What carries, unless something is asked for, a collective of a function that becomes one kernel:
/// blocks that each move their part of long messages, if it is alone there, else packets.
Algorithm algorithmInKernel(CollectiveOpInterface op);

/// The program that a collective names by `ncclx.schedule`, or null.
ctran::ProgramOp getSchedule(CollectiveOpInterface op);

/// The order in which `algorithm` reduces; `any` where it is none that the language names.
ReductionOrder orderOf(Algorithm algorithm);

/// Why the groups of `op` do not each hang off one switch that multicasts and reduces, as `trees`'
/// topology has it and load and store reach it (null: peers are not reached so), or "" if they do;
/// then `bytesPerSecond` is what is between a member and its switch.
std::string whyNoSwitch(CollectiveOpInterface op, const topology::TreePacker *trees,
                        double *bytesPerSecond = nullptr);

/// Why `op` cannot go along tiers whose blocks are not alike, told rank by rank, or nothing.
std::optional<std::string> whyNotByUnequalTiers(CollectiveOpInterface op,
                                                topology::TreePacker &trees);

/// What moves along the trees of a collective that they can carry.
topology::TreeFlow treeFlowOf(CollectiveOpInterface op);

#define GEN_PASS_DECL
#include "ncclx/Conversion/Passes.h.inc"
/// The pass with trees packed by `trees`, which outlives it and may be null. With `measured` too
/// much scratch memory is no error: the caller measures it.
std::unique_ptr<Pass> createConvertNCCLXToCTran(const ConvertNCCLXToCTranOptions &options,
                                                topology::TreePacker *trees, bool measured = false);

#define GEN_PASS_REGISTRATION
#include "ncclx/Conversion/Passes.h.inc"
} // namespace mlir::ncclx
#endif // NCCLX_CONVERSION_PASSES_H

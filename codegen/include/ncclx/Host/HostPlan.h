//===- HostPlan.h - What the runtime must know of a lowered program -----*- C++ -*-===//
#ifndef NCCLX_HOST_HOSTPLAN_H
#define NCCLX_HOST_HOSTPLAN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "ncclx/CTran/CTran.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace mlir::ncclx {

/// The tables that ncclxrtPlanPrepare takes (ncclxrt/abi.h), and what a caller needs to find its
/// buffers. Indices in the lowered code are positions in these tables.
struct HostPlan {
  struct Window {
    std::string name;
    uint64_t bytes; ///< of one generation
    int32_t generations;
    ctran::WindowRole role;
    int64_t argument; ///< position among the inputs or outputs; -1 for scratch
    MemRefType type;
  };
  struct Slots {
    std::string name;
    int64_t count;
    int32_t generations;
    int64_t writers; ///< of one counter
  };
  struct Lane {
    std::string name;
    ctran::LaneKind kind;
    int32_t index;
  };
  struct Op {
    std::string name, location, collective;
  };
  /// A size that the graph leaves open, and what it is here (ncclxrtSizeDesc_t).
  struct Size {
    std::string name, place;
    int64_t min, max, multiple, value;
  };
  /// What a reduction does, in the numbers of ncclxrt/abi.h.
  struct Reduction {
    int64_t kind, dtype, acc;
    bool scaled, divided;
    bool operator==(const Reduction &) const = default;
  };
  std::string name;  ///< of the program and of the lowered function
  uint64_t hash = 0; ///< of the program's text and of the kernels it calls
  int64_t ranks = 0;
  SmallVector<Window> windows;
  SmallVector<Slots> slots;
  SmallVector<Lane> lanes;
  SmallVector<Op> ops;
  SmallVector<Size> sizes;           ///< set by who made the program for them
  SmallVector<Reduction> reductions; ///< each once, in the order of the text
  SmallVector<std::string> kernels;  ///< functions that the host code calls with addresses
  SmallVector<int64_t> kernelSms;    ///< of each: multiprocessors that the program gives it; 0: all

  /// Positions in `windows` of what the caller passes as inputs, those changed in place among them;
  /// of the outputs; and of what is changed in place. Each in the order of its arguments.
  SmallVector<size_t> inputs() const {
    return windowsOf({ctran::WindowRole::Input, ctran::WindowRole::InOut});
  }
  SmallVector<size_t> outputs() const { return windowsOf(ctran::WindowRole::Output); }
  SmallVector<size_t> changedInPlace() const { return windowsOf(ctran::WindowRole::InOut); }
  /// Bytes of a rank's windows that are neither.
  uint64_t scratchBytes() const;

private:
  SmallVector<size_t> windowsOf(ArrayRef<ctran::WindowRole> roles) const;
};

/// What an op of a schedule is called, where it comes from, and the collective that it is of.
HostPlan::Op planOpOf(ctran::ScheduleOpInterface op);

/// Whose calls the lowered code makes.
enum class HostTarget {
  Host, ///< group B of ncclxrt/abi.h: each call does what it says before it returns
  Cuda, ///< that of ncclxrt/cuda.h: each enqueues, and lanes are ordered where tokens order them
};

/// Lowers `program` to a function `i32 @name(i64 exec)` in `target`: integers and calls of the
/// runtime alone, in issue order, so that both carriers (LLVM, C++) print the same.
/// For the host, kernels are declared with an i64 address for each memref; for CUDA they are
/// launched by their position in `kernels`.
/// Fails, with an error at the op, for what the host carrier does not have (sizes known at run
/// time, lane indices that are not constants).
FailureOr<HostPlan> lowerToHost(ctran::ProgramOp program, ModuleOp target,
                                HostTarget of = HostTarget::Host);

/// The same of a graph with branches (SPEC.md), as one function `name`: it calls the kernel
/// `chooser`, which takes all inputs and leaves the number of a branch, agrees on that with the
/// other ranks, and plays that program. Inputs and outputs are those of all branches. An op and its
/// collective are named "branch/name".
FailureOr<HostPlan> lowerToHost(StringRef name, func::FuncOp chooser,
                                ArrayRef<ctran::ProgramOp> branches, ModuleOp target);

} // namespace mlir::ncclx
#endif // NCCLX_HOST_HOSTPLAN_H

//===- Passes.h - Passes over schedules --------------------------------*- C++ -*-===//
#ifndef NCCLX_SCHEDULE_PASSES_H
#define NCCLX_SCHEDULE_PASSES_H

#include "ncclx/Machine/Prove.h"

#include "mlir/Pass/Pass.h"

namespace mlir::ctran {

/// What ctran-verify makes of a program that it can neither prove nor refuse.
enum class UndecidedAs { Warning, Error };

#define GEN_PASS_DECL
#include "ncclx/Schedule/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "ncclx/Schedule/Passes.h.inc"

} // namespace mlir::ctran
#endif // NCCLX_SCHEDULE_PASSES_H

//===- Compare.h - Outputs against the reference interpreter ------------------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_RUN_COMPARE_H
#define NCCLX_TOOLS_NCCLX_RUN_COMPARE_H

#include "Execute.h"
#include "Report.h"

namespace mlir::ncclx {

/// Runs the graph's meaning and compares every output of every rank. False: `error` says why the
/// interpreter could not.
bool compareWithReference(Compilation &compilation, const Execution &execution,
                          const ExecuteOptions &options, Report &report, std::string &error);

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_NCCLX_RUN_COMPARE_H

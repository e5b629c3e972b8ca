//===- Registration.h - What the tool knows ---------------------*- C++ -*-===//
//
// Split over several files because each takes long to compile.
//
//===----------------------------------------------------------------------===//

#ifndef NCCLX_TOOLS_NCCLX_OPT_REGISTRATION_H
#define NCCLX_TOOLS_NCCLX_OPT_REGISTRATION_H

namespace mlir {
class DialectRegistry;
namespace ncclx {

/// The project's dialects and the upstream ones that graphs and schedules use.
void registerDialects(DialectRegistry &registry);

/// Single upstream passes; registerAllPasses would double the static tool.
void registerUpstreamPasses();

/// The project's own passes and pipelines.
void registerProjectPasses();

} // namespace ncclx
} // namespace mlir

#endif // NCCLX_TOOLS_NCCLX_OPT_REGISTRATION_H

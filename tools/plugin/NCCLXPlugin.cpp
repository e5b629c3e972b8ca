//===- NCCLXPlugin.cpp - The dialects and passes for another mlir-opt ------===//
//
//   mlir-opt-22 --load-dialect-plugin=NCCLXPlugin.so --load-pass-plugin=NCCLXPlugin.so
//       --pass-pipeline='builtin.module(ncclx-bufferize, convert-ncclx-to-ctran)' graph.mlir
//
// Passes of a plug-in are known inside --pass-pipeline alone: the tool has read its command line
// before it loads them.
//
//===----------------------------------------------------------------------===//
#include "../ncclx-opt/Registration.h"
#include "ncclx/CTran/CTran.h"
#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

using namespace mlir;

#define NCCLX_PLUGIN_EXPORT extern "C" __attribute__((weak, visibility("default")))

NCCLX_PLUGIN_EXPORT DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "NCCLX", LLVM_VERSION_STRING, [](DialectRegistry *registry) {
            registry->insert<ncclx::NCCLXDialect, ctran::CTranDialect>();
          }};
}

NCCLX_PLUGIN_EXPORT PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "NCCLX", LLVM_VERSION_STRING,
          [] { ncclx::registerProjectPasses(); }};
}

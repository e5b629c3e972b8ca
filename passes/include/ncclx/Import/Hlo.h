//===- Hlo.h - XLA's HLO text as a graph --------------------------------*- C++ -*-===//
//
// A module after SPMD partitioning is one text that all devices run, as a graph is. Collectives
// become `ncclx` ops over the axes of one grid (a reduction of which each device keeps its slice
// alone: a reduce_scatter), products `linalg.contract`, other arithmetic `linalg.generic`,
// counted loops `scf.for`. Tuples are taken apart. The number of a device is an argument behind the
// parameters.
//
// What is not understood becomes a call of a function without a body, with its cost as far as it is
// known: a kernel (`ncclx.call`), or where it communicates or has other effects a `func.call`,
// which nothing moves across.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_IMPORT_HLO_H
#define NCCLX_IMPORT_HLO_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>

namespace mlir {
class DialectRegistry;
}

namespace mlir::ncclx {

/// What has been read. Operations count as often as loops of known length run them.
struct HloReport {
  struct Opaque {
    int64_t instructions = 0; ///< in the text, each once
    double flops = 0;
  };
  int64_t instructions = 0; ///< in the text, those of called computations once for each call
  std::map<std::string, int64_t> collectives; ///< by kind, in the dialect's words
  std::map<std::string, Opaque> opaque;       ///< by opcode, or a custom call's target
  int64_t trivial = 0;                        ///< collectives of groups of one: their operands
  int64_t scatters = 0;                       ///< all-reduces that became reduce_scatters
  int64_t loops = 0, loopsOfUnknownLength = 0;
  double flops = 0; ///< of all
  double opaqueFlops() const;
};

void registerHloImportDialects(DialectRegistry &registry);

/// The graph that HLO text says, `name` being its file. What is wrong with the text is one error at
/// its line and column, and gives null. A remark says what the report does.
OwningOpRef<ModuleOp> importHlo(llvm::StringRef text, llvm::StringRef name, MLIRContext *context,
                                HloReport *report = nullptr);

/// The same of a module of StableHLO as MLIR's generic form has it ("stablehlo.add"(...) : ...),
/// which needs no StableHLO: functions, regions and all. Ops that are not known, of any dialect,
/// become calls.
OwningOpRef<ModuleOp> importStableHlo(llvm::StringRef text, llvm::StringRef name,
                                      MLIRContext *context, HloReport *report = nullptr);

} // namespace mlir::ncclx
#endif // NCCLX_IMPORT_HLO_H

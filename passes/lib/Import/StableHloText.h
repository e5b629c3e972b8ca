//===- StableHloText.h - StableHLO in generic form as HLO text -----------------*- C++ -*-===//
#ifndef NCCLX_LIB_IMPORT_STABLEHLOTEXT_H
#define NCCLX_LIB_IMPORT_STABLEHLOTEXT_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir::ncclx::hlo {

/// HLO text, and where each of its computations and instructions comes from, in the text's order.
struct HloText {
  struct Computation {
    Location loc;
    std::vector<Location> instructions;
  };
  std::string text;
  std::vector<Computation> computations;
};

/// The HLO that a module of StableHLO says. Its ops are of a dialect that is not registered: by
/// name, with attributes as they stand. Ops that HLO has no word for keep their names: the importer
/// makes them calls. What has no form in HLO at all (sizes known at run time, quantized types) is
/// one error at its place.
FailureOr<HloText> printAsHlo(ModuleOp module);

} // namespace mlir::ncclx::hlo
#endif // NCCLX_LIB_IMPORT_STABLEHLOTEXT_H

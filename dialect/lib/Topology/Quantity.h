//===- Quantity.h - Rates as people write them ----------------------------===//
#ifndef NCCLX_LIB_TOPOLOGY_QUANTITY_H
#define NCCLX_LIB_TOPOLOGY_QUANTITY_H

#include "ncclx/Topology/Rational.h"

namespace mlir::ncclx::topology {

/// "B/s" or "FLOP/s", with or without k, M, G, T or P before it, after an exact number:
/// "20.6 GB/s", "370800000000/7 B/s". A bare number has the base unit.
std::optional<Rational> parseQuantity(llvm::StringRef text, llvm::StringRef unit);
/// The same, the other way: with a G where that is a short decimal, else as a fraction.
std::string formatQuantity(const Rational &value, llvm::StringRef unit);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_QUANTITY_H

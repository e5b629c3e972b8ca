//===- TakeSized.h - Who gets something takes it ----------------------------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_TAKESIZED_H
#define NCCLX_LIB_CONVERSION_TAKESIZED_H

#include "Algorithms.h"

namespace mlir::ctran {

/// Direct, of sizes that kernels alone read, along axes: who gets something takes it.
InFlight takeSized(ScheduleBuilder &s, const CollectiveSpec &c);

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_TAKESIZED_H

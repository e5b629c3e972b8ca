//===- Communication.h - What communicates ----------------------------------*- C++ -*-===//
#ifndef NCCLX_TRANSFORMS_COMMUNICATION_H
#define NCCLX_TRANSFORMS_COMMUNICATION_H

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::ncclx {

/// Whether `op` or something inside it communicates, or waits for what does.
bool holdsCommunication(Operation *op);

} // namespace mlir::ncclx

#endif // NCCLX_TRANSFORMS_COMMUNICATION_H

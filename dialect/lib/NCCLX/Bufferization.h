//===- Bufferization.h - How the ops bufferize ------------------*- C++ -*-===//

#ifndef NCCLX_LIB_NCCLX_BUFFERIZATION_H
#define NCCLX_LIB_NCCLX_BUFFERIZATION_H

namespace mlir {
class MLIRContext;
namespace ncclx {

/// Attaches BufferizableOpInterface to the collectives, finish, finish_chunk and call.
void attachBufferizationModels(MLIRContext &context);

} // namespace ncclx
} // namespace mlir

#endif // NCCLX_LIB_NCCLX_BUFFERIZATION_H

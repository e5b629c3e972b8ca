//===- NCCLXDialect.cpp - Registration, inlining, bytecode ----------------===//

#include "Bufferization.h"
#include "ncclx/NCCLX/AssumeUniform.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/NCCLX/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ncclx;

#include "ncclx/NCCLX/NCCLXDialect.cpp.inc"
#include "ncclx/NCCLX/NCCLXEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ncclx/NCCLX/NCCLXAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ncclx/NCCLX/NCCLXTypes.cpp.inc"

namespace {

struct BytecodeInterface : BytecodeDialectInterface {
  explicit BytecodeInterface(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const override {
    // A test or an embedder may ask for another version.
    FailureOr<const DialectVersion *> wanted = writer.getDialectVersion("ncclx");
    writer.writeVarInt(succeeded(wanted) ? static_cast<const Version *>(*wanted)->number
                                         : NCCLXDialect::kBytecodeVersion);
  }

  std::unique_ptr<DialectVersion> readVersion(DialectBytecodeReader &reader) const override {
    uint64_t number;
    if (failed(reader.readVarInt(number)))
      return nullptr;
    if (number == 0 || number > NCCLXDialect::kBytecodeVersion) {
      reader.emitError() << "reads ncclx bytecode versions 1 to " << NCCLXDialect::kBytecodeVersion
                         << ", but the file has version " << number;
      return nullptr;
    }
    return std::make_unique<Version>(number);
  }
};

/// Inlining is legal everywhere: the effects of the collectives keep their order.
struct Inliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }
};

} // namespace

void NCCLXDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ncclx/NCCLX/NCCLXAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ncclx/NCCLX/NCCLXTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ncclx/NCCLX/NCCLXOps.cpp.inc"
      >();
  addOperations<AssumeUniformOp>();
  addInterfaces<BytecodeInterface, Inliner>();
  attachBufferizationModels(*getContext());
}

LogicalResult NCCLXDialect::verifyRegionArgAttribute(Operation *op, unsigned regionIndex,
                                                     unsigned argIndex, NamedAttribute attr) {
  if (attr.getName() == kDimsAttrName)
    return verifyDimsAttr(op, argIndex, attr.getValue());
  if (attr.getName() != getUniformAttrName())
    return op->emitOpError("argument #")
           << argIndex << " has the unknown attribute " << attr.getName();
  if (!isa<UnitAttr>(attr.getValue()))
    return op->emitOpError("argument #") << argIndex << ": " << attr.getName()
                                         << " must be a unit attribute, but is " << attr.getValue();
  if (!isa<FunctionOpInterface>(op))
    return op->emitOpError("marks argument #")
           << argIndex << " " << attr.getName() << ", but only functions may";
  return success();
}

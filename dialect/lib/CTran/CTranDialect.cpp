//===- CTranDialect.cpp - Types and attributes of the ctran dialect -------------===//
#include "Assembly.h"

#include "ncclx/CTran/CTran.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ctran;

#include "ncclx/CTran/CTranDialect.cpp.inc"
#include "ncclx/CTran/CTranEnums.cpp.inc"
#include "ncclx/CTran/CTranInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ncclx/CTran/CTranTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ncclx/CTran/CTranAttrs.cpp.inc"

namespace {
struct BytecodeInterface : BytecodeDialectInterface {
  explicit BytecodeInterface(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const override {
    // A caller may ask for an older version (or a test for a newer one).
    auto asked = writer.getDialectVersion<CTranDialect>();
    writer.writeVarInt(succeeded(asked) ? static_cast<const CTranVersion *>(*asked)->number
                                        : CTranVersion::current);
  }

  std::unique_ptr<DialectVersion> readVersion(DialectBytecodeReader &reader) const override {
    uint64_t number;
    if (failed(reader.readVarInt(number)))
      return nullptr;
    if (number == 0 || number > CTranVersion::current) {
      reader.emitError("ctran bytecode has version ")
          << number << ", but this reader knows versions 1 to " << CTranVersion::current;
      return nullptr;
    }
    return std::make_unique<CTranVersion>(number);
  }
};
} // namespace

void CTranDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ncclx/CTran/CTranTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ncclx/CTran/CTranAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ncclx/CTran/CTranOps.cpp.inc"
      >();
  addInterfaces<BytecodeInterface>();
}

//===--- attributes ---------------------------------------------------------------===//

/// Names are printed between plain quotes.
static bool isPlainName(StringRef name) {
  return llvm::all_of(name, [](char c) { return llvm::isPrint(c) && c != '"' && c != '\\'; });
}

LogicalResult GridAxisAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                   StringRef name, int64_t size) {
  if (name.empty() || !isPlainName(name)) // axis A1
    return emitError() << "an axis needs a name without quotes, found '" << name << "'";
  if (size < 1 || size > INT32_MAX) // axis A2
    return emitError() << "axis \"" << name << "\" needs a size from 1 to 2^31 - 1, found " << size;
  return success();
}

LogicalResult DimAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef axis,
                              int64_t size, Cut, int64_t granule) {
  if (!isPlainName(axis)) // dim D1
    return emitError() << "a dimension's axis must be a name without quotes, found '" << axis
                       << "'";
  if (size < 1 || size > INT32_MAX) // dim D2
    return emitError() << "a dimension needs a size from 1 to 2^31 - 1, found " << size;
  if (granule < 1 || granule > int64_t(1) << 40) // dim D3
    return emitError() << "a dimension needs a granule from 1 to 2^40, found " << granule;
  return success();
}

LogicalResult CollectiveAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                     StringRef name, StringRef kind, StringRef algorithm,
                                     ArrayRef<StringAttr> axes, int64_t bytes) {
  for (StringRef text : {name, kind, algorithm}) // collective L1
    if (text.empty() || !isPlainName(text))
      return emitError() << "a collective needs name, kind and algorithm without quotes, found '"
                         << text << "'";
  for (StringAttr axis : axes)
    if (axis.empty() || !isPlainName(axis))
      return emitError() << "a collective's axis must be a name without quotes, found '"
                         << axis.getValue() << "'";
  if (bytes < 0) // collective L2
    return emitError() << "collective \"" << name << "\" needs bytes of at least 0, found "
                       << bytes;
  return success();
}

//===- StableHloAttributes.h - What StableHLO's attributes are in HLO text ------*- C++ -*-===//
#ifndef NCCLX_LIB_IMPORT_STABLEHLOATTRIBUTES_H
#define NCCLX_LIB_IMPORT_STABLEHLOATTRIBUTES_H

#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace mlir::ncclx::hlo {

/// "1,2"
std::string joined(ArrayRef<int64_t> numbers);

/// A number as HLO's literals have it.
std::string literal(Attribute value);

/// An op's attribute, wherever the generic form has put it.
Attribute attribute(Operation *op, StringRef name);

/// The numbers that an attribute says: a list, or one.
std::optional<SmallVector<int64_t>> numbers(Operation *op, StringRef name);

/// What stands behind an instruction's operands. `reducer` prints a region that combines two
/// numbers, and gives its name.
LogicalResult attributesOf(Operation *op, StringRef kind,
                           llvm::function_ref<LogicalResult(Region &, std::string &)> reducer,
                           std::string &text);

} // namespace mlir::ncclx::hlo
#endif // NCCLX_LIB_IMPORT_STABLEHLOATTRIBUTES_H

//===- Sizes.h - Sizes that a graph leaves open -----------------*- C++ -*-===//
//
// A function says by `ncclx.sizes = {n = [0, 64]}` which sizes it is for, and each argument by
// `ncclx.dims = ["n"]` which of them its `?` are, in order. SPEC.md numbers the rules (sizes C1 to
// C6).
//
//===----------------------------------------------------------------------===//

#ifndef NCCLX_NCCLX_SIZES_H
#define NCCLX_NCCLX_SIZES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <string>

namespace mlir::ncclx {

/// Attribute of a function: a dictionary from the name of each open size to [least, greatest].
inline constexpr llvm::StringLiteral kSizesAttrName = "ncclx.sizes";
/// Attribute of a function's argument: the name of the size that each of its `?` is.
inline constexpr llvm::StringLiteral kDimsAttrName = "ncclx.dims";

/// A size that a function leaves open: every tensor of one call agrees on it, on all ranks.
struct OpenSize {
  struct Place {
    unsigned argument;
    int64_t dim;
  };
  std::string name;
  int64_t min, max;
  SmallVector<Place> places; ///< where it is found: at least one

  /// "size 'n' (dimension 0 of argument 2)"
  std::string str() const;
  /// A size between the ends: a prime where there is one, so that hardly a group divides it.
  int64_t middle() const;
};

/// The sizes that a verified function leaves open, by name.
SmallVector<OpenSize> getOpenSizes(FunctionOpInterface function);

/// sizes C6: a function that is compiled names every `?` of its arguments. Says so where not.
LogicalResult verifyAllNamed(FunctionOpInterface function);

/// Rules on the two attributes.
LogicalResult verifySizesAttr(Operation *op, Attribute value);
LogicalResult verifyDimsAttr(Operation *op, unsigned argument, Attribute value);

/// What lowers collectives knows their sizes: fails with an error at the first that is still open.
LogicalResult requireKnownSizes(Operation *root);

} // namespace mlir::ncclx

#endif // NCCLX_NCCLX_SIZES_H

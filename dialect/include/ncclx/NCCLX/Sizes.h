//===- Sizes.h - Sizes that a graph leaves open -----------------*- C++ -*-===//
//
// A function says by `ncclx.sizes = {n = [0, 64]}` which sizes it is for (with a third
// number: multiples of it), and each argument by
// `ncclx.dims = ["n"]` which of them its `?` are, in order. SPEC.md numbers the rules (sizes C1 to
// C6).
//
//===----------------------------------------------------------------------===//

#ifndef NCCLX_NCCLX_SIZES_H
#define NCCLX_NCCLX_SIZES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <string>
#include <vector>

namespace mlir::ncclx {

/// Attribute of a function: a dictionary from the name of each open size to [least, greatest] or
/// [least, greatest, multiple].
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
  int64_t min, max, multiple;
  SmallVector<Place> places; ///< where it is found: at least one

  /// "dimension 0 of argument 2"
  std::string place() const;
  bool holds(int64_t value) const { return value >= min && value <= max && value % multiple == 0; }
  /// "0 to 64, a multiple of 8"
  std::string range() const;
  /// A size between the ends: a prime, or a prime number of multiples, where there is one, so that
  /// hardly a group divides it.
  int64_t middle() const;
};

/// Sizes that stand for all: each at its least, middle and greatest, together and one by one
/// against the others. None where nothing is open.
std::vector<SmallVector<int64_t>> sampleSizes(ArrayRef<OpenSize> open);

/// "n = 5, m = 3"
std::string sizesText(ArrayRef<OpenSize> open, ArrayRef<int64_t> values);

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

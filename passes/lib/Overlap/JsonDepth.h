//===- JsonDepth.h - How deep JSON nests, before it is parsed ----*- C++ -*-===//
#ifndef NCCLX_LIB_OVERLAP_JSONDEPTH_H
#define NCCLX_LIB_OVERLAP_JSONDEPTH_H

#include "llvm/ADT/StringRef.h"

namespace mlir::ncclx::overlap {

/// More levels are refused: llvm::json recurses.
inline constexpr int deepest = 32;

/// Does the text nest deeper? What stands in strings (names of kernels) does not count.
inline bool nestsTooDeep(llvm::StringRef text) {
  int depth = 0;
  for (size_t i = 0; i < text.size() && depth <= deepest; ++i) {
    if (text[i] == '"')
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\';
    else
      depth += (text[i] == '{' || text[i] == '[') - (text[i] == '}' || text[i] == ']');
  }
  return depth > deepest;
}

} // namespace mlir::ncclx::overlap

#endif // NCCLX_LIB_OVERLAP_JSONDEPTH_H

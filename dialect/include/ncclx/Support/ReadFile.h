//===- ReadFile.h - Files that users name -----------------------*- C++ -*-===//
#ifndef NCCLX_SUPPORT_READFILE_H
#define NCCLX_SUPPORT_READFILE_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace mlir::ncclx {

/// Larger files are none of ours; reading one must not take the machine down.
inline constexpr uint64_t maxFileBytes = uint64_t(1) << 28;

/// All bytes of a file that a user names ("-": standard input), up to `maxFileBytes`, also of
/// devices and pipes, which tell no size. std::nullopt, and `problem` says why, if it is no file,
/// cannot be read, is larger, or is a named pipe that nobody opens to write within a second.
std::optional<std::string> readFile(llvm::StringRef path, std::string &problem);

} // namespace mlir::ncclx

#endif // NCCLX_SUPPORT_READFILE_H

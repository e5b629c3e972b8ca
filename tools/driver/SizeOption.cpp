//===- SizeOption.cpp - Values for the sizes that a graph leaves open ------------------------===//
#include "SizeOption.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::ncclx;

std::vector<SmallVector<int64_t>> mlir::ncclx::readSizeOptions(ArrayRef<std::string> options,
                                                               ArrayRef<OpenSize> open,
                                                               std::string &error) {
  if (options.empty())
    return sampleSizes(open);
  llvm::StringMap<SmallVector<int64_t>> given;
  for (StringRef option : options) {
    auto [name, list] = option.split('=');
    if (llvm::none_of(open, [&, n = name](const OpenSize &size) { return size.name == n; })) {
      error = ("--size=" + option + ": the graph leaves no size '" + name + "' open").str();
      return {};
    }
    for (StringRef text : llvm::split(list, ',')) {
      int64_t value;
      if (text.getAsInteger(10, value)) {
        error = ("--size=" + option + ": '" + text +
                 "' is no number, expected NAME=VALUE or "
                 "NAME=VALUE,VALUE,...")
                    .str();
        return {};
      }
      if (!llvm::is_contained(given[name], value))
        given[name].push_back(value);
    }
  }
  std::vector<SmallVector<int64_t>> all(1);
  for (const OpenSize &size : open) {
    SmallVector<int64_t> values = given.lookup(size.name);
    if (values.empty())
      for (const SmallVector<int64_t> &sample : sampleSizes(size))
        values.push_back(sample.front());
    std::vector<SmallVector<int64_t>> longer;
    for (const SmallVector<int64_t> &start : all)
      for (int64_t value : values)
        longer.emplace_back(start).push_back(value);
    all = std::move(longer);
  }
  return all;
}

//===- Cells.cpp - What ncclx-bench measures, compiled ---------------------===//
#include "Bench.h"

#include "ncclx/Topology/IO.h"

#include "llvm/Support/FormatVariadic.h"

using namespace ncclx_bench;
using namespace mlir::ncclx;

/// Whether each rank's buffers are as large as what nccl-tests counts.
static bool holdsWhole(int collective) {
  return collective == AllReduce || collective == Broadcast || collective == Permute;
}

std::vector<Cell> ncclx_bench::makeCells(const Options &options, int nranks) {
  std::vector<Cell> cells;
  for (int collective : options.collectives) {
    int64_t last = 0;
    for (int64_t bytes = options.minBytes;; bytes *= options.factor) {
      bytes = std::min(bytes, options.maxBytes);
      int64_t parts = holdsWhole(collective) ? 1 : nranks;
      int64_t each = options.elementBytes(), count = std::max<int64_t>(1, bytes / each / parts);
      if (int64_t whole = count * parts * each; whole != last)
        cells.push_back({collective, 0, count, last = whole});
      if (bytes == options.maxBytes)
        break;
    }
  }
  return cells;
}

std::string ncclx_bench::graphOf(const Cell &c, int n, const std::string &algorithm,
                                 const std::string &dtype) {
  std::string in = llvm::formatv("tensor<{0}x{1}>", inputCount(c, n), dtype),
              out = llvm::formatv("tensor<{0}x{1}>", outputCount(c, n), dtype);
  const char *words[] = {"sum accumulate f32 order any",
                         "dim 0",
                         "dim 0 sum accumulate f32 order any",
                         "split 0 concat 0",
                         "root [0]",
                         "shift 1"};
  return llvm::formatv("ncclx.grid @g [\"r\" = {0}]\n"
                       "func.func @f(%a: {1}) -> {2} {{\n"
                       "  %r = ncclx.{3} %a {4} over @g[\"r\"]{5} : {1} -> {2}\n"
                       "  return %r : {2}\n}\n",
                       n, in, out, collectiveNames[c.collective], words[c.collective],
                       algorithm.empty() ? "" : " algorithm " + algorithm);
}

/// What can carry a cell, where each is to be measured; else what the options say.
static std::vector<std::string> algorithmsOf(mlir::MLIRContext &context,
                                             const SelectionTarget &target, const Options &options,
                                             const Cell &cell, int nranks) {
  if (options.tune.empty())
    return {options.algorithm};
  std::vector<std::string> names;
  Compilation parsed(context, target);
  if (failed(parsed.parseText(graphOf(cell, nranks, "", "f32"), "")))
    return names;
  parsed.graph().walk([&](CollectiveOpInterface op) {
    auto all = choose(op, /*axes=*/1, target, std::nullopt, /*alternatives=*/true);
    if (failed(all))
      return;
    for (const Candidate &candidate : all->candidates)
      if (candidate.seconds)
        names.push_back(stringifyAlgorithm(candidate.algorithm).str());
  });
  return names;
}

std::vector<Program> ncclx_bench::compileCells(mlir::MLIRContext &context,
                                               const topology::Topology &machine,
                                               const Options &options, std::vector<Cell> &cells,
                                               int nranks) {
  SelectionTarget target{&machine, topology::Rate::payload, options.transport == "shm"};
  target.scratchLimit = options.scratchLimit;
  std::vector<std::string> algorithms;
  std::vector<Cell> each;
  for (const Cell &cell : cells)
    for (std::string &algorithm : algorithmsOf(context, target, options, cell, nranks)) {
      each.push_back(cell);
      algorithms.push_back(std::move(algorithm));
    }
  cells = std::move(each);
  std::vector<Program> programs;
  for (auto [cell, asked] : llvm::zip(cells, algorithms)) {
    auto made = std::make_unique<Compilation>(context, target);
    if (failed(made->parseText(graphOf(cell, nranks, asked, "f32"), "")) ||
        failed(made->choose()) || failed(made->lower()))
      return {};
    made->prove();
    if (!made->proof()) {
      llvm::errs() << "not proved: " << made->proof().str() << "\n";
      return {};
    }
    if (failed(made->generate()))
      return {};
    std::string algorithm = made->collectives().front().algorithm;
    programs.push_back({std::move(made), algorithm});
  }
  return programs;
}

//===- Graph.h - From an ncclx text to outputs, for tests ----------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_REFERENCE_GRAPH_H
#define NCCLX_TEST_UNIT_REFERENCE_GRAPH_H

#include "ncclx/Reference/Data.h"
#include "ncclx/Reference/Interpreter.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cstring>
#include <gtest/gtest.h>

namespace mlir::ncclx::test {

/// A text whose function @f is interpreted, with inputs from a seed. `passes` may run before.
class Graph {
public:
  Graph(const std::string &text, int64_t ranks, InterpreterOptions options = {},
        void (*passes)(OpPassManager &) = nullptr)
      : ranks(ranks), handler(&context, [this](Diagnostic &diagnostic) {
          messages += diagnostic.str() + "\n";
          for (Diagnostic &note : diagnostic.getNotes())
            messages += note.str() + "\n";
        }) {
    DialectRegistry registry;
    registerInterpreterDialects(registry);
    context.appendDialectRegistry(registry);
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return;
    if (passes) {
      PassManager manager(&context);
      passes(manager);
      if (failed(manager.run(*module)))
        return;
    }
    auto result = Interpreter::create(*module, "f", ranks, options);
    if (failed(result))
      return;
    interpreter = std::move(*result);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      auto &own = data.emplace_back();
      for (auto [i, type] : llvm::enumerate(interpreter->getTypes())) {
        own.emplace_back(getDenseBytes(type) + 8, char(0x55));
        if (i < interpreter->getNumInputs())
          fillInputs(7, rank, i, type, own.back().data());
      }
    }
  }

  /// Runs; the error's text, or nothing.
  std::string run() {
    if (!interpreter)
      return "not compiled: " + messages;
    std::vector<std::vector<void *>> buffers(ranks);
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (std::vector<char> &bytes : data[rank])
        buffers[rank].push_back(bytes.data());
    return llvm::toString(interpreter->run(buffers));
  }

  template <typename T> T *input(int64_t rank, size_t i) {
    return reinterpret_cast<T *>(data[rank][i].data());
  }
  template <typename T> T *output(int64_t rank, size_t i) {
    return input<T>(rank, interpreter->getNumInputs() + i);
  }

  int64_t ranks;
  MLIRContext context;
  std::string messages;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<Interpreter> interpreter;
  std::vector<std::vector<std::vector<char>>> data;
};

} // namespace mlir::ncclx::test
#endif // NCCLX_TEST_UNIT_REFERENCE_GRAPH_H

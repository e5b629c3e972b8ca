//===- Interpreter.h - What an ncclx function means ----------------*- C++ -*-===//
#ifndef NCCLX_REFERENCE_INTERPRETER_H
#define NCCLX_REFERENCE_INTERPRETER_H

#include "ncclx/Reference/JitModule.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <chrono>
#include <memory>
#include <vector>

namespace mlir {
class DialectRegistry;
}

namespace mlir::ncclx {

namespace reference {
struct Site;
}

/// Adds what Interpreter::create needs to the registry of the context that parses the module.
void registerInterpreterDialects(DialectRegistry &registry);

struct InterpreterOptions {
  /// How long a rank waits in one collective for ranks that still compute. A rank that can never
  /// come is found at once.
  std::chrono::milliseconds deadline = std::chrono::seconds(60);
  /// Addresses of functions that the module declares only.
  std::vector<JitSymbol> symbols;
};

/// Runs a function of `ncclx` on all ranks of its grid, one thread a rank: the definition of what
/// any schedule for it must compute. It knows nothing of ctran, of the machine or of the runtime:
/// collectives meet in memory and are plain loops, in the declared accumulation type and order; a
/// collective that is started is complete at once. Compute is host code (HostCompute.h).
///
/// A buffer that the program makes is filled with 0xff first, so that a read of the undefined
/// shows.
class Interpreter {
public:
  /// Compiles `function` of `module`, which is not changed; on tensors or on memrefs, before or
  /// after ncclx-expand-futures. All its grids must have `ranks` ranks. On failure a diagnostic
  /// says why.
  static FailureOr<std::unique_ptr<Interpreter>> create(ModuleOp module, StringRef function,
                                                        int64_t ranks,
                                                        const InterpreterOptions &options = {});
  ~Interpreter();

  /// The function's argument types, and then its result types: what run() takes, in this order.
  /// A scalar is passed by address too (index as int64_t, i1 as a byte).
  ArrayRef<Type> getTypes() const { return types; }
  /// How many of them are arguments.
  size_t getNumInputs() const { return numInputs; }

  /// Runs all ranks: buffers[rank][i] is the address of rank's data of getTypes()[i], row-major and
  /// dense. Arguments that are tensors are not written; memrefs are used as they are. An error
  /// names ranks and ops, and outputs are then undefined. One run at a time. Rows of padding, which
  /// the language leaves unspecified, are bytes `padding` in each result of a collective.
  llvm::Error run(ArrayRef<std::vector<void *>> buffers, uint8_t padding = 0xff);

private:
  Interpreter();
  int64_t ranks = 0;
  std::vector<Type> types;
  size_t numInputs = 0;
  std::chrono::milliseconds deadline{};
  std::vector<reference::Site> sites;
  std::vector<std::string> chunks;
  std::unique_ptr<JitModule> code;
  void (*entry)(void **) = nullptr;
};

} // namespace mlir::ncclx
#endif // NCCLX_REFERENCE_INTERPRETER_H

//===- HostCode.h - From text to code, for tests -------------------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_REFERENCE_HOSTCODE_H
#define NCCLX_TEST_UNIT_REFERENCE_HOSTCODE_H

#include "ncclx/Reference/HostCompute.h"
#include "ncclx/Reference/JitModule.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <bit>
#include <cstring>
#include <gtest/gtest.h>

namespace mlir::ncclx::test {

/// One text, compiled. Calls end the test program's case with a readable message.
class HostCode {
public:
  explicit HostCode(const std::string &text, ArrayRef<JitSymbol> symbols = {})
      : handler(&context, [this](Diagnostic &diagnostic) { messages += diagnostic.str() + "\n"; }) {
    DialectRegistry registry;
    registerHostComputeDialects(registry);
    context.appendDialectRegistry(registry);
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module || failed(lowerComputeToLLVM(*module)))
      return;
    auto compiled = JitModule::create(*module, symbols);
    if (!compiled)
      messages += llvm::toString(compiled.takeError());
    else
      jit = std::move(*compiled);
  }

  /// Calls `name` with plain addresses.
  template <typename... Args> void call(StringRef name, Args... args) {
    ASSERT_TRUE(jit) << messages;
    auto function = jit->lookupAs<void(Args...)>(name);
    ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
    (*function)(args...);
  }

  MLIRContext context;
  std::string messages; ///< what went wrong, if anything
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<JitModule> jit;
};

/// bf16 and f16 as the tests' own C++ sees them: bits, and conversion by hand.
inline float bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
inline uint16_t floatToBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value)
    return 0x7fc0;
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float f16ToFloat(uint16_t bits) { return float(std::bit_cast<_Float16>(bits)); }
inline uint16_t floatToF16(float value) { return std::bit_cast<uint16_t>(_Float16(value)); }

} // namespace mlir::ncclx::test
#endif // NCCLX_TEST_UNIT_REFERENCE_HOSTCODE_H

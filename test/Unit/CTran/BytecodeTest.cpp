//===- BytecodeTest.cpp - The version in a bytecode file ---------------------------===//
#include "Programs.h"

#include "mlir/Bytecode/BytecodeWriter.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {
class Bytecode : public ProgramTest {
protected:
  /// Writes a program as `version` says and reads it; the diagnostics, when that fails.
  std::string roundTrip(uint64_t version) {
    parse("%f = ctran.flush after %entry on host\nctran.return %f : !ctran.token");
    BytecodeWriterConfig config;
    config.setDialectVersion<CTranDialect>(std::make_unique<CTranVersion>(version));
    std::string bytes, messages;
    llvm::raw_string_ostream os(bytes);
    EXPECT_TRUE(succeeded(writeBytecodeToFile(*module, os, config)));
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diag) {
      messages += diag.str() + "\n";
      return success();
    });
    auto read = parseSourceString<ModuleOp>(bytes, &context);
    EXPECT_EQ(bool(read), messages.empty());
    return messages;
  }
};

TEST_F(Bytecode, ReadsItsOwnVersion) { EXPECT_EQ(roundTrip(CTranVersion::current), ""); }

TEST_F(Bytecode, RefusesVersionsThatItDoesNotKnow) {
  EXPECT_NE(
      roundTrip(2).find("ctran bytecode has version 2, but this reader knows versions 1 to 1"),
      std::string::npos);
  EXPECT_NE(roundTrip(0).find("ctran bytecode has version 0"), std::string::npos);
}
} // namespace

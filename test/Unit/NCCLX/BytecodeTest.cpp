//===- BytecodeTest.cpp - The dialect's version in bytecode ---------------===//

#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// Writes a module as version `version`, reads it, and returns the diagnostics; none is success.
std::string writeAndRead(std::optional<uint64_t> version) {
  MLIRContext context;
  context.loadDialect<NCCLXDialect>();
  auto module = parseSourceString<ModuleOp>(R"(ncclx.grid @g ["tp" = 4])", &context);
  BytecodeWriterConfig config;
  if (version)
    config.setDialectVersion<NCCLXDialect>(std::make_unique<Version>(*version));
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  EXPECT_TRUE(succeeded(writeBytecodeToFile(*module, stream, config)));

  std::string messages;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diag) { messages += diag.str(); });
  auto read = parseSourceString<ModuleOp>(bytes, &context);
  EXPECT_EQ(!read, !messages.empty());
  return messages;
}

TEST(BytecodeTest, TodaysVersionIsRead) {
  EXPECT_EQ(writeAndRead(std::nullopt), "");
  EXPECT_EQ(writeAndRead(NCCLXDialect::kBytecodeVersion), "");
}

TEST(BytecodeTest, NewerVersionIsRefused) {
  EXPECT_NE(writeAndRead(NCCLXDialect::kBytecodeVersion + 1)
                .find("reads ncclx bytecode versions 1 to 1, but the file has version 2"),
            std::string::npos);
}

TEST(BytecodeTest, VersionZeroIsRefused) { EXPECT_NE(writeAndRead(0), ""); }

} // namespace

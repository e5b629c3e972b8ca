//===- Programs.h - Parses the programs of a test ----------------------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_CTRAN_PROGRAMS_H
#define NCCLX_TEST_UNIT_CTRAN_PROGRAMS_H

#include "ncclx/CTran/CTran.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace mlir::ctran {

/// A program on the grid x = 4, y = 2 whose body is `text`; `%x`, `%y`, `%c0` to `%c4`, and the
/// entry token `%entry` are there.
class ProgramTest : public ::testing::Test {
protected:
  ProgramTest() {
    context
        .loadDialect<CTranDialect, affine::AffineDialect, arith::ArithDialect, scf::SCFDialect>();
  }

  ProgramOp parse(const std::string &text) {
    std::string source = "ctran.program @p grid [\"x\" = 4, \"y\" = 2] {\n"
                         "^bb0(%entry: !ctran.token):\n"
                         "%x = ctran.coord \"x\"\n%y = ctran.coord \"y\"\n";
    for (int i = 0; i < 5; ++i)
      source += "%c" + std::to_string(i) + " = arith.constant " + std::to_string(i) + " : index\n";
    module = parseSourceString<ModuleOp>(source + text + "\n}", &context);
    EXPECT_TRUE(module) << text;
    return module ? *module->getOps<ProgramOp>().begin() : ProgramOp();
  }

  template <typename Op> Op find(ProgramOp program, unsigned which = 0) {
    Op found;
    program.walk([&](Op op) {
      if (which-- == 0)
        found = op;
    });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace mlir::ctran
#endif // NCCLX_TEST_UNIT_CTRAN_PROGRAMS_H

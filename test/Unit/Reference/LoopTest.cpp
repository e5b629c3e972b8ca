//===- LoopTest.cpp - How often loops run -------------------------------------===//
#include "Graph.h"

#include <cstdint>
#include <limits>

using namespace mlir::ncclx;
using namespace mlir::ncclx::test;

namespace {

// A loop has an iteration for each number from the lower bound by steps below the upper one, also
// where the next one, or the difference of the bounds, wraps in its type; of no positive step none.
TEST(Interpreter, LoopsWhoseNextNumberWraps) {
  struct Case {
    const char *compare, *type, *extend;
    int64_t lower, upper, step, count, sum;
  };
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  const Case cases[] = {{"unsigned", "i8", "extui", 0, 250, 100, 3, 300},
                        {"unsigned", "i8", "extui", 255, 0, 1, 0, 0},
                        {"unsigned", "i8", "extui", 0, 255, 1, 255, 255 * 127},
                        {"", "i8", "extsi", 0, 120, 100, 2, 100},
                        {"", "i8", "extsi", -128, 127, 1, 255, -255},
                        {"", "i8", "extsi", -128, 127, 100, 3, -84},
                        {"", "i8", "extsi", 5, 5, 3, 0, 0},
                        {"", "i8", "extsi", 0, 5, 0, 0, 0},
                        {"", "i8", "extsi", 0, 5, -1, 0, 0},
                        {"", "index", "index_cast", least, -(least + 1), -(least + 1), 3, -3}};
  for (const Case &c : cases)
    for (bool known : {false, true}) {
      if (known && c.step <= 0)
        continue;
      std::string type = c.type;
      auto bound = [&](const std::string &name, int64_t value) {
        if (known)
          return "%" + name + " = arith.constant " +
                 std::to_string(type == "i8" ? int64_t(int8_t(value)) : value) + " : " + type +
                 "\n";
        return "%" + name + " = arith." + (type == "i8" ? "trunci" : "index_cast") + " %" + name +
               "0 : i64 to " + type + "\n";
      };
      Graph graph("func.func @f(%l0: i64, %u0: i64, %s0: i64) -> tensor<2xi64> {\n" +
                      bound("l", c.lower) + bound("u", c.upper) + bound("s", c.step) + R"(
        %zero = arith.constant 0 : i64
        %one = arith.constant 1 : i64
        %r:2 = scf.for )" +
                      c.compare + R"( %i = %l to %u step %s iter_args(%n = %zero, %t = %zero)
            -> (i64, i64) : )" +
                      c.type + R"( {
          %m = arith.addi %n, %one : i64
          %j = arith.)" +
                      c.extend + " %i : " + c.type + R"( to i64
          %v = arith.addi %t, %j : i64
          scf.yield %m, %v : i64, i64
        }
        %o = tensor.from_elements %r#0, %r#1 : tensor<2xi64>
        return %o : tensor<2xi64>
      })",
                  1);
      SCOPED_TRACE(type + c.compare + " " + std::to_string(c.lower) + " to " +
                   std::to_string(c.upper) + " by " + std::to_string(c.step));
      ASSERT_TRUE(graph.interpreter) << graph.messages;
      *graph.input<int64_t>(0, 0) = c.lower;
      *graph.input<int64_t>(0, 1) = c.upper;
      *graph.input<int64_t>(0, 2) = c.step;
      ASSERT_EQ(graph.run(), "");
      EXPECT_EQ(graph.output<int64_t>(0, 0)[0], c.count);
      EXPECT_EQ(graph.output<int64_t>(0, 0)[1], c.sum);
    }
}

} // namespace

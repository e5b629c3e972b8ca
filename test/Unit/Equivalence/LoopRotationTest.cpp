//===- LoopRotationTest.cpp - Loops that are hard to rotate --------------------------------===//
#include "Equivalence.h"

#include <gtest/gtest.h>

using namespace equivalence;

namespace {

/// How a loop counts: its type, and what makes a number from 0 to 7, %n, of its own, %i. No upper
/// bound: as the data says, from no turn at all to four.
struct Bounds {
  const char *name, *type, *from, *step;
  const char *to; ///< null: as the data says
  const char *number;
  bool isUnsigned = false;
};

const Bounds bounds[] = {
    {"one by one", "index", "0", "1", "5", "    %n = arith.addi %i, %zero : index\n"},
    {"i32, a step that does not divide", "i32", "1", "3", "9",
     "    %n = arith.index_cast %i : i32 to index\n"},
    {"from below zero", "index", "-3", "2", "4", "    %n = arith.addi %i, %three : index\n"},
    {"i8 above 127", "i8", "2", "50", "-51",
     "    %w8 = arith.index_castui %i : i8 to index\n    %n = arith.divui %w8, %fifty : index\n",
     true},
    {"twice", "index", "0", "4", "5", "    %n = arith.addi %i, %zero : index\n"},
    {"as the data says", "index", "-1", "1", nullptr, "    %n = arith.addi %i, %three : index\n"},
};
// A number that would wrap around behind the last turn is no loop of scf's; 252 does not.

std::string gather(const std::string &to, const std::string &from) {
  return "    " + to + " = ncclx.all_gather " + from +
         " dim 0 over @g[\"x\"] : tensor<4x12xf32> -> tensor<12x12xf32>\n";
}
std::string matmul(const std::string &to, const std::string &a, const std::string &b) {
  return "    " + to + " = linalg.matmul ins(" + a + ", " + b +
         " : tensor<12x12xf32>, tensor<12x12xf32>) outs(%into : tensor<12x12xf32>) -> "
         "tensor<12x12xf32>\n";
}
std::string scatter(const std::string &to, const std::string &from) {
  return "    " + to + " = ncclx.reduce_scatter " + from +
         " dim 0 sum accumulate f32 order ring over @g[\"x\"] : tensor<12x12xf32> -> "
         "tensor<4x12xf32>\n";
}
std::string rows(const std::string &to, const std::string &from, int row) {
  return "    " + to + " = tensor.extract_slice " + from + "[" + std::to_string(row) +
         ", 0] [4, 12] [1, 1] : tensor<12x12xf32> to tensor<4x12xf32>\n";
}
std::string shard(const std::string &to) {
  return "    " + to +
         " = tensor.extract_slice %shards[%n, 0, 0] [1, 4, 12] [1, 1, 1] : tensor<8x4x12xf32> to "
         "tensor<4x12xf32>\n";
}
std::string add(const std::string &to, const std::string &a, const std::string &b) {
  return "    " + to + " = linalg.add ins(" + a + ", " + b +
         " : tensor<4x12xf32>, tensor<4x12xf32>) outs(%small : tensor<4x12xf32>) -> "
         "tensor<4x12xf32>\n";
}

/// What a loop does with %p and %q of 4 x 12 and %sum of 12 x 12, which it carries, %shards of
/// 8 x 4 x 12, %w of 12 x 12 and %outer of 4 x 12.
struct Case {
  const char *name;
  std::string body; ///< up to the yield
  std::string yields;
  bool isPipelined; ///< some collective goes to another iteration
};

std::vector<Case> cases() {
  return {
      {"values change places", gather("%f", "%p") + matmul("%m", "%f", "%w") + rows("%a", "%m", 0),
       "%q, %a, %m", true},
      {"what the next one gathers is made last",
       gather("%f", "%p") + matmul("%m", "%f", "%w") + matmul("%k", "%m", "%w") +
           rows("%a", "%k", 4),
       "%a, %q, %sum", false},
      {"two gathers, each of what the other's product gives",
       gather("%f", "%p") + gather("%h", "%q") + matmul("%m", "%f", "%w") +
           matmul("%k", "%h", "%m") + rows("%a", "%k", 4) + rows("%b", "%m", 8),
       "%a, %b, %k", false},
      {"a gather of a slice by number, and an update by number",
       shard("%s") + gather("%f", "%s") + matmul("%m", "%f", "%w") + scatter("%g", "%m") +
           "    %r = arith.remui %n, %three : index\n    %at = arith.muli %r, %four : index\n"
           "    %t = tensor.insert_slice %g into %sum[%at, 0] [4, 12] [1, 1] : tensor<4x12xf32> "
           "into tensor<12x12xf32>\n" +
           rows("%a", "%f", 0),
       "%a, %q, %t", true},
      {"a sum that goes into another",
       shard("%s") + gather("%f", "%s") + matmul("%m", "%f", "%w") + scatter("%g", "%m") +
           add("%t", "%p", "%g") + add("%u", "%t", "%q"),
       "%t, %u, %m", true},
      {"a sum that the iteration needs",
       gather("%f", "%p") + matmul("%m", "%f", "%w") + scatter("%g", "%m") + add("%t", "%p", "%g"),
       "%t, %p, %m", false},
      {"a sum that is seen before it is made, and its gather from outside",
       gather("%f", "%outer") + matmul("%m", "%f", "%w") + scatter("%g", "%m") +
           add("%t", "%q", "%g") + add("%u", "%q", "%p"),
       "%u, %t, %m", true},
      {"a sum with a number of the iteration in its body",
       shard("%s") + gather("%f", "%s") + matmul("%m", "%f", "%w") + scatter("%g", "%m") +
           "    %k = arith.index_cast %n : index to i32\n    %x = arith.sitofp %k : i32 to f32\n"
           "    %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, "
           "affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]} "
           "ins(%g : tensor<4x12xf32>) outs(%p : tensor<4x12xf32>) {\n    ^bb0(%y: f32, %z: "
           "f32):\n      %v = arith.mulf %y, %x : f32\n      %o = arith.addf %v, %z : f32\n"
           "      linalg.yield %o : f32\n    } -> tensor<4x12xf32>\n",
       "%t, %q, %m", true},
  };
}

GraphText graphOf(const Bounds &b, const Case &c) {
  GraphText g({{"x", 3}});
  auto name = [&](const char *inside, const Tensor &outside) {
    return std::pair(std::string(inside), outside.name);
  };
  std::vector<std::pair<std::string, std::string>> names;
  Tensor p = g.argument({4, 12}, "f32"), q = g.argument({4, 12}, "f32");
  Tensor sum = g.argument({12, 12}, "f32"), into = g.argument({12, 12}, "f32");
  names = {name("%shards", g.argument({8, 4, 12}, "f32")), name("%w", g.argument({12, 12}, "f32")),
           name("%outer", g.argument({4, 12}, "f32")), name("%into", into),
           name("%small", g.empty({4, 12}, "f32"))};
  for (auto [inside, value] : {std::pair("%zero", 0), {"%three", 3}, {"%four", 4}, {"%fifty", 50}})
    names.push_back(
        name(inside, g.op("arith.constant " + std::to_string(value) + " : index", {}, "f32")));
  auto number = [&](const std::string &value) {
    return g.op("arith.constant " + value + " : " + b.type, {}, "f32").name;
  };
  std::string from = number(b.from), step = number(b.step), to;
  if (b.to)
    to = number(b.to);
  else
    to = g.op("arith.addi " + from + ", " + g.count(g.uniformArgument({1}, "i32"), 0, 4) +
                  " : index",
              {}, "f32")
             .name;
  std::string body = c.body, count = b.number;
  for (std::string *text : {&body, &count})
    for (auto &[inside, outside] : names)
      for (size_t at = 0; (at = text->find(inside, at)) != std::string::npos;) {
        size_t end = at + inside.size();
        bool isWhole = end == text->size() || !isalnum((*text)[end]);
        text->replace(at, inside.size(), isWhole ? outside : inside);
        at += (isWhole ? outside : inside).size();
      }
  std::string small = "tensor<4x12xf32>", big = "tensor<12x12xf32>";
  std::string loop = g.empty({1}, "f32").name + "_loop";
  g.op("tensor.empty() : tensor<1xf32>\n  " + loop + ":3 = scf.for " +
           (b.isUnsigned ? "unsigned " : "") + "%i = " + from + " to " + to + " step " + step +
           " iter_args(%p = " + p.name + ", %q = " + q.name + ", %sum = " + sum.name + ") -> (" +
           small + ", " + small + ", " + big + ") " +
           (std::string(b.type) == "index" ? "" : ": " + std::string(b.type) + " ") + "{\n" +
           count + body + "    scf.yield " + c.yields + " : " + small + ", " + small + ", " + big +
           "\n  }",
       {1}, "f32");
  for (int i = 0; i < 3; ++i)
    g.result({loop + "#" + std::to_string(i), i < 2 ? Shape{4, 12} : Shape{12, 12}, "f32", {}, 0});
  return g;
}

/// Every bit of what comes out, under a machine where whatever is legal pays.
void expectKept(const Case &c, const Bounds &b, const char *pass) {
  SCOPED_TRACE(std::string(pass) + ": " + c.name + ", " + b.name);
  GraphText g = graphOf(b, c);
  Options options{.runs = b.to ? 1 : 5,
                  .adversarial = 0,
                  .pipeline = std::string(pass) + "{machine=" NCCLX_MACHINES
                                                  "/../../test/Overlap/Inputs/free-steps.json "
                                                  "margin=0}",
                  .specials = true};
  // A loop that the data ends is not unrolled: it is interpreted. So are others, but for one.
  options.interpretOnly = &b != bounds;
  bool changed = moves(g.str(), options.pipeline);
  if (std::string(pass) == "ncclx-pipeline-loops")
    EXPECT_EQ(changed, c.isPipelined);
  expectEqual(g, options, {"shm"});
}

// What a loop carries, and how it counts, whatever that is.
TEST(LoopRotation, KeepsEveryBit) {
  for (const Case &c : cases())
    for (const Bounds *b : {std::begin(bounds), std::end(bounds) - 1})
      expectKept(c, *b, "ncclx-pipeline-loops");
}
TEST(SlowLoopRotation, KeepsEveryBit) {
  for (const Case &c : cases())
    for (const Bounds &b : bounds)
      for (const char *pass : {"ncclx-pipeline-loops", "ncclx-braid-loops"})
        expectKept(c, b, pass);
}

// One iteration, or none, is nothing to rotate.
TEST(LoopRotation, ShortLoopsStay) {
  for (const char *to : {"0", "1"}) {
    Bounds once{"once", "index", "0", "1", to, "    %n = arith.addi %i, %zero : index\n"};
    for (const char *pass : {"ncclx-pipeline-loops", "ncclx-braid-loops"}) {
      GraphText g = graphOf(once, cases().front());
      std::string pipeline = std::string(pass) +
                             "{machine=" NCCLX_MACHINES
                             "/../../test/Overlap/Inputs/free-steps.json margin=0}";
      EXPECT_FALSE(moves(g.str(), pipeline)) << pass << " to " << to;
    }
  }
}

} // namespace

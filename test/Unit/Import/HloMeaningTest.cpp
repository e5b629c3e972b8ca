//===- HloMeaningTest.cpp - HLO text, imported and interpreted ---------------------------===//
#include "ncclx/Import/Hlo.h"
#include "ncclx/Reference/Interpreter.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// A module of one output, run on all devices: the bytes of the output of each.
class DeviceRun {
public:
  DeviceRun(const std::string &text, int64_t devices,
            const std::vector<std::vector<std::vector<char>>> &inputs = {}) {
    MLIRContext context;
    DialectRegistry registry;
    registerInterpreterDialects(registry);
    context.appendDialectRegistry(registry);
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        messages += diagnostic.str() + "\n";
    });
    OwningOpRef<ModuleOp> module = importHlo(text, "test.hlo", &context, &report);
    if (!module)
      return;
    auto interpreter = Interpreter::create(*module, "main", devices);
    if (failed(interpreter))
      return;
    ArrayRef<Type> types = (*interpreter)->getTypes();
    std::vector<std::vector<std::vector<char>>> data(devices);
    std::vector<std::vector<void *>> buffers(devices);
    for (int64_t d = 0; d < devices; ++d) {
      data[d].resize(types.size());
      for (size_t i = 0; i < types.size(); ++i) {
        auto type = cast<RankedTensorType>(types[i]);
        data[d][i].assign(size_t(type.getNumElements()) * 8 + 8, 0);
        if (i < (*interpreter)->getNumInputs() && d < int64_t(inputs.size()) &&
            i < inputs[d].size())
          std::copy(inputs[d][i].begin(), inputs[d][i].end(), data[d][i].begin());
        else if (i + 1 == (*interpreter)->getNumInputs())
          std::memcpy(data[d][i].data(), &d, 4); // the partition's number
        buffers[d].push_back(data[d][i].data());
      }
    }
    messages += llvm::toString((*interpreter)->run(buffers));
    for (int64_t d = 0; d < devices; ++d)
      outputs.push_back(data[d][(*interpreter)->getNumInputs()]);
  }
  template <typename T> std::vector<T> output(int64_t device, size_t count) const {
    std::vector<T> values(count);
    if (device < int64_t(outputs.size()))
      std::memcpy(values.data(), outputs[device].data(), count * sizeof(T));
    return values;
  }
  HloReport report;
  std::string messages;
  std::vector<std::vector<char>> outputs;
};

/// The output of an entry whose body is given.
template <typename T>
std::vector<T> evaluate(const std::string &body, size_t count, const std::string &above = "") {
  DeviceRun run("HloModule m\n" + above + "ENTRY %main () -> s32[] {\n" + body + "}\n", 1);
  EXPECT_EQ(run.messages, "") << body;
  EXPECT_TRUE(run.report.opaque.empty()) << body;
  return run.output<T>(0, count);
}

/// An op of two constants of a type and their number.
template <typename T>
std::vector<T> binary(const std::string &op, const std::string &type, const std::string &x,
                      const std::string &y, size_t count) {
  std::string of = type + "[" + std::to_string(count) + "]";
  return evaluate<T>("  %x = " + of + " constant({" + x + "})\n  %y = " + of + " constant({" + y +
                         "})\n  ROOT %r = " + of + " " + op + "(%x, %y)\n",
                     count);
}

using I = std::vector<int32_t>;
using U = std::vector<uint32_t>;
using F = std::vector<float>;

TEST(HloMeaning, DivisionIsDefinedEverywhere) {
  EXPECT_EQ(binary<int32_t>("divide", "s32", "7, -7, 5, -2147483648", "2, 2, 0, -1", 4),
            (I{3, -3, -1, INT32_MIN}));
  EXPECT_EQ(binary<int32_t>("remainder", "s32", "7, -7, 5, -2147483648", "2, 2, 0, -1", 4),
            (I{1, -1, 5, 0}));
  EXPECT_EQ(binary<uint32_t>("divide", "u32", "7, 4294967295, 5", "2, 2, 0", 3),
            (U{3, 2147483647, UINT32_MAX}));
}

TEST(HloMeaning, ShiftsByTooMuch) {
  EXPECT_EQ(binary<int32_t>("shift-left", "s32", "1, 1, 1", "3, 32, -1", 3), (I{8, 0, 0}));
  EXPECT_EQ(binary<int32_t>("shift-right-arithmetic", "s32", "-8, -8, 8", "1, 40, 40", 3),
            (I{-4, -1, 0}));
  EXPECT_EQ(binary<int32_t>("shift-right-logical", "s32", "-8, -8", "29, 40", 2), (I{7, 0}));
}

TEST(HloMeaning, SignednessIsTheTypes) {
  EXPECT_EQ(binary<int32_t>("maximum", "s32", "-1, 3", "1, 2", 2), (I{1, 3}));
  EXPECT_EQ(binary<uint32_t>("maximum", "u32", "4294967295, 3", "1, 2", 2), (U{UINT32_MAX, 3}));
  EXPECT_EQ(evaluate<float>("  %x = u8[2] constant({255, 1})\n"
                            "  ROOT %r = f32[2] convert(%x)\n",
                            2),
            (F{255, 1}));
  EXPECT_EQ(evaluate<float>("  %x = s8[2] constant({-1, 1})\n"
                            "  ROOT %r = f32[2] convert(%x)\n",
                            2),
            (F{-1, 1}));
}

TEST(HloMeaning, ConversionsOutOfRange) {
  EXPECT_EQ(evaluate<int32_t>("  %x = f32[6] constant({1.9, -1.9, 3e9, -3e9, nan, inf})\n"
                              "  ROOT %r = s32[6] convert(%x)\n",
                              6),
            (I{1, -1, INT32_MAX, INT32_MIN, 0, INT32_MAX}));
  EXPECT_EQ(evaluate<uint32_t>("  %x = f32[4] constant({1.9, -1.9, 5e9, nan})\n"
                               "  ROOT %r = u32[4] convert(%x)\n",
                               4),
            (U{1, 0, UINT32_MAX, 0}));
}

TEST(HloMeaning, ShapesMove) {
  // Rows of a transposed, cut and reversed numbering.
  EXPECT_EQ(evaluate<int32_t>("  %x = s32[6] iota(), iota_dimension=0\n"
                              "  %m = s32[2,3] reshape(%x)\n"
                              "  %t = s32[3,2] transpose(%m), dimensions={1,0}\n"
                              "  %s = s32[2,2] slice(%t), slice={[0:3:2], [0:2]}\n"
                              "  ROOT %c = s32[2,4] concatenate(%s, %s), dimensions={1}\n",
                              8),
            (I{0, 3, 0, 3, 2, 5, 2, 5}));
  EXPECT_EQ(evaluate<int32_t>("  %x = s32[2] constant({1, 2})\n  %z = s32[] constant(9)\n"
                              "  %b = s32[2,2] broadcast(%x), dimensions={0}\n"
                              "  ROOT %p = s32[3,3] pad(%b, %z), padding=1_0x0_1\n",
                              9),
            (I{9, 9, 9, 1, 1, 9, 2, 2, 9}));
}

TEST(HloMeaning, PlacesAreClamped) {
  std::string x = "  %x = s32[5] iota(), iota_dimension=0\n";
  EXPECT_EQ(
      evaluate<int32_t>(x + "  %i = s32[] constant(4)\n"
                            "  ROOT %r = s32[2] dynamic-slice(%x, %i), dynamic_slice_sizes={2}\n",
                        2),
      (I{3, 4}));
  EXPECT_EQ(evaluate<int32_t>(x + "  %i = s32[] constant(-4)\n  %u = s32[2] constant({7, 8})\n"
                                  "  ROOT %r = s32[5] dynamic-update-slice(%x, %u, %i)\n",
                              5),
            (I{7, 8, 2, 3, 4}));
}

TEST(HloMeaning, Dots) {
  // Batches, and what is left of left and right, in this order.
  EXPECT_EQ(
      evaluate<float>("  %x = f32[12] iota(), iota_dimension=0\n"
                      "  %l = f32[2,2,3] reshape(%x)\n  %r = f32[3,2,2] reshape(%x)\n"
                      "  ROOT %d = f32[2,2,2] dot(%l, %r), lhs_batch_dims={0}, "
                      "rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}\n",
                      8),
      (F{20, 23, 56, 68, 134, 155, 188, 218}));
}

TEST(HloMeaning, Reductions) {
  std::string above = "%sum (a: s32[], b: s32[]) -> s32[] {\n  %a = s32[] parameter(0)\n"
                      "  %b = s32[] parameter(1)\n  ROOT %r = s32[] add(%a, %b)\n}\n";
  EXPECT_EQ(evaluate<int32_t>("  %x = s32[2,3] iota(), iota_dimension=1\n  %z = s32[] constant(5)\n"
                              "  ROOT %r = s32[3] reduce(%x, %z), dimensions={0}, to_apply=%sum\n",
                              3, above),
            (I{5, 7, 9}));
}

TEST(HloMeaning, LoopsCountWhatTheySay) {
  for (auto [direction, end, step, expected] :
       {std::tuple("LT", 7, 2, 4), {"LE", 7, 1, 8}, {"NE", 6, 3, 2}, {"LT", 0, 1, 0}}) {
    std::string number = std::to_string(end), by = std::to_string(step);
    std::string above =
        "%c (s: (s32[], s32[])) -> pred[] {\n  %s = (s32[], s32[]) parameter(0)\n"
        "  %i = s32[] get-tuple-element(%s), index=0\n  %n = s32[] constant(" +
        number +
        ")\n"
        "  ROOT %l = pred[] compare(%i, %n), direction=" +
        direction +
        "\n}\n"
        "%b (t: (s32[], s32[])) -> (s32[], s32[]) {\n  %t = (s32[], s32[]) parameter(0)\n"
        "  %j = s32[] get-tuple-element(%t), index=0\n  %k = s32[] get-tuple-element(%t), index=1\n"
        "  %d = s32[] constant(" +
        by +
        ")\n  %one = s32[] constant(1)\n"
        "  %m = s32[] add(%j, %d)\n  %o = s32[] add(%k, %one)\n"
        "  ROOT %u = (s32[], s32[]) tuple(%m, %o)\n}\n";
    EXPECT_EQ(evaluate<int32_t>("  %z = s32[] constant(0)\n  %s = (s32[], s32[]) tuple(%z, %z)\n"
                                "  %w = (s32[], s32[]) while(%s), condition=%c, body=%b\n"
                                "  ROOT %r = s32[] get-tuple-element(%w), index=1\n",
                                1, above),
              I{expected})
        << direction;
  }
}

/// Each device has its number in every element.
std::string onDevices(const std::string &root, const std::string &above = "") {
  return "HloModule m, num_partitions=4\n" + above +
         "ENTRY %main () -> s32[] {\n  %id = u32[] partition-id()\n  %i = s32[] convert(%id)\n"
         "  %x = s32[4] broadcast(%i), dimensions={}\n  %n = s32[4] iota(), iota_dimension=0\n"
         "  %ten = s32[] constant(10)\n  %t = s32[4] broadcast(%ten), dimensions={}\n"
         "  %m = s32[4] multiply(%x, %t)\n  %v = s32[4] add(%m, %n)\n" +
         root + "}\n";
}

const std::string sum = "%sum (a: s32[], b: s32[]) -> s32[] {\n  %a = s32[] parameter(0)\n"
                        "  %b = s32[] parameter(1)\n  ROOT %r = s32[] add(%a, %b)\n}\n";

TEST(HloMeaning, Collectives) {
  DeviceRun swapped(
      onDevices("  ROOT %r = s32[8] all-gather(%v), channel_id=1, "
                "replica_groups={{0,2},{1,3}}, dimensions={0}, use_global_device_ids=true\n"),
      4);
  EXPECT_EQ(swapped.messages, "");
  for (int d = 0; d < 4; ++d) {
    int low = d % 2 * 10, high = low + 20;
    EXPECT_EQ(swapped.output<int32_t>(d, 8),
              (I{low, low + 1, low + 2, low + 3, high, high + 1, high + 2, high + 3}));
  }
  DeviceRun scattered(
      onDevices("  %ar = s32[4] all-reduce(%v), channel_id=1, replica_groups=[1,4]<=[4], "
                "use_global_device_ids=true, to_apply=%sum\n"
                "  ROOT %r = s32[1] dynamic-slice(%ar, %i), dynamic_slice_sizes={1}\n",
                sum),
      4);
  EXPECT_EQ(scattered.messages, "");
  EXPECT_EQ(scattered.report.scatters, 1);
  for (int d = 0; d < 4; ++d)
    EXPECT_EQ(scattered.output<int32_t>(d, 1), I{60 + 4 * d});
  DeviceRun permuted(onDevices("  ROOT %r = s32[4] collective-permute(%v), channel_id=1, "
                               "source_target_pairs={{0,3},{3,1}}\n"),
                     4);
  EXPECT_EQ(permuted.messages, "");
  EXPECT_EQ(permuted.output<int32_t>(3, 4), (I{0, 1, 2, 3}));
  EXPECT_EQ(permuted.output<int32_t>(1, 4), (I{30, 31, 32, 33}));
  EXPECT_EQ(permuted.output<int32_t>(0, 4), (I{0, 0, 0, 0}));
  DeviceRun exchanged(onDevices("  ROOT %r = s32[4] all-to-all(%v), channel_id=1, "
                                "replica_groups={{0,1,2,3}}, dimensions={0}\n"),
                      4);
  EXPECT_EQ(exchanged.messages, "");
  EXPECT_EQ(exchanged.output<int32_t>(2, 4), (I{2, 12, 22, 32}));
}

// Four bits wrap at four bits, whatever carries them; a predicate's sum is "or".
TEST(HloMeaning, SmallTypesKeepTheirMeaning) {
  std::string above = "%add (a.1: s4[], b.1: s4[]) -> s4[] {\n  %a.1 = s4[] parameter(0)\n"
                      "  %b.1 = s4[] parameter(1)\n  ROOT %r.1 = s4[] add(%a.1, %b.1)\n}\n"
                      "%or (a.2: pred[], b.2: pred[]) -> pred[] {\n  %a.2 = pred[] parameter(0)\n"
                      "  %b.2 = pred[] parameter(1)\n  ROOT %r.2 = pred[] or(%a.2, %b.2)\n}\n";
  DeviceRun four(onDevices("  %s = s4[4] convert(%x)\n"
                           "  %ar = s4[4] all-reduce(%s), channel_id=1, replica_groups=[1,4]<=[4], "
                           "use_global_device_ids=true, to_apply=%add\n"
                           "  %d = s4[4] add(%ar, %ar)\n  ROOT %r = s32[4] convert(%d)\n",
                           above),
                 4);
  EXPECT_EQ(four.messages, "");
  EXPECT_EQ(four.output<int32_t>(1, 4), (I{-4, -4, -4, -4})); // 2 * 6 = 12
  DeviceRun any(
      onDevices("  %two = s32[4] broadcast(%ten), dimensions={}\n"
                "  %p = pred[4] compare(%v, %two), direction=LT\n"
                "  %ar = pred[4] all-reduce(%p), channel_id=1, replica_groups=[1,4]<=[4], "
                "use_global_device_ids=true, to_apply=%or\n"
                "  ROOT %r = s32[4] convert(%ar)\n",
                above),
      4);
  EXPECT_EQ(any.messages, "");
  EXPECT_EQ(any.output<int32_t>(3, 4), (I{1, 1, 1, 1}));
}

// Numbers without a sign are compared without one, whatever carries them.
TEST(HloMeaning, UnsignedMaxima) {
  std::string above = "%max (a.1: u32[], b.1: u32[]) -> u32[] {\n  %a.1 = u32[] parameter(0)\n"
                      "  %b.1 = u32[] parameter(1)\n  ROOT %r.1 = u32[] maximum(%a.1, %b.1)\n}\n";
  DeviceRun most(
      onDevices("  %one = s32[] constant(1)\n  %ones = s32[4] broadcast(%one), dimensions={}\n"
                "  %less = s32[4] subtract(%x, %ones)\n  %u = u32[4] convert(%less)\n"
                "  ROOT %ar = u32[4] all-reduce(%u), channel_id=1, replica_groups=[1,4]<=[4], "
                "use_global_device_ids=true, to_apply=%max\n",
                above),
      4);
  EXPECT_EQ(most.messages, "");
  EXPECT_EQ(most.output<uint32_t>(2, 1), U{UINT32_MAX}); // device 0's -1
}

} // namespace

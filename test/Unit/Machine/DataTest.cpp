#include "Examples.h"
#include "Small.h"
#include "ncclx/Machine/Machine.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace mlir::ctran::machine;
using namespace mlir::ctran::machine::examples;

namespace {

TEST(Data, RightSchedulesStayRightInEveryOrderTried) {
  for (const char *name :
       {"direct 4", "direct 3 counted", "ring 4", "ring 3 pieces=2 slots=1", "ring 2,2",
        "doubling 3", "two-shot 3", "one-shot 4", "bruck 5", "bruck-intervals 6", "pipeline 3"})
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      DataResult result = run(*byName(name), {.seed = seed});
      EXPECT_TRUE(result) << name << " seed " << seed << ": " << result.message;
    }
}

TEST(Data, WrongSchedulesGoWrongInSomeOrder) {
  struct Case {
    const char *schedule, *note, *mutator;
    DataResult::Outcome outcome;
  };
  for (const Case &c : {Case{"ring 3", "wait rs", "drop", DataResult::Outcome::Wrong},
                        Case{"ring 3", "ag put", "notify", DataResult::Outcome::Hang},
                        Case{"doubling 2", "flush", "drop", DataResult::Outcome::Wrong},
                        Case{"direct 3", "wait rtr", "drop", DataResult::Outcome::Wrong}}) {
    ExampleRef base = byName(c.schedule);
    Mutator change;
    for (const auto &[name, mutator] : mutators())
      if (name == c.mutator)
        change = mutator;
    Mutant mutant(base, find(*base, c.note), change);
    bool seen = false;
    for (uint64_t seed = 1; seed <= 300 && !seen; ++seed)
      seen = run(mutant, {.seed = seed}).outcome == c.outcome;
    EXPECT_TRUE(seen) << c.schedule << " " << c.note << " " << c.mutator;
  }
}

/// f32 sums: input of rank r in run e is r + 10 e + index.
class Sums : public DataModel {
public:
  explicit Sums(int64_t ranks) : ranks(ranks) {}
  void input(int64_t rank, unsigned, int64_t run, uint8_t *bytes, int64_t size) override {
    for (int64_t i = 0; i < size / 4; ++i)
      set(bytes, i, static_cast<float>(rank + 10 * run + i));
  }
  void reduce(const Op &, const std::vector<const uint8_t *> &srcs, uint8_t *dst,
              int64_t size) override {
    for (int64_t i = 0; i < size / 4; ++i) {
      float sum = 0;
      for (const uint8_t *src : srcs)
        sum += get(src, i);
      set(dst, i, sum);
    }
  }
  void compute(const Op &, int64_t, int64_t, const std::vector<std::vector<uint8_t>> &reads,
               std::vector<std::vector<uint8_t>> &writes) override {
    for (size_t i = 0; i < writes.size(); ++i)
      std::memcpy(writes[i].data(), reads[i].data(), writes[i].size());
  }
  std::string output(int64_t, unsigned, int64_t run, const uint8_t *bytes, int64_t size) override {
    ++outputs;
    for (int64_t i = 0; i < size / 4; ++i) {
      float want = static_cast<float>(ranks * (ranks - 1) / 2 + ranks * (10 * run + i));
      if (get(bytes, i) != want)
        return "element " + std::to_string(i) + " is " + std::to_string(get(bytes, i)) +
               ", expected " + std::to_string(want);
    }
    return {};
  }
  int64_t outputs = 0;

private:
  static float get(const uint8_t *bytes, int64_t i) {
    float value;
    std::memcpy(&value, bytes + 4 * i, 4);
    return value;
  }
  static void set(uint8_t *bytes, int64_t i, float value) { std::memcpy(bytes + 4 * i, &value, 4); }
  int64_t ranks;
};

TEST(Data, RealBytesOfUnevenSizes) {
  for (int64_t count : {0, 1, 7, 12}) {
    Small s = small::allReduceTwoShot(3, count);
    ASSERT_TRUE(prove(s)) << prove(s).str();
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      Sums sums(3);
      DataResult result = run(s, {.seed = seed, .model = &sums});
      EXPECT_TRUE(result) << result.message;
      EXPECT_EQ(sums.outputs, 3 * 2);
    }
  }
}

/// Input 0 is one number; input 1 is copied, as far as the number says, to the next rank's output.
class Sizes : public DataModel {
public:
  explicit Sizes(int64_t extra = 0) : extra(extra) {}
  static int32_t size(int64_t rank, int64_t run) { return static_cast<int32_t>((rank + run) % 4); }
  void input(int64_t rank, unsigned window, int64_t run, uint8_t *bytes, int64_t count) override {
    int32_t number = static_cast<int32_t>(size(rank, run) + extra);
    if (window == 0)
      std::memcpy(bytes, &number, 4);
    else
      std::memset(bytes, static_cast<int>(1 + rank), static_cast<size_t>(count));
  }
  void reduce(const Op &, const std::vector<const uint8_t *> &, uint8_t *, int64_t) override {}
  void compute(const Op &, int64_t, int64_t, const std::vector<std::vector<uint8_t>> &,
               std::vector<std::vector<uint8_t>> &writes) override {
    for (std::vector<uint8_t> &bytes : writes)
      std::fill(bytes.begin(), bytes.end(), 0);
  }
  std::string output(int64_t rank, unsigned, int64_t run, const uint8_t *bytes,
                     int64_t count) override {
    int64_t from = (rank + 2) % 3;
    for (int64_t i = 0; i < count / 4; ++i)
      if (bytes[4 * i] != (i < size(from, run) ? 1 + from : 0))
        return "element " + std::to_string(i) + " is " + std::to_string(bytes[4 * i]);
    return {};
  }

private:
  int64_t extra;
};

TEST(Data, RealSizesMoveWhatTheySay) {
  Small s = small::empty(3);
  s.windows = {small::window("size", Window::Role::Input, 1, {}),
               small::window("in", Window::Role::Input, 3, {}),
               small::window("out", Window::Role::Output, 3, {})};
  s.slots = {{"ready", {}}, {"data", {}}};
  size_t entry = s.add(OpKind::Entry, small::user());
  size_t zero = s.add(OpKind::Compute, small::compute(), {entry});
  s.ops[zero].writes = {small::box(2)};
  size_t ready = s.add(OpKind::Signal, small::sm(), {zero});
  s.ops[ready].slot = SlotRef{0, small::peer(-1), {}, {}, -1};
  size_t granted = s.add(OpKind::Wait, small::sm(1));
  s.ops[granted].slot = SlotRef{0, {}, {}, {}, -1};
  s.ops[granted].k = 1;
  size_t count = s.add(OpKind::Count, small::sm(2), {entry});
  s.ops[count].reads = {small::box(0)};
  s.ops[count].countMax = 3;
  size_t copy = s.add(OpKind::Copy, small::sm(1), {entry, count});
  s.ops[copy].reads = {small::box(1)};
  s.ops[copy].writes = {small::box(2, {}, small::peer(1))};
  s.ops[copy].slot = SlotRef{1, small::peer(1), {}, {}, -1};
  size_t arrived = s.add(OpKind::Wait, small::sm());
  s.ops[arrived].slot = SlotRef{1, {}, {}, {}, -1};
  s.ops[arrived].k = 1;
  s.add(OpKind::Exit, small::user(), {arrived, copy});
  s.sizeOf[copy] = count;
  ASSERT_TRUE(prove(s)) << prove(s).str();
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Sizes sizes;
    DataResult result = run(s, {.seed = seed, .runs = 4, .model = &sizes});
    EXPECT_TRUE(result) << result.message;
  }
  Sizes tooLarge(4);
  DataResult result = run(s, {.runs = 4, .model = &tooLarge});
  EXPECT_EQ(result.outcome, DataResult::Outcome::Wrong);
  EXPECT_NE(result.message.find("expected 0 to 3"), std::string::npos) << result.message;
}

TEST(Data, RealBytesShowAWrongIndex) {
  Small s = small::allReduceTwoShot(3, 7);
  for (Op &op : s.ops)
    if (op.kind == OpKind::Reduce)
      op.reads[0].path[0].value += 1;
  EXPECT_EQ(prove(s).verdict, Verdict::Result);
  Sums sums(3);
  EXPECT_EQ(run(s, {.model = &sums}).outcome, DataResult::Outcome::Wrong);
}

} // namespace

//===- HloGroupsTest.cpp - Lists, iota forms and meshes as axes -----------------------===//
#include "HloGroups.h"

#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace mlir::ncclx::hlo;
using Lists = std::vector<std::vector<int64_t>>;

namespace {

/// The groups that digits mean, each in member order, by their first device.
Lists groupsOf(const Digits &digits, int64_t ids) {
  Lists groups;
  for (int64_t base = 0; base < ids; ++base) {
    bool first = true;
    for (const Digit &digit : digits)
      first &= base / digit.stride % digit.size == 0;
    if (!first)
      continue;
    std::vector<int64_t> members = {base};
    for (const Digit &digit : digits) {
      std::vector<int64_t> more;
      for (int64_t member : members)
        for (int64_t i = 0; i < digit.size; ++i)
          more.push_back(member + i * digit.stride);
      members = std::move(more);
    }
    groups.push_back(members);
  }
  return groups;
}

std::string write(const Lists &lists) {
  std::string text = "{";
  for (const auto &list : lists) {
    text += text.size() > 1 ? ",{" : "{";
    for (size_t i = 0; i < list.size(); ++i)
      text += (i ? "," : "") + std::to_string(list[i]);
    text += "}";
  }
  return text + "}";
}

// Every way to pick axes of a box, in every order: what is listed comes back.
TEST(HloGroups, ListsOfAxes) {
  const std::vector<int64_t> sizes = {2, 3, 2, 4};
  std::vector<int64_t> strides = {24, 8, 4, 1};
  int count = 0;
  for (unsigned mask = 0; mask < 16; ++mask) {
    std::vector<unsigned> axes;
    for (unsigned i = 0; i < 4; ++i)
      if (mask >> i & 1)
        axes.push_back(i);
    do {
      Digits digits;
      for (unsigned axis : axes)
        digits.push_back({strides[axis], sizes[axis]});
      Lists expected = groupsOf(digits, 48);
      Groups read = readGroups(write(expected), 48);
      ASSERT_TRUE(read.digits) << write(expected) << ": " << read.why;
      EXPECT_EQ(groupsOf(*read.digits, 48), expected);
      ++count;
    } while (std::next_permutation(axes.begin(), axes.end()));
  }
  EXPECT_EQ(count, 65);
}

TEST(HloGroups, IotaIsWhatItsListsAre) {
  for (auto [iota, lists] : {std::pair("[2,4]<=[8]", "{{0,1,2,3},{4,5,6,7}}"),
                             {"[4,2]<=[2,4]T(1,0)", "{{0,4},{1,5},{2,6},{3,7}}"},
                             {"[2,4]<=[2,2,2]T(1,0,2)", "{{0,1,4,5},{2,3,6,7}}"},
                             {"[2,4]<=[2,2,2]T(2,1,0)", "{{0,4,2,6},{1,5,3,7}}"},
                             {"[1,8]<=[8]", "{{0,1,2,3,4,5,6,7}}"},
                             {"[8,1]<=[8]", "{{0},{1},{2},{3},{4},{5},{6},{7}}"}}) {
    Groups a = readGroups(iota, 8), b = readGroups(lists, 8);
    ASSERT_TRUE(a.digits) << iota << a.why;
    ASSERT_TRUE(b.digits) << lists << b.why;
    EXPECT_EQ(groupsOf(*a.digits, 8), groupsOf(*b.digits, 8)) << iota;
  }
  EXPECT_FALSE(readGroups("[2,3]<=[3,2]T(1,0)", 6).wrong);
  EXPECT_FALSE(readGroups("[3,4]<=[4,3]", 12).digits); // a group ends within an axis
}

TEST(HloGroups, Misfits) {
  for (const char *text : {"{{0,1,2},{3,4,5,6,7}}", "{{0,3,5,6},{1,2,4,7}}", "{{0,1},{2,3}}",
                           "{{1,0},{3,2},{5,4},{7,6}}", "{{0,2},{1,3},{4,5},{6,7}}"}) {
    Groups read = readGroups(text, 8);
    EXPECT_FALSE(read.digits) << text;
    EXPECT_FALSE(read.wrong) << text;
  }
  for (const char *text : {"{{0,1},{2,9}}", "{{0,1},{1,2}}", "[3,4]<=[8]", "[2,4]<=[8]T(0,1)",
                           "{{0,x}}", "hello", "mesh['x'=8] {'z'}", "[2]<=[8]"})
    EXPECT_TRUE(readGroups(text, 8).wrong) << text;
}

TEST(HloGroups, AxesMeet) {
  Axes axes(24);
  EXPECT_TRUE(axes.add(Digit{1, 4}));
  EXPECT_TRUE(axes.add(Digit{4, 6}));
  EXPECT_FALSE(axes.add(Digit{1, 3})); // 3 does not divide 4
  EXPECT_TRUE(axes.add(Digit{2, 4}));
  EXPECT_EQ(axes.sizes(), (llvm::SmallVector<int64_t>{3, 2, 2, 2}));
  EXPECT_EQ(axes.spanned(Digit{4, 6}), (llvm::SmallVector<unsigned>{0, 1}));
  EXPECT_EQ(axes.spanned({Digit{1, 2}, Digit{4, 2}}), (llvm::SmallVector<unsigned>{3, 1}));
  EXPECT_EQ(Axes(1).sizes(), (llvm::SmallVector<int64_t>{1}));
}

} // namespace

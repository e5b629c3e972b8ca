//===- ReadFileTest.cpp - Whatever a user may name as a file --------------===//
#include "ncclx/Support/ReadFile.h"
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using mlir::ncclx::maxFileBytes;
using mlir::ncclx::readFile;

namespace {
class ReadFile : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/ncclx-read-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string place(const char *name) const { return folder + "/" + name; }
  /// Why a file is refused; "" if it is read.
  static std::string refused(const std::string &path) {
    std::string problem;
    return readFile(path, problem) ? "" : problem;
  }
  std::string folder;
};

TEST_F(ReadFile, AllBytes) {
  std::string bytes;
  for (unsigned i = 0; i < 200'000; ++i)
    bytes += char(i * 7919 % 256);
  std::ofstream(place("some"), std::ios::binary) << bytes;
  std::ofstream(place("none"), std::ios::binary);
  std::string problem;
  EXPECT_EQ(readFile(place("some"), problem), bytes);
  EXPECT_EQ(readFile(place("none"), problem), "");
  EXPECT_EQ(readFile("/dev/null", problem), "");
  EXPECT_EQ(problem, "");
}

TEST_F(ReadFile, WhatIsNoFile) {
  EXPECT_EQ(refused(place("missing")), "cannot be read: No such file or directory");
  EXPECT_EQ(refused(""), "cannot be read: No such file or directory");
  EXPECT_EQ(refused(folder), "is a directory");
  if (geteuid() != 0) { // whom nothing is forbidden
    std::ofstream(place("mine"));
    chmod(place("mine").c_str(), 0);
    EXPECT_EQ(refused(place("mine")), "cannot be read: Permission denied");
  }
}

TEST_F(ReadFile, WhatIsTooLarge) {
  EXPECT_EQ(refused("/dev/zero"), "does not end; at most 268435456 bytes are read");
  std::ofstream(place("large"));
  ASSERT_EQ(truncate(place("large").c_str(), off_t(1) << 40), 0);
  EXPECT_EQ(refused(place("large")), "has 1099511627776 bytes; at most 268435456 are read");
  ASSERT_EQ(truncate(place("large").c_str(), off_t(maxFileBytes)), 0);
  EXPECT_EQ(refused(place("large")), "");
}

TEST_F(ReadFile, Pipes) {
  std::string pipe = place("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refused(pipe), "is a pipe that nobody writes to");
  // A writer that comes late, and then takes its time.
  std::thread writer([&] {
    usleep(100'000);
    int file = open(pipe.c_str(), O_WRONLY);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(write(file, "word ", 5), 5);
      usleep(20'000);
    }
    close(file);
  });
  std::string problem;
  EXPECT_EQ(readFile(pipe, problem), "word word word ") << problem;
  writer.join();
}
} // namespace

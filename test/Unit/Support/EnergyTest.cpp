//===- EnergyTest.cpp - Counters of processor packages ------------------------===//
#include "Energy.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>

using ncclx_bench::EnergyCounter;
namespace fs = std::filesystem;

namespace {
class Energy : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> made;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("ncclx-energy", made));
    folder = made.str().str();
  }
  void TearDown() override { fs::remove_all(folder); }
  void put(const std::string &zone, const std::string &file, const std::string &text) {
    fs::create_directories(fs::path(folder) / zone);
    std::ofstream(fs::path(folder) / zone / file) << text << '\n';
  }
  void package(const std::string &zone, const std::string &name, long long microjoules) {
    put(zone, "name", name);
    put(zone, "max_energy_range_uj", "4000000000");
    put(zone, "constraint_0_power_limit_uw", "100000000");
    put(zone, "energy_uj", std::to_string(microjoules));
  }
  std::string folder, why;
};
} // namespace

// Two packages, one of them shown by two interfaces, a zone of cores, and one that counts nothing.
TEST_F(Energy, IsThatOfEachPackageOnce) {
  package("intel-rapl:0", "package-0", 5'000'000);
  package("intel-rapl:1", "package-1", 7'000'000);
  package("intel-rapl-mmio:0", "package-0", 5'000'000);
  put("intel-rapl:0:0", "name", "core");
  put("intel-rapl:0:0", "energy_uj", "1");
  put("intel-rapl", "enabled", "1");
  std::optional<EnergyCounter> counter = EnergyCounter::find(folder, why);
  ASSERT_TRUE(counter.has_value()) << why;
  EXPECT_DOUBLE_EQ(counter->capWatts(), 200);
  EXPECT_DOUBLE_EQ(counter->joules().value(), 0);
  for (const char *zone : {"intel-rapl:0", "intel-rapl-mmio:0"})
    put(zone, "energy_uj", "8000000");
  put("intel-rapl:1", "energy_uj", "7500000");
  put("intel-rapl:0:0", "energy_uj", "900000000");
  EXPECT_DOUBLE_EQ(counter->joules().value(), 3.5);
  EXPECT_DOUBLE_EQ(counter->joules().value(), 3.5);
}

TEST_F(Energy, OfACounterThatBeginsAnew) {
  package("intel-rapl:0", "package-0", 3'999'000'000);
  std::optional<EnergyCounter> counter = EnergyCounter::find(folder, why);
  ASSERT_TRUE(counter.has_value()) << why;
  put("intel-rapl:0", "energy_uj", "2000000");
  EXPECT_DOUBLE_EQ(counter->joules().value(), 3);
}

TEST_F(Energy, IsNotKnownWhereItCannotBeRead) {
  EXPECT_FALSE(EnergyCounter::find(folder, why).has_value());
  EXPECT_NE(why.find("has no processor package with an energy counter"), std::string::npos) << why;
  package("intel-rapl:0", "package-0", 1);
  std::optional<EnergyCounter> counter = EnergyCounter::find(folder, why);
  ASSERT_TRUE(counter.has_value());
  put("intel-rapl:0", "energy_uj", "denied");
  EXPECT_FALSE(counter->joules().has_value());
  EXPECT_FALSE(EnergyCounter::find(folder, why).has_value());
  EXPECT_NE(why.find("energy_uj cannot be read"), std::string::npos) << why;
}

//===- Energy.cpp - What this machine's processors draw --------------------===//
#include "Energy.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

using namespace ncclx_bench;
namespace fs = std::filesystem;

static std::optional<double> readNumber(const fs::path &path) {
  std::ifstream file(path);
  double value;
  return file >> value && value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<EnergyCounter> EnergyCounter::find(const std::string &folder, std::string &why) {
  EnergyCounter counter;
  std::vector<fs::path> zones;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    zones.push_back(it->path());
  std::sort(zones.begin(), zones.end());
  std::vector<std::string> names; // a package may be shown by two interfaces
  bool isCapped = true;
  for (const fs::path &zone : zones) {
    std::string name;
    std::getline(std::ifstream(zone / "name") >> std::ws, name);
    if (name.rfind("package", 0) != 0 || std::find(names.begin(), names.end(), name) != names.end())
      continue;
    std::optional<double> now = readNumber(zone / "energy_uj");
    if (!now) {
      why = (zone / "energy_uj").string() + " cannot be read";
      return std::nullopt;
    }
    names.push_back(name);
    counter.packages.push_back(
        {zone / "energy_uj", *now, readNumber(zone / "max_energy_range_uj").value_or(0)});
    std::optional<double> limit = readNumber(zone / "constraint_0_power_limit_uw");
    isCapped &= limit.has_value();
    counter.cap += limit.value_or(0) * 1e-6;
  }
  if (counter.packages.empty()) {
    why = folder + " has no processor package with an energy counter (RAPL)";
    return std::nullopt;
  }
  if (!isCapped)
    counter.cap = 0;
  return counter;
}

std::optional<double> EnergyCounter::joules() {
  for (Package &package : packages) {
    std::optional<double> now = readNumber(package.path);
    if (!now)
      return std::nullopt;
    double more = *now - package.last;
    sum += (more < 0 ? more + package.range : more) * 1e-6;
    package.last = *now;
  }
  return sum;
}

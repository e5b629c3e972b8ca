//===- Energy.h - What this machine's processors draw -----------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_BENCH_ENERGY_H
#define NCCLX_TOOLS_NCCLX_BENCH_ENERGY_H

#include <optional>
#include <string>
#include <vector>

namespace ncclx_bench {

/// The energy counters of processor packages (RAPL), as Linux' powercap shows them.
class EnergyCounter {
public:
  /// Of all packages below `folder` (/sys/class/powercap); nothing, and `why`, where there is none
  /// or it may not be read.
  static std::optional<EnergyCounter> find(const std::string &folder, std::string &why);
  /// Joules since it was found; nothing once a counter cannot be read. A counter that has begun
  /// anew since the last call, once, is known to have.
  std::optional<double> joules();
  /// What the packages may draw together for long; 0: not said.
  double capWatts() const { return cap; }

private:
  struct Package {
    std::string path;
    double last = 0, range = 0; ///< microjoules
  };
  std::vector<Package> packages;
  double sum = 0, cap = 0;
};

} // namespace ncclx_bench
#endif // NCCLX_TOOLS_NCCLX_BENCH_ENERGY_H

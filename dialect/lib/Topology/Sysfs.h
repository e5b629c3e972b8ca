//===- Sysfs.h - What the Linux kernel says of a machine --------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_SYSFS_H
#define NCCLX_LIB_TOPOLOGY_SYSFS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mlir::ncclx::topology {

/// Reads below ROOT/sys and ROOT/proc. What is not there is left empty.
class Sysfs {
public:
  explicit Sysfs(std::string root) : root(std::move(root)) {}

  struct Numa {
    unsigned id = 0, cores = 0;
    std::string cpus; ///< "0-23,48-71"
    uint64_t memoryBytes = 0;
  };
  /// In order of their numbers; never empty.
  [[nodiscard]] std::vector<Numa> numaNodes() const;

  struct Processor {
    std::string arch, vendor; ///< "x86_64", "GenuineIntel"
    int family = 0, model = 0;
  };
  [[nodiscard]] Processor processor() const;

  struct PciDevice {
    std::string busId, deviceClass, vendor, device, speed, width;
  };
  /// The bridges above a device and the device itself, outermost first; empty if it is not there.
  [[nodiscard]] std::vector<PciDevice> pciPath(const std::string &busId) const;
  /// The NUMA node of a PCI device; 0 where the kernel does not say.
  [[nodiscard]] unsigned numaOf(const std::string &busId) const;

  struct Port {
    std::string device; ///< "mlx5_0"
    unsigned number = 1;
    std::string busId, guid, state; ///< state "4: ACTIVE"
    unsigned long megabits = 0;
  };
  /// The ports of all verbs devices, by name.
  [[nodiscard]] std::vector<Port> verbsPorts() const;

  /// Names in a folder, sorted; empty if it cannot be read.
  [[nodiscard]] std::vector<std::string> list(const std::string &folder) const;
  /// Of a file of lines "name number"; other lines are skipped.
  [[nodiscard]] std::map<std::string, uint64_t> properties(const std::string &path) const;

private:
  /// The first line of a file, trimmed; "" if it cannot be read.
  [[nodiscard]] std::string line(const std::string &path) const;
  [[nodiscard]] std::string resolved(const std::string &path) const;

  std::string root;
};

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_SYSFS_H

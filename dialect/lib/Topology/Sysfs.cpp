//===- Sysfs.cpp ----------------------------------------------------------===//
#include "Sysfs.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sys/utsname.h>

using namespace mlir::ncclx::topology;
namespace fs = std::filesystem;
using llvm::StringRef;

std::string Sysfs::line(const std::string &path) const {
  std::ifstream file(root + path);
  std::string text;
  std::getline(file, text);
  return StringRef(text).trim().str();
}

std::vector<std::string> Sysfs::list(const std::string &folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(root + folder, error), end; !error && it != end;
       it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::map<std::string, uint64_t> Sysfs::properties(const std::string &path) const {
  std::map<std::string, uint64_t> values;
  std::ifstream file(root + path);
  for (std::string text; std::getline(file, text);) {
    auto [name, value] = StringRef(text).trim().split(' ');
    uint64_t number;
    if (!value.trim().getAsInteger(10, number))
      values[name.str()] = number;
  }
  return values;
}

std::string Sysfs::resolved(const std::string &path) const {
  std::error_code error;
  fs::path real = fs::canonical(root + path, error);
  return error ? "" : real.string();
}

/// "MemTotal:  24683656 kB", wherever it stands in the line.
static uint64_t memoryIn(StringRef text) {
  uint64_t kilobytes;
  return text.split("MemTotal:").second.ltrim().consumeInteger(10, kilobytes) ? 0
                                                                              : kilobytes * 1024;
}

/// "0-3,8" has five.
static unsigned countCpus(StringRef text) {
  llvm::SmallVector<StringRef> ranges;
  text.split(ranges, ',', -1, false);
  unsigned count = 0;
  for (StringRef range : ranges) {
    auto [first, last] = range.split('-');
    unsigned from, to;
    if (first.getAsInteger(10, from))
      continue;
    if (last.getAsInteger(10, to))
      to = from;
    if (to >= from && to - from < 1u << 16)
      count += to - from + 1;
  }
  return count;
}

std::vector<Sysfs::Numa> Sysfs::numaNodes() const {
  std::vector<Numa> nodes;
  const std::string folder = "/sys/devices/system/node";
  for (const std::string &name : list(folder)) {
    Numa node;
    StringRef number = name;
    if (!number.consume_front("node") || number.getAsInteger(10, node.id))
      continue;
    node.cpus = line(folder + "/" + name + "/cpulist");
    node.cores = countCpus(node.cpus);
    node.memoryBytes = memoryIn(line(folder + "/" + name + "/meminfo"));
    // A node of memory alone (an accelerator's, or expanded memory) runs no process.
    if (node.cores > 0)
      nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(), [](const Numa &a, const Numa &b) { return a.id < b.id; });
  if (nodes.empty()) { // a kernel without NUMA
    Numa all;
    all.cpus = line("/sys/devices/system/cpu/online");
    all.cores = countCpus(all.cpus);
    all.memoryBytes = memoryIn(line("/proc/meminfo"));
    nodes.push_back(std::move(all));
  }
  return nodes;
}

Sysfs::Processor Sysfs::processor() const {
  Processor processor;
  utsname name = {};
  if (uname(&name) == 0)
    processor.arch = name.machine;
  std::ifstream file(root + "/proc/cpuinfo");
  for (std::string text; std::getline(file, text) && !StringRef(text).trim().empty();) {
    auto [key, value] = StringRef(text).split(':');
    key = key.trim();
    value = value.trim();
    if (key == "vendor_id")
      processor.vendor = value.str();
    else if (key == "cpu family")
      value.getAsInteger(10, processor.family);
    else if (key == "model")
      value.getAsInteger(10, processor.model);
  }
  return processor;
}

/// "0000:0f:00.0"
static bool isBusId(StringRef text) {
  if (text.size() < 12 || text[text.size() - 2] != '.' || text.count(':') != 2)
    return false;
  return llvm::all_of(text, [](char c) { return llvm::isHexDigit(c) || c == ':' || c == '.'; });
}

std::vector<Sysfs::PciDevice> Sysfs::pciPath(const std::string &busId) const {
  std::vector<PciDevice> chain;
  for (const fs::path &part : fs::path(resolved("/sys/bus/pci/devices/" + busId))) {
    std::string id = part.string();
    if (!isBusId(id))
      continue;
    std::string folder = "/sys/bus/pci/devices/" + id + "/";
    chain.push_back({id, line(folder + "class"), line(folder + "vendor"), line(folder + "device"),
                     line(folder + "max_link_speed"), line(folder + "max_link_width")});
  }
  return chain;
}

unsigned Sysfs::numaOf(const std::string &busId) const {
  unsigned node; // "-1": the kernel does not know
  std::string text = line("/sys/bus/pci/devices/" + busId + "/numa_node");
  return StringRef(text).getAsInteger(10, node) ? 0 : node;
}

std::vector<Sysfs::Port> Sysfs::verbsPorts() const {
  std::vector<Port> ports;
  const std::string folder = "/sys/class/infiniband/";
  for (const std::string &device : list(folder)) {
    for (const std::string &number : list(folder + device + "/ports")) {
      Port port;
      port.device = device;
      if (StringRef(number).getAsInteger(10, port.number))
        continue;
      std::string at = folder + device + "/ports/" + number + "/";
      port.busId = fs::path(resolved(folder + device + "/device")).filename().string();
      port.guid = line(folder + device + "/node_guid");
      port.state = line(at + "state");
      // "400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)"
      std::string text = line(at + "rate");
      double gigabits;
      if (!StringRef(text).take_until([](char c) { return c == ' '; }).getAsDouble(gigabits) &&
          gigabits > 0 && gigabits < 1e5)
        port.megabits = static_cast<unsigned long>(gigabits * 1000 + 0.5);
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

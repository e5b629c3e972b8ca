//===- NcclXmlReader.h - NCCL's and RCCL's <system> files -------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_NCCLXMLREADER_H
#define NCCLX_LIB_TOPOLOGY_NCCLXMLREADER_H

#include "Findings.h"
#include "ncclx/Topology/IO.h"
#include "ncclx/Topology/Make.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>
#include <fmt/format.h>
#include <pugixml.hpp>
#include <set>

namespace mlir::ncclx::topology {

/// cpu > nested pci > gpu > nvlink or xgmi; nic > net. The reader makes a node of each GPU, socket,
/// PCI bridge, NIC port and NVSwitch, and one `net` behind the ports; counts become links by the
/// constants of the GPU's generation. The walk is in ReadNcclXml.cpp, what a <gpu> says in
/// NcclXmlGpus.cpp, and what is joined once all is read in NcclXmlLinks.cpp.
class NcclXmlReader {
public:
  NcclXmlReader(llvm::StringRef text, llvm::StringRef name) : text(text) {
    topo.name = name.str();
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n')
        newlines.push_back(i);
  }
  ReadResult run();

private:
  /// Links of one record.
  static constexpr int64_t maxWires = 1024;

  struct Place {
    std::string path;
    unsigned host = 0;
    int parent = -1; ///< node index of the enclosing bridge or socket
    unsigned depth = 0;
  };
  struct Gpu {
    unsigned node = 0;
    const KnownGpu *known = nullptr; ///< for the link rates; null: none known
    std::optional<int64_t> rank;
    int64_t dev = 0;
    int cpu = -1;
    unsigned parts = 1; ///< records of this GPU: 2 if it is split (mlopart)
  };
  struct Wire {
    size_t gpu = 0; ///< index into `gpus`
    std::string target, tclass, path;
    LinkKind kind = LinkKind::nvlink;
    unsigned count = 1;
    unsigned line = 0;
  };

  unsigned line(pugi::xml_node node) const { return lineAt(node.offset_debug()); }
  unsigned lineAt(ptrdiff_t offset) const {
    if (offset < 0)
      return 0;
    return 1 + unsigned(std::lower_bound(newlines.begin(), newlines.end(), size_t(offset)) -
                        newlines.begin());
  }
  void report(Severity severity, pugi::xml_node at, const std::string &path, const char *rule,
              std::string message) {
    found.add({severity, path, at ? line(at) : 0, rule, std::move(message)});
  }
  std::optional<int64_t> integer(pugi::xml_node node, const std::string &path,
                                 const char *attribute, int64_t low, int64_t high);
  unsigned addNode(Node node, pugi::xml_node at);
  void connect(unsigned a, unsigned b, LinkKind kind, const Rates &rates, unsigned count,
               unsigned atLine);
  void readSystem(pugi::xml_node system);
  void readCpu(pugi::xml_node cpu, const std::string &path);
  void readPci(pugi::xml_node pci, Place place);
  void readGpus(pugi::xml_node pci, const Place &place, const Rates &rates);
  void readGpu(pugi::xml_node gpu, pugi::xml_node pci, const Place &place, const Rates &rates,
               unsigned parts);
  void readC2c(pugi::xml_node c2c, const std::string &path, const Gpu &gpu);
  void readNic(pugi::xml_node nic, const Place &place, llvm::StringRef bundle);
  void readNet(pugi::xml_node net, const Place &place, llvm::StringRef bundle);
  void skipDevice(pugi::xml_node pci, const std::string &path);
  void unknown(pugi::xml_node node, const std::string &path);
  int addModel(pugi::xml_node gpu, pugi::xml_node pci, const std::string &path, unsigned parts,
               const KnownGpu *&known);
  void joinSockets();
  void joinWire(const Wire &wire);
  void numberRanks();

  llvm::StringRef text;
  std::vector<size_t> newlines;
  Topology topo;
  Findings found;
  std::vector<Gpu> gpus;
  std::vector<Wire> wires;
  std::vector<std::pair<unsigned, Rates>> sockets; ///< cpu node, its socket link's rates
  llvm::StringMap<int> nodeNames;
  /// A device's name: its bus id on its host. A fabric that reaches several hosts has no bus id;
  /// NCCL then writes ones, and means one switch.
  static std::string key(unsigned host, llvm::StringRef busId) {
    return busId.starts_with("fffffff") ? busId.str() : fmt::format("{}/{}", host, busId.str());
  }
  /// "0000:0F:00.0" and "00000000:0f:00.0" are one device.
  static std::string normalBusId(llvm::StringRef text);
  llvm::StringMap<unsigned> byBusId;             ///< by key(); of a split GPU, its first half
  llvm::StringMap<std::vector<unsigned>> gpusAt; ///< by key(): a GPU, or its halves
  std::set<std::string> assumedFor; ///< architectures whose assumption has been reported
  int net = -1;
  unsigned bareGpus = 0, bareNics = 0, bareUnknown = 0; ///< pci elements with no record inside
};

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_NCCLXMLREADER_H

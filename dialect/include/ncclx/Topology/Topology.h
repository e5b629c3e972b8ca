//===- Topology.h - Machines as data ----------------------------*- C++ -*-===//
//
// A topology is a graph: ranks (GPUs, or processes without one), switches, NICs and memories are
// nodes; links are directed and have two rates. Plain C++: no MLIR. All types are plain data
// without locks: const use from several threads is safe.
//
// Units, everywhere in this library: bytes, seconds, bytes/s, FLOP/s, nanoseconds where a name ends
// in `Ns`. 1 GB = 10^9 bytes.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TOPOLOGY_TOPOLOGY_H
#define NCCLX_TOPOLOGY_TOPOLOGY_H

#include "ncclx/Topology/Rational.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::ncclx::topology {

enum class Severity { note, warning, error };

/// One finding about a topology or the file it came from.
struct Diagnostic {
  Severity severity = Severity::error;
  /// The element: "system/cpu[0]/pci[0000:0f:00.0]/gpu", "links[3].raw", "gpu0".
  std::string path;
  /// 1-based line in the file, 0 where there is none.
  unsigned line = 0;
  /// The rule's fixed name: "self-link", "no-gpu-records", ... (dialect/lib/Topology/README.md).
  std::string rule;
  std::string message;
};
using Diagnostics = std::vector<Diagnostic>;

bool hasErrors(const Diagnostics &diagnostics);
/// "FILE:LINE: error: MESSAGE [RULE] at PATH", one line, no newline.
std::string toString(const Diagnostic &diagnostic, llvm::StringRef file);

/// Which of a link's two rates a number uses. One ratio never mixes them.
///  raw: what the wire signals; no schedule can beat it.
///  payload: what a library counts on after protocol overhead (NCCL's and RCCL's constants). A
///  planning figure: copy engines have been measured above it (H200: 395 of 370.8 GB/s).
enum class Rate { raw, payload };

struct Rates {
  Rational raw;
  Rational payload;
  [[nodiscard]] const Rational &get(Rate rate) const { return rate == Rate::raw ? raw : payload; }
  friend bool operator==(const Rates &, const Rates &) = default;
};

/// What one GPU can do. Peak rates are dense, without sparsity.
struct GpuModel {
  std::string name;        ///< "H200-SXM"
  std::string arch;        ///< "sm_90", "gfx942"
  unsigned sms = 0;        ///< SMs or compute units
  Rational bf16Flops;      ///< FLOP/s; matrix units where there are any
  Rational f32Flops;       ///< FLOP/s; vector units
  Rational hbmBytesPerSec; ///< reads and writes together
  uint64_t hbmBytes = 0;   ///< size
  unsigned copyEngines = 0;
  unsigned powerCapWatts = 0;     ///< 0: unknown
  Rational blockBytesPerSec = {}; ///< most that one thread block writes in a copy; 0: unknown
  friend bool operator==(const GpuModel &, const GpuModel &) = default;
};

/// A machine with one operating system. Empty strings: unknown, or there is no such tier.
struct Host {
  std::string name;
  std::string rack, zone, dataCenter;
  unsigned cores = 0;     ///< shared by the host's ranks without a GPU
  Rational coreF32Flops;  ///< FLOP/s of one core
  Rational coreBf16Flops; ///< FLOP/s of one core
  friend bool operator==(const Host &, const Host &) = default;
};

enum class NodeKind {
  gpu,      ///< a GPU; a rank if `Topology::ranks` names it
  process,  ///< a rank without a GPU
  memory,   ///< memory of a host or NUMA node; `throughput` is copied bytes/s of all that pass
  cpu,      ///< a socket or NUMA node: where PCI trees meet
  pci,      ///< a PCI switch or bridge
  nvswitch, ///< a scale-up switch (NVSwitch and its like)
  nic,      ///< a port of a network adapter
  net,      ///< a network switch, or the network as one
};

struct Node {
  std::string name; ///< unique
  NodeKind kind = NodeKind::gpu;
  unsigned host = 0; ///< index into `hosts`; ignored for `net`
  int model = -1;    ///< gpu: index into `models`
  std::string busId; ///< PCI bus id, lower case, "" where there is none
  /// Nodes of one kind, host and non-empty bundle are planes of one thing (the NVSwitches of a
  /// host, the ports of a NIC): a transfer is striped over them.
  std::string bundle;
  /// Bytes/s that may pass through the node in all; zero: no limit.
  Rational throughput;
  unsigned cores = 0;       ///< memory, cpu: processors of the NUMA node; 0: unknown
  uint64_t memoryBytes = 0; ///< memory, cpu: size of the NUMA node's memory; 0: unknown
  bool multicast = false;   ///< copies one packet to several ports
  bool reduces = false;     ///< adds packets on their way (NVLS, SHARP)
  unsigned line = 0;        ///< where it was read
};

enum class LinkKind {
  nvlink,
  xgmi,
  die, ///< between the halves of a GPU that is split in two ranks
  shm,
  pci,
  cpu, ///< between sockets
  c2c, ///< a GPU and its own CPU, coherent (NVLink-C2C)
  nic,
  net,
  tcp,
};

/// A directed link. A full-duplex wire is two.
struct Link {
  unsigned from = 0, to = 0; ///< indices into `nodes`
  LinkKind kind = LinkKind::nvlink;
  unsigned count = 1; ///< how many equal wires; the rates are of one
  Rates perWire;      ///< bytes/s of one wire in this direction
  Rational latencyNs;
  unsigned line = 0;
  [[nodiscard]] Rational bandwidth(Rate rate) const {
    return perWire.get(rate) * Rational(int64_t(count));
  }
};

/// How one rank's memory may be reached by another, best first.
enum class Reach {
  self,       ///< the same rank
  loadStore,  ///< kernels load and store it (and copy engines, and puts)
  copyEngine, ///< a copy engine or the driver copies; no load or store
  put,        ///< a NIC writes it
  hostOnly,   ///< host processes talk (TCP)
  none,
};

/// What a file said and this library does not understand: kept as it was.
struct Extra {
  std::string at; ///< the element it was in, and its name: "system/cpu[0]/fpga", "links[3].colour"
  std::string text; ///< XML or JSON
  friend bool operator==(const Extra &, const Extra &) = default;
};

/// The model. Build it by hand, by a reader (IO.h) or a maker (Make.h), then validate().
struct Topology {
  std::string name;
  std::vector<GpuModel> models;
  std::vector<Host> hosts;
  std::vector<Node> nodes;
  std::vector<Link> links;
  /// ranks[r] is the node of rank r.
  std::vector<unsigned> ranks;
  std::vector<Extra> extras;

  [[nodiscard]] unsigned numRanks() const { return ranks.size(); }
  [[nodiscard]] const Node &rankNode(unsigned rank) const { return nodes[ranks[rank]]; }
  /// The rank that node is, or -1. Linear in the number of ranks.
  [[nodiscard]] int rankOf(unsigned node) const;
  /// Index of the node of that name, or -1.
  [[nodiscard]] int findNode(llvm::StringRef nodeName) const;

  /// Everything wrong or strange. After a result without errors every query of this library is
  /// safe; with errors only `nodes`, `links` and friends may be looked at.
  [[nodiscard]] Diagnostics validate() const;
};

llvm::StringRef name(NodeKind kind);
llvm::StringRef name(LinkKind kind);
llvm::StringRef name(Reach reach);
llvm::StringRef name(Rate rate);
llvm::StringRef name(Severity severity);
std::optional<NodeKind> parseNodeKind(llvm::StringRef text);
std::optional<LinkKind> parseLinkKind(llvm::StringRef text);

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_TOPOLOGY_H

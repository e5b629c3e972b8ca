//===- Make.h - Constants per generation, and makers ------------*- C++ -*-===//
#ifndef NCCLX_TOPOLOGY_MAKE_H
#define NCCLX_TOPOLOGY_MAKE_H

#include "ncclx/Topology/Topology.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir::ncclx::topology {

/// A GPU as the world sells it, with its links. dialect/lib/Topology/Constants.cpp holds the table
/// and the source of each number.
struct KnownGpu {
  GpuModel model;
  LinkKind linkKind = LinkKind::nvlink;
  Rates linkPerWire; ///< bytes/s of one NVLink or xGMI link, one direction
  uint16_t pciVendor = 0;
  llvm::ArrayRef<uint16_t> pciDevices;
};
const std::vector<KnownGpu> &knownGpus();
/// By PCI ids; null if unknown.
const KnownGpu *findGpu(uint16_t pciVendor, uint16_t pciDevice);
/// By name ("H200-SXM"); null if unknown.
const KnownGpu *findGpu(llvm::StringRef modelName);
/// The most common of an architecture ("sm_90" -> H100-SXM): an assumption to be reported. Null if
/// unknown.
const KnownGpu *guessGpu(llvm::StringRef arch);
/// NVLink or xGMI of a GPU that is not in the table, by the generation of its architecture, as NCCL
/// and RCCL do: an assumption to be reported.
Rates assumedLinkRates(LinkKind kind, llvm::StringRef arch);

/// Assumed latency of one link, in nanoseconds (see Constants.cpp).
Rational defaultLatencyNs(LinkKind kind);

/// Processes on one machine. Every transfer goes through the host's memory, as a copy or by TCP.
struct ProcessHost {
  struct Numa {
    unsigned cores = 0;       ///< 0: unknown
    uint64_t memoryBytes = 0; ///< 0: unknown
  };
  std::string name = "host0";
  unsigned ranks = 1;
  unsigned cores = 1;
  Rational coreF32Flops = 0, coreBf16Flops = 0; ///< FLOP/s of one core; 0: unknown
  Rational memoryBytesPerSec = 0;   ///< copied bytes/s of the whole machine; must be positive
  Rational coreCopyBytesPerSec = 0; ///< copied bytes/s of one core; must be positive
  Rational latencyNs = 200;         ///< one rank's store seen by another
  /// Bytes/s of one rank through a socket: what ranks send each other goes by TCP links, and
  /// `latencyNs` is a message's. 0: ranks share memory.
  Rational socketBytesPerSec = 0;
  /// Of several, each has its part of the memory's rate ("memory0", "memory1", ...) and of the
  /// ranks, in order; of one or none, "memory" is all.
  std::vector<Numa> numa;
  Rational numaLinkBytesPerSec =
      0; ///< between two NUMA nodes; must be positive where there are two
};
Topology makeProcessHost(const ProcessHost &host);

/// Switches of one tier of a network.
struct NetworkTier {
  std::string tier;              ///< "rack", "zone" and "data_center" also name the hosts' domains
  unsigned hosts = 1;            ///< below one switch; a multiple of the tier below
  Rational oversubscription = 1; ///< what comes from below, over what goes up
  Rational latencyNs = 0;        ///< of the link upwards
};
struct Replication {
  unsigned hosts = 1;
  /// Bottom up. Empty: all hosts share the base's `net` nodes. Else the base's one `net` node
  /// becomes the lowest switch, and a "core" joins several switches of the highest tier.
  std::vector<NetworkTier> network;
};
/// The base's only host, many times: node x of host i is "h<i>.x", rank r of it is i * R + r.
/// std::nullopt, and `problem` says why, if that cannot be.
std::optional<Topology> replicateHosts(const Topology &base, const Replication &spec,
                                       std::string &problem);

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_MAKE_H

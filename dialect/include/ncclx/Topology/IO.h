//===- IO.h - Reading, writing and discovering topologies -------*- C++ -*-===//
#ifndef NCCLX_TOPOLOGY_IO_H
#define NCCLX_TOPOLOGY_IO_H

#include "ncclx/Topology/Topology.h"

namespace mlir::ncclx::topology {

/// A topology and what was found on the way. `topology` is set exactly if there is no error; its
/// own validate() findings are among the diagnostics.
struct ReadResult {
  std::optional<Topology> topology;
  Diagnostics diagnostics;
  /// "nccl-xml", "json", or "" if the content is neither.
  std::string format;
};

/// Reads a file ("-": standard input) by its content, whatever its name: JSON of this project, or
/// NCCL's or RCCL's
/// `<system>` XML. Never throws, never aborts; what can go on goes on.
ReadResult readTopologyFile(llvm::StringRef path);
/// The same of text in memory. `name` becomes the topology's name where the text gives none.
ReadResult readTopology(llvm::StringRef text, llvm::StringRef name);
ReadResult readJson(llvm::StringRef text, llvm::StringRef name);
ReadResult readNcclXml(llvm::StringRef text, llvm::StringRef name);

/// JSON that readJson reads back to the same model. Same model, same bytes.
std::string writeJson(const Topology &topology);

/// Does an NCCL `<graphs>` file fit the topology? Every GPU it names must be one of the topology's
/// (rank r is `dev` r). Reports the first missing device of each graph.
Diagnostics checkGraphs(llvm::StringRef text, const Topology &topology);

struct DiscoverOptions {
  /// Processes to place on this machine; 0: one a core.
  unsigned ranks = 0;
  /// Copy and multiply for a few milliseconds to find memory and core rates. Otherwise assumed
  /// figures, and a note that says so.
  bool measure = true;
  /// The ranks are processes, which send each other what they have by TCP, not through memory that
  /// they share.
  bool sockets = false;
  /// Where `sys` and `proc` lie: "" is this machine, a folder is a copy of another's.
  std::string root;
  /// NVIDIA's management library, loaded by this name if `ranks` is 0.
  std::string nvml = "libnvidia-ml.so.1";
};
/// This machine. Its GPUs are the ranks where NVML or AMD's kernel driver finds any and `ranks` is
/// 0: with their NVLinks or xGMI links, PCI trees and verbs ports. Else processes that share cores,
/// and the memories of its NUMA nodes.
ReadResult discoverThisMachine(const DiscoverOptions &options);

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_IO_H

//===- topology_bench.cpp - How fast topologies are read and bounded --------------------===//
//
// topology_bench FILE...: one JSON line a file for reading it, and one for each collective's bound
// over its first 64 ranks: {"bench": "bound", "file": ..., "ranks": ..., "collective": ...,
// "seconds": ...}.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Topology/Bounds.h"
#include "ncclx/Topology/IO.h"

#include <chrono>
#include <cstdio>
#include <numeric>

using namespace mlir::ncclx::topology;

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    double begin = now();
    ReadResult read = readTopologyFile(argv[i]);
    double seconds = now() - begin;
    if (!read.topology) {
      std::fprintf(stderr, "%s: cannot be read\n", argv[i]);
      return 1;
    }
    std::printf("{\"bench\": \"read\", \"file\": \"%s\", \"nodes\": %zu, \"seconds\": %.6f}\n",
                argv[i], read.topology->nodes.size(), seconds);
    std::vector<unsigned> group(std::min(64u, read.topology->numRanks()));
    std::iota(group.begin(), group.end(), 0u);
    for (Collective collective : {Collective::all_gather, Collective::reduce_scatter,
                                  Collective::all_reduce, Collective::all_to_all}) {
      BoundQuery query;
      query.collective = collective;
      query.group = group;
      query.bytes = 1u << 30;
      begin = now();
      LowerBound found = bound(*read.topology, query);
      std::printf(
          "{\"bench\": \"bound\", \"file\": \"%s\", \"ranks\": %zu, \"collective\": \"%s\", "
          "\"bound_us\": %.3f, \"seconds\": %.6f}\n",
          argv[i], group.size(), name(collective).str().c_str(), found.seconds.toDouble() * 1e6,
          now() - begin);
    }
  }
}

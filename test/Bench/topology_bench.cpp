//===- topology_bench.cpp - How fast topologies are read and bounded --------------------===//
//
// topology_bench FILE...: one JSON line a file for reading it, and one for each collective's bound
// over its first 64 ranks: {"bench": "bound", "file": ..., "ranks": ..., "collective": ...,
// "seconds": ...}. Likewise for "dense": 64 ranks, a link from each to each other, of rates without
// a pattern, and for all_to_all_v likewise amounts. "gap" is what is known of the optimum beyond
// the bound, in words.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Topology/Bounds.h"
#include "ncclx/Topology/IO.h"

#include <chrono>
#include <cstdio>
#include <numeric>
#include <random>

using namespace mlir::ncclx::topology;

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static Topology dense(unsigned ranks) {
  std::mt19937 random(1); // the same everywhere
  Topology topo;
  topo.hosts.emplace_back();
  for (unsigned i = 0; i < ranks; ++i) {
    Node node;
    node.name = "gpu" + std::to_string(i);
    topo.nodes.push_back(node);
    topo.ranks.push_back(i);
  }
  for (unsigned i = 0; i < ranks; ++i)
    for (unsigned j = 0; j < ranks; ++j)
      if (i != j) {
        Rational rate(int64_t(1 + random() % 100) * 1'000'000'000);
        topo.links.push_back({i, j, LinkKind::nvlink, 1, {rate, rate}, 500, 0});
      }
  return topo;
}

static void measure(const char *file, const Topology &topo,
                    std::initializer_list<Collective> collectives) {
  std::vector<unsigned> group(std::min(64u, topo.numRanks()));
  std::iota(group.begin(), group.end(), 0u);
  std::mt19937 random(2);
  std::vector<uint64_t> counts;
  for (size_t i = 0; i < group.size() * group.size(); ++i)
    counts.push_back(random() % 1'000'000);
  for (Collective collective : collectives) {
    BoundQuery query;
    query.collective = collective;
    query.group = group;
    query.bytes = 1u << 30;
    if (collective == Collective::all_to_all_v) {
      query.counts = counts;
      query.bytes = largestTotal(counts, group.size());
    }
    double begin = now();
    std::vector<LowerBound> found = bounds(topo, query);
    double seconds = now() - begin, most = 0;
    std::string gap;
    for (const LowerBound &one : found) {
      if (one.universal)
        most = std::max(most, one.seconds.toDouble());
      if (one.argument == "concurrent flow")
        gap = ", \"gap\": \"" + one.detail.substr(one.detail.find("; ") + 2) + "\"";
    }
    std::printf("{\"bench\": \"bound\", \"file\": \"%s\", \"ranks\": %zu, \"collective\": \"%s\", "
                "\"bound_us\": %.3f%s, \"seconds\": %.6f}\n",
                file, group.size(), name(collective).str().c_str(), most * 1e6, gap.c_str(),
                seconds);
  }
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
    measure(argv[i], *read.topology,
            {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
             Collective::all_to_all});
  }
  measure("dense", dense(64),
          {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
           Collective::all_to_all, Collective::all_to_all_v, Collective::broadcast,
           Collective::reduce, Collective::scatter, Collective::gather});
}

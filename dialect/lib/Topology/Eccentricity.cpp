//===- Eccentricity.cpp - How far members are from each other -------------===//
#include "ncclx/Topology/Resources.h"
#include <algorithm>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

std::optional<unsigned> topology::eccentricity(ResourceModel &resources,
                                               llvm::ArrayRef<unsigned> group) {
  size_t n = group.size();
  std::vector<std::vector<size_t>> next(n);
  for (size_t u = 0; u < n; ++u)
    for (size_t v = 0; v < n; ++v)
      if (u != v && resources.reachability(group[u], group[v]) != Reach::none)
        next[u].push_back(v);
  unsigned most = 0;
  for (size_t from = 0; from < n; ++from) {
    std::vector<bool> reached(n, false);
    std::vector<size_t> layer = {from};
    reached[from] = true;
    size_t count = 1;
    for (unsigned hops = 0; !layer.empty(); ++hops) {
      most = std::max(most, hops);
      std::vector<size_t> following;
      for (size_t u : layer)
        for (size_t v : next[u])
          if (!reached[v]) {
            reached[v] = true;
            following.push_back(v);
          }
      count += following.size();
      layer = std::move(following);
    }
    if (count < n)
      return std::nullopt;
  }
  return most;
}

//===- Arborescence.cpp - Least-cost arborescences ----------------------------------===//
#include "Arborescence.h"

using namespace mlir::ncclx::topology;

std::vector<unsigned> mlir::ncclx::topology::arborescence(const Matrix &cost, unsigned root) {
  unsigned n = cost.size();
  std::vector<unsigned> parent(n, root);
  for (unsigned v = 0; v < n; ++v)
    for (unsigned u = 0; u < n && v != root; ++u)
      if (u != v && (parent[v] == v || cost[u][v] < cost[parent[v]][v]))
        parent[v] = u;
  // A vertex on a cycle, or n.
  std::vector<unsigned> seen(n, n);
  unsigned onCycle = n;
  for (unsigned v = 0; v < n && onCycle == n; ++v) {
    unsigned u = v;
    for (; u != root && seen[u] == n; u = parent[u])
      seen[u] = v;
    if (u != root && seen[u] == v)
      onCycle = u;
  }
  if (onCycle == n)
    return parent;
  std::vector<bool> inside(n, false);
  for (unsigned v = onCycle; !inside[v]; v = parent[v])
    inside[v] = true;
  std::vector<unsigned> outer; // number in the smaller graph -> vertex; the cycle is the last
  std::vector<unsigned> number(n);
  for (unsigned v = 0; v < n; ++v)
    if (!inside[v]) {
      number[v] = outer.size();
      outer.push_back(v);
    }
  unsigned m = outer.size();
  Matrix smaller(m + 1, std::vector<double>(m + 1, unreachable));
  std::vector<unsigned> enters(m, n), leaves(m, n);
  for (unsigned i = 0; i < m; ++i) {
    for (unsigned j = 0; j < m; ++j)
      smaller[i][j] = cost[outer[i]][outer[j]];
    for (unsigned v = 0; v < n; ++v) {
      if (!inside[v])
        continue;
      double in = cost[outer[i]][v] - cost[parent[v]][v], out = cost[v][outer[i]];
      if (enters[i] == n || in < smaller[i][m]) {
        smaller[i][m] = in;
        enters[i] = v;
      }
      if (leaves[i] == n || out < smaller[m][i]) {
        smaller[m][i] = out;
        leaves[i] = v;
      }
    }
  }
  std::vector<unsigned> found = arborescence(smaller, number[root]);
  for (unsigned i = 0; i < m; ++i)
    if (outer[i] != root)
      parent[outer[i]] = found[i] == m ? leaves[i] : outer[found[i]];
  unsigned from = found[m];
  parent[enters[from]] = outer[from];
  return parent;
}

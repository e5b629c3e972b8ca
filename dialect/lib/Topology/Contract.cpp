//===- Contract.cpp -------------------------------------------------------===//
#include "Contract.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
class Contractor {
public:
  Contractor(const FlowGraph &whole, llvm::ArrayRef<Demand> demands)
      : arcs(whole.arcs), narrowest(arcs.size()), alive(arcs.size(), true), in(whole.size()),
        out(whole.size()), ends(whole.size()) {
    std::iota(narrowest.begin(), narrowest.end(), 0u);
    for (unsigned a = 0; a < arcs.size(); ++a) {
      out[arcs[a].from].push_back(a);
      in[arcs[a].to].push_back(a);
    }
    for (const Demand &demand : demands)
      ends[demand.from] = ends[demand.to] = true;
  }
  Contraction run(llvm::ArrayRef<Demand> demands);

private:
  /// The neighbours of a vertex that may go; std::nullopt for one that must stay.
  std::optional<std::vector<unsigned>> around(unsigned v) const;
  void remove(unsigned v);

  std::vector<FlowGraph::Arc> arcs; ///< the whole's, and those made of them
  std::vector<unsigned> narrowest;
  std::vector<bool> alive;
  std::vector<std::vector<unsigned>> in, out; ///< living arcs by vertex
  std::vector<bool> ends;
};
} // namespace

std::optional<std::vector<unsigned>> Contractor::around(unsigned v) const {
  if (ends[v] || in[v].size() > 2 || out[v].size() > 2)
    return std::nullopt;
  std::vector<unsigned> before, after;
  for (unsigned a : in[v])
    before.push_back(arcs[a].from);
  for (unsigned a : out[v])
    after.push_back(arcs[a].to);
  std::vector<unsigned> near = before;
  llvm::append_range(near, after);
  llvm::sort(near);
  near.erase(std::unique(near.begin(), near.end()), near.end());
  // Two arcs side by side would have to share what they pass on.
  bool twice =
      (before.size() == 2 && before[0] == before[1]) || (after.size() == 2 && after[0] == after[1]);
  if (near.empty() || near.size() > 2 || (twice && near.size() == 2))
    return std::nullopt;
  return near;
}

void Contractor::remove(unsigned v) {
  std::vector<unsigned> old = in[v];
  llvm::append_range(old, out[v]);
  for (unsigned a : in[v])
    for (unsigned b : out[v]) {
      if (arcs[a].from == arcs[b].to)
        continue; // there and back
      bool first = !(arcs[b].capacity < arcs[a].capacity);
      unsigned from = arcs[a].from, to = arcs[b].to, made = arcs.size();
      FlowGraph::Arc arc{from, to, arcs[first ? a : b].capacity, 0};
      arcs.push_back(arc);
      narrowest.push_back(narrowest[first ? a : b]);
      alive.push_back(true);
      out[from].push_back(made);
      in[to].push_back(made);
    }
  for (unsigned a : old) {
    alive[a] = false;
    llvm::erase(out[arcs[a].from], a);
    llvm::erase(in[arcs[a].to], a);
  }
}

Contraction Contractor::run(llvm::ArrayRef<Demand> demands) {
  std::vector<unsigned> work(in.size());
  std::iota(work.begin(), work.end(), 0u);
  while (!work.empty()) {
    unsigned v = work.back();
    work.pop_back();
    if (std::optional<std::vector<unsigned>> near = around(v)) {
      remove(v);
      llvm::append_range(work, *near);
    }
  }
  Contraction result;
  std::vector<bool> used = ends;
  for (unsigned a = 0; a < arcs.size(); ++a)
    if (alive[a])
      used[arcs[a].from] = used[arcs[a].to] = true;
  std::vector<unsigned> vertex(in.size());
  for (unsigned v = 0; v < in.size(); ++v)
    if (used[v])
      vertex[v] = result.graph.addVertex();
  for (unsigned a = 0; a < arcs.size(); ++a)
    if (alive[a]) {
      result.graph.addArc(vertex[arcs[a].from], vertex[arcs[a].to], arcs[a].capacity);
      result.narrowest.push_back(narrowest[a]);
    }
  for (const Demand &demand : demands)
    result.demands.push_back({vertex[demand.from], vertex[demand.to], demand.amount});
  return result;
}

Contraction topology::contract(const FlowGraph &whole, llvm::ArrayRef<Demand> demands) {
  return Contractor(whole, demands).run(demands);
}

//===- Packer.h - Packs trees of one flow ---------------------------------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_PACKER_H
#define NCCLX_LIB_TOPOLOGY_PACKER_H

#include "Arborescence.h"
#include "LinearProgram.h"

#include "ncclx/Topology/TreePacking.h"

#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace mlir::ncclx::topology {

/// Rounds in which every tree is grown anew.
constexpr unsigned treePasses = 70;

/// Edges from the root to each.
std::vector<unsigned> depthsOf(unsigned root, const std::vector<unsigned> &parent);

/// Packs trees of one flow: a linear program over them (TreePacking.cpp), then whole shares
/// (TreeShares.cpp).
class Packer {
public:
  Packer(ResourceModel &resources, llvm::ArrayRef<unsigned> group, TreeFlow flow);
  std::optional<TreePacking> run();

private:
  struct Use {
    unsigned row;
    double perByte; ///< seconds of the resource
  };
  struct Tree {
    unsigned root;
    bool sums; ///< data goes to the root
    std::vector<unsigned> parent;
    std::vector<Use> uses;
    unsigned depth;
    double amount = 0;
  };
  using Edges = std::vector<std::vector<std::vector<Use>>>; ///< parent, child; empty: no route

  unsigned n;
  TreeFlow flow;
  std::vector<bool> ways; ///< of Tree::sums, those that the flow has
  unsigned rows = 0;
  double unit = 0;  ///< seconds per byte that the program counts in
  Matrix latencies; ///< seconds, by sender and receiver
  Edges edges[2];   ///< by Tree::sums
  /// The same one behind the other, by parent * n + child.
  std::vector<Use> uses[2];
  std::vector<unsigned> firstUse[2];
  /// By Tree::sums and member: what its edge to or from its parent takes, whatever the parent.
  std::vector<std::vector<Use>> always[2];
  /// What all uses of a resource by one edge are: its load is whole times that; 0: they differ.
  std::vector<double> quanta;
  /// Of the linear program's rows, and what a share (of fixed roots, of all of them) costs at
  /// least: those that show best what no packing can exceed.
  std::vector<double> tightPrices;
  double tightCost = 0;
  std::vector<Tree> trees;
  std::set<std::tuple<unsigned, bool, std::vector<unsigned>>> known;

  bool add(unsigned root, bool sums, const std::vector<unsigned> &parent);
  double costOf(bool sums, unsigned parent, unsigned child,
                const std::vector<double> &prices) const;
  double costOf(unsigned root, bool sums, const std::vector<unsigned> &parent,
                const std::vector<double> &prices) const;
  std::vector<unsigned> cheapest(unsigned root, bool sums, const std::vector<double> &prices) const;
  std::vector<unsigned> grown(unsigned root, bool sums, const std::vector<double> &prices,
                              double depthPrice) const;
  unsigned rowOf(unsigned root, bool sums) const { return rows + root * 2 + sums; }
  bool isFree() const { return flow == TreeFlow::sumAndSpread; }
  LinearProgram program() const;
  bool generate(const LinearSolution &solution, double &most);
  std::vector<unsigned> apportion(const std::vector<double> &amounts, unsigned shares) const;
  /// A tree of each way for each share.
  struct Shares {
    std::vector<unsigned> roots;
    std::vector<std::vector<unsigned>> parents[2];
    double load = unreachable; ///< of the busiest resource, where each share has 1
  };
  std::vector<unsigned> rootsOf(unsigned shares) const;
  double leastLoad(const std::vector<unsigned> &roots, unsigned shares) const;
  double busiest(const Shares &of) const;
  Shares rounded(unsigned shares) const;
  Shares regrown(unsigned shares, double goal) const;
  unsigned depthOf(const Shares &of, size_t share) const;
  void flatten(Shares &of, double goal) const;
  TreePacking packing(const Shares &of, unsigned shares) const;
};

} // namespace mlir::ncclx::topology
#endif // NCCLX_LIB_TOPOLOGY_PACKER_H

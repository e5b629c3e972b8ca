//===- MatrixCells.h - What a collective can be ---------------------------*- C++ -*-===//
//
// A cell is one collective: its word, type, reduction, group, algorithm, size, shape, use and
// transport.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TEST_UNIT_EQUIVALENCE_MATRIXCELLS_H
#define NCCLX_TEST_UNIT_EQUIVALENCE_MATRIXCELLS_H

#include "GraphText.h"
#include "Pairs.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace equivalence {

template <typename T> using List = std::vector<T>;

enum Word {
  AllGather,
  ReduceScatter,
  AllReduce,
  AllToAll,
  AllToAllV,
  AllToAllSized,
  Broadcast,
  Reduce,
  Gather,
  Scatter,
  Shift,
  Listed,
  Window,
  Barrier
};
extern const List<std::string> words;
/// Types, and what they may accumulate in that is wider.
extern const List<std::pair<std::string, std::string>> elements;
extern const List<std::string> kinds, algorithms;

struct Group {
  Grid grid;
  Axes axes;
  bool isUneven = false;
};
extern const List<Group> groups;
extern const List<std::string> sizes, shapes, uses, transports, orders;

struct Cell {
  int64_t word, element, kind, wide, group, algorithm, size, shape, use, order, transport;

  explicit Cell(const Row &r)
      : word(r[0]), element(r[1]), kind(r[2]), wide(r[3]), group(r[4]), algorithm(r[5]), size(r[6]),
        shape(r[7]), use(r[8]), order(r[9]), transport(r[10]) {}
  bool reduces() const { return word == ReduceScatter || word == AllReduce || word == Reduce; }
  bool isRooted() const { return word >= Broadcast && word <= Scatter; }
  bool isCut() const {
    return word <= AllToAllSized && word != AllReduce ? true : word == Gather || word == Scatter;
  }
  const Group &of() const { return groups[group]; }
  /// Whether groups of several sizes can have it.
  bool isOfSeveralSizes() const {
    return word != AllToAllV && word != AllToAllSized && word != Listed;
  }
  bool isFloat() const { return elements[element].first.find('f') != std::string::npos; }
  bool isNarrow() const { return elements[element].first.rfind("f8", 0) == 0; }
  std::string str() const {
    return words[word] + " " + elements[element].first + " " + kinds[kind] + (wide ? " wide" : "") +
           " group " + std::to_string(group) + " '" + algorithms[algorithm] + "' " + sizes[size] +
           ", " + shapes[shape] + ", " + uses[use] + ", order " + orders[order] + ", " +
           transports[transport];
  }
};
/// How many values each part of a cell has.
extern const List<int64_t> factors;

GraphText graphOf(const Group &group);
/// As many hosts as a rank count is divided by.
int64_t hostsOf(int64_t ranks);

/// Whether what the cell asks of its algorithm is there: what is not is in the table of refusals.
bool carries(const Cell &c);
/// Whether the language has such a cell and an algorithm carries it. What means nothing in it is 0.
bool settle(Row &row);
/// Adds the cell's collective and its results to the graph.
void add(GraphText &g, const Cell &c);
/// GPUs in a line with its end joined to its middle.
std::string gpus(int64_t ranks);

/// What cells of one graph have in common: group, transport, whether it is for GPUs, and for hosts.
using Common = std::tuple<int64_t, int64_t, bool, bool>;
Common commonOf(const Cell &c);

} // namespace equivalence
#endif // NCCLX_TEST_UNIT_EQUIVALENCE_MATRIXCELLS_H

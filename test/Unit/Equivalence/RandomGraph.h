//===- RandomGraph.h - Graphs made of choices ----------------------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_EQUIVALENCE_RANDOMGRAPH_H
#define NCCLX_TEST_UNIT_EQUIVALENCE_RANDOMGRAPH_H

#include "Choices.h"
#include "GraphText.h"

namespace equivalence {

/// A legal graph that the compiler carries: collectives of all kinds over axes of several grids and
/// listed groups, windows, computation, loops and branches, in and out of each other. `overlaps`:
/// among them what overlap passes look for.
GraphText makeGraph(Choices &choices, bool overlaps = false);

/// Compiles and runs a graph: what goes wrong, or nothing.
using Run = std::function<std::string(const GraphText &)>;

/// Of a seed: what goes wrong, and the smallest graph found, in `tries` tries at most, in which the
/// same stage goes wrong. Empty where nothing does.
std::string failureOf(uint64_t seed, const Run &run, int64_t tries = 300, bool overlaps = false);

} // namespace equivalence
#endif // NCCLX_TEST_UNIT_EQUIVALENCE_RANDOMGRAPH_H

//===- Equivalence.h - A graph's meaning against its schedule, run for real -*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_EQUIVALENCE_EQUIVALENCE_H
#define NCCLX_TEST_UNIT_EQUIVALENCE_EQUIVALENCE_H

#include "GraphText.h"

#include "Driver.h"

#include <functional>

namespace equivalence {

struct Options {
  int64_t runs = 3;        ///< back to back, each with inputs of its own
  int64_t adversarial = 2; ///< orders that the abstract machine tries
  uint64_t seed = 1;
  /// Passes that the graph goes through before it is compiled; the reference interprets it as it
  /// is.
  std::string pipeline = "";
  bool withoutReference = false; ///< outputs are not compared
  bool interpretOnly = false;    ///< no schedule is made: the interpreter runs both graphs
  bool specials = false;         ///< NaN, infinities and -0 among the inputs
  bool exact = false;            ///< whole numbers whose sums no order changes
  int64_t hosts = 1;             ///< that the ranks are on, as many on each
};

/// The graph after passes; empty, with a failure noted, where one of them fails.
std::string passed(const std::string &text, const std::string &pipeline);

/// Whether passes make another graph of it, whatever they promise of it.
bool moves(const std::string &text, const std::string &pipeline);

/// Compiles the graph for processes over `transport`, proves it, lets the machine run it in
/// adversarial orders, and runs it on threads, in this process and as C++; every bit of every
/// output that the language specifies must be what the reference interpreter says. Empty, or what
/// went wrong.
std::string check(const GraphText &graph, const std::string &transport,
                  const Options &options = {});

/// Prepares the plans of two graphs, of which the second's argument 0 is in the memory of the
/// first's output 0, and runs them in turn without a barrier, destroying each before the other.
/// Both must leave what the reference interpreter says. Empty, or what went wrong.
std::string checkChain(const GraphText &first, const GraphText &second,
                       const std::string &transport, const Options &options = {});

/// Expects check() to be empty over each transport; prints the graph where it is not.
void expectEqual(const GraphText &graph, const Options &options = {},
                 const std::vector<std::string> &transports = {"shm", "tcp"});

/// Compiles and proves the graph, and calls `look`. Empty, or what went wrong.
std::string inspect(const GraphText &graph, const std::string &transport,
                    const std::function<void(mlir::ncclx::Compilation &)> &look = {});

/// Why the graph is refused: the diagnostics of the stage that fails, empty if none does.
std::string refusal(const std::string &text, const std::string &transport);

/// The same up to the program, on `hosts` of as many ranks each.
std::string lowered(const std::string &text, int64_t hosts, int64_t ranks);

} // namespace equivalence
#endif // NCCLX_TEST_UNIT_EQUIVALENCE_EQUIVALENCE_H

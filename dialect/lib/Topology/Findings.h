//===- Findings.h - Diagnostics, as many as one can read --------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_FINDINGS_H
#define NCCLX_LIB_TOPOLOGY_FINDINGS_H

#include "ncclx/Topology/Topology.h"
#include <string>

namespace mlir::ncclx::topology {

/// Collects diagnostics. A damaged file of many megabytes has as many things wrong with it: behind
/// the first thousand they are counted, and the first error is kept in any case.
class Findings {
public:
  void add(Diagnostic diagnostic) {
    bool first = diagnostic.severity == Severity::error && !error;
    error = error || first;
    if (list.size() < most || first)
      list.push_back(std::move(diagnostic));
    else
      ++more;
  }
  void add(Diagnostics diagnostics) {
    for (Diagnostic &diagnostic : diagnostics)
      add(std::move(diagnostic));
  }
  [[nodiscard]] bool hasErrors() const { return error; }
  /// How many there were.
  [[nodiscard]] size_t size() const { return list.size() + more; }
  Diagnostics take() {
    if (more > 0)
      list.push_back({Severity::note, "", 0, "more",
                      "and " + std::to_string(more) + " more findings, which are not listed"});
    return std::move(list);
  }

private:
  static constexpr size_t most = 1000;
  Diagnostics list;
  size_t more = 0;
  bool error = false;
};

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_FINDINGS_H

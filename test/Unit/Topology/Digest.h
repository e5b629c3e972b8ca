//===- Digest.h - What any text must give -----------------------*- C++ -*-===//
#ifndef NCCLX_TEST_TOPOLOGY_DIGEST_H
#define NCCLX_TEST_TOPOLOGY_DIGEST_H

#include "ncclx/Topology/Bounds.h"
#include "ncclx/Topology/IO.h"
#include "ncclx/Topology/Resources.h"
#include <string>
#include <vector>

namespace mlir::ncclx::topology {

/// What any text must give: a topology that answers every query and is written and read again the
/// same, or an error that says why. The broken promise, or "".
inline std::string digest(const ReadResult &result) {
  if (result.topology.has_value() == hasErrors(result.diagnostics))
    return "a topology and an error, or neither";
  for (const Diagnostic &d : result.diagnostics)
    if (d.rule.empty() || d.message.empty())
      return "a finding without rule or message";
  if (!result.topology || result.topology->numRanks() > 16 || result.topology->links.size() > 400)
    return "";
  const Topology &topo = *result.topology;
  ResourceModel model(topo, Rate::payload);
  std::vector<unsigned> group;
  for (unsigned r = 0; r < topo.numRanks(); ++r) {
    group.push_back(r);
    model.route(0, r);
  }
  std::vector<uint64_t> counts(group.size() * group.size());
  for (size_t i = 0; i < counts.size(); ++i)
    counts[i] = 1000 * (i % 7);
  for (Collective collective : {Collective::all_gather, Collective::all_reduce,
                                Collective::all_to_all, Collective::all_to_all_v}) {
    BoundQuery query;
    query.group = group;
    query.bytes = 1 << 20;
    query.counts = counts;
    query.collective = collective;
    if (bounds(topo, query).empty())
      return "no bound";
  }
  std::string once = writeJson(topo);
  ReadResult again = readTopology(once, "again");
  if (!again.topology)
    return "what was written is refused: " + once;
  if (writeJson(*again.topology) != once)
    return "what was written reads as another: " + once;
  return "";
}

} // namespace mlir::ncclx::topology

#endif // NCCLX_TEST_TOPOLOGY_DIGEST_H

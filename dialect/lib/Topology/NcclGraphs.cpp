//===- NcclGraphs.cpp - NCCL's <graphs> files -----------------------------===//
#include "ncclx/Topology/IO.h"
#include <fmt/format.h>
#include <pugixml.hpp>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;
using llvm::StringRef;

Diagnostics topology::checkGraphs(StringRef text, const Topology &topo) {
  Diagnostics found;
  pugi::xml_document document;
  pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  pugi::xml_node root = document.document_element();
  if (!parsed || StringRef(root.name()) != "graphs") {
    found.push_back({Severity::error, "", 0, "not-graphs",
                     parsed ? fmt::format("the root element is <{}>, not <graphs>", root.name())
                            : fmt::format("not well-formed XML: {}", parsed.description())});
    return found;
  }
  for (pugi::xml_node graph : root.children("graph")) {
    std::string path = fmt::format("graphs/graph[{}]", graph.attribute("id").value());
    bool said = false;
    for (pugi::xml_node channel : graph.children("channel"))
      for (pugi::xml_node gpu : channel.children("gpu")) {
        StringRef value = gpu.attribute("dev").value();
        unsigned dev;
        if (said || (!value.getAsInteger(10, dev) && dev < topo.numRanks()))
          continue;
        said = true;
        unsigned atLine = 1 + unsigned(text.take_front(gpu.offset_debug()).count('\n'));
        found.push_back({Severity::error, path, atLine, "graph-device",
                         fmt::format("names GPU dev {}, but '{}' has {} GPU(s): a graph file fits "
                                     "the exact set of GPUs it was made for",
                                     value.str(), topo.name, topo.numRanks())});
      }
  }
  return found;
}

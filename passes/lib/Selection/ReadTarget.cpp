//===- ReadTarget.cpp - The machine that a pass's options name ----------------------------===//
#include "ReadTarget.h"

#include "ncclx/NCCLX/Topology.h"

using namespace mlir;
using namespace mlir::ncclx;

FailureOr<OwnedTarget> mlir::ncclx::readTarget(ModuleOp module, StringRef pass,
                                               StringRef topologyFile, bool loadStore,
                                               StringRef ruleFile) {
  auto inModule = module->getAttrOfType<TopologyAttr>(NCCLXDialect::getTopologyAttrName());
  if (topologyFile.empty() && !inModule)
    return module.emitError() << pass
                              << " needs topology=FILE, or the module's attribute ncclx.topology";
  OwnedTarget target;
  target.loadStore = loadStore;
  target.read = topologyFile.empty() ? readTopology(inModule)
                                     : topology::readTopologyFile(topologyFile.str());
  if (!target.read.topology) {
    for (const topology::Diagnostic &diagnostic : target.read.diagnostics)
      module.emitError(topology::toString(diagnostic, topologyFile.str()));
    return failure();
  }
  if (!ruleFile.empty()) {
    std::string error;
    target.rules = RuleTable::readFile(ruleFile, error);
    if (!target.rules) {
      SmallVector<StringRef> lines;
      StringRef(error).split(lines, '\n', -1, /*KeepEmpty=*/false);
      for (StringRef line : lines)
        module.emitError(line);
      return failure();
    }
  }
  return target;
}

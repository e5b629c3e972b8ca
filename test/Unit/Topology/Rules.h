//===- Rules.h - The rules that a reader's diagnostics name -----*- C++ -*-===//
#ifndef NCCLX_TEST_TOPOLOGY_RULES_H
#define NCCLX_TEST_TOPOLOGY_RULES_H

#include "ncclx/Topology/IO.h"

using Rules = std::vector<std::string>;

inline Rules rules(const mlir::ncclx::topology::ReadResult &result) {
  Rules list;
  for (const mlir::ncclx::topology::Diagnostic &d : result.diagnostics)
    list.push_back(d.rule);
  return list;
}

#endif // NCCLX_TEST_TOPOLOGY_RULES_H

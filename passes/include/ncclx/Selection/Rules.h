//===- Rules.h - Algorithms by rule file ----------------------------------*- C++ -*-===//
//
// A rule file has the columns of NCCL's example tuner, one rule a line, the first that matches
// wins:
//
//   # collective, min_bytes, max_bytes, algorithm, protocol, channels, nNodes, nRanks, numPipeOps,
//   regBuff allreduce,0,65536,bruck,any,-1,-1,8
//
// What follows the algorithm may be left out; -1, `any` and nothing match all. Protocol, channels,
// numPipeOps and regBuff mean nothing here and are accepted as that alone.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_SELECTION_RULES_H
#define NCCLX_SELECTION_RULES_H

#include "ncclx/NCCLX/NCCLX.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::ncclx {

/// One line of a rule file.
struct Rule {
  std::string collective;             ///< as ncclx names it
  int64_t minBytes = 0, maxBytes = 0; ///< of the payload; both included
  Algorithm algorithm = Algorithm::Direct;
  int64_t hosts = -1, ranks = -1; ///< -1: any
  unsigned line = 0;
};

class RuleTable {
public:
  /// Reads `text` of the file `name`; what is wrong with it goes to `error`, one line each, and
  /// gives nothing.
  static std::optional<RuleTable> read(llvm::StringRef text, llvm::StringRef name,
                                       std::string &error);
  static std::optional<RuleTable> readFile(llvm::StringRef path, std::string &error);

  /// The rules for a collective, first match first.
  std::vector<const Rule *> matches(llvm::StringRef collective, int64_t bytes, int64_t ranks,
                                    int64_t hosts) const;
  /// "rules.csv:3".
  std::string place(const Rule &rule) const { return name + ":" + std::to_string(rule.line); }

private:
  std::string name;
  std::vector<Rule> rules;
};

} // namespace mlir::ncclx
#endif // NCCLX_SELECTION_RULES_H

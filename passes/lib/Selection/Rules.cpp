//===- Rules.cpp - Algorithms by rule file ----------------------------------------------===//
#include "ncclx/Selection/Rules.h"
#include "ncclx/Support/ReadFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <limits>

using namespace mlir;
using namespace mlir::ncclx;

/// "allreduce", "AllReduce" and "all_reduce" are one.
static std::string collectiveName(StringRef text) {
  static constexpr StringRef names[] = {
      "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "all_to_all_v",
      "broadcast",  "reduce",         "gather",     "scatter",    "permute"};
  auto plain = [](StringRef word) {
    std::string out;
    for (char c : word)
      if (c != '_')
        out += llvm::toLower(c);
    return out;
  };
  for (StringRef name : names)
    if (plain(name) == plain(text))
      return name.str();
  return "";
}

std::optional<RuleTable> RuleTable::read(StringRef text, StringRef name, std::string &error) {
  RuleTable table;
  table.name = name.str();
  if (size_t at = 0; !llvm::json::isUTF8(text, &at)) {
    error = llvm::formatv("{0}:{1}: is not UTF-8\n", name, 1 + text.take_front(at).count('\n'));
    return std::nullopt;
  }
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (auto [index, whole] : llvm::enumerate(lines)) {
    StringRef line = whole.split('#').first.trim();
    if (line.empty())
      continue;
    auto wrong = [&](const llvm::Twine &what) {
      error += llvm::formatv("{0}:{1}: {2}\n", name, index + 1, what.str());
    };
    SmallVector<StringRef> fields;
    line.split(fields, ',');
    for (StringRef &field : fields)
      field = field.trim();
    // The first line may name the columns.
    if (table.rules.empty() && error.empty() && StringRef(fields[0]).starts_with("coll") &&
        collectiveName(fields[0]).empty())
      continue;
    if (fields.size() < 4 || fields.size() > 10) {
      wrong(llvm::formatv(
          "{0} fields, expected 4 to 10: collective, min_bytes, max_bytes, algorithm, "
          "protocol, channels, nNodes, nRanks, numPipeOps, regBuff",
          fields.size()));
      continue;
    }
    Rule rule;
    rule.line = unsigned(index) + 1;
    rule.collective = collectiveName(fields[0]);
    if (rule.collective.empty())
      wrong("collective is '" + fields[0] + "', which is none");
    auto number = [&](size_t at, StringRef column, int64_t any) {
      if (at >= fields.size() || fields[at].empty() || fields[at] == "-1" || fields[at] == "any")
        return any;
      int64_t value = 0;
      if (fields[at].getAsInteger(10, value) || value < 0) {
        wrong(column + " is '" + fields[at] + "', expected a number of at least 0, -1 or any");
        return any;
      }
      return value;
    };
    rule.minBytes = number(1, "min_bytes", 0);
    rule.maxBytes = number(2, "max_bytes", std::numeric_limits<int64_t>::max());
    if (rule.minBytes > rule.maxBytes)
      wrong(llvm::formatv("min_bytes {0} is above max_bytes {1}", rule.minBytes, rule.maxBytes));
    if (std::optional<Algorithm> algorithm = symbolizeAlgorithm(fields[3])) {
      rule.algorithm = *algorithm;
    } else {
      std::string known;
      for (unsigned i = 0; i <= getMaxEnumValForAlgorithm(); ++i)
        known += (i ? ", " : "") + stringifyAlgorithm(*symbolizeAlgorithm(i)).str();
      wrong("algorithm is '" + fields[3] + "', expected one of " + known);
    }
    rule.hosts = number(6, "nNodes", -1);
    rule.ranks = number(7, "nRanks", -1);
    for (auto [at, column] : {std::pair<size_t, StringRef>{4, "protocol"},
                              {5, "channels"},
                              {8, "numPipeOps"},
                              {9, "regBuff"}})
      if (at < fields.size() && !fields[at].empty() && fields[at] != "-1" && fields[at] != "any")
        wrong(column + " is '" + fields[at] + "'; a schedule has none, expected -1 or any");
    table.rules.push_back(rule);
  }
  return error.empty() ? std::optional<RuleTable>(std::move(table)) : std::nullopt;
}

std::optional<RuleTable> RuleTable::readFile(StringRef path, std::string &error) {
  std::string problem;
  std::optional<std::string> text = ncclx::readFile(path, problem);
  if (!text) {
    error = llvm::formatv("{0}: {1}\n", path, problem);
    return std::nullopt;
  }
  return read(*text, path, error);
}

std::vector<const Rule *> RuleTable::matches(StringRef collective, int64_t bytes, int64_t ranks,
                                             int64_t hosts) const {
  std::vector<const Rule *> found;
  for (const Rule &rule : rules)
    if (rule.collective == collective && rule.minBytes <= bytes && bytes <= rule.maxBytes &&
        (rule.ranks < 0 || rule.ranks == ranks) && (rule.hosts < 0 || rule.hosts == hosts))
      found.push_back(&rule);
  return found;
}

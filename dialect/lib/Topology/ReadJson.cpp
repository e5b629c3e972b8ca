//===- ReadJson.cpp - Topologies in this project's JSON -------------------===//
//
// The schema is in dialect/lib/Topology/README.md; WriteJson.cpp writes it.
//
//===----------------------------------------------------------------------===//
#include "Findings.h"
#include "Quantity.h"
#include "ncclx/Topology/IO.h"
#include "ncclx/Topology/Make.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include <algorithm>
#include <fmt/format.h>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;
using llvm::StringRef;

namespace {
/// Nesting beyond this is refused before parsing: llvm::json recurses.
constexpr unsigned maxDepth = 32;
constexpr unsigned maxRanks = 1 << 24;

/// One pass over the text: how deep it nests, and on which line each element of a top-level array
/// ("nodes[3]") begins.
struct Scan {
  explicit Scan(StringRef text);
  bool tooDeep = false;
  unsigned deepLine = 0;
  llvm::StringMap<unsigned> lines;
};

class JsonReader {
public:
  explicit JsonReader(StringRef name) { topo.name = name.str(); }
  ReadResult run(StringRef text);

private:
  using Object = llvm::json::Object;
  void error(const std::string &path, const char *rule, std::string message) {
    report(Severity::error, path, rule, std::move(message));
  }
  void report(Severity severity, const std::string &path, const char *rule, std::string message) {
    StringRef element = StringRef(path).take_front(path.find(']') + 1);
    auto line = lines.find(element);
    found.add({severity, path, line == lines.end() ? 0 : line->second, rule, std::move(message)});
  }
  void wrongType(const std::string &path, StringRef key, const char *expected,
                 const llvm::json::Value &value);
  std::string text(const Object &object, const std::string &path, StringRef key,
                   bool required = false);
  uint64_t number(const Object &object, const std::string &path, StringRef key, uint64_t otherwise,
                  uint64_t most);
  bool flag(const Object &object, const std::string &path, StringRef key);
  std::optional<Rational> quantity(const Object &object, const std::string &path, StringRef key,
                                   StringRef unit);
  void checkKeys(const Object &object, const std::string &path,
                 std::initializer_list<StringRef> known);
  void eachObject(const Object &root, StringRef key,
                  llvm::function_ref<void(const Object &, const std::string &)> read);
  void readGpu(const Object &object, const std::string &path);
  void readHost(const Object &object, const std::string &path);
  void readNode(const Object &object, const std::string &path);
  void readLink(const Object &object, const std::string &path);
  void readExtra(const Object &object, const std::string &path);
  void readRoot(const Object &root);
  void readReplication(const Object &root);
  int findModel(StringRef name);
  const KnownGpu *knownEnd(const Link &link) const;

  Topology topo;
  Findings found;
  llvm::StringMap<unsigned> lines, nodeIndex, hostIndex, modelIndex;
  std::vector<std::pair<uint64_t, unsigned>> ranks; ///< rank, node
};
} // namespace

Scan::Scan(StringRef text) {
  unsigned depth = 0, line = 1, index = 0;
  std::string key, last;
  bool inArray = false; // directly inside a top-level array
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\n')
      ++line;
    if (c == '"') {
      size_t start = i + 1;
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\n')
          ++line;
        i += text[i] == '\\';
      }
      if (depth == 1)
        last = text.slice(start, i).str();
    } else if (c == '{' || c == '[') {
      if (++depth > maxDepth && !tooDeep) {
        tooDeep = true;
        deepLine = line;
      }
      if (depth == 2) {
        key = last;
        index = 0;
        inArray = c == '[';
      } else if (depth == 3 && inArray) {
        lines[fmt::format("{}[{}]", key, index++)] = line;
      }
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
}

void JsonReader::wrongType(const std::string &path, StringRef key, const char *expected,
                           const llvm::json::Value &value) {
  std::string shown;
  llvm::raw_string_ostream(shown) << value;
  if (shown.size() > 40)
    shown = shown.substr(0, 40) + "...";
  error(path, "type", fmt::format("'{}' must be {}, found {}", key.str(), expected, shown));
}

std::string JsonReader::text(const Object &object, const std::string &path, StringRef key,
                             bool required) {
  const llvm::json::Value *value = object.get(key);
  if (!value) {
    if (required)
      error(path, "missing-key", fmt::format("has no '{}'", key.str()));
    return "";
  }
  if (std::optional<StringRef> string = value->getAsString())
    return string->str();
  wrongType(path, key, "a string", *value);
  return "";
}

uint64_t JsonReader::number(const Object &object, const std::string &path, StringRef key,
                            uint64_t otherwise, uint64_t most) {
  const llvm::json::Value *value = object.get(key);
  if (!value)
    return otherwise;
  std::optional<int64_t> integer = value->getAsInteger();
  if (integer && *integer >= 0 && uint64_t(*integer) <= most)
    return uint64_t(*integer);
  wrongType(path, key, fmt::format("a whole number from 0 to {}", most).c_str(), *value);
  return otherwise;
}

bool JsonReader::flag(const Object &object, const std::string &path, StringRef key) {
  const llvm::json::Value *value = object.get(key);
  if (!value)
    return false;
  if (std::optional<bool> boolean = value->getAsBoolean())
    return *boolean;
  wrongType(path, key, "true or false", *value);
  return false;
}

std::optional<Rational> JsonReader::quantity(const Object &object, const std::string &path,
                                             StringRef key, StringRef unit) {
  const llvm::json::Value *value = object.get(key);
  if (!value)
    return std::nullopt;
  std::optional<Rational> result;
  if (std::optional<StringRef> string = value->getAsString())
    result = parseQuantity(*string, unit);
  else if (std::optional<int64_t> integer = value->getAsInteger())
    result = Rational(*integer);
  if (result && *result >= Rational(0))
    return result;
  wrongType(
      path, key,
      fmt::format("zero or more: a whole number or a string like \"20.6 G{0}\" or \"1/3 {0}\"",
                  unit.str())
          .c_str(),
      *value);
  return std::nullopt;
}

void JsonReader::checkKeys(const Object &object, const std::string &path,
                           std::initializer_list<StringRef> known) {
  std::vector<StringRef> strangers;
  for (const auto &[key, unused] : object)
    if (std::find(known.begin(), known.end(), StringRef(key)) == known.end())
      strangers.push_back(key);
  std::sort(strangers.begin(), strangers.end());
  for (StringRef key : strangers) {
    report(Severity::warning, path, "unknown-key",
           fmt::format("'{}' is not a key this reader knows; it is kept and has no effect",
                       key.str()));
    Extra extra;
    extra.at = path.empty() ? key.str() : path + "." + key.str();
    llvm::raw_string_ostream(extra.text) << *object.get(key);
    topo.extras.push_back(std::move(extra));
  }
}

void JsonReader::eachObject(const Object &root, StringRef key,
                            llvm::function_ref<void(const Object &, const std::string &)> read) {
  const llvm::json::Value *value = root.get(key);
  if (!value)
    return;
  const llvm::json::Array *array = value->getAsArray();
  if (!array)
    return wrongType(key.str(), key, "an array", *value);
  for (size_t i = 0; i < array->size(); ++i) {
    std::string path = fmt::format("{}[{}]", key.str(), i);
    if (const Object *object = (*array)[i].getAsObject())
      read(*object, path);
    else
      wrongType(path, path, "an object", (*array)[i]);
  }
}

void JsonReader::readGpu(const Object &o, const std::string &path) {
  checkKeys(o, path,
            {"name", "arch", "sms", "bf16_flops", "f32_flops", "hbm", "hbm_size", "copy_engines",
             "power_cap_w", "block"});
  GpuModel m;
  m.name = text(o, path, "name", true);
  m.arch = text(o, path, "arch");
  m.sms = unsigned(number(o, path, "sms", 0, 1 << 20));
  m.bf16Flops = quantity(o, path, "bf16_flops", "FLOP/s").value_or(0);
  m.f32Flops = quantity(o, path, "f32_flops", "FLOP/s").value_or(0);
  m.hbmBytesPerSec = quantity(o, path, "hbm", "B/s").value_or(0);
  m.hbmBytes = number(o, path, "hbm_size", 0, uint64_t(1) << 60);
  m.copyEngines = unsigned(number(o, path, "copy_engines", 0, 1024));
  m.powerCapWatts = unsigned(number(o, path, "power_cap_w", 0, 1 << 20));
  m.blockBytesPerSec = quantity(o, path, "block", "B/s").value_or(0);
  modelIndex.try_emplace(m.name, topo.models.size());
  topo.models.push_back(std::move(m));
}

void JsonReader::readHost(const Object &o, const std::string &path) {
  checkKeys(o, path,
            {"name", "rack", "zone", "data_center", "cores", "core_f32_flops", "core_bf16_flops"});
  Host h;
  h.name = text(o, path, "name", true);
  h.rack = text(o, path, "rack");
  h.zone = text(o, path, "zone");
  h.dataCenter = text(o, path, "data_center");
  h.cores = unsigned(number(o, path, "cores", 0, 1 << 20));
  h.coreF32Flops = quantity(o, path, "core_f32_flops", "FLOP/s").value_or(0);
  h.coreBf16Flops = quantity(o, path, "core_bf16_flops", "FLOP/s").value_or(0);
  hostIndex.try_emplace(h.name, topo.hosts.size());
  topo.hosts.push_back(std::move(h));
}

int JsonReader::findModel(StringRef name) {
  if (auto it = modelIndex.find(name); it != modelIndex.end())
    return int(it->second);
  const KnownGpu *known = findGpu(name);
  if (!known)
    return -1;
  modelIndex.try_emplace(name, topo.models.size());
  topo.models.push_back(known->model);
  return int(topo.models.size()) - 1;
}

void JsonReader::readNode(const Object &o, const std::string &path) {
  checkKeys(o, path,
            {"name", "kind", "host", "rank", "gpu", "bus_id", "bundle", "throughput", "cores",
             "memory_size", "multicast", "reduces"});
  Node n;
  auto line = lines.find(path);
  n.line = line == lines.end() ? 0 : line->second;
  n.name = text(o, path, "name", true);
  std::string kind = text(o, path, "kind", true);
  if (std::optional<NodeKind> parsed = parseNodeKind(kind))
    n.kind = *parsed;
  else if (!kind.empty())
    error(path, "node-kind",
          fmt::format("kind '{}' is none of gpu, process, memory, cpu, pci, nvswitch, nic, net",
                      kind));
  std::string host = text(o, path, "host");
  if (!host.empty()) {
    auto it = hostIndex.find(host);
    if (it == hostIndex.end())
      error(path, "unknown-name", fmt::format("host '{}' is not among 'hosts'", host));
    else
      n.host = it->second;
  }
  std::string model = text(o, path, "gpu");
  if (!model.empty()) {
    n.model = findModel(model);
    if (n.model < 0)
      error(path, "unknown-name",
            fmt::format("GPU model '{}' is neither among 'gpus' nor known", model));
  }
  n.busId = text(o, path, "bus_id");
  n.bundle = text(o, path, "bundle");
  n.throughput = quantity(o, path, "throughput", "B/s").value_or(0);
  n.cores = unsigned(number(o, path, "cores", 0, 1 << 20));
  n.memoryBytes = number(o, path, "memory_size", 0, uint64_t(1) << 60);
  n.multicast = flag(o, path, "multicast");
  n.reduces = flag(o, path, "reduces");
  if (o.get("rank"))
    ranks.emplace_back(number(o, path, "rank", 0, maxRanks), topo.nodes.size());
  nodeIndex.try_emplace(n.name, topo.nodes.size());
  topo.nodes.push_back(std::move(n));
}

const KnownGpu *JsonReader::knownEnd(const Link &link) const {
  for (unsigned end : {link.from, link.to})
    if (topo.nodes[end].model >= 0)
      if (const KnownGpu *known = findGpu(topo.models[topo.nodes[end].model].name))
        if (known->linkKind == link.kind)
          return known;
  return nullptr;
}

void JsonReader::readExtra(const Object &o, const std::string &path) {
  checkKeys(o, path, {"at", "text"});
  Extra extra{text(o, path, "at", true), text(o, path, "text", true)};
  topo.extras.push_back(std::move(extra));
}

void JsonReader::readLink(const Object &o, const std::string &path) {
  checkKeys(o, path, {"from", "to", "kind", "count", "raw", "payload", "latency_ns", "both_ways"});
  Link l;
  auto line = lines.find(path);
  l.line = line == lines.end() ? 0 : line->second;
  bool ends = true;
  for (auto [key, end] : {std::pair("from", &l.from), std::pair("to", &l.to)}) {
    std::string nodeName = text(o, path, key, true);
    auto it = nodeIndex.find(nodeName);
    if (it != nodeIndex.end()) {
      *end = it->second;
      continue;
    }
    ends = false;
    if (!nodeName.empty())
      error(path, "unknown-name",
            fmt::format("'{}' names node '{}', which is not among 'nodes'", key, nodeName));
  }
  std::string kind = text(o, path, "kind", true);
  std::optional<LinkKind> parsed = parseLinkKind(kind);
  if (!parsed && !kind.empty())
    error(path, "link-kind",
          fmt::format("kind '{}' is none of nvlink, xgmi, die, shm, pci, cpu, c2c, nic, net, tcp",
                      kind));
  if (!ends || !parsed)
    return;
  l.kind = *parsed;
  l.count = unsigned(number(o, path, "count", 1, 1 << 20));
  size_t before = found.size();
  std::optional<Rational> raw = quantity(o, path, "raw", "B/s");
  std::optional<Rational> payload = quantity(o, path, "payload", "B/s");
  const KnownGpu *known = knownEnd(l);
  if (!raw && !payload && known)
    l.perWire = known->linkPerWire;
  else if (raw)
    l.perWire = {*raw, payload.value_or(*raw)};
  else if (found.size() == before)
    return error(path, "missing-key", "has no 'raw' rate, and the kind of GPU does not tell it");
  if (found.size() != before)
    return;
  if (std::optional<Rational> latency = quantity(o, path, "latency_ns", "ns"))
    l.latencyNs = *latency;
  else
    l.latencyNs = defaultLatencyNs(l.kind);
  topo.links.push_back(l);
  if (flag(o, path, "both_ways")) {
    std::swap(l.from, l.to);
    topo.links.push_back(l);
  }
}

void JsonReader::readRoot(const Object &root) {
  std::string format = text(root, "", "format", true);
  if (!format.empty() && format != "ncclx-topology")
    return error("", "format", fmt::format("'format' is '{}', expected 'ncclx-topology'", format));
  uint64_t version = number(root, "", "version", 0, 1 << 20);
  if (version != 1)
    return error("", "version", fmt::format("'version' is {}; this reader knows 1", version));
  checkKeys(root, "",
            {"format", "version", "name", "comment", "gpus", "hosts", "nodes", "links", "replicate",
             "extras"});
  std::string name = text(root, "", "name");
  if (!name.empty())
    topo.name = name;
  auto reader = [this](auto method) {
    return [this, method](const Object &o, const std::string &path) { (this->*method)(o, path); };
  };
  eachObject(root, "gpus", reader(&JsonReader::readGpu));
  eachObject(root, "hosts", reader(&JsonReader::readHost));
  if (topo.hosts.empty()) {
    topo.hosts.emplace_back();
    topo.hosts.back().name = "host0";
    hostIndex.try_emplace("host0", 0);
  }
  eachObject(root, "nodes", reader(&JsonReader::readNode));
  eachObject(root, "links", reader(&JsonReader::readLink));
  eachObject(root, "extras", reader(&JsonReader::readExtra));
  if (found.hasErrors())
    return;
  std::sort(ranks.begin(), ranks.end());
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].first != r) {
      error(fmt::format("nodes[{}]", ranks[r].second), "ranks",
            fmt::format("ranks must be 0, 1, 2, ... each once; found rank {} where rank {} is due",
                        ranks[r].first, r));
      return;
    }
    topo.ranks.push_back(ranks[r].second);
  }
  if (root.get("replicate"))
    readReplication(root);
}

void JsonReader::readReplication(const Object &root) {
  const std::string path = "replicate";
  const Object *o = root.getObject("replicate");
  if (!o)
    return wrongType(path, path, "an object", *root.get("replicate"));
  checkKeys(*o, path, {"hosts", "network"});
  Replication spec;
  spec.hosts = unsigned(number(*o, path, "hosts", 1, maxRanks));
  eachObject(*o, "network", [&](const Object &entry, const std::string &at) {
    std::string where = path + "." + at;
    checkKeys(entry, where, {"tier", "hosts", "oversubscription", "latency_ns"});
    NetworkTier tier;
    tier.tier = text(entry, where, "tier", true);
    tier.hosts = unsigned(number(entry, where, "hosts", 1, maxRanks));
    tier.oversubscription = quantity(entry, where, "oversubscription", "").value_or(1);
    tier.latencyNs = quantity(entry, where, "latency_ns", "ns").value_or(0);
    spec.network.push_back(std::move(tier));
  });
  if (found.hasErrors())
    return;
  // The base must be sound before it is copied.
  Diagnostics own = topo.validate();
  if (hasErrors(own)) {
    found.add(std::move(own));
    return;
  }
  std::string problem;
  std::optional<Topology> copies = replicateHosts(topo, spec, problem);
  if (!copies)
    return error(path, "replicate", problem);
  copies->extras = std::move(topo.extras);
  topo = std::move(*copies);
}

ReadResult JsonReader::run(StringRef input) {
  ReadResult result;
  result.format = "json";
  Scan scan(input);
  if (scan.tooDeep) {
    result.diagnostics.push_back({Severity::error, "", scan.deepLine, "depth",
                                  fmt::format("nested more than {} deep", maxDepth)});
    return result;
  }
  lines = std::move(scan.lines);
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(input);
  if (!value) {
    std::string message = llvm::toString(value.takeError());
    unsigned line = 0;
    StringRef(message).drop_front(std::min<size_t>(1, message.size())).consumeInteger(10, line);
    result.diagnostics.push_back(
        {Severity::error, "", line, "json", "not JSON, or cut short: " + message});
    return result;
  }
  if (const Object *root = value->getAsObject())
    readRoot(*root);
  else
    error("", "type", "the document must be an object");
  if (!found.hasErrors()) {
    Diagnostics more = topo.validate();
    found.add(std::move(more));
  }
  result.diagnostics = found.take();
  if (!hasErrors(result.diagnostics))
    result.topology = std::move(topo);
  return result;
}

ReadResult topology::readJson(StringRef text, StringRef name) { return JsonReader(name).run(text); }

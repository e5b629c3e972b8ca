//===- WriteJson.cpp ------------------------------------------------------===//
#include "Quantity.h"
#include "ncclx/Topology/IO.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
class JsonWriter {
public:
  JsonWriter(const Topology &topo, llvm::raw_ostream &stream) : topo(topo), json(stream, 1) {}
  void run();

private:
  void text(llvm::StringRef key, llvm::StringRef value) {
    if (!value.empty())
      // A character reference in XML can name what no UTF-8 text holds.
      json.attribute(key,
                     llvm::json::isUTF8(value) ? std::string(value) : llvm::json::fixUTF8(value));
  }
  void number(llvm::StringRef key, uint64_t value, uint64_t otherwise = 0) {
    if (value != otherwise)
      json.attribute(key, int64_t(value));
  }
  void quantity(llvm::StringRef key, const Rational &value, llvm::StringRef unit) {
    if (!value.isZero())
      json.attribute(key, formatQuantity(value, unit));
  }
  template <typename T, typename F> void each(llvm::StringRef key, const std::vector<T> &all, F f) {
    json.attributeArray(key, [&] {
      for (size_t i = 0; i < all.size(); ++i)
        json.object([&] { f(all[i], i); });
    });
  }
  void link(const Link &l, bool bothWays);

  const Topology &topo;
  llvm::json::OStream json;
};
} // namespace

void JsonWriter::link(const Link &l, bool bothWays) {
  json.object([&] {
    text("from", topo.nodes[l.from].name);
    text("to", topo.nodes[l.to].name);
    text("kind", name(l.kind));
    number("count", l.count, 1);
    json.attribute("raw", formatQuantity(l.perWire.raw, "B/s"));
    json.attribute("payload", formatQuantity(l.perWire.payload, "B/s"));
    if (l.latencyNs.denominator() == 1 && l.latencyNs < Rational(int64_t(1) << 53))
      json.attribute("latency_ns", int64_t(l.latencyNs.numerator()));
    else
      json.attribute("latency_ns", l.latencyNs.str());
    if (bothWays)
      json.attribute("both_ways", true);
  });
}

void JsonWriter::run() {
  std::vector<int> rankOf(topo.nodes.size(), -1);
  for (unsigned r = 0; r < topo.numRanks(); ++r)
    rankOf[topo.ranks[r]] = int(r);
  json.object([&] {
    json.attribute("format", "ncclx-topology");
    json.attribute("version", 1);
    text("name", topo.name);
    each("gpus", topo.models, [&](const GpuModel &m, size_t) {
      text("name", m.name);
      text("arch", m.arch);
      number("sms", m.sms);
      quantity("bf16_flops", m.bf16Flops, "FLOP/s");
      quantity("f32_flops", m.f32Flops, "FLOP/s");
      quantity("hbm", m.hbmBytesPerSec, "B/s");
      number("hbm_size", m.hbmBytes);
      number("copy_engines", m.copyEngines);
      number("power_cap_w", m.powerCapWatts);
      quantity("block", m.blockBytesPerSec, "B/s");
    });
    each("hosts", topo.hosts, [&](const Host &h, size_t) {
      text("name", h.name);
      text("rack", h.rack);
      text("zone", h.zone);
      text("data_center", h.dataCenter);
      number("cores", h.cores);
      quantity("core_f32_flops", h.coreF32Flops, "FLOP/s");
      quantity("core_bf16_flops", h.coreBf16Flops, "FLOP/s");
    });
    each("nodes", topo.nodes, [&](const Node &n, size_t i) {
      text("name", n.name);
      text("kind", name(n.kind));
      if (n.kind != NodeKind::net && n.host > 0)
        text("host", topo.hosts[n.host].name);
      if (rankOf[i] >= 0)
        json.attribute("rank", rankOf[i]);
      if (n.model >= 0)
        text("gpu", topo.models[n.model].name);
      text("bus_id", n.busId);
      text("bundle", n.bundle);
      quantity("throughput", n.throughput, "B/s");
      number("cores", n.cores);
      number("memory_size", n.memoryBytes);
      if (n.multicast)
        json.attribute("multicast", true);
      if (n.reduces)
        json.attribute("reduces", true);
    });
    json.attributeArray("links", [&] {
      for (size_t i = 0; i < topo.links.size(); ++i) {
        const Link &l = topo.links[i];
        bool twin = i + 1 < topo.links.size();
        if (twin) {
          const Link &back = topo.links[i + 1];
          twin = back.from == l.to && back.to == l.from && back.kind == l.kind &&
                 back.count == l.count && back.perWire == l.perWire &&
                 back.latencyNs == l.latencyNs;
        }
        link(l, twin);
        i += twin;
      }
    });
    if (!topo.extras.empty())
      each("extras", topo.extras, [&](const Extra &e, size_t) {
        text("at", e.at);
        text("text", e.text);
      });
  });
}

std::string topology::writeJson(const Topology &topo) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  JsonWriter(topo, stream).run();
  return text + "\n";
}

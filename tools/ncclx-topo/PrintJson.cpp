//===- PrintJson.cpp - The same, for scripts ------------------------------===//
#include "Print.h"
#include "ncclx/Topology/IO.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <map>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;
namespace json = llvm::json;

static json::Value text(llvm::StringRef value) { return json::fixUTF8(value); }

static void list(json::OStream &out, llvm::StringRef key, const std::vector<std::string> &lines) {
  out.attributeArray(key, [&] {
    for (const std::string &line : lines)
      out.value(text(line));
  });
}

void topology::printTopologyJson(llvm::raw_ostream &stream, const Topology &topo,
                                 llvm::StringRef format, const Diagnostics &findings) {
  json::OStream out(stream, 1);
  out.object([&] {
    out.attribute("name", text(topo.name));
    out.attribute("format", format);
    out.attribute("ranks", topo.numRanks());
    out.attribute("hosts", int64_t(topo.hosts.size()));
    out.attribute("links", int64_t(topo.links.size()));
    std::map<NodeKind, int64_t> kinds;
    bool multicast = false, reduces = false;
    for (const Node &node : topo.nodes) {
      ++kinds[node.kind];
      multicast = multicast || node.multicast;
      reduces = reduces || node.reduces;
    }
    out.attributeObject("nodes", [&] {
      for (auto [kind, count] : kinds)
        out.attribute(name(kind), count);
    });
    out.attribute("multicast", multicast);
    out.attribute("in_network_reduction", reduces);
    out.attributeArray("models", [&] {
      for (const GpuModel &model : topo.models)
        out.value(text(model.name));
    });
    if (topo.numRanks() <= mostPairRanks)
      out.attributeArray("pairs", [&] {
        for (const PairClass &pairs : pairClasses(topo))
          out.object([&] {
            out.attribute("count", pairs.count);
            out.attribute("reach", name(pairs.reach));
            if (pairs.reach == Reach::put)
              out.attribute("one_rail", pairs.oneRail);
            out.attribute("raw_bytes_per_s", pairs.raw.toDouble());
            out.attribute("payload_bytes_per_s", pairs.payload.toDouble());
            out.attribute("latency_ns", pairs.latencyNs.toDouble());
          });
      });
    out.attributeArray("findings", [&] {
      for (const Diagnostic &d : findings)
        out.object([&] {
          out.attribute("severity", name(d.severity));
          out.attribute("rule", d.rule);
          out.attribute("at", text(d.path));
          out.attribute("line", d.line);
          out.attribute("message", text(d.message));
        });
    });
  });
  stream << "\n";
}

static void attribute(llvm::raw_ostream &out, const json::Value &value) {
  auto quoted = [&](llvm::StringRef string) {
    out << '"';
    llvm::printEscapedString(string, out);
    out << '"';
  };
  llvm::ListSeparator comma;
  if (const json::Object *object = value.getAsObject()) {
    std::map<llvm::StringRef, const json::Value *> sorted;
    for (const auto &[key, inside] : *object)
      sorted[key] = &inside;
    out << '{';
    for (const auto &[key, inside] : sorted) {
      out << comma << key << " = ";
      attribute(out, *inside);
    }
    out << '}';
  } else if (const json::Array *array = value.getAsArray()) {
    out << '[';
    for (const json::Value &inside : *array) {
      out << comma;
      attribute(out, inside);
    }
    out << ']';
  } else if (std::optional<llvm::StringRef> string = value.getAsString()) {
    quoted(*string);
  } else {
    out << value; // whole numbers and flags are written alike
  }
}

void topology::printAttribute(llvm::raw_ostream &out, const Topology &topo) {
  llvm::Expected<json::Value> value = json::parse(writeJson(topo));
  out << "#ncclx.topology<";
  attribute(out, llvm::cantFail(std::move(value)));
  out << ">\n";
}

static void boundJson(json::OStream &out, const BoundQuery &query, const LowerBound &bound) {
  out.object([&] {
    out.attribute("argument", bound.argument);
    out.attribute("universal", bound.universal);
    out.attribute("unreachable", bound.unreachable);
    if (!bound.unreachable) {
      out.attribute("seconds", bound.seconds.toDouble());
      out.attribute("seconds_exact", bound.seconds.str());
      out.attribute("alg_bytes_per_s", algorithmBandwidth(query, bound).toDouble());
      out.attribute("bus_bytes_per_s", busBandwidth(query, bound).toDouble());
    }
    out.attribute("detail", text(bound.detail));
  });
}

void topology::printBoundsJson(llvm::raw_ostream &stream, const Topology &topo,
                               llvm::ArrayRef<BoundQuery> queries) {
  json::OStream out(stream, 1);
  BoundSolver solver(topo);
  out.array([&] {
    for (const BoundQuery &query : queries)
      out.object([&] {
        std::vector<LowerBound> all = solver.bounds(query);
        out.attribute("collective", name(query.collective));
        out.attribute("ranks", int64_t(query.group.size()));
        out.attribute("bytes", int64_t(query.bytes));
        out.attribute("rate", name(query.rate));
        out.attribute("links", name(all.front().links));
        out.attributeArray("bounds", [&] {
          for (const LowerBound &bound : all)
            boundJson(out, query, bound);
        });
      });
  });
  stream << "\n";
}

bool topology::printDifferenceJson(llvm::raw_ostream &stream, const Topology &a,
                                   const Topology &b) {
  Difference differs = difference(a, b);
  json::OStream out(stream, 1);
  out.object([&] {
    list(out, "only_first", differs.onlyFirst);
    list(out, "only_second", differs.onlySecond);
  });
  stream << "\n";
  return !differs.onlyFirst.empty() || !differs.onlySecond.empty();
}

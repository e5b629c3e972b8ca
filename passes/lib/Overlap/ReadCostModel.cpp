//===- ReadCostModel.cpp - Machine files ------------------------------------------===//
//
// The schema is in README.md beside this file.
//
//===----------------------------------------------------------------------===//
#include "JsonDepth.h"
#include "ncclx/Overlap/CostModel.h"
#include "ncclx/Support/ReadFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

using namespace mlir::ncclx::overlap;
using llvm::StringRef;
using llvm::json::Object;

namespace {

/// Reads one object and remembers the first thing wrong.
class Section {
public:
  Section(const Object &object, std::string place, std::string &error)
      : object(object), place(std::move(place)), error(error) {}
  ~Section() {
    for (const auto &entry : object)
      if (std::find(known.begin(), known.end(), entry.first.str()) == known.end())
        fail(entry.first, fmt::format("is not known; known are: {}", fmt::join(known, ", ")));
  }

  void fail(StringRef key, const std::string &what) {
    if (error.empty())
      error = fmt::format("{}'{}' {}", place.empty() ? "" : place + ": ", key.str(), what);
  }

  /// A number in [least, most], times `unit`; `otherwise` where it is absent, if that is given.
  double number(StringRef key, double unit, double least, double most,
                std::optional<double> otherwise = std::nullopt) {
    const llvm::json::Value *value = find(key);
    if (!value && otherwise)
      return *otherwise * unit;
    std::optional<double> found = value ? value->getAsNumber() : std::nullopt;
    if (!found || !(*found >= least && *found <= most)) {
      fail(key, fmt::format("is a number from {} to {}, found {}", least, most, show(value)));
      return least * unit;
    }
    return *found * unit;
  }
  std::string text(StringRef key, bool required) {
    const llvm::json::Value *value = find(key);
    std::optional<StringRef> found = value ? value->getAsString() : std::nullopt;
    if (value ? !found : required)
      fail(key, fmt::format("is a text, found {}", show(value)));
    if (found && found->empty() && required)
      fail(key, "is empty");
    return found ? found->str() : "";
  }
  bool flag(StringRef key, bool otherwise) {
    const llvm::json::Value *value = find(key);
    std::optional<bool> found = value ? value->getAsBoolean() : std::nullopt;
    if (value && !found)
      fail(key, fmt::format("is true or false, found {}", show(value)));
    return found.value_or(otherwise);
  }
  const Object *sub(StringRef key, bool required) {
    const llvm::json::Value *value = find(key);
    const Object *found = value ? value->getAsObject() : nullptr;
    if (value ? !found : required)
      fail(key, fmt::format("is an object, found {}", show(value)));
    return found;
  }
  const llvm::json::Array *array(StringRef key) {
    const llvm::json::Value *value = find(key);
    const llvm::json::Array *found = value ? value->getAsArray() : nullptr;
    if (!found)
      fail(key, fmt::format("is a list, found {}", show(value)));
    return found;
  }

private:
  const Object &object;
  std::string place;
  std::string &error;
  std::vector<std::string> known;

  const llvm::json::Value *find(StringRef key) {
    known.push_back(key.str());
    return object.get(key);
  }
  static std::string show(const llvm::json::Value *value) {
    if (!value)
      return "nothing";
    std::string text;
    llvm::raw_string_ostream(text) << *value;
    return text.size() > 40 ? text.substr(0, 40) + "..." : text;
  }
};

constexpr double inf = std::numeric_limits<double>::max();
constexpr double micro = 1e-6, pico = 1e-12, giga = 1e9, tera = 1e12;

/// A word that is none of these, a misspelt one, would leave an engine without work unseen.
constexpr const char *allKinds[] = {"all_gather",   "reduce_scatter", "all_reduce", "all_to_all",
                                    "all_to_all_v", "broadcast",      "reduce",     "gather",
                                    "scatter",      "permute",        "barrier"};

class Reader {
public:
  CostModelResult run(const Object &root) {
    {
      Section s(root, "", error);
      if (s.text("format", true) != "ncclx-machine")
        s.fail("format", "is 'ncclx-machine'");
      if (s.number("version", 1, 1, 1) != 1)
        return {std::nullopt, error};
      model.name = s.text("name", true);
      s.text("comment", false);
      model.resources = {"HBM"};
      if (const Object *o = s.sub("sm", true))
        readSm(*o);
      if (const Object *o = s.sub("memory", true))
        readMemory(*o);
      if (const Object *o = s.sub("gemm", true))
        readGemm(*o);
      if (const Object *o = s.sub("attention", true))
        readAttention(*o);
      if (const Object *o = s.sub("kernel", false))
        readKernel(*o);
      if (const Object *o = s.sub("power", false))
        readPower(*o);
      if (const llvm::json::Array *list = s.array("engines"))
        for (size_t i = 0; i < list->size(); ++i) {
          std::string place = fmt::format("engines[{}]", i);
          if (const Object *o = (*list)[i].getAsObject())
            readEngine(*o, place);
          else
            s.fail("engines", "is a list of objects");
        }
    }
    if (!error.empty())
      return {std::nullopt, error};
    return {std::move(model), ""};
  }

private:
  CostModel model;
  std::string error;

  void readSm(const Object &o) {
    Section s(o, "sm", error);
    s.text("source", true);
    model.sms = s.number("count", 1, 1, 1 << 16);
    std::string sharing = s.text("sharing", true);
    if (sharing != "static" && sharing != "dynamic")
      s.fail("sharing", "is 'static' or 'dynamic', found '" + sharing + "'");
    model.sharing = sharing == "static" ? Sharing::fixed : Sharing::dynamic;
  }
  void readMemory(const Object &o) {
    Section s(o, "memory", error);
    s.text("source", true);
    model.hbm = s.number("gb_per_s", giga, 1e-3, inf);
    model.hbmEfficiency = s.number("efficiency", 1, 1e-3, 1, 1);
    model.hbmContention = s.flag("contention", true);
    model.hbmJoulesPerByte = s.number("pj_per_byte", pico, 0, inf, 0);
  }
  void readGemm(const Object &o) {
    Section s(o, "gemm", error);
    s.text("source", true);
    model.gemmFlops = s.number("tflops", tera, 1e-6, inf);
    model.tileM = int64_t(s.number("tile_m", 1, 1, 1 << 20, 128));
    model.tileN = int64_t(s.number("tile_n", 1, 1, 1 << 20, 256));
    model.waves = s.flag("waves", false);
    // Energy grows with the square of the clock: what was measured below the highest is scaled up.
    double measuredAt = s.number("pj_measured_at_tflops", tera, 1e-6, inf, model.gemmFlops / tera);
    double up = model.gemmFlops / measuredAt;
    model.gemmJoulesPerFlop = s.number("pj_per_flop", pico, 0, inf, 0) * up * up;
  }
  void readAttention(const Object &o) {
    Section s(o, "attention", error);
    s.text("source", true);
    model.attentionForward = s.number("forward_tflops", tera, 1e-6, inf);
    model.attentionBackward = s.number("backward_tflops", tera, 1e-6, inf);
    model.attentionJoulesPerFlop = s.number("pj_per_flop", pico, 0, inf, 0);
  }
  void readKernel(const Object &o) {
    Section s(o, "kernel", error);
    s.text("source", true);
    model.launch = s.number("launch_us", micro, 0, inf);
  }
  void readPower(const Object &o) {
    Section s(o, "power", error);
    s.text("source", true);
    model.power.idleWatts = s.number("idle_w", 1, 0, inf);
    model.power.capWatts = s.number("cap_w", 1, 0, inf);
    model.power.lowestClock = s.number("lowest_clock", 1, 1e-3, 1, 0.1);
    if (model.power.capWatts <= model.power.idleWatts)
      s.fail("cap_w", "is above idle_w");
  }
  void readEngine(const Object &o, const std::string &place) {
    Section s(o, place, error);
    Engine engine;
    engine.name = s.text("name", true);
    s.text("source", true);
    if (const llvm::json::Array *kinds = s.array("collectives"))
      for (const llvm::json::Value &kind : *kinds) {
        if (!kind.getAsString())
          s.fail("collectives", "is a list of texts");
        else if (StringRef name = *kind.getAsString(); !llvm::is_contained(allKinds, name))
          s.fail("collectives", fmt::format("names what is no collective: '{}'; they are: {}",
                                            name.str(), fmt::join(allKinds, ", ")));
        else
          engine.collectives.push_back(name.str());
      }
    engine.bytesPerSecond = s.number("gb_per_s", giga, 1e-6, inf);
    engine.base = s.number("base_us", micro, 0, inf, 0);
    engine.perMember = s.number("per_peer_us", micro, 0, inf, 0);
    engine.sms = s.number("sms", 1, 0, model.sms - 1, 0);
    engine.queue = unsigned(s.number("queue", 1, 0, 1 << 16, 0));
    engine.hbmPerByte = s.number("hbm_per_byte", 1, 0, inf, 0);
    engine.joulesPerByte = s.number("pj_per_byte", pico, 0, inf, 0);
    if (const Object *uses = s.sub("uses", false)) {
      std::vector<std::string> names; // an object's own order is that of its hash table
      for (const auto &entry : *uses)
        names.push_back(StringRef(entry.first).str());
      std::sort(names.begin(), names.end());
      for (const std::string &name : names) {
        std::optional<double> share = uses->getNumber(name);
        if (!share || !(*share >= 0 && *share <= 1))
          s.fail("uses", "says which share of '" + name + "' is used, from 0 to 1");
        else
          engine.uses.push_back({resource(name), *share});
      }
      if (model.resources.size() > 16)
        s.fail("uses", "names more than 15 resources beside HBM");
    }
    for (const Engine &other : model.engines)
      if (other.name == engine.name)
        s.fail("name", "stands twice: '" + engine.name + "'");
    model.engines.push_back(std::move(engine));
  }
  unsigned resource(const std::string &name) {
    auto it = std::find(model.resources.begin(), model.resources.end(), name);
    if (it == model.resources.end())
      it = model.resources.insert(it, name);
    return unsigned(it - model.resources.begin());
  }
};

} // namespace

CostModelResult mlir::ncclx::overlap::readCostModel(StringRef text, StringRef fileName) {
  auto wrong = [&](const std::string &what) {
    return CostModelResult{std::nullopt, fileName.str() + ": " + what};
  };
  if (nestsTooDeep(text))
    return wrong(fmt::format("nests more than {} deep", deepest));
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return wrong(llvm::toString(value.takeError()));
  const Object *root = value->getAsObject();
  if (!root)
    return wrong("is an object");
  CostModelResult result = Reader().run(*root);
  if (!result.model)
    return wrong(result.error);
  return result;
}

CostModelResult mlir::ncclx::overlap::readCostModelFile(StringRef path) {
  std::string problem;
  std::optional<std::string> text = readFile(path, problem);
  if (!text)
    return {std::nullopt, path.str() + ": " + problem};
  return readCostModel(*text, path);
}

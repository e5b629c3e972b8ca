//===- Calibrate.cpp - What was measured, as engines of a machine file ------------------===//
#include "Calibrate.h"

#include "ncclx/Overlap/CostModel.h"
#include "ncclx/Support/ReadFile.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <ctime>
#include <map>

using namespace ncclx_bench;
using namespace mlir::ncclx;

Line ncclx_bench::fit(const std::vector<Sample> &samples) {
  // Least squares of (base + each amount) / seconds - 1.
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (const Sample &s : samples) {
    double x = 1 / s.seconds, y = s.amount / s.seconds;
    aa += x * x, ab += x * y, bb += y * y, a += x, b += y;
  }
  double determinant = aa * bb - ab * ab;
  Line line;
  if (determinant > 1e-12 * aa * bb)
    line = {(a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant};
  if (line.base < 0 || line.each <= 0)
    line = {0, b / bb};
  return line;
}

static std::string today() {
  char text[16];
  time_t now = time(nullptr);
  tm local{};
  gmtime_r(&now, &local);
  strftime(text, sizeof text, "%Y-%m-%d", &local);
  return text;
}

/// The largest and smallest amounts, as "A to B".
static std::string spanOf(const std::vector<Sample> &samples) {
  auto [least, most] =
      std::minmax_element(samples.begin(), samples.end(),
                          [](const Sample &x, const Sample &y) { return x.amount < y.amount; });
  return llvm::formatv("{0} to {1}", int64_t(least->amount), int64_t(most->amount));
}

static llvm::json::Object &sectionOf(llvm::json::Object &root, llvm::StringRef name) {
  llvm::json::Value &section = root[name];
  if (!section.getAsObject())
    section = llvm::json::Object();
  return *section.getAsObject();
}

std::string ncclx_bench::calibrate(const std::string &base, const std::string &path,
                                   const Measurement &measured) {
  std::string problem;
  std::optional<std::string> text = readFile(base, problem);
  if (!text)
    return base + ": " + problem;
  overlap::CostModelResult read = overlap::readCostModel(*text, base);
  if (!read.model)
    return read.error;
  llvm::json::Value root = llvm::cantFail(llvm::json::parse(*text)); // it has just been read
  llvm::json::Object &object = *root.getAsObject();
  llvm::json::Array &engines = *object.getArray("engines");
  auto source = [&](const std::string &of) {
    return llvm::formatv("{0}, {1}, ncclx-bench --calibrate: {2}", measured.machine, today(), of)
        .str();
  };
  std::map<std::string, std::vector<Sample>> cells;
  for (const Sample &sample : measured.collectives)
    cells[sample.engine].push_back(sample);
  size_t first = 0; // where the next goes, if they carry their kinds
  for (const auto &[name, samples] : cells) {
    if (samples.size() < 2)
      return "engine '" + name + "' takes two sizes or more, found " +
             std::to_string(samples.size());
    Line line = fit(samples);
    llvm::json::Object engine{{"name", name},
                              {"collectives", llvm::json::Array{samples.front().kind}},
                              {"base_us", line.base * 1e6},
                              {"gb_per_s", 1e-9 / line.each},
                              {"hbm_per_byte", 2},
                              {"sms", samples.front().sms},
                              {"source", source(llvm::formatv("{0} sizes, {1} bytes on the wire",
                                                              samples.size(), spanOf(samples)))}};
    auto old = llvm::find_if(engines, [&, &name = name](const llvm::json::Value &other) {
      return other.getAsObject()->getString("name") == llvm::StringRef(name);
    });
    if (old != engines.end())
      engines.erase(old);
    if (measured.enginesFirst)
      engines.insert(engines.begin() + first++, std::move(engine));
    else
      engines.push_back(std::move(engine));
  }
  if (!measured.products.empty()) {
    Line line = fit(measured.products);
    double tflops = 1e-12 / line.each;
    llvm::json::Object &gemm = sectionOf(object, "gemm"), &kernel = sectionOf(object, "kernel");
    gemm["tflops"] = tflops;
    if (measured.power) {
      gemm["pj_per_flop"] = measured.power->joulesPerFlop * 1e12;
      gemm["pj_measured_at_tflops"] = tflops;
    }
    gemm["source"] = source(measured.productsOf);
    kernel["launch_us"] = line.base * 1e6;
    kernel["source"] = source(measured.productsOf);
  }
  if (measured.power) {
    llvm::json::Object &power = sectionOf(object, "power");
    power["idle_w"] = measured.power->idleWatts;
    if (measured.power->capWatts > 0)
      power["cap_w"] = measured.power->capWatts;
    else if (!power.getNumber("cap_w"))
      return "the packages say no power limit, and " + base + " has no power.cap_w to keep";
    power["source"] = source("energy counters of the processor packages, a rank's share");
  }
  std::string written = llvm::formatv("{0:2}\n", root);
  if (overlap::CostModelResult made = overlap::readCostModel(written, path); !made.model)
    return made.error;
  std::error_code failed;
  llvm::raw_fd_ostream os(path, failed);
  if (failed)
    return "cannot write " + path + ": " + failed.message();
  os << written;
  return "";
}

//===- Calibrate.cpp - What was measured, as engines of a machine file ------------------===//
#include "Calibrate.h"

#include "ncclx/Support/ReadFile.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <ctime>
#include <map>

using namespace ncclx_bench;
using namespace mlir::ncclx;

Line ncclx_bench::fit(const std::vector<Sample> &samples) {
  // Least squares of (base + perByte wire) / seconds - 1.
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (const Sample &s : samples) {
    double x = 1 / s.seconds, y = s.wire / s.seconds;
    aa += x * x, ab += x * y, bb += y * y, a += x, b += y;
  }
  double determinant = aa * bb - ab * ab;
  Line line;
  if (determinant > 1e-12 * aa * bb)
    line = {(a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant};
  if (line.base < 0 || line.perByte <= 0)
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

std::string ncclx_bench::calibrate(const std::string &base, const std::string &path,
                                   const std::string &machine, const std::vector<Sample> &samples) {
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
  std::map<std::string, std::vector<Sample>> cells;
  for (const Sample &sample : samples)
    cells[engineOf(sample.form, sample.kind)].push_back(sample);
  for (const auto &[name, measured] : cells) {
    if (measured.size() < 2)
      return "engine '" + name + "' takes two sizes or more, found " +
             std::to_string(measured.size());
    Line line = fit(measured);
    const Sample &first = measured.front();
    auto sizes =
        std::minmax_element(measured.begin(), measured.end(),
                            [](const Sample &x, const Sample &y) { return x.wire < y.wire; });
    llvm::json::Object engine{
        {"name", name},
        {"collectives", llvm::json::Array{first.kind}},
        {"base_us", line.base * 1e6},
        {"gb_per_s", 1e-9 / line.perByte},
        {"hbm_per_byte", 2},
        {"sms", first.form == GpuForm::Kernel ? std::max(0.0, read.model->sms - 1) : 0},
        {"source",
         llvm::formatv("{0}, {1}, ncclx-bench --calibrate: {2} sizes, {3} to {4} bytes on "
                       "the wire",
                       machine, today(), measured.size(), int64_t(sizes.first->wire),
                       int64_t(sizes.second->wire))
             .str()}};
    auto old = llvm::find_if(engines, [&, &name = name](const llvm::json::Value &other) {
      return other.getAsObject()->getString("name") == llvm::StringRef(name);
    });
    if (old != engines.end())
      engines.erase(old);
    engines.push_back(std::move(engine));
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

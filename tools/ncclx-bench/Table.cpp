//===- Table.cpp - What ncclx-bench prints ---------------------------------===//
#include "Bench.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace ncclx_bench;

/// Seconds of an iteration: the median over rounds of the slowest rank.
static double medianSeconds(const Stage &stage, int library, int cell) {
  std::vector<double> rounds;
  for (int round = 0; round < stage.rounds; ++round) {
    const float *ns = stage.ns[library][cell][round];
    rounds.push_back(double(*std::max_element(ns, ns + stage.nranks)) * 1e-9);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

double ncclx_bench::busFactor(int collective, int n) {
  if (collective == Broadcast || collective == Permute)
    return 1;
  return collective == AllReduce ? 2.0 * (n - 1) / n : double(n - 1) / n;
}

void Table::add(const Stage &stage, const std::vector<Program> &programs) {
  llvm::raw_ostream &os = llvm::outs();
  bool two = stage.libraries > 1;
  os << llvm::formatv("\n{0} ranks over {1}; waiting: {2}\n", stage.nranks, options.transport,
                      stage.waitPolicy[0]);
  if (two)
    os << llvm::formatv("against {0}; waiting: {1}\n", options.against, stage.waitPolicy[1]);
  os << llvm::formatv("{0,-15}{1,11}{2,10}{3,11}{4,9}{5,9}", "collective", "bytes", "algorithm",
                      "us", "algbw", "busbw");
  if (two)
    os << llvm::formatv("{0,12}{1,9}{2,8}", "their us", "busbw", "ratio");
  os << llvm::formatv("{0,8}\n", "#wrong");
  for (int k = 0; k < stage.numCells; ++k) {
    const Cell &cell = stage.cells[k];
    const char *name = collectiveNames[cell.collective];
    double us = medianSeconds(stage, 0, k) * 1e6, algbw = double(cell.bytes) / us / 1e3;
    double factor = busFactor(cell.collective, stage.nranks), theirs = 0;
    os << llvm::formatv("{0,-15}{1,11}{2,10}{3,11:F2}{4,9:F3}{5,9:F3}", name, cell.bytes,
                        programs[size_t(k)].algorithm, us, algbw, algbw * factor);
    int64_t bad = stage.wrong[0][k];
    if (two) {
      theirs = medianSeconds(stage, 1, k) * 1e6;
      bad += stage.wrong[1][k];
      ratios.push_back(theirs / us);
      os << llvm::formatv("{0,12:F2}{1,9:F3}{2,8:F2}", theirs,
                          double(cell.bytes) / theirs / 1e3 * factor, theirs / us);
    }
    os << llvm::formatv("{0,8}\n", stage.check ? std::to_string(bad) : "n/a");
    wrong += bad;
    measured.push_back(
        {cell.collective, stage.nranks, cell.bytes, programs[size_t(k)].algorithm, us});
    llvm::raw_string_ostream line(lines);
    llvm::json::OStream json(line);
    json.object([&] {
      json.attribute("bench", "ncclx-bench");
      json.attribute("transport", options.transport);
      json.attribute("ranks", stage.nranks);
      json.attribute("collective", name);
      json.attribute("in_place", cell.inPlace != 0);
      json.attribute("bytes", cell.bytes);
      json.attribute("algorithm", programs[size_t(k)].algorithm);
      json.attribute("rounds", stage.rounds);
      json.attribute("iterations", stage.iterations[0][k]);
      json.attribute("us", us);
      json.attribute("algbw_GBps", algbw);
      json.attribute("busbw_GBps", algbw * factor);
      json.attribute("waiting", stage.waitPolicy[0]);
      if (two) {
        json.attribute("against", options.against);
        json.attribute("against_us", theirs);
        json.attribute("ratio", theirs / us);
        json.attribute("against_waiting", stage.waitPolicy[1]);
      }
      if (stage.check)
        json.attribute("wrong", bad);
    });
    line << "\n";
  }
  os.flush();
}

void ncclx_bench::writeFile(const std::string &path, const std::string &text) {
  if (path.empty())
    return;
  std::error_code failed;
  llvm::raw_fd_ostream os(path, failed);
  if (failed)
    llvm::errs() << "cannot write " << path << ": " << failed.message() << "\n";
  else
    os << text;
}

// Sizes of one collective and rank count follow each other. Between two sizes whose fastest differ
// the rule changes at their geometric mean.
std::string Table::rules() const {
  std::vector<Measured> fastest;
  auto sameSize = [](const Measured &a, const Measured &b) {
    return a.collective == b.collective && a.ranks == b.ranks && a.bytes == b.bytes;
  };
  for (const Measured &next : measured)
    if (fastest.empty() || !sameSize(fastest.back(), next))
      fastest.push_back(next);
    else if (next.us < fastest.back().us)
      fastest.back() = next;
  std::string text = llvm::formatv(
      "# Measured by ncclx-bench over {0}: the median of {1} rounds.\n"
      "# collective, min_bytes, max_bytes, algorithm, protocol, channels, nNodes, nRanks\n",
      options.transport, options.rounds);
  int64_t from = 0;
  for (size_t i = 0; i < fastest.size(); ++i) {
    const Measured &mine = fastest[i];
    bool last = i + 1 == fastest.size() || fastest[i + 1].collective != mine.collective ||
                fastest[i + 1].ranks != mine.ranks;
    if (!last && fastest[i + 1].algorithm == mine.algorithm)
      continue;
    int64_t to = last ? -1 : int64_t(std::sqrt(double(mine.bytes) * double(fastest[i + 1].bytes)));
    text += llvm::formatv("{0},{1},{2},{3},any,-1,1,{4}\n", collectiveNames[mine.collective], from,
                          to, mine.algorithm, mine.ranks);
    from = last ? 0 : to + 1;
  }
  return text;
}

bool Table::finish() {
  writeFile(options.json, lines);
  if (!options.tune.empty() && wrong == 0)
    writeFile(options.tune, rules());
  if (!ratios.empty()) {
    std::sort(ratios.begin(), ratios.end());
    auto below = [&](double limit) {
      return std::count_if(ratios.begin(), ratios.end(), [&](double r) { return r < limit; });
    };
    llvm::outs() << llvm::formatv("\n{0} cells against {1}: median ratio {2:F2}, least {3:F2}, "
                                  "{4} under 0.9, {5} under 0.8\n",
                                  ratios.size(), options.against, ratios[ratios.size() / 2],
                                  ratios.front(), below(0.9), below(0.8));
  }
  if (wrong)
    llvm::outs() << "error: " << wrong << " elements are wrong\n";
  return wrong == 0;
}

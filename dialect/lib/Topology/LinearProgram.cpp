//===- LinearProgram.cpp --------------------------------------------------===//
#include "LinearProgram.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <lpsolve/lp_lib.h>
#include <memory>
#include <unordered_map>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
/// What is left after folding may have this many rows times columns (28 ranks of no symmetry, half
/// a second) and take this many steps.
constexpr size_t maxArea = 2'500'000;
constexpr unsigned maxSteps = 100'000;

uint64_t mix(uint64_t h) { // splitmix64
  h += 0x9e3779b97f4a7c15;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9;
  h = (h ^ (h >> 27)) * 0x94d049bb133111eb;
  return h ^ (h >> 31);
}
uint64_t mix(double value) { return mix(std::bit_cast<uint64_t>(value)); }

/// Numbers the colours in order of appearance.
struct Colours {
  std::vector<unsigned> of;
  std::vector<unsigned> first; ///< one element of each colour
  std::vector<unsigned> size;
  explicit Colours(const std::vector<uint64_t> &hashes) {
    std::unordered_map<uint64_t, unsigned> number;
    for (unsigned i = 0; i < hashes.size(); ++i) {
      auto [it, added] = number.try_emplace(hashes[i], unsigned(first.size()));
      if (added) {
        first.push_back(i);
        size.push_back(0);
      }
      of.push_back(it->second);
      ++size[it->second];
    }
  }
};

/// The coarsest partition of rows and columns in which members of one part have equal entries
/// towards each other part. (Sums of hashes stand for multisets: a collision would give a wrong
/// solution, which the caller's proof refuses.) Stops where that has more than `maxArea`.
std::pair<Colours, Colours> refine(const LinearProgram &program) {
  std::vector<uint64_t> rows, columns;
  for (const LinearProgram::Row &row : program.rows)
    rows.push_back(mix(mix(row.right) + (row.equal ? 1 : 2)));
  for (double cost : program.objective)
    columns.push_back(mix(mix(cost) + 3));
  size_t before = 0;
  while (true) {
    Colours rowColours(rows), columnColours(columns);
    size_t now = rowColours.first.size() + columnColours.first.size();
    if (now == before || rowColours.first.size() * columnColours.first.size() > maxArea)
      return {std::move(rowColours), std::move(columnColours)};
    before = now;
    std::vector<uint64_t> rowSums(rows.size()), columnSums(columns.size());
    for (const LinearProgram::Entry &e : program.entries) {
      rowSums[e.row] += mix(mix(e.value) ^ columns[e.column]);
      columnSums[e.column] += mix(mix(e.value) ^ rows[e.row]);
    }
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = mix(rows[i] ^ mix(rowSums[i]));
    for (size_t i = 0; i < columns.size(); ++i)
      columns[i] = mix(columns[i] ^ mix(columnSums[i]));
  }
}

int __WINAPI countSteps(lprec *, void *left) {
  auto &steps = *static_cast<unsigned *>(left);
  return steps == 0 || --steps == 0;
}

std::optional<LinearSolution> solveFolded(const LinearProgram &program) {
  unsigned rows = program.rows.size(), columns = program.objective.size();
  std::vector<std::vector<std::pair<int, double>>> byColumn(columns); // row 0 is the objective
  for (unsigned c = 0; c < columns; ++c)
    byColumn[c].push_back({0, program.objective[c]});
  for (const LinearProgram::Entry &e : program.entries)
    byColumn[e.column].push_back({int(e.row) + 1, e.value});
  std::unique_ptr<lprec, decltype(&delete_lp)> lp(make_lp(int(rows), int(columns)), &delete_lp);
  if (!lp)
    return std::nullopt;
  set_verbose(lp.get(), NEUTRAL);
  set_minim(lp.get());
  unsigned steps = maxSteps;
  put_abortfunc(lp.get(), countSteps, &steps);
  for (unsigned c = 0; c < columns; ++c) {
    std::sort(byColumn[c].begin(), byColumn[c].end());
    std::vector<int> numbers;
    std::vector<double> values;
    for (auto [row, value] : byColumn[c]) {
      numbers.push_back(row);
      values.push_back(value);
    }
    if (!set_columnex(lp.get(), int(c) + 1, int(values.size()), values.data(), numbers.data()))
      return std::nullopt;
  }
  for (unsigned r = 0; r < rows; ++r) {
    set_constr_type(lp.get(), int(r) + 1, program.rows[r].equal ? EQ : LE);
    set_rh(lp.get(), int(r) + 1, program.rows[r].right);
  }
  if (::solve(lp.get()) != OPTIMAL)
    return std::nullopt;
  LinearSolution solution;
  solution.values.resize(columns);
  std::vector<double> duals(1 + rows + columns);
  if (!get_variables(lp.get(), solution.values.data()) ||
      !get_dual_solution(lp.get(), duals.data()))
    return std::nullopt;
  // The price of a row that must not be exceeded is how much one more would save.
  for (unsigned r = 0; r < rows; ++r)
    solution.prices.push_back(program.rows[r].equal ? duals[r + 1] : std::fabs(duals[r + 1]));
  return solution;
}
} // namespace

std::optional<LinearSolution> topology::solve(const LinearProgram &program) {
  auto [rows, columns] = refine(program);
  if (rows.first.size() * columns.first.size() > maxArea)
    return std::nullopt;
  LinearProgram folded;
  for (unsigned r : rows.first)
    folded.rows.push_back(program.rows[r]);
  for (unsigned c = 0; c < columns.first.size(); ++c)
    folded.objective.push_back(program.objective[columns.first[c]] * columns.size[c]);
  std::unordered_map<uint64_t, unsigned> at; // (row, column) -> entry
  for (const LinearProgram::Entry &e : program.entries) {
    unsigned row = rows.of[e.row], column = columns.of[e.column];
    if (rows.first[row] != e.row)
      continue; // the other rows of the part say the same
    auto [it, added] =
        at.try_emplace(uint64_t(row) << 32 | column, unsigned(folded.entries.size()));
    if (added)
      folded.entries.push_back({row, column, 0});
    folded.entries[it->second].value += e.value;
  }
  std::optional<LinearSolution> small = solveFolded(folded);
  if (!small)
    return std::nullopt;
  LinearSolution solution;
  for (unsigned part : columns.of)
    solution.values.push_back(small->values[part]);
  for (unsigned part : rows.of) // a folded row stands for all of its part
    solution.prices.push_back(small->prices[part] / rows.size[part]);
  return solution;
}

//===- MatrixTest.cpp - All pairs of what a collective can be ------------===//
//
// A cell is one collective: its word, type, reduction, group, algorithm, size, shape, use and
// transport. All cells would be some ten millions, so that cells are chosen in which all pairs of
// two values occur. Each is lowered, proved, run on ranks as threads and compared to the bit. What
// is refused is a table by itself: each with one error, whose reason is known here.
//
//   EquivalenceTests --gtest_filter='*Matrix*' --gtest_also_run_disabled_tests   all of it
//
//===----------------------------------------------------------------------===//
#include "Equivalence.h"
#include "MatrixCells.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>

using namespace equivalence;

namespace {

std::string checkCells(const List<Cell> &cells, const Common &common) {
  auto [group, transport, onGpus, onHosts] = common;
  GraphText g = graphOf(groups[group]);
  if (onGpus)
    g.topology = gpus(g.ranks());
  for (const Cell &c : cells)
    add(g, c);
  Options options{.runs = 2, .adversarial = 1};
  options.hosts = onHosts ? hostsOf(g.ranks()) : 1;
  options.exact = onGpus || onHosts;
  if (g.outputs().empty())
    g.result(g.argument({1}, "f32"));
  std::string wrong = check(g, transports[transport], options);
  return wrong.empty() ? "" : wrong + "of\n" + g.str();
}

/// `share` of `of`: every cell, or some of them, another part for another share.
void expectMatrix(int64_t share, int64_t of) {
  Pairs pairs = coverPairs(factors, settle, 1);
  std::map<Common, List<Cell>> graphs;
  for (const Row &row : pairs.rows)
    graphs[commonOf(Cell(row))].push_back(Cell(row));
  int64_t number = 0, run = 0;
  for (auto &[common, cells] : graphs) {
    if (number++ % of != share)
      continue;
    run += cells.size();
    printf("%lld: %zu cells\n", (long long)number, cells.size());
    fflush(stdout);
    if (std::string wrong = checkCells(cells, common); !wrong.empty()) {
      bool alone = false;
      for (const Cell &c : cells)
        if (std::string one = checkCells({c}, common); !one.empty()) {
          ADD_FAILURE() << c.str() << ": " << one;
          alone = true;
        }
      if (!alone)
        ADD_FAILURE() << "together alone: " << wrong;
    }
  }
  printf(
      "%zu cells with %lld pairs of values (%lld pairs are of nothing); %lld run in %lld graphs\n",
      pairs.rows.size(), (long long)pairs.covered, (long long)pairs.excluded, (long long)run,
      (long long)(number / of));
}

/// Each word by each algorithm in groups of each kind: along one axis, along several, listed of one
/// size and of several; of no rows, of shards that are not all full and not all there, and in
/// place.
void expectForms(int64_t share, int64_t of) {
  std::map<Common, List<Cell>> graphs;
  std::set<Row> seen;
  int64_t number = 0, run = 0;
  for (int64_t group : {3, 7, 8, 13, 14, 15, 17})
    for (int64_t word = 0; word < int64_t(words.size()); ++word)
      for (int64_t algorithm = 1; algorithm < int64_t(algorithms.size()); ++algorithm)
        for (int64_t size = 0; size < int64_t(sizes.size()); ++size)
          for (int64_t use : {0, 2, 3}) {
            const Row element = {8, 0, 3, 10}; // i32, f32, bf16, ui8
            Row row = {word,
                       element[number % 4],
                       number % 3 ? 0 : 4,
                       0,
                       group,
                       algorithm,
                       size,
                       number % 4,
                       use,
                       use != 0,
                       number % 8 ? 0 : 1};
            ++number;
            if (settle(row) && seen.insert(row).second)
              graphs[commonOf(Cell(row))].push_back(Cell(row));
          }
  number = 0;
  for (auto &[common, cells] : graphs)
    for (size_t first = 0; first < cells.size(); first += 16) {
      if (number++ % of != share)
        continue;
      List<Cell> some(cells.begin() + first, cells.begin() + std::min(cells.size(), first + 16));
      run += int64_t(some.size());
      if (checkCells(some, common).empty())
        continue;
      for (const Cell &c : some)
        if (std::string one = checkCells({c}, common); !one.empty())
          ADD_FAILURE() << c.str() << ": " << one;
    }
  printf("%lld of %zu forms\n", (long long)run, seen.size());
}

TEST(SlowMatrix, SomeForms) { expectForms(5, 12); }
TEST(Matrix, DISABLED_AllForms) { expectForms(0, 1); }

TEST(SlowMatrix, SomeCells) { expectMatrix(3, 12); }
TEST(Matrix, DISABLED_AllCells) { expectMatrix(0, 1); }

TEST(Matrix, HasAllPairs) {
  auto parity = [](const Row &row) { return (row[0] + row[1] + row[2]) % 2 == 0; };
  Pairs pairs = coverPairs({4, 3, 5, 2}, parity, 7);
  EXPECT_EQ(pairs.excluded, 0);
  EXPECT_LT(pairs.rows.size(), 40u);
  for (const Row &row : pairs.rows)
    EXPECT_TRUE(parity(row));
  EXPECT_EQ(coverPairs({4, 3, 5, 2}, parity, 7).rows, pairs.rows);
  Pairs apart = coverPairs({2, 2, 3}, [](const Row &row) { return row[0] == row[1]; }, 7);
  EXPECT_EQ(apart.excluded, 2);
  EXPECT_EQ(apart.covered, 16 - 2);
}

// What no algorithm carries, each word by each algorithm in each kind of group: one error, for one
// of these reasons.
const char *reasons[] = {
    "no axes span its groups",
    "a ring carries a shift and not listed pairs",
    "a ring passes on rows of others, and sizes known at run time only",
    "there are no rounds for (broadcast|reduce|gather|scatter|all_to_all_v|permute)",
    "(permute|all_to_all_v) has no eager form",
    "there is no hierarchy for (reduce|gather|scatter|all_to_all_v|permute)",
    "there are no trees for (broadcast|reduce|gather|scatter|all_to_all|all_to_all_v|permute)",
    "there are no routes for \\w+",
    "counts are looked up along one axis",
    "it is for groups of all ranks",
    "it is for 2 to \\d+ members",
    "(all_gather|reduce_scatter|all_reduce|all_to_all|all_to_all_v|permute) has no root",
    "(it|a ring) accumulates in the element type",
    "the machine has no tiers",
    "its groups lie on one tier",
    "its groups list .* before",
    "axis .* is not cut by blocks of the tiers"};

void expectRefusals(int64_t share, int64_t of) {
  std::map<std::string, int64_t> table;
  int64_t number = 0, carried = 0;
  for (int64_t word = 0; word < Window; ++word)
    for (int64_t group = 0; group < int64_t(groups.size()); ++group)
      for (int64_t algorithm = 1; algorithm < int64_t(algorithms.size()); ++algorithm)
        for (int64_t wide = 0; wide < 2; ++wide) {
          Row row = {word, 3, 0, wide, group, algorithm, 3, 1, 0, 0, 0};
          if (groups[group].isUneven && Cell(row).isCut())
            row[6] = word == AllToAll ? 0 : 1;
          Cell c(row);
          if ((wide && !c.reduces()) || (groups[group].isUneven && !c.isOfSeveralSizes()) ||
              number++ % of != share)
            continue;
          GraphText g = graphOf(c.of());
          auto [in, transport, onGpus, onHosts] = commonOf(c);
          if (onGpus && g.ranks() > 1)
            g.topology = gpus(g.ranks());
          add(g, c);
          std::string says = lowered(g.str(), onHosts ? hostsOf(g.ranks()) : 1, g.ranks());
          EXPECT_EQ(says.empty(), carries(c)) << c.str() << ": " << says;
          if (says.empty()) {
            ++carried;
            continue;
          }
          bool known = false;
          for (const char *reason : reasons)
            if (std::regex_search(says, std::regex(reason))) {
              ++table[reason];
              known = true;
              break;
            }
          EXPECT_TRUE(known) << c.str() << ": " << says;
          std::string errors = std::regex_replace(says, std::regex("\n  [^\n]*"), "");
          EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << c.str() << ": " << says;
        }
  for (auto &[reason, times] : table)
    printf("%5lld  %s\n", (long long)times, reason.c_str());
  printf("%5lld  carried\n", (long long)carried);
}

TEST(Matrix, SomeRefusals) { expectRefusals(1, 16); }
TEST(Matrix, DISABLED_AllRefusals) { expectRefusals(0, 1); }

} // namespace

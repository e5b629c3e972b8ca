//===- LinearProgram.h - A linear program, folded and solved ----*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_LINEARPROGRAM_H
#define NCCLX_LIB_TOPOLOGY_LINEARPROGRAM_H

#include <optional>
#include <vector>

namespace mlir::ncclx::topology {

/// Minimise objective * x, where x >= 0 and each row is `equal` to its right side or at most it.
struct LinearProgram {
  struct Row {
    double right = 0;
    bool equal = false;
  };
  struct Entry {
    unsigned row, column;
    double value;
  };
  std::vector<double> objective; ///< one for each column
  std::vector<Row> rows;
  std::vector<Entry> entries; ///< no (row, column) twice
};

struct LinearSolution {
  std::vector<double> values; ///< by column
  std::vector<double> prices; ///< by row, not negative for rows of the second kind
};

/// Solves with lp_solve, in floating point: the caller proves what it needs. Columns (and rows)
/// that colour refinement cannot tell apart have equal values in some optimum, so one stands for
/// all of them: symmetric programs become small ones (Grohe, Kersting, Mladenov, Selman, "Dimension
/// reduction via colour refinement", 2014). std::nullopt: still too large, not solved within a
/// fixed number of steps, or no optimum. Same program, same answer.
std::optional<LinearSolution> solve(const LinearProgram &program);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_LINEARPROGRAM_H

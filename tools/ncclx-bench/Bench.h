//===- Bench.h - The parts of ncclx-bench -----------------------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_BENCH_BENCH_H
#define NCCLX_TOOLS_NCCLX_BENCH_BENCH_H

#include "Driver.h"
#include "Stage.h"
#include "ncclx/Topology/IO.h"

#include "llvm/Support/raw_ostream.h"

namespace ncclx_bench {

struct Options {
  std::vector<int> ranks;
  std::vector<int> collectives;
  int64_t minBytes = 8, maxBytes = 64 << 20, factor = 8;
  std::string transport = "shm", algorithm, against, json;
  std::string tune; ///< rule file to write; then each algorithm is measured
  int64_t scratchLimit = -1;
  int rounds = 9;
  int64_t batchMs = 10;
  bool check = true;
  std::string dtype = "f32";                                 ///< or bf16, on GPUs
  int64_t graphRuns = 20;                                    ///< on GPUs, of short ones; 0: none
  std::string cudaDriver, cudaNvrtc, cudaHeaders, cudaCache; ///< as ncclx-run has them
  std::string machine, calibrate; ///< machine file to predict with (on GPUs), and one to write
  std::string powercap = "/sys/class/powercap";
  int elementBytes() const { return dtype == "bf16" ? 2 : 4; }
};

/// A cell's program, compiled for this process.
struct Program {
  std::unique_ptr<mlir::ncclx::Compilation> compilation;
  std::string algorithm;
};

/// The cells of one rank count: each size rounded down to whole elements on every rank, at least
/// one.
std::vector<Cell> makeCells(const Options &options, int nranks);
/// The graph of one cell.
std::string graphOf(const Cell &cell, int nranks, const std::string &algorithm,
                    const std::string &dtype);
/// nccl-tests' factor from algorithm to bus bandwidth.
double busFactor(int collective, int n);
/// Writes a file, or a message that it cannot.
void writeFile(const std::string &path, const std::string &text);
/// Everything on GPUs; the exit code, after a line that says what failed. `given` may be null: this
/// machine.
int runOnGpus(mlir::MLIRContext &context, const mlir::ncclx::topology::Topology *given,
              const Options &options);
/// Compiles and proves each cell; fewer after an error, which has been printed. To tune, a cell
/// becomes one for each algorithm that can carry it.
std::vector<Program> compileCells(mlir::MLIRContext &context,
                                  const mlir::ncclx::topology::Topology &machine,
                                  const Options &options, std::vector<Cell> &cells, int nranks);

/// Runs the ranks of this project's side; false after a failure, which has been printed.
bool runOurs(Stage &stage, const Options &options, const std::vector<Program> &programs);

/// Prints what was measured, and writes JSON lines.
class Table {
public:
  explicit Table(const Options &options) : options(options) {}
  void add(const Stage &stage, const std::vector<Program> &programs);
  /// The summary of all ratios, and the rules; false if a check failed.
  bool finish();

  struct Measured {
    int collective, ranks;
    int64_t bytes;
    std::string algorithm;
    double us;
  };
  const std::vector<Measured> &cells() const { return measured; }

private:
  /// The fastest of each size, as a rule file.
  std::string rules() const;

  const Options &options;
  std::vector<Measured> measured;
  std::vector<double> ratios;
  int64_t wrong = 0;
  std::string lines;
};

} // namespace ncclx_bench

#endif // NCCLX_TOOLS_NCCLX_BENCH_BENCH_H

//===- Report.h - What ncclx-run says at its end --------------------------------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_RUN_REPORT_H
#define NCCLX_TOOLS_NCCLX_RUN_REPORT_H

#include "Driver.h"

#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace mlir::ncclx {

/// A prediction or measurement of the whole graph. Seconds.
struct Timing {
  double makespan = 0;
  double compute = 0;          ///< largest over ranks
  std::vector<double> exposed; ///< per collective: largest over ranks
};

struct CollectiveReport {
  GraphCollective graph;
  double bound = 0;     ///< seconds, at the same rate as the prediction
  std::string argument; ///< the bound's name
};

struct Report {
  std::string graphFile, function, topology, transport;
  std::string sizes; ///< what the graph leaves open, and what it is here
  topology::Rate rate = topology::Rate::payload;
  int64_t ranks = 0;
  std::vector<CollectiveReport> collectives;
  ctran::machine::ProofResult proof;
  size_t branches = 1;            ///< ways through the graph, each with a schedule of its own
  bool staged = false;            ///< or stages, of which a run plays several, some again and again
  std::string slowest;            ///< of them: the one that the whole graph's predictions are of
  Timing target;                  ///< predicted for the topology
  std::string machine;            ///< name of this machine's description
  bool machineMeasured = false;   ///< it was measured in this call
  Timing predicted, measured;     ///< for and on this machine
  std::vector<double> runSeconds; ///< empty where the schedule was compiled alone
  bool hasRun() const { return !runSeconds.empty(); }
  double clockErrorSeconds = 0; ///< in the timeline of GPUs, between two ranks; 0: there is none
  /// Of a run among many back to back, singly and in a graph; 0: not measured. Then NCCL's modes.
  double burstSeconds = 0, graphSeconds = 0;
  std::vector<std::pair<std::string, double>> ncclSeconds, ncclGraphSeconds;
  int64_t inputBytes = 0, outputBytes = 0, scratchBytes = 0; ///< per rank
  struct Output {
    int64_t index = 0;
    std::string type;
    int64_t elements = 0, different = 0; ///< over all ranks
    int64_t unspecified = 0;           ///< elements that the graph leaves open, and nobody compares
    double tolerance = 0, largest = 0; ///< allowed, and found: the largest over ranks
    std::string firstDifference;
  };
  std::vector<Output> outputs;
  double compileSeconds = 0, proveSeconds = 0, jitSeconds = 0, interpretSeconds = 0;

  bool outputsAgree() const {
    for (const Output &output : outputs)
      if (output.different)
        return false;
    return true;
  }
  /// Is some output compared within a tolerance, not bit by bit?
  bool hasTolerance() const {
    for (const Output &output : outputs)
      if (output.tolerance > 0)
        return true;
    return false;
  }
  void print(llvm::raw_ostream &os) const;
  /// The schema is in tools/ncclx-run/README.md.
  void printJson(llvm::raw_ostream &os, const std::string &error) const;
};

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_NCCLX_RUN_REPORT_H

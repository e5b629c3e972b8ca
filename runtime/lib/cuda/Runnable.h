//===- Runnable.h - What a plan's handle stands for ----------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_CUDA_RUNNABLE_H
#define NCCLXRT_LIB_CUDA_RUNNABLE_H

#include "Comm.h"

#include <memory>

namespace ncclxrt::cuda {

class Runnable {
public:
  virtual ~Runnable() = default;
  virtual Status buffer(size_t window, int32_t generation, void **data, size_t *bytes) = 0;
  /// Enqueues the next run behind what `stream` holds, and `stream` behind the run.
  virtual Status run(Stream stream) = 0;
  /// Until streams of its own are empty.
  virtual Status drain() { return {}; }
  /// The ops of the last run that was done, and by how much their times may be wrong; `captured`:
  /// of the last that was captured. Of nothing that is under way.
  virtual Status timeline(bool captured, std::vector<ncclxrtTraceEvent_t> &events,
                          int64_t &errorNs) = 0;

protected:
  explicit Runnable(Comm &comm) : comm(comm) {}
  /// All ranks' statuses: the first that is not good, on every rank.
  Status agree(const Status &mine, const std::string &name, const char *what);
  Status forRanks(int32_t ranks, const std::string &name) const;
  /// How many ranks have this one's GPU. Collective.
  Status sharing(int64_t &ranks);
  Comm &comm;
};

/// A program as one kernel. Collective.
Status prepareKernel(Comm &comm, const ncclxrtCudaKernelPlanDesc_t *desc,
                     std::unique_ptr<Runnable> &plan);

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_RUNNABLE_H

//===- SerialForm.h - A schedule as one thread plays it ---------------------*- C++ -*-===//
#ifndef NCCLX_TOOLS_DRIVER_SERIALFORM_H
#define NCCLX_TOOLS_DRIVER_SERIALFORM_H

#include "ncclx/Machine/Schedule.h"

namespace mlir::ncclx {

/// The same ops with all lanes of a rank on one serial lane, in issue order: what the host carrier
/// executes, and so what a prediction for this machine must time. nic lanes stay where puts are
/// carried by somebody else (`keepNic`). Refers to `schedule`, which must outlive it.
class SerialForm : public ctran::machine::Schedule {
public:
  SerialForm(const ctran::machine::Schedule &schedule, bool keepNic);
  std::unique_ptr<ctran::machine::OpStream> open(const std::vector<int64_t> *point,
                                                 int64_t run) const override;

private:
  const ctran::machine::Schedule &schedule;
  bool keepNic;
};

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_DRIVER_SERIALFORM_H

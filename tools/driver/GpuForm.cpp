//===- GpuForm.cpp - A graph's collectives on streams, or as one kernel -----------------===//
#include "GpuForm.h"

using namespace mlir;
using namespace mlir::ncclx;

StringRef mlir::ncclx::nameOf(GpuForm form) {
  return form == GpuForm::Kernel ? "kernel" : "streams";
}

std::string mlir::ncclx::engineOf(GpuForm form, StringRef kind) {
  return (nameOf(form) + " " + kind).str();
}

std::optional<double> mlir::ncclx::predict(const overlap::CostModel &machine, GpuForm form,
                                           StringRef kind, int64_t members, int64_t bytes) {
  const overlap::Engine *engine = machine.engine(kind, engineOf(form, kind));
  if (!engine)
    return std::nullopt;
  double wire = overlap::wireBytes(kind, members, double(bytes));
  return machine.collective("", *engine, members, wire).seconds;
}

FailureOr<GpuForm> mlir::ncclx::fasterForm(Compilation &compilation,
                                           const overlap::CostModel &machine) {
  if (compilation.isProgram())
    return GpuForm::Streams;
  auto function = compilation.graph().lookupSymbol<func::FuncOp>(compilation.function());
  double seconds[2] = {};
  bool computes = !function.getBody().hasOneBlock();
  WalkResult walked = function.walk([&](Operation *op) {
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    computes |= !collective && !isa<func::FuncOp, func::ReturnOp>(op);
    if (!collective || computes)
      return WalkResult::advance();
    StringRef kind = op->getName().stripDialect();
    for (GpuForm form : {GpuForm::Streams, GpuForm::Kernel}) {
      std::optional<double> time =
          predict(machine, form, kind, getGroupSize(collective), collective.getPayloadBytes());
      if (!time) {
        op->emitOpError("cannot be timed: the machine '")
            << machine.name << "' has no engine '" << engineOf(form, kind)
            << "' (ncclx-bench --calibrate)";
        return WalkResult::interrupt();
      }
      seconds[int(form)] += *time;
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  bool kernel = !computes && seconds[int(GpuForm::Kernel)] < seconds[int(GpuForm::Streams)];
  return kernel ? GpuForm::Kernel : GpuForm::Streams;
}

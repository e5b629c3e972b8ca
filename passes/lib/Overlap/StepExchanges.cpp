//===- StepExchanges.cpp - Exchanges round a ring, and in doubling steps ---------------------===//
//
// Cards P5 and P7 of the survey.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "MachinePass.h"
#include "Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_RINGEXCHANGES
#define GEN_PASS_DEF_DOUBLEEXCHANGES
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

template <typename Derived, typename Base, StepForm form>
struct StepExchanges : MachinePass<Derived, Base> {
  using MachinePass<Derived, Base>::MachinePass;

  void run(func::FuncOp function, const overlap::CostModel &cost) {
    Steps steps(cost, form);
    cutExchanges(function, cost, this->getArgument(), this->margin, steps);
  }
};
struct RingExchanges
    : StepExchanges<RingExchanges, ncclx::impl::RingExchangesBase<RingExchanges>, StepForm::ring> {
  using StepExchanges::StepExchanges;
};
struct DoubleExchanges
    : StepExchanges<DoubleExchanges, ncclx::impl::DoubleExchangesBase<DoubleExchanges>,
                    StepForm::doubling> {
  using StepExchanges::StepExchanges;
};

} // namespace

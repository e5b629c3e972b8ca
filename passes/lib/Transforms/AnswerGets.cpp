//===- AnswerGets.cpp - Whose window is read sends it ---------------------===//

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Transforms/Passes.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_ANSWERGETS
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

struct AnswerGets : ncclx::impl::AnswerGetsBase<AnswerGets> {
  using AnswerGetsBase::AnswerGetsBase;

  void runOnOperation() override {
    if (failed(answerGets(getOperation())))
      signalPassFailure();
  }
};

} // namespace

//===- Passes.td - From schedules to host code --------------------------------------===//
#ifndef NCCLX_HOST_PASSES
#define NCCLX_HOST_PASSES

include "mlir/Pass/PassBase.td"

def ConvertCTranToHost : Pass<"convert-ctran-to-host", "::mlir::ModuleOp"> {
  let summary = "Turn each program into integers and calls of the runtime";
  let description = [{
    What ncclx-run compiles, to look at: each `ctran.program` becomes a function over i64, i32 and i1
    alone, in issue order, and nothing else of the module is left. The tables that the indices in it
    point into are not printed.

    Before: `ctran.program @f ... { ... ctran.signal %slot after %t on host ... }`
    After:  `func.func @f(%exec: i64) -> i32 { ... call @ncclxrt_signal(...) ... }`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::scf::SCFDialect"];
}

#endif

//===- Exchanges.h - A collective and the product that it feeds or drains ------*- C++ -*-===//
//
// What the passes that cut a collective together with a product have in common: which pairs may be
// cut at all, and whether the model likes it. They differ in the form of the parts.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_OVERLAP_EXCHANGES_H
#define NCCLX_LIB_OVERLAP_EXCHANGES_H

#include "FunctionProblem.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::ncclx {

/// A gather and the product behind it, or a product and the reduce_scatter behind it. Shards are
/// even, and nobody else needs what stands between the two.
struct Exchange {
  CollectiveOpInterface collective;
  linalg::LinalgOp product;
  unsigned operand = 0; ///< the product's operand that has the rows which are exchanged
  unsigned dim = 0;     ///< their dimension in it
  unsigned rows = 0;    ///< their dimension in the product's result

  bool isGather();
  int64_t members();
  int64_t shardRows(); ///< of each member
};

/// The dimension of each operand of a product that the result's `dim` runs over.
struct Runs {
  std::optional<unsigned> left, right;
};
Runs runsOf(linalg::LinalgOp product, unsigned dim);

/// Whether a value holds nothing yet, or one number everywhere.
bool isPlainInit(Value value);

/// One way to cut an exchange.
class ExchangeForm {
public:
  virtual ~ExchangeForm() = default;
  /// Why this form does not take the exchange, beyond what all forms ask for; empty if it does.
  virtual std::string refuses(Exchange &) { return ""; }
  /// What it takes in this form, and the form in words ("4 parts"); or in `why` what is missing.
  virtual std::optional<double> seconds(Exchange &, const overlap::Op &product, std::string &words,
                                        std::string &why) = 0;
  virtual void rewrite(Exchange &) = 0;
};

/// Seconds of one of the parts of a product: `fraction` of its tiles, in waves of their own, with a
/// launch.
double partSeconds(const overlap::CostModel &cost, const overlap::Op &product, double fraction);

/// Cuts what `form` can cut, and gains at least `margin` of the collective's time by. Remarks say
/// what was cut and why the others stay whole.
void cutExchanges(func::FuncOp function, const overlap::CostModel &cost, StringRef pass,
                  double margin, ExchangeForm &form);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_EXCHANGES_H

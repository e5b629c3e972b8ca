//===- GroupProducts.cpp - ncclx-group-products ---------------------------------------===//
#include "ncclx/Transforms/Passes.h"

#include "ncclx/Analysis/Products.h"
#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_GROUPPRODUCTS
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// Touches no memory: may stand between the ops of a group, and stays before it.
bool isQuiet(Operation *op) {
  return isa<memref::AllocOp, ViewLikeOpInterface>(op)
             ? !isCommunication(op) && !isa<FinishChunkOp>(op)
             : isPure(op);
}

Operation *neighbour(Operation *op, bool before) {
  do
    op = before ? op->getPrevNode() : op->getNextNode();
  while (op && isQuiet(op));
  return op;
}

class Group {
public:
  explicit Group(linalg::LinalgOp product) : product(product) {}
  /// Whether the product has company.
  bool find();
  void wrap();

private:
  linalg::LinalgOp product;
  SmallVector<Operation *> ops; ///< in order

  bool prepares(Operation *op);
  bool finishes(Operation *op, Value result);
  /// Whether nobody but the ops here, and `more`, uses an allocation.
  bool isOurs(Value memref, Operation *more = nullptr) {
    return memref.getDefiningOp<memref::AllocOp>() &&
           llvm::all_of(memref.getUsers(), [&](Operation *user) {
             return user == more || user == product || llvm::is_contained(ops, user) ||
                    isa<memref::DeallocOp>(user);
           });
  }
};

} // namespace

bool Group::prepares(Operation *op) {
  Value result = product.getDpsInits().front();
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return fill.getOutputs().front() == result &&
           matchPattern(fill.getInputs().front(), m_AnyZeroFloat());
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    return copy.getTarget() == result;
  auto scaled = dyn_cast<linalg::GenericOp>(op);
  std::optional<Scaling> scaling = scaled ? matchScaling(scaled) : std::nullopt;
  if (!scaling || scaling->rounds)
    return false;
  Value made = scaled.getDpsInits().front();
  return made == result || (llvm::is_contained(product.getDpsInputs(), made) && isOurs(made, op));
}

bool Group::finishes(Operation *op, Value result) {
  auto scaled = dyn_cast<linalg::GenericOp>(op);
  std::optional<Scaling> scaling = scaled ? matchScaling(scaled) : std::nullopt;
  if (!scaling || scaling->extends || scaled.getDpsInputs().front() != result ||
      (scaled.getDpsInits().front() != result && !isOurs(result, op)))
    return false;
  // A library adds to what has the type of its result: of one that is rounded, what has been
  // extended from that type.
  bool adds = llvm::none_of(ops, [](Operation *o) { return isa<linalg::FillOp>(o); });
  return !adds || !scaling->rounds || llvm::any_of(ops, [&](Operation *o) {
    auto extended = dyn_cast<linalg::GenericOp>(o);
    return extended && o != product &&
           extended.getDpsInits().front() == product.getDpsInits().front() &&
           getElementTypeOrSelf(extended.getDpsInputs().front()) ==
               getElementTypeOrSelf(scaled.getDpsInits().front());
  });
}

bool Group::find() {
  SmallVector<Operation *> before;
  for (Operation *op = neighbour(product, true); op && prepares(op); op = neighbour(op, true))
    before.push_back(op);
  ops.assign(before.rbegin(), before.rend());
  ops.push_back(product);
  Value result = product.getDpsInits().front();
  for (Operation *op = neighbour(product, false); op && finishes(op, result);
       op = neighbour(op, false)) {
    ops.push_back(op);
    result = cast<linalg::GenericOp>(op).getDpsInits().front();
  }
  return ops.size() > 1;
}

void Group::wrap() {
  // Quiet ops between stay before the group, and so does nothing else.
  OpBuilder b(ops.back());
  b.setInsertionPointAfter(ops.back());
  Location loc = product.getLoc();
  auto region = scf::ExecuteRegionOp::create(b, loc, TypeRange());
  Block &block = region.getRegion().emplaceBlock();
  b.setInsertionPointToEnd(&block);
  Operation *end = scf::YieldOp::create(b, loc);
  llvm::SmallSetVector<Operation *, 4> own;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (isOurs(operand))
        own.insert(operand.getDefiningOp());
  for (Operation *alloc : own) {
    for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
      if (isa<memref::DeallocOp>(user))
        user->erase();
    alloc->moveBefore(end);
  }
  for (Operation *op : ops)
    op->moveBefore(end);
}

namespace {
struct GroupProducts : ncclx::impl::GroupProductsBase<GroupProducts> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<linalg::LinalgOp> products;
      bool communicates = false;
      function.walk([&](Operation *op) { communicates |= isCommunication(op); });
      if (!communicates || !function.getBody().hasOneBlock())
        continue;
      for (auto op : function.getBody().front().getOps<linalg::LinalgOp>())
        if (op.hasPureBufferSemantics() && isProduct(op))
          products.push_back(op);
      for (linalg::LinalgOp product : products)
        if (Group group(product); group.find())
          group.wrap();
    }
  }
};
} // namespace

//===- CutSteps.cpp - Long programs as functions of bounded length ---------------===//
//
// A block is a chain of calls and of arithmetic between them. Arithmetic is done again wherever it
// is read: what a cut leaves behind it is then what calls give, and a function has one result. So
// a block is cut where one such value alone is read behind the cut, which the running status is.
//
//===----------------------------------------------------------------------===//
#include "CutSteps.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// Of a function: more of them are slower to call, fewer slower to compile.
constexpr int64_t callsEach = 64;

/// Whether an op can be done again wherever its result is read.
bool isArithmetic(Operation *op) { return op->getNumRegions() == 0 && isPure(op); }

/// Values that an op and its regions read from outside of it.
SetVector<Value> readBy(Operation *op) {
  SetVector<Value> read(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  return read;
}

class Cutter {
public:
  explicit Cutter(func::FuncOp function) : function(function) {}
  void run() {
    // Inner blocks first: what they call then counts for the outer ones.
    function.walk<WalkOrder::PostOrder>([&](Block *block) { cut(*block); });
  }

private:
  func::FuncOp function;
  int64_t number = 0;
  DenseMap<Value, SetVector<Value>> known; ///< rootsOf

  /// The results of calls, and the arguments, that a value is made of.
  const SetVector<Value> &rootsOf(Value value);
  void cut(Block &block);
  func::CallOp outline(ArrayRef<Operation *> steps, Value result);
};

const SetVector<Value> &Cutter::rootsOf(Value value) {
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  SetVector<Value> roots;
  Operation *op = value.getDefiningOp();
  if (op && isArithmetic(op)) {
    for (Value operand : op->getOperands())
      roots.insert_range(rootsOf(operand));
  } else {
    roots.insert(value);
  }
  return known[value] = std::move(roots);
}

/// The steps as a function, called where the last of them stands; they themselves are gone.
func::CallOp Cutter::outline(ArrayRef<Operation *> steps, Value result) {
  SetVector<Value> arguments;
  DenseSet<Value> own;
  for (Operation *step : steps) {
    for (Value value : readBy(step))
      for (Value root : rootsOf(value))
        if (!own.contains(root))
          arguments.insert(root);
    own.insert(step->result_begin(), step->result_end());
  }
  OpBuilder b(function);
  SmallVector<Type> results;
  if (result)
    results.push_back(result.getType());
  Location loc = steps.front()->getLoc();
  auto part =
      func::FuncOp::create(b, loc, (function.getSymName() + ".part" + Twine(number++)).str(),
                           b.getFunctionType(TypeRange(arguments.getArrayRef()), results));
  part.setPrivate();
  part.setNoInline(true);
  Block *entry = part.addEntryBlock();
  IRMapping map;
  map.map(arguments.getArrayRef(), entry->getArguments());
  b.setInsertionPointToStart(entry);
  auto bring = [&](auto &bring, Value value) -> void {
    if (map.contains(value))
      return;
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands())
      bring(bring, operand);
    b.clone(*op, map);
  };
  for (Operation *step : steps) {
    for (Value value : readBy(step))
      bring(bring, value);
    b.clone(*step, map);
  }
  func::ReturnOp::create(b, loc, result ? ValueRange(map.lookup(result)) : ValueRange());
  b.setInsertionPoint(steps.back());
  auto call = func::CallOp::create(b, loc, part, arguments.getArrayRef());
  if (result)
    result.replaceAllUsesWith(call.getResult(0));
  return call;
}

void Cutter::cut(Block &block) {
  SmallVector<Operation *> steps; // all but arithmetic
  for (Operation &op : block.without_terminator())
    if (!isArithmetic(&op))
      steps.push_back(&op);
  if (int64_t(steps.size()) <= 2 * callsEach || !block.getParent()->hasOneBlock())
    return;
  // How far the result of a step is read.
  known.clear();
  DenseMap<Value, int64_t> last;
  int64_t size = steps.size();
  for (int64_t i = 0; i <= size; ++i)
    for (Value value : readBy(i < size ? steps[i] : block.getTerminator()))
      for (Value root : rootsOf(value))
        last[root] = i;
  SmallVector<Operation *> part;
  SmallVector<Value> left; // what is read behind the steps of the part
  DenseSet<Operation *> gone;
  for (int64_t i = 0; i < size; ++i) {
    part.push_back(steps[i]);
    left.append(steps[i]->result_begin(), steps[i]->result_end());
    llvm::erase_if(left, [&](Value v) { return last.lookup(v) <= i; });
    while (left.size() > 1 && int64_t(part.size()) >= 2 * callsEach) {
      // No cut comes: the first of them stays where it is, and all before it.
      Operation *stays = left.front().getDefiningOp();
      part.erase(part.begin(), llvm::find(part, stays) + 1);
      llvm::erase_if(left, [&](Value v) { return v.getDefiningOp() == stays; });
    }
    if (int64_t(part.size()) < callsEach || left.size() > 1)
      continue;
    Value result = left.empty() ? Value() : left.front();
    func::CallOp call = outline(part, result);
    if (result) {
      last[call.getResult(0)] = last.lookup(result);
      known.clear(); // arithmetic of the result reads the call's now
    }
    gone.insert_range(part);
    part.clear();
    left.clear();
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (gone.contains(&op) || (&op != block.getTerminator() && isArithmetic(&op) && op.use_empty()))
      op.erase();
}

} // namespace

void mlir::ncclx::cutSteps(func::FuncOp function) { Cutter(function).run(); }

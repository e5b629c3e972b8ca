//===- HloAsync.cpp - Collectives at once, and their starts and dones ------------------===//
#include "HloImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::hlo;

/// The arrays that a shape is: itself, or a tuple's parts.
static SmallVector<const Shape *> partsOf(const Shape &shape) {
  SmallVector<const Shape *> parts;
  if (!shape.tuple)
    return {&shape};
  for (const Shape &part : shape.parts)
    parts.push_back(&part);
  return parts;
}

/// Whether whoever uses a start, or an update of it, is one done.
static bool hasOneDone(const Computation &computation, unsigned number) {
  unsigned dones = 0;
  SmallVector<unsigned> all = {number};
  for (size_t i = number + 1; i < computation.instructions.size(); ++i) {
    const Instruction &op = computation.instructions[i];
    bool uses = llvm::any_of(op.operands, [&](unsigned o) { return llvm::is_contained(all, o); });
    if (!uses)
      continue;
    if (op.is("async-update") && op.operands.size() == 1)
      all.push_back(i);
    else if (op.opcode.ends_with("-done") && op.operands.size() == 1)
      ++dones;
    else
      return false;
  }
  return dones == 1 && !llvm::is_contained(all, computation.root);
}

/// The shape that a start's done has: an all-reduce's is its own, others stand behind the operands.
static const Shape *resultOf(const Instruction &start) {
  if (start.is("all-reduce-start"))
    return &start.shape;
  return start.shape.tuple && start.shape.parts.size() >= 2 ? &start.shape.parts[1] : nullptr;
}

LogicalResult Importer::start(Scope &scope, const Instruction &op, SmallVector<Value> &results) {
  const Shape *result = resultOf(op);
  if (!result)
    return error(op) << "has (operands, result, ...) for a result";
  SmallVector<Value> operands = leaves(scope, op);
  SmallVector<const Shape *> shapes;
  for (unsigned i = 0; i < op.operands.size(); ++i)
    shapes.push_back(&shapeOf(scope, op, i));
  // What is started: an instruction of its own, or the only one of a computation.
  Instruction what = op;
  what.opcode.consume_back("-start");
  if (what.opcode.ends_with("-start"))
    return error(op) << "is no opcode";
  if (op.is("async-start")) {
    const Computation *body = callee(op, "calls");
    if (!body || body->parameters.size() != op.operands.size())
      return error(op) << "needs 'calls' of as many parameters as there are operands";
    const Instruction &root = body->rootInstruction();
    what.opcode = "call";
    what.attributes = {{"to_apply", *op.find("calls")}};
    if (body->instructions.size() == body->parameters.size() + 1 && isCollective(root.opcode) &&
        ArrayRef<unsigned>(root.operands) == ArrayRef<unsigned>(body->parameters) &&
        root.shape == *result) {
      for (unsigned i = 0; i < shapes.size(); ++i)
        if (!(body->instructions[body->parameters[i]].shape == *shapes[i]))
          return error(op) << "operand " << i << " has another shape than the parameter";
      what.opcode = root.opcode;
      what.attributes = root.attributes;
    }
  }
  what.shape = *result;
  unsigned number = &op - scope.computation.instructions.data();
  bool understood = false;
  SmallVector<Value> made;
  if (isCollective(what.opcode) && hasOneDone(scope.computation, number)) {
    if (failed(
            collective(what, operands, shapes, partsOf(*result), /*start=*/true, made, understood)))
      return failure();
    if (understood && !made.empty() && isa<FutureType>(made[0].getType())) {
      inFlight[&op] = {made, comparesUnsigned(what, shapes[0]->element)};
      results.assign(op.shape.leaves(), made[0]); // for the done alone
      return success();
    }
  }
  // Else it runs where it starts.
  if (!understood && failed(instruction(scope, what, made)))
    return failure();
  if (op.is("all-reduce-start")) {
    results = made;
    return success();
  }
  for (auto [i, part] : llvm::enumerate(op.shape.parts)) {
    if (i == 1) {
      llvm::append_range(results, made);
      continue;
    }
    bool sameAsOperands = i == 0 && part.leaves() == operands.size();
    std::function<void(const Shape &)> fill = [&](const Shape &shape) {
      if (shape.array() && sameAsOperands)
        results.push_back(operands[results.size()]);
      else if (shape.array())
        results.push_back(arith::ConstantOp::create(
            b, at(op), cast<TypedAttr>(b.getZeroAttr(typeOf(shape, context)))));
      for (const Shape &inner : shape.parts)
        fill(inner);
    };
    fill(part);
  }
  return success();
}

LogicalResult Importer::done(Scope &scope, const Instruction &op, SmallVector<Value> &results) {
  if (op.operands.size() != 1)
    return error(op) << "takes its start";
  const Instruction *from = &scope.computation.instructions[op.operands[0]];
  while (from->is("async-update"))
    from = &scope.computation.instructions[from->operands[0]];
  const Shape *result = from->opcode.ends_with("-start") ? resultOf(*from) : nullptr;
  if (!result || !(*result == op.shape))
    return error(op) << "takes its start, and has the shape of what was started";
  auto it = inFlight.find(from);
  if (it == inFlight.end()) {
    const SmallVector<Value> &all = scope.values[op.operands[0]];
    unsigned first = from->is("all-reduce-start") ? 0 : from->shape.parts[0].leaves();
    results.append(all.begin() + first, all.begin() + first + op.shape.leaves());
    return success();
  }
  Location loc = at(op);
  for (auto [future, shape] : llvm::zip(it->second.futures, partsOf(op.shape))) {
    Type type = cast<FutureType>(future.getType()).getValue();
    Value whole =
        AwaitOp::create(b, loc, type, future, Value(), IntegerAttr(), IntegerAttr(), ValueRange());
    results.push_back(restored(loc, whole, *shape, it->second.flips));
  }
  inFlight.erase(it);
  return success();
}

LogicalResult Importer::collectiveInstruction(Scope &scope, const Instruction &op,
                                              SmallVector<Value> &results) {
  SmallVector<const Shape *> shapes;
  for (unsigned i = 0; i < op.operands.size(); ++i)
    shapes.push_back(&shapeOf(scope, op, i));
  SmallVector<Value> operands = leaves(scope, op);
  bool understood = false;
  if (failed(collective(op, operands, shapes, partsOf(op.shape), /*start=*/false, results,
                        understood)))
    return failure();
  return understood ? success() : opaque(op, op.opcode, operands, /*effects=*/true, results);
}

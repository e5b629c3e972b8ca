//===- HloScatters.cpp - All-reduces of which only a slice is used ---------------------===//
#include "HloImporter.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::hlo;

/// What a whole number is on each device; null where it is not known.
const std::vector<int64_t> *Importer::perDevice(const Computation &computation, unsigned number) {
  const Instruction &op = computation.instructions[number];
  auto [it, isNew] = deviceValues.try_emplace(&op);
  if (!isNew)
    return it->second.get();
  if (!op.shape.array() || op.shape.elements() != 1 ||
      (op.shape.element.kind != Element::Signed && op.shape.element.kind != Element::Unsigned))
    return nullptr;
  std::vector<const std::vector<int64_t> *> of;
  bool table = op.is("dynamic-slice");
  for (unsigned i = table ? 1 : 0; i < op.operands.size(); ++i)
    if (of.push_back(perDevice(computation, op.operands[i])); !of.back())
      return nullptr;
  auto made = std::make_unique<std::vector<int64_t>>(devices);
  std::vector<int64_t> &values = *made;
  std::string wrong;
  if (op.is("constant")) {
    DenseElementsAttr literal = literalOf(op, context, wrong);
    if (!literal)
      return nullptr;
    values.assign(devices, (*literal.value_begin<APInt>()).getSExtValue());
  } else if (op.is("partition-id")) {
    for (int64_t i = 0; i < devices; ++i)
      values[i] = i % partitions;
  } else if (op.is("replica-id")) {
    for (int64_t i = 0; i < devices; ++i)
      values[i] = i / partitions;
  } else if (table) {
    const Instruction &all = computation.instructions[op.operands[0]];
    if (!all.is("constant") || !all.shape.array() || all.shape.dims.size() != 1 || of.size() != 1)
      return nullptr;
    DenseElementsAttr literal = literalOf(all, context, wrong);
    if (!literal || !isa<IntegerType>(literal.getElementType()))
      return nullptr;
    auto list = llvm::to_vector(literal.getValues<APInt>());
    for (int64_t i = 0; i < devices; ++i)
      values[i] = list[std::clamp<int64_t>((*of[0])[i], 0, list.size() - 1)].getSExtValue();
  } else if ((op.is("reshape") || op.is("convert") || op.is("copy") || op.is("bitcast")) &&
             of.size() == 1) {
    values = *of[0];
  } else if (of.size() == 2) {
    using Combine = std::optional<int64_t> (*)(int64_t, int64_t);
    auto combine =
        llvm::StringSwitch<Combine>(op.opcode)
            .Case("add", [](int64_t x, int64_t y) { return std::optional(x + y); })
            .Case("subtract", [](int64_t x, int64_t y) { return std::optional(x - y); })
            .Case("multiply", [](int64_t x, int64_t y) { return std::optional(x * y); })
            .Case("divide",
                  [](int64_t x, int64_t y) { return y ? std::optional(x / y) : std::nullopt; })
            .Case("remainder",
                  [](int64_t x, int64_t y) { return y ? std::optional(x % y) : std::nullopt; })
            .Default(nullptr);
    // Numbers of at most 31 bits: what is computed with them does not wrap.
    auto small = [](int64_t x) { return x >= 0 && x < (int64_t(1) << 31); };
    for (int64_t i = 0; i < devices; ++i) {
      int64_t x = (*of[0])[i], y = (*of[1])[i];
      std::optional<int64_t> z = combine && small(x) && small(y) ? combine(x, y) : std::nullopt;
      if (!z || !small(*z))
        return nullptr;
      values[i] = *z;
    }
  } else {
    return nullptr;
  }
  return (deviceValues[&op] = std::move(made)).get();
}

/// The dimension in which a dynamic-slice takes, on every device, the part of its place in the
/// group; nothing where it does not.
std::optional<int64_t> Importer::slicedByPlace(const Computation &computation,
                                               const Instruction &slice, const Shape &whole,
                                               ArrayRef<Digit> digits) {
  if (slice.shape.dims.size() != whole.dims.size() ||
      slice.operands.size() != whole.dims.size() + 1 || !(slice.shape.element == whole.element))
    return std::nullopt;
  int64_t members = 1;
  for (const Digit &digit : digits)
    members *= digit.size;
  std::optional<int64_t> dim;
  for (size_t i = 0; i < whole.dims.size(); ++i) {
    if (slice.shape.dims[i] == whole.dims[i])
      continue; // from 0: places are clamped
    if (dim || slice.shape.dims[i] * members != whole.dims[i])
      return std::nullopt;
    dim = i;
  }
  if (!dim)
    return std::nullopt;
  const std::vector<int64_t> *from = perDevice(computation, slice.operands[1 + *dim]);
  if (!from)
    return std::nullopt;
  for (int64_t device = 0; device < devices; ++device) {
    int64_t member = 0;
    for (const Digit &digit : digits)
      member = member * digit.size + device / digit.stride % digit.size;
    if ((*from)[device] != member * slice.shape.dims[*dim])
      return std::nullopt;
  }
  return dim;
}

void Importer::findScatters() {
  if (devices > (1 << 20))
    return;
  for (Computation &computation : module.computations) {
    std::vector<SmallVector<unsigned>> users(computation.instructions.size());
    for (unsigned i = 0; i < users.size(); ++i)
      for (unsigned operand : computation.instructions[i].operands)
        users[operand].push_back(i);
    for (unsigned i = 0; i < users.size(); ++i) {
      Instruction &op = computation.instructions[i];
      bool start = op.is("all-reduce-start");
      if ((!start && !op.is("all-reduce")) || op.operands.size() != 1 || !op.shape.array() ||
          !reductionOf(op, op.shape.element) || !carrier(op.shape.element, true))
        continue;
      unsigned last = i;
      if (start) {
        if (users[i].size() != 1 || !computation.instructions[users[i][0]].is("all-reduce-done"))
          continue;
        last = users[i][0];
      }
      Groups groups = groupsOf(op);
      std::optional<int64_t> dim;
      bool all = groups.digits && !users[last].empty() && computation.root != last;
      for (unsigned user : users[last]) {
        const Instruction &slice = computation.instructions[user];
        std::optional<int64_t> found;
        if (all && slice.is("dynamic-slice") && slice.operands[0] == last)
          found = slicedByPlace(computation, slice, op.shape, *groups.digits);
        all &= found && (!dim || dim == found);
        dim = found;
      }
      if (!all)
        continue;
      Shape part = computation.instructions[users[last][0]].shape;
      op.attributes.push_back({"dimensions", texts.emplace_back(std::to_string(*dim))});
      op.opcode = start ? "reduce-scatter-start" : "reduce-scatter";
      if (start) {
        Shape both;
        both.tuple = true;
        both.parts = {op.shape, part};
        op.shape = both;
        computation.instructions[last].opcode = "reduce-scatter-done";
        computation.instructions[last].shape = part;
      } else {
        op.shape = part;
      }
      for (unsigned user : users[last]) { // they are what it gives
        Instruction &slice = computation.instructions[user];
        slice.opcode = "domain";
        slice.operands = {last};
        slice.shape = part;
      }
      ++report.scatters;
    }
  }
}

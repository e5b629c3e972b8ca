//===- HloCollectives.cpp - HLO's collectives over the axes of one grid -------------------===//
//
// Devices are numbered replica * partitions + partition. What the collectives of `ncclx` do not
// carry (predicates, numbers of less than a byte, some 8-bit floats) travels in bytes, and is
// converted in front and behind.
//
//===----------------------------------------------------------------------===//
#include "HloImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::hlo;

static StringRef kindOf(const Instruction &op) {
  StringRef kind = op.opcode;
  kind.consume_back("-start");
  return kind;
}

bool mlir::ncclx::hlo::isCollective(StringRef opcode) {
  opcode.consume_back("-start");
  return llvm::StringSwitch<bool>(opcode)
      .Cases({"all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"},
             true)
      .Cases({"collective-broadcast", "ragged-all-to-all"}, true)
      .Default(false);
}

/// The sign bit turned over.
static Value flip(OpBuilder &b, Location loc, Value x) {
  unsigned bits = x.getType().getIntOrFloatBitWidth();
  Value sign = arith::ConstantOp::create(
      b, loc, cast<TypedAttr>(b.getIntegerAttr(x.getType(), llvm::APInt::getSignMask(bits))));
  return arith::XOrIOp::create(b, loc, x, sign);
}

static bool pairsNamed(StringRef kind) { return kind == "collective-permute"; }

/// Ids in groups are of replicas, of partitions, or of devices.
Groups Importer::groupsOf(const Instruction &op) {
  StringRef kind = kindOf(op), text = op.find("replica_groups").value_or("{}");
  bool channel = op.find("channel_id").has_value();
  bool global = op.find("use_global_device_ids").value_or("false") == "true";
  if (global && !channel)
    return {std::nullopt, "global device ids need a channel_id", true, {}};
  if (global)
    return readGroups(text, devices);
  bool across = kind == "all-to-all" || kind == "collective-broadcast";
  if (channel && across) { // of partitions, in each replica
    Groups groups = readGroups(text, partitions);
    GroupLists lists;
    for (int64_t r = 0; r < replicas; ++r)
      for (const auto &list : groups.lists) {
        SmallVector<int64_t> &devices = lists.emplace_back();
        for (int64_t partition : list)
          devices.push_back(r * partitions + partition);
      }
    groups.lists = std::move(lists);
    return groups;
  }
  Groups groups = readGroups(text, replicas);
  if (!groups.digits) { // of replicas, in each partition or over all of them
    GroupLists lists;
    for (int64_t p = 0; p < (channel ? 1 : partitions); ++p)
      for (const auto &list : groups.lists) {
        SmallVector<int64_t> &devices = lists.emplace_back();
        for (int64_t replica : list)
          for (int64_t q = p; q < (channel ? partitions : p + 1); ++q)
            devices.push_back(replica * partitions + q);
      }
    groups.lists = std::move(lists);
    return groups;
  }
  for (Digit &digit : *groups.digits)
    digit.stride *= partitions;
  if (channel && partitions > 1) // all partitions of each replica
    groups.digits->push_back({1, partitions});
  return groups;
}

LogicalResult Importer::countDevices() {
  replicas = module.replicas;
  partitions = module.partitions;
  // Texts that do not say how many devices there are have as many as they name.
  int64_t named = 1;
  bool channels = false;
  for (const Computation &computation : module.computations)
    for (const Instruction &op : computation.instructions) {
      for (StringRef name : {"replica_groups", "source_target_pairs"})
        if (std::optional<StringRef> groups = op.find(name)) {
          named = std::max(named, idsNamed(*groups));
          channels |= op.find("channel_id").has_value();
        }
    }
  if (replicas == 0 && partitions == 0)
    (channels ? partitions : replicas) = named;
  replicas = std::max<int64_t>(replicas, 1);
  partitions = std::max<int64_t>(partitions, 1);
  if (replicas > (int64_t(1) << 30) / partitions)
    return emitError(at(0)) << replicas << " replicas of " << partitions
                            << " partitions are too many";
  devices = replicas * partitions;
  return success();
}

LogicalResult Importer::findGrid() {
  axes = Axes(devices);
  // Pairs number devices by replicas or by partitions.
  if (replicas > 1 && partitions > 1)
    axes.add(Digit{1, partitions});
  for (const Computation &computation : module.computations)
    for (const Instruction &op : computation.instructions) {
      if (!op.find("replica_groups"))
        continue;
      Groups groups = groupsOf(op);
      if (groups.wrong)
        return error(op) << "replica_groups: " << groups.why;
      if (groups.digits)
        axes.add(*groups.digits); // one that does not fit the others is opaque
    }
  SmallVector<int64_t> sizes = axes.sizes();
  SmallVector<Attribute> names;
  for (size_t i = 0; i < sizes.size(); ++i)
    names.push_back(b.getStringAttr("x" + std::to_string(i)));
  GridOp::create(b, at(0), "devices", b.getArrayAttr(names), sizes, StringAttr());
  return success();
}

std::optional<ReductionKind> Importer::reductionOf(const Instruction &op, const Element &element) {
  const Computation *body = callee(op, "to_apply");
  if (!body || body->parameters.size() != 2)
    return std::nullopt;
  const Instruction &root = body->rootInstruction();
  // Converted to a wider type and back, it is the same reduction, rounded once more.
  if (root.operands.size() != 2 || !root.shape.array())
    return std::nullopt;
  SmallVector<unsigned> found;
  for (unsigned operand : root.operands)
    found.push_back(operand);
  llvm::sort(found);
  SmallVector<unsigned> expected(body->parameters);
  llvm::sort(expected);
  if (found != expected)
    return std::nullopt;
  bool predicate = element.kind == Element::Predicate;
  if (root.is("add") || (predicate && (root.is("or") || root.is("maximum"))))
    return predicate ? ReductionKind::Max : ReductionKind::Sum;
  if (root.is("multiply") || (predicate && (root.is("and") || root.is("minimum"))))
    return predicate ? ReductionKind::Min : ReductionKind::Prod;
  if (root.is("maximum"))
    return ReductionKind::Max;
  if (root.is("minimum"))
    return ReductionKind::Min;
  return std::nullopt;
}

/// The element type that a collective of `element` has in `ncclx`; null where there is none.
Type Importer::carrier(Element element, bool reduces) {
  Type type = typeOf(element, context);
  if (isa<IntegerType>(type))
    return b.getIntegerType(std::max(8u, type.getIntOrFloatBitWidth()));
  if (isSupportedElementType(type))
    return type;
  return !reduces && isa<FloatType>(type) ? Type(b.getI8Type()) : Type();
}

/// As it travels. `flips`: unsigned numbers are compared, by signed ones that are in the same
/// order.
Value Importer::carried(Location loc, Value value, const Shape &shape, bool reduces, bool flips) {
  Type from = typeOf(shape.element, context), to = carrier(shape.element, reduces);
  unsigned bits = from.getIntOrFloatBitWidth();
  if (from == to && !flips)
    return value;
  return mapElements(loc, value, to, [&](OpBuilder &inner, Value x) -> Value {
    if (isa<FloatType>(from))
      x = arith::BitcastOp::create(inner, loc, inner.getIntegerType(bits), x);
    if (bits < 8)
      return shape.element.kind == Element::Signed
                 ? arith::ExtSIOp::create(inner, loc, to, x).getResult()
                 : arith::ExtUIOp::create(inner, loc, to, x).getResult();
    return flips ? flip(inner, loc, x) : x;
  });
}

Value Importer::restored(Location loc, Value value, const Shape &shape, bool flips) {
  Type from = cast<RankedTensorType>(value.getType()).getElementType();
  Type to = typeOf(shape.element, context);
  unsigned bits = to.getIntOrFloatBitWidth();
  if (from == to && !flips)
    return value;
  return mapElements(loc, value, to, [&](OpBuilder &inner, Value x) -> Value {
    if (flips && bits >= 8)
      x = flip(inner, loc, x);
    if (bits < 8)
      x = arith::TruncIOp::create(inner, loc, inner.getIntegerType(bits), x);
    return x.getType() == to ? x : arith::BitcastOp::create(inner, loc, to, x).getResult();
  });
}

/// Whether a reduction keeps the larger or the smaller of unsigned numbers of whole bytes.
bool Importer::comparesUnsigned(const Instruction &op, const Element &element) {
  bool reduces = op.is("all-reduce") || op.is("reduce-scatter");
  std::optional<ReductionKind> kind = reduces ? reductionOf(op, element) : std::nullopt;
  return element.kind == Element::Unsigned && element.bits >= 8 &&
         (kind == ReductionKind::Max || kind == ReductionKind::Min);
}

LogicalResult Importer::collective(const Instruction &op, ValueRange operands,
                                   ArrayRef<const Shape *> shapes, ArrayRef<const Shape *> to,
                                   bool start, SmallVector<Value> &results, bool &understood) {
  StringRef kind = kindOf(op);
  Location loc = at(op);
  understood = false;
  bool reduces = kind == "all-reduce" || kind == "reduce-scatter";
  bool moves = kind == "all-gather" || kind == "collective-permute" || kind == "all-to-all" ||
               kind == "collective-broadcast";
  if (!reduces && !moves)
    return success();
  if (shapes.size() != to.size() || shapes.empty())
    return error(op) << "has " << to.size() << " results for " << shapes.size() << " operands";

  // Who takes part.
  SmallVector<Attribute> over;
  ArrayAttr listed;
  int64_t members = 1;
  SmallVector<int64_t> sizes = axes.sizes();
  auto span = [&](ArrayRef<Digit> digits) {
    for (unsigned axis : axes.spanned(digits)) {
      over.push_back(b.getStringAttr("x" + std::to_string(axis)));
      members *= sizes[axis];
    }
  };
  SmallVector<int64_t> pairs;
  if (pairsNamed(kind)) {
    bool channel = op.find("channel_id").has_value();
    int64_t ids = channel ? partitions : replicas;
    StringRef text = op.find("source_target_pairs").value_or("{}").trim();
    SmallVector<StringRef> parts;
    std::vector<bool> sends(ids), receives(ids);
    if (!text.consume_front("{") || !text.consume_back("}"))
      return error(op) << "expected 'source_target_pairs={{0,1},...}'";
    while (!text.trim().empty()) {
      auto [part, rest] = text.split('}');
      part = part.ltrim(", \n\t");
      std::optional<SmallVector<int64_t>> pair =
          part.consume_front("{") ? readNumbers(part) : std::nullopt;
      if (!pair || pair->size() != 2)
        return error(op) << "expected a pair '{source,target}'";
      for (int i : {0, 1}) {
        int64_t id = (*pair)[i];
        if (id < 0 || id >= ids)
          return error(op) << "id " << id << " is not one of " << ids;
        std::vector<bool> &seen = i ? receives : sends;
        if (seen[id])
          return error(op) << "id " << id << " is a " << (i ? "target" : "source") << " twice";
        seen[id] = true;
      }
      pairs.append(*pair);
      text = rest;
    }
    if (ids > 1)
      span(Digit{channel ? 1 : partitions, ids});
  } else {
    Groups groups = groupsOf(op);
    if (groups.wrong)
      return error(op) << "replica_groups: " << groups.why;
    Axes with = axes;
    if (groups.digits && with.add(*groups.digits) && with.sizes() == axes.sizes()) {
      span(*groups.digits);
    } else {
      // No axes span them: they are listed.
      if (groups.digits)
        groups.lists = listGroups(*groups.digits, devices);
      SmallVector<Attribute> all;
      bool equal = true;
      for (const auto &list : groups.lists) {
        all.push_back(b.getDenseI64ArrayAttr(list));
        equal &= list.size() == groups.lists[0].size();
      }
      if (all.empty() || (!equal && kind != "all-reduce"))
        return success();
      listed = b.getArrayAttr(all);
      members = groups.lists[0].size();
    }
  }

  std::optional<int64_t> dim;
  if (kind == "all-gather" || kind == "reduce-scatter" || kind == "all-to-all") {
    std::optional<SmallVector<int64_t>> dims = numbers(op, "dimensions");
    if (dims && dims->size() == 1)
      dim = dims->front();
    if (!dim || *dim < 0 || *dim >= int64_t(shapes[0]->dims.size())) {
      if (kind == "all-to-all" && !op.find("dimensions"))
        return success(); // an operand for each member
      return error(op) << "needs a dimension of its operands in 'dimensions'";
    }
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape &from = *shapes[i], &result = *to[i];
    if (!from.array() || !result.array() || !(from.element == result.element))
      return error(op) << "operand and result " << i << " are arrays of one element type";
    SmallVector<int64_t, 4> expected = from.dims;
    if (dim && *dim >= int64_t(from.dims.size()))
      return error(op) << "operand " << i << " has no dimension " << *dim;
    if (kind == "all-gather" && __builtin_mul_overflow(expected[*dim], members, &expected[*dim]))
      return error(op) << "the result is too large";
    if (kind == "reduce-scatter" || kind == "all-to-all") {
      if (expected[*dim] % members != 0)
        return error(op) << members << " members do not divide " << expected[*dim];
      if (kind == "reduce-scatter")
        expected[*dim] /= members;
    }
    if (expected != result.dims)
      return error(op) << "result " << i << " does not have the shape that " << members
                       << " members give";
  }
  std::optional<ReductionKind> reduction;
  for (const Shape *shape : shapes) {
    if (reduces && !(reduction = reductionOf(op, shape->element)))
      return success();
    if (!carrier(shape->element, reduces))
      return success();
  }
  understood = true;
  if (members == 1 && !listed) {
    // Alone; a permute's device gets its own or nothing.
    if (pairsNamed(kind) && pairs.empty()) {
      understood = false;
      return success();
    }
    ++report.trivial;
    llvm::append_range(results, operands);
    return success();
  }

  SmallVector<Value> made;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape &shape = *shapes[i];
    bool flips = comparesUnsigned(op, shape.element);
    Value input = carried(loc, operands[i], shape, reduces, flips);
    Type element = cast<RankedTensorType>(input.getType()).getElementType();
    auto type = RankedTensorType::get(to[i]->dims, element);
    auto grid = FlatSymbolRefAttr::get(context, "devices");
    ArrayAttr list = b.getArrayAttr(over);
    StartOp starter;
    OpBuilder::InsertionGuard guard(b);
    if (start) {
      starter = StartOp::create(b, loc, FutureType::get(type));
      b.setInsertionPointToEnd(&starter.getBody().emplaceBlock());
    }
    Operation *created = nullptr;
    auto kindAttr = reduction ? ReductionKindAttr::get(context, *reduction) : ReductionKindAttr();
    auto order = ReductionOrderAttr::get(context, ReductionOrder::Any);
    Type none;
    AlgorithmAttr any;
    Value dest;
    if (kind == "all-gather")
      created = AllGatherOp::create(b, loc, Type(type), none, input, b.getI64IntegerAttr(*dim),
                                    grid, list, listed, dest, any);
    else if (kind == "all-reduce")
      created = AllReduceOp::create(b, loc, Type(type), none, input, kindAttr, FloatAttr(),
                                    TypeAttr::get(element), order, grid, list, listed, dest, any);
    else if (kind == "reduce-scatter")
      created = ReduceScatterOp::create(b, loc, Type(type), none, input, b.getI64IntegerAttr(*dim),
                                        kindAttr, FloatAttr(), TypeAttr::get(element), order, grid,
                                        list, listed, dest, any);
    else if (kind == "all-to-all")
      created = AllToAllOp::create(b, loc, Type(type), none, input, b.getI64IntegerAttr(*dim),
                                   b.getI64IntegerAttr(*dim), grid, list, listed, dest, any);
    else if (kind == "collective-broadcast")
      created = BroadcastOp::create(
          b, loc, Type(type), none, input,
          b.getDenseI64ArrayAttr(SmallVector<int64_t>(listed ? 1 : over.size())), grid, list,
          listed, dest, any);
    else {
      // A shift of all members, where it is one.
      std::optional<int64_t> shift;
      if (int64_t(pairs.size()) == 2 * members) {
        shift = (pairs[1] - pairs[0] + members) % members;
        for (size_t j = 0; j < pairs.size() && shift; j += 2)
          if ((pairs[j + 1] - pairs[j] + members) % members != *shift)
            shift = std::nullopt;
      }
      created = PermuteOp::create(b, loc, Type(type), none, input,
                                  shift ? b.getI64IntegerAttr(*shift) : IntegerAttr(),
                                  shift ? DenseI64ArrayAttr() : b.getDenseI64ArrayAttr(pairs), grid,
                                  list, listed, dest, any);
    }
    ++report.collectives[created->getName().stripDialect().str()];
    if (start) {
      YieldOp::create(b, loc, created->getResult(0));
      made.push_back(starter.getFuture());
      continue;
    }
    made.push_back(restored(loc, created->getResult(0), *to[i], flips));
  }
  results = made;
  return success();
}

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

//===--- All-reduces of which only a slice is used -----------------------------------------===//

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

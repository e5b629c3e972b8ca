//===- HloCollectives.cpp - HLO's collectives over the axes of one grid -------------------===//
//
// Devices are numbered replica * partitions + partition. What the collectives of `ncclx` do not
// carry (predicates, numbers of less than a byte, some 8-bit floats) travels in bytes, and is
// converted in front and behind.
//
//===----------------------------------------------------------------------===//
#include "HloImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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

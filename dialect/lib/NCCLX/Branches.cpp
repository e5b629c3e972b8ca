//===- Branches.cpp - What decides, and graphs in several functions ---------===//

#include "ncclx/NCCLX/Branches.h"
#include "ncclx/NCCLX/AssumeUniform.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::ncclx;

#define GET_OP_CLASSES
#include "ncclx/NCCLX/NCCLXAssumeUniform.cpp.inc"

//===--- assume_uniform ---------------------------------------------------===//

void AssumeUniformOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), Communication::get());
  effects.emplace_back(MemoryEffects::Write::get(), Communication::get());
}

LogicalResult AssumeUniformOp::verify() {
  Type type = getValue().getType();
  bool isScalar =
      type.isSignlessInteger() || isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
  if (type.isIndex() || type.isSignlessInteger(1) || (isScalar && isSupportedElementType(type)))
    return success();
  return emitOpError("compares ") << type
                                  << ", expected an index, i1, i8 to i64, f16, bf16, f32 or f64";
}

//===--- stages -----------------------------------------------------------===//

Stage Stage::from(DictionaryAttr attr) {
  auto numbers = [&](StringRef name) { return attr.getAs<DenseI64ArrayAttr>(name).asArrayRef(); };
  Stage stage;
  llvm::append_range(stage.reads, numbers("reads"));
  llvm::append_range(stage.writes, numbers("writes"));
  for (auto edge : attr.getAs<ArrayAttr>("next").getAsRange<DenseI64ArrayAttr>()) {
    ArrayRef<int64_t> flat = edge;
    StageEdge &made = stage.edges.emplace_back();
    made.target = flat.front();
    for (size_t i = 1; i + 1 < flat.size(); i += 2)
      made.moves.push_back({flat[i], flat[i + 1]});
  }
  if (auto agree = attr.getAs<IntegerAttr>("agree")) {
    stage.agree = agree.getInt();
    stage.agreeAt = attr.getAs<StringAttr>("at").str();
  }
  return stage;
}

DictionaryAttr Stage::toAttr(MLIRContext *context) const {
  Builder b(context);
  SmallVector<Attribute> next;
  for (const StageEdge &edge : edges) {
    SmallVector<int64_t> flat{edge.target};
    for (auto [from, to] : edge.moves)
      flat.append({from, to});
    next.push_back(b.getDenseI64ArrayAttr(flat));
  }
  NamedAttrList attrs;
  attrs.set("reads", b.getDenseI64ArrayAttr(reads));
  attrs.set("writes", b.getDenseI64ArrayAttr(writes));
  attrs.set("next", b.getArrayAttr(next));
  if (agree) {
    attrs.set("agree", b.getI64IntegerAttr(*agree));
    attrs.set("at", b.getStringAttr(agreeAt));
  }
  return attrs.getDictionary(context);
}

std::vector<Stage> mlir::ncclx::getStages(Operation *chooser) {
  std::vector<Stage> stages;
  if (auto attrs = chooser->getAttrOfType<ArrayAttr>(stagesAttrName))
    for (auto attr : attrs.getAsRange<DictionaryAttr>())
      stages.push_back(Stage::from(attr));
  return stages;
}

LogicalResult mlir::ncclx::verifyStagesAttr(Operation *op, Attribute value) {
  auto branches = op->getAttrOfType<ArrayAttr>(branchesAttrName);
  if (!isa<FunctionOpInterface>(op) || !branches)
    return op->emitOpError("has ") << stagesAttrName << ", but only functions with "
                                   << branchesAttrName << " may"; // stages G1
  auto stages = dyn_cast<ArrayAttr>(value);
  if (!stages || stages.size() != branches.size()) // stages G2
    return op->emitOpError("has stages ")
           << value << ", expected a dictionary for each of " << branches.size() << " branches";
  auto areStates = [](ArrayRef<int64_t> numbers) {
    return llvm::all_of(numbers, [](int64_t n) { return n >= 0; });
  };
  for (auto [i, attr] : llvm::enumerate(stages)) {
    auto wrong = [&](const Twine &what) { return op->emitOpError("has stage ") << i << what; };
    auto stage = dyn_cast<DictionaryAttr>(attr);
    for (StringRef name : {"reads", "writes"}) { // stages G3
      auto numbers = stage ? stage.getAs<DenseI64ArrayAttr>(name) : DenseI64ArrayAttr();
      if (!numbers || !areStates(numbers))
        return wrong(" without '" + name + "', a list of states");
    }
    auto next = stage.getAs<ArrayAttr>("next");
    if (!next || !llvm::all_of(next, llvm::IsaPred<DenseI64ArrayAttr>)) // stages G3
      return wrong(" without 'next', a list of lists of numbers");
    if (next.empty() && !stage.getAs<DenseI64ArrayAttr>("writes").empty())
      return wrong(" that writes states, but that nothing follows");
    SmallVector<int64_t> targets;
    for (auto edge : next.getAsRange<DenseI64ArrayAttr>()) { // stages G4
      ArrayRef<int64_t> flat = edge;
      if (flat.size() % 2 == 0 || !areStates(flat) || flat.front() >= int64_t(stages.size()) ||
          llvm::is_contained(targets, flat.front()))
        return wrong(" with the edge ") << edge << ", expected another stage below "
                                        << stages.size() << " and pairs of states";
      targets.push_back(flat.front());
    }
    auto agree = stage.getAs<IntegerAttr>("agree");
    if (stage.contains("agree") && // stages G5
        (!agree || !agree.getType().isInteger(64) || !stage.getAs<StringAttr>("at") ||
         !llvm::is_contained(stage.getAs<DenseI64ArrayAttr>("writes").asArrayRef(),
                             agree.getInt())))
      return wrong(" that agrees on what it does not write, or says not where");
  }
  return success();
}

//===- HloCalls.cpp - Kernels that have no body here, known and opaque -----------------===//
#include "HloImporter.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::hlo;

func::FuncOp Importer::kernel(StringRef name, TypeRange operands, TypeRange results) {
  auto type = FunctionType::get(context, operands, results);
  std::string key = name.str();
  llvm::raw_string_ostream(key) << ' ' << type;
  func::FuncOp &function = kernels[key];
  if (!function) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(result->getBody());
    std::string plain = "hlo.";
    for (char c : name)
      plain += llvm::isAlnum(c) || c == '.' ? c : '_';
    function = func::FuncOp::create(b, result->getLoc(), plain, type);
    function.setPrivate();
    SymbolTable(*result).insert(function, Block::iterator()); // a name of its own
  }
  return function;
}

SmallVector<Type> Importer::typesOf(const Shape &shape) {
  SmallVector<Type> types;
  if (shape.array())
    types.push_back(typeOf(shape, context));
  for (const Shape &part : shape.parts)
    llvm::append_range(types, typesOf(part));
  return types;
}

LogicalResult Importer::known(const Instruction &op, StringRef name, ValueRange operands,
                              double flops, SmallVector<Value> &results) {
  SmallVector<Type> types = typesOf(op.shape);
  int64_t bytes = op.shape.bytes();
  for (Value operand : operands) {
    auto type = cast<RankedTensorType>(operand.getType());
    Type element = type.getElementType();
    unsigned bits = isa<ComplexType>(element)
                        ? 2 * cast<ComplexType>(element).getElementType().getIntOrFloatBitWidth()
                        : element.getIntOrFloatBitWidth();
    bytes += llvm::divideCeil(uint64_t(type.getNumElements()) * bits, 8);
  }
  report.flops += flops * times;
  func::FuncOp function = kernel(name, operands.getTypes(), types);
  int64_t whole = flops < 9e18 ? int64_t(flops) : std::numeric_limits<int64_t>::max();
  auto call = CallOp::create(b, at(op), types, function.getName(), operands, ValueRange(), whole,
                             bytes, /*sms=*/int64_t(0));
  results.assign(call.getResults().begin(), call.getResults().end());
  return success();
}

LogicalResult Importer::opaque(const Instruction &op, StringRef name, ValueRange operands,
                               bool effects, SmallVector<Value> &results) {
  // An operation for each element that is made; a convolution's are known.
  double flops = 0;
  if (op.shape.array())
    flops = double(op.shape.elements());
  HloReport::Opaque &entry = report.opaque[name.str()];
  ++entry.instructions;
  entry.flops += flops * times;
  if (!effects && op.shape.leaves() > 0)
    return known(op, name, operands, flops, results);
  report.flops += flops * times;
  SmallVector<Type> types = typesOf(op.shape);
  auto call = func::CallOp::create(b, at(op), kernel(name, operands.getTypes(), types), operands);
  results.assign(call.getResults().begin(), call.getResults().end());
  return success();
}

std::optional<double> mlir::ncclx::hlo::configured(StringRef config, StringRef name) {
  for (size_t at = config.find(name); at != StringRef::npos; at = config.find(name, at + 1)) {
    StringRef rest = config.substr(at + name.size());
    if (at > 0 && (llvm::isAlnum(config[at - 1]) || config[at - 1] == '_'))
      continue;
    rest = rest.ltrim("\\\"' :=[");
    StringRef digits = rest.take_while(llvm::isDigit);
    double number;
    if (!digits.empty() && !digits.getAsDouble(number))
      return number;
  }
  return std::nullopt;
}

/// Floating-point operations of the custom calls that are known: attention by TransformerEngine,
/// products by cuBLAS.
static std::optional<double> knownFlops(StringRef target, StringRef config, const Instruction &op,
                                        ArrayRef<const Shape *> operands) {
  if (target.starts_with("te_fused_attn_")) {
    double product = 2;
    for (const char *name : {"input_batch", "attn_heads", "q_max_seqlen", "kv_max_seqlen"}) {
      std::optional<double> number = configured(config, name);
      if (!number)
        return std::nullopt;
      product *= *number;
    }
    std::optional<double> key = configured(config, "qk_head_dim");
    std::optional<double> val = configured(config, "v_head_dim");
    if (!key || !val)
      return std::nullopt;
    // Causal masks (NVTE_Mask_Type from 2 on) leave half; the backward has five products for two.
    double half = configured(config, "mask_type").value_or(0) >= 2 ? 0.5 : 1;
    double ways = target.contains("backward") ? 2.5 : 1;
    return product * (*key + *val) * half * ways;
  }
  if (target.starts_with("__cublas$") && operands.size() >= 2) {
    const Shape &out = op.shape.tuple && !op.shape.parts.empty() ? op.shape.parts[0] : op.shape;
    double product = 2 * double(out.elements());
    size_t at = config.find("lhs_contracting_dimensions");
    if (at == StringRef::npos || !out.array())
      return std::nullopt;
    StringRef list =
        config.substr(at).split('[').second.take_until([](char c) { return c == ']'; });
    for (StringRef rest = list; !rest.empty(); rest = rest.drop_front()) {
      int64_t dim;
      StringRef digits = rest.take_while(llvm::isDigit);
      if (digits.empty())
        continue;
      if (digits.getAsInteger(10, dim) || dim >= int64_t(operands[0]->dims.size()))
        return std::nullopt;
      product *= double(operands[0]->dims[dim]);
      rest = rest.drop_front(digits.size() - 1);
    }
    return product;
  }
  return std::nullopt;
}

LogicalResult Importer::customCall(Scope &scope, const Instruction &op,
                                   SmallVector<Value> &results) {
  StringRef target = op.find("custom_call_target").value_or("").trim('"');
  SmallVector<Value> operands = leaves(scope, op);
  SmallVector<const Shape *> shapes;
  for (unsigned i = 0; i < op.operands.size(); ++i)
    shapes.push_back(&shapeOf(scope, op, i));
  if (target == "Sharding" && shapes.size() == 1 && *shapes[0] == op.shape) {
    results = operands;
    return success();
  }
  std::string name;
  for (char c : target.empty() ? StringRef("custom-call") : target)
    name += llvm::isAlnum(c) || c == '_' || c == '.' ? c : '_';
  bool effects = op.find("custom_call_has_side_effect").value_or("false") == "true";
  StringRef config = op.find("backend_config").value_or("");
  std::optional<double> flops = knownFlops(target, config, op, shapes);
  if (flops && !effects && op.shape.leaves() > 0)
    return known(op, name, operands, *flops, results);
  return opaque(op, name, operands, effects, results);
}

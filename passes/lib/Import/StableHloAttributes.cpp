//===- StableHloAttributes.cpp - What StableHLO's attributes are in HLO text --------------===//
//
// Ops are of a dialect that is not registered: attributes are found by name, and those of the
// dialect are read from their text.
//
//===----------------------------------------------------------------------===//
#include "StableHloAttributes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx::hlo;

std::string mlir::ncclx::hlo::joined(ArrayRef<int64_t> numbers) {
  return llvm::join(llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }), ",");
}

std::string mlir::ncclx::hlo::literal(Attribute value) {
  std::string text;
  if (auto number = dyn_cast<FloatAttr>(value)) {
    llvm::APFloat f = number.getValue();
    if (f.isNaN())
      return f.isNegative() ? "-nan" : "nan";
    if (f.isInfinity())
      return f.isNegative() ? "-inf" : "inf";
    SmallString<32> digits;
    f.toString(digits, /*FormatPrecision=*/0, /*FormatMaxPadding=*/0);
    return digits.str().str();
  }
  auto number = cast<IntegerAttr>(value);
  if (number.getType().isInteger(1))
    return number.getValue().isZero() ? "false" : "true";
  SmallString<32> digits;
  number.getValue().toString(digits, 10, /*Signed=*/!number.getType().isUnsignedInteger());
  return digits.str().str();
}

Attribute mlir::ncclx::hlo::attribute(Operation *op, StringRef name) {
  if (Attribute found = op->getDiscardableAttr(name))
    return found;
  if (auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    return properties.get(name);
  return {};
}

std::optional<SmallVector<int64_t>> mlir::ncclx::hlo::numbers(Operation *op, StringRef name) {
  Attribute found = attribute(op, name);
  if (auto array = dyn_cast_or_null<DenseI64ArrayAttr>(found))
    return SmallVector<int64_t>(array.asArrayRef());
  SmallVector<int64_t> list;
  if (auto number = dyn_cast_or_null<IntegerAttr>(found))
    return SmallVector<int64_t>{number.getInt()};
  if (auto dense = dyn_cast_or_null<DenseIntElementsAttr>(found)) {
    for (const APInt &value : dense.getValues<APInt>())
      list.push_back(value.getSExtValue());
    return list;
  }
  return std::nullopt;
}
namespace {

/// The text of an attribute of the dialect, which has no registered form.
std::string textOf(Attribute attribute) {
  std::string text;
  if (attribute)
    llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// As a string of HLO's.
std::string quoted(StringRef text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + '"';
}

/// Behind `key =` in such a text: "[1, 2]", or a number.
std::optional<SmallVector<int64_t>> keyed(StringRef text, StringRef key) {
  for (size_t at = text.find(key); at != StringRef::npos; at = text.find(key, at + 1)) {
    StringRef rest = text.substr(at + key.size()).ltrim();
    if ((at > 0 && (llvm::isAlnum(text[at - 1]) || text[at - 1] == '_')) ||
        !rest.consume_front("="))
      continue;
    rest = rest.ltrim();
    bool list = rest.consume_front("[");
    rest = list ? rest.split(']').first
                : rest.take_while([](char c) { return llvm::isDigit(c) || c == '-'; });
    SmallVector<int64_t> numbers;
    SmallVector<StringRef> words;
    rest.split(words, ',', -1, /*KeepEmpty=*/false);
    for (StringRef word : words)
      if (word.trim().getAsInteger(10, numbers.emplace_back()))
        return std::nullopt;
    return numbers;
  }
  return std::nullopt;
}

/// ", name={...}" of an op's attribute, which it must have.
LogicalResult give(Operation *op, StringRef from, StringRef as, std::string &text) {
  std::optional<SmallVector<int64_t>> list = numbers(op, from);
  if (!list)
    return op->emitError("needs '") << from << "'";
  text += (", " + as + "={" + joined(*list) + "}").str();
  return success();
}

LogicalResult groups(Operation *op, StringRef from, StringRef as, std::string &text) {
  auto lists = dyn_cast_or_null<DenseIntElementsAttr>(attribute(op, from));
  auto type = lists ? dyn_cast<RankedTensorType>(lists.getType()) : RankedTensorType();
  if (!type || type.getRank() != 2)
    return op->emitError("needs a list of lists of ids in '") << from << "'";
  text += (", " + as + "={").str();
  SmallVector<APInt> ids(lists.getValues<APInt>());
  for (int64_t i = 0; i < type.getDimSize(0); ++i) {
    SmallVector<int64_t> list;
    for (int64_t j = 0; j < type.getDimSize(1); ++j)
      if (int64_t id = ids[i * type.getDimSize(1) + j].getSExtValue();
          id >= 0) // shorter ones are filled with -1
        list.push_back(id);
    text += (i ? ",{" : "{") + joined(list) + "}";
  }
  text += "}";
  return success();
}

} // namespace

LogicalResult
mlir::ncclx::hlo::attributesOf(Operation *op, StringRef kind,
                               llvm::function_ref<LogicalResult(Region &, std::string &)> reducer,
                               std::string &text) {
  bool collective = llvm::StringSwitch<bool>(kind)
                        .Cases({"all_gather", "all_reduce", "reduce_scatter", "all_to_all"}, true)
                        .Cases({"collective_permute", "collective_broadcast"}, true)
                        .Default(false);
  if (collective) {
    bool pairs = kind == "collective_permute";
    if (failed(groups(op, pairs ? "source_target_pairs" : "replica_groups",
                      pairs ? "source_target_pairs" : "replica_groups", text)))
      return failure();
    if (std::optional<SmallVector<int64_t>> handle =
            keyed(textOf(attribute(op, "channel_handle")), "handle");
        handle && handle->size() == 1 && handle->front() > 0)
      text += ", channel_id=" + std::to_string(handle->front());
    if (attribute(op, "use_global_device_ids"))
      text += ", use_global_device_ids=true";
  }
  if (kind == "all_gather")
    return give(op, "all_gather_dim", "dimensions", text);
  if (kind == "reduce_scatter" && failed(give(op, "scatter_dimension", "dimensions", text)))
    return failure();
  if (kind == "all_to_all")
    return give(op, "split_dimension", "dimensions", text);
  if (kind == "reduce" && failed(give(op, "dimensions", "dimensions", text)))
    return failure();
  if (kind == "all_reduce" || kind == "reduce_scatter" || kind == "reduce") {
    std::string name;
    if (op->getNumRegions() != 1 || failed(reducer(op->getRegion(0), name)))
      return op->emitError("needs a region that combines two numbers");
    text += ", to_apply=%" + name;
    return success();
  }
  if (kind == "transpose")
    return give(op, "permutation", "dimensions", text);
  if (kind == "concatenate")
    return give(op, "dimension", "dimensions", text);
  if (kind == "iota")
    return give(op, "iota_dimension", "iota_dimension", text);
  if (kind == "dynamic_slice")
    return give(op, "slice_sizes", "dynamic_slice_sizes", text);
  if (kind == "get_tuple_element") {
    std::optional<SmallVector<int64_t>> index = numbers(op, "index");
    text += ", index=" + joined(index.value_or(SmallVector<int64_t>()));
    return success();
  }
  if (kind == "compare") {
    std::string how = textOf(attribute(op, "comparison_direction"));
    for (StringRef direction : {"EQ", "NE", "LE", "LT", "GE", "GT"})
      if (StringRef(how).contains(direction))
        text += (", direction=" + direction).str();
    if (StringRef(textOf(attribute(op, "compare_type"))).contains("TOTALORDER"))
      text += ", type=TOTALORDER";
    return success();
  }
  if (kind == "slice" || kind == "pad") {
    bool slice = kind == "slice";
    std::optional<SmallVector<int64_t>> low =
        numbers(op, slice ? "start_indices" : "edge_padding_low");
    std::optional<SmallVector<int64_t>> high =
        numbers(op, slice ? "limit_indices" : "edge_padding_high");
    std::optional<SmallVector<int64_t>> step = numbers(op, slice ? "strides" : "interior_padding");
    if (!low || !high || !step || low->size() != high->size() || low->size() != step->size())
      return op->emitError("needs its three lists of numbers, of one length");
    text += slice ? ", slice={" : ", padding=";
    for (size_t i = 0; i < low->size(); ++i)
      text +=
          slice
              ? llvm::formatv("{0}[{1}:{2}:{3}]", i ? ", " : "", (*low)[i], (*high)[i], (*step)[i])
                    .str()
              : llvm::formatv("{0}{1}_{2}_{3}", i ? "x" : "", (*low)[i], (*high)[i], (*step)[i])
                    .str();
    text += slice ? "}" : "";
    return success();
  }
  if (kind == "dot_general" || kind == "dot") {
    std::string numbers = textOf(attribute(op, "dot_dimension_numbers"));
    auto side = [&](StringRef key, StringRef as) {
      std::optional<SmallVector<int64_t>> dims = keyed(numbers, key);
      if (dims && !dims->empty())
        text += (", " + as + "={" + joined(*dims) + "}").str();
    };
    if (kind == "dot") { // of vectors or matrices: the last by the first
      int64_t rank = cast<ShapedType>(op->getOperand(0).getType()).getRank();
      text += ", lhs_contracting_dims={" + std::to_string(rank - 1) + "}, rhs_contracting_dims={0}";
      return success();
    }
    side("lhs_batching_dimensions", "lhs_batch_dims");
    side("rhs_batching_dimensions", "rhs_batch_dims");
    side("lhs_contracting_dimensions", "lhs_contracting_dims");
    side("rhs_contracting_dimensions", "rhs_contracting_dims");
    return success();
  }
  if (kind == "custom_call") {
    auto target = dyn_cast_or_null<StringAttr>(attribute(op, "call_target_name"));
    text += ", custom_call_target=" + quoted(target ? target.getValue() : "");
    if (auto effect = dyn_cast_or_null<BoolAttr>(attribute(op, "has_side_effect"));
        effect && effect.getValue())
      text += ", custom_call_has_side_effect=true";
    for (StringRef name : {"backend_config", "mhlo.backend_config"})
      if (Attribute config = attribute(op, name)) {
        auto words = dyn_cast<StringAttr>(config);
        text += ", backend_config=" + quoted(words ? words.getValue() : StringRef(textOf(config)));
        break;
      }
  }
  return success();
}

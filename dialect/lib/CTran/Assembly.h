//===- Assembly.h - The custom parts of ctran's text -----------------*- C++ -*-===//
//
// Parsers and printers that CTranOps.td and CTranBase.td name as custom<...>. Static: they are seen
// only by the file that includes the generated definitions.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_CTRAN_ASSEMBLY_H
#define NCCLX_LIB_CTRAN_ASSEMBLY_H

#include "ncclx/CTran/CTran.h"

#include "mlir/IR/OpImplementation.h"

namespace mlir::ctran {

using ErrorFn = llvm::function_ref<InFlightDiagnostic()>;

//===--- lists of axes and dimensions ------------------------------------------------===//

/// ["x" = 8, "y" = 2]
inline ParseResult parseGrid(OpAsmParser &parser, ArrayAttr &grid) {
  SmallVector<Attribute> axes;
  auto one = [&]() -> ParseResult {
    std::string name;
    int64_t size;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseString(&name) || parser.parseEqual() || parser.parseInteger(size))
      return failure();
    auto emit = [&] { return parser.emitError(loc); };
    auto axis = GridAxisAttr::getChecked(ErrorFn(emit), parser.getContext(), StringRef(name), size);
    axes.push_back(axis);
    return success(axis != nullptr);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, one, " in grid"))
    return failure();
  grid = parser.getBuilder().getArrayAttr(axes);
  return success();
}

inline void printGrid(OpAsmPrinter &p, Operation *, ArrayAttr grid) {
  p << '[';
  llvm::interleaveComma(grid.getAsRange<GridAxisAttr>(), p, [&](GridAxisAttr axis) {
    p << '"' << axis.getName() << "\" = " << axis.getSize();
  });
  p << ']';
}

/// ["x" = 8 chunked, 4 granule 16]
inline ParseResult parseDims(OpAsmParser &parser, ArrayAttr &dims) {
  SmallVector<Attribute> list;
  auto one = [&]() -> ParseResult {
    std::string axis;
    int64_t size, granule = 1;
    Cut cut = Cut::Balanced;
    SMLoc loc = parser.getCurrentLocation();
    if (succeeded(parser.parseOptionalString(&axis)) && parser.parseEqual())
      return failure();
    if (parser.parseInteger(size))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("chunked")))
      cut = Cut::Chunked;
    if (succeeded(parser.parseOptionalKeyword("granule")) && parser.parseInteger(granule))
      return failure();
    auto emit = [&] { return parser.emitError(loc); };
    auto dim = DimAttr::getChecked(ErrorFn(emit), parser.getContext(), StringRef(axis), size, cut,
                                   granule);
    list.push_back(dim);
    return success(dim != nullptr);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, one, " in dimensions"))
    return failure();
  dims = parser.getBuilder().getArrayAttr(list);
  return success();
}

inline void printDims(OpAsmPrinter &p, Operation *, ArrayAttr dims) {
  p << '[';
  llvm::interleaveComma(dims.getAsRange<DimAttr>(), p, [&](DimAttr dim) {
    if (!dim.getAxis().empty())
      p << '"' << dim.getAxis() << "\" = ";
    p << dim.getSize();
    if (dim.getCut() == Cut::Chunked)
      p << " chunked";
    if (dim.getGranule() != 1)
      p << " granule " << dim.getGranule();
  });
  p << ']';
}

/// ["x", "y"], in an attribute.
inline ParseResult parseAxes(AsmParser &parser, SmallVector<StringAttr> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  });
}

inline void printAxes(AsmPrinter &p, ArrayRef<StringAttr> axes) {
  p << '[';
  llvm::interleaveComma(axes, p, [&](StringAttr axis) { p << '"' << axis.getValue() << '"'; });
  p << ']';
}

//===--- operands that are numbers or coordinates --------------------------------------===//

using Unresolved = OpAsmParser::UnresolvedOperand;

/// %n (a number) or %x : "axis" (a coordinate).
inline ParseResult parsePlace(OpAsmParser &parser, Unresolved &operand, Type &type) {
  if (parser.parseOperand(operand))
    return failure();
  type = parser.getBuilder().getIndexType();
  std::string axis;
  if (failed(parser.parseOptionalColon()))
    return success();
  if (parser.parseString(&axis))
    return failure();
  type = CoordType::get(parser.getContext(), axis);
  return success();
}

inline void printPlace(OpAsmPrinter &p, Value value, Type type) {
  p << value;
  if (auto coord = dyn_cast<CoordType>(type))
    p << " : \"" << coord.getAxis() << '"';
}

inline ParseResult parsePlaces(OpAsmParser &parser, AsmParser::Delimiter delimiter,
                               SmallVectorImpl<Unresolved> &operands,
                               SmallVectorImpl<Type> &types) {
  return parser.parseCommaSeparatedList(delimiter, [&]() -> ParseResult {
    return parsePlace(parser, operands.emplace_back(), types.emplace_back());
  });
}

inline void printPlaces(OpAsmPrinter &p, OperandRange operands, TypeRange types) {
  llvm::interleaveComma(llvm::zip_equal(operands, types), p,
                        [&](auto pair) { printPlace(p, std::get<0>(pair), std::get<1>(pair)); });
}

/// Nothing, or [%x : "x", %j].
inline ParseResult parseIndices(OpAsmParser &parser, SmallVectorImpl<Unresolved> &operands,
                                SmallVectorImpl<Type> &types) {
  return parsePlaces(parser, AsmParser::Delimiter::OptionalSquare, operands, types);
}

inline void printIndices(OpAsmPrinter &p, Operation *, OperandRange operands, TypeRange types) {
  if (operands.empty())
    return;
  p << '[';
  printPlaces(p, operands, types);
  p << ']';
}

/// Nothing, or from %first size %count.
inline ParseResult parseInterval(OpAsmParser &parser, std::optional<Unresolved> &first, Type &type,
                                 std::optional<Unresolved> &count) {
  if (failed(parser.parseOptionalKeyword("from")))
    return success();
  first.emplace();
  count.emplace();
  return failure(parsePlace(parser, *first, type) || parser.parseKeyword("size") ||
                 parser.parseOperand(*count));
}

inline void printInterval(OpAsmPrinter &p, Operation *, Value first, Type type, Value count) {
  if (!first)
    return;
  p << " from ";
  printPlace(p, first, type);
  p << " size " << count;
}

/// (%x : "x", %y : "y") or rank %r.
inline ParseResult parsePoint(OpAsmParser &parser, SmallVectorImpl<Unresolved> &point,
                              SmallVectorImpl<Type> &types, std::optional<Unresolved> &rank) {
  if (failed(parser.parseOptionalKeyword("rank")))
    return parsePlaces(parser, AsmParser::Delimiter::Paren, point, types);
  return parser.parseOperand(rank.emplace());
}

inline void printPoint(OpAsmPrinter &p, Operation *, OperandRange point, TypeRange types,
                       Value rank) {
  if (rank) {
    p << "rank " << rank;
    return;
  }
  p << '(';
  printPlaces(p, point, types);
  p << ')';
}

} // namespace mlir::ctran
#endif // NCCLX_LIB_CTRAN_ASSEMBLY_H

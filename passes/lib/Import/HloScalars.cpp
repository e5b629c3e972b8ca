//===- HloScalars.cpp - HLO's arithmetic on one element ---------------------------------===//
//
// HLO defines what arith leaves undefined (division by zero, shifts by too much, conversions out of
// range): the values are chosen here, in front of the op.
//
//===----------------------------------------------------------------------===//
#include "HloImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx::hlo;

Type mlir::ncclx::hlo::typeOf(Element element, MLIRContext *context) {
  Builder b(context);
  switch (element.kind) {
  case Element::Predicate:
    return b.getI1Type();
  case Element::Signed:
  case Element::Unsigned:
    return b.getIntegerType(element.bits);
  case Element::Complex:
    return ComplexType::get(element.bits == 64 ? Type(b.getF32Type()) : Type(b.getF64Type()));
  case Element::Token:
    return Type();
  case Element::Float:
    break;
  }
  return llvm::StringSwitch<Type>(element.name)
      .Case("f16", b.getF16Type())
      .Case("bf16", b.getBF16Type())
      .Case("f32", b.getF32Type())
      .Case("f64", b.getF64Type())
      .Case("f8e5m2", Float8E5M2Type::get(context))
      .Case("f8e4m3", Float8E4M3Type::get(context))
      .Case("f8e4m3fn", Float8E4M3FNType::get(context))
      .Case("f8e4m3b11fnuz", Float8E4M3B11FNUZType::get(context))
      .Case("f8e3m4", Float8E3M4Type::get(context))
      .Case("f8e4m3fnuz", Float8E4M3FNUZType::get(context))
      .Case("f8e5m2fnuz", Float8E5M2FNUZType::get(context))
      .Case("f8e8m0fnu", Float8E8M0FNUType::get(context))
      .Case("f4e2m1fn", Float4E2M1FNType::get(context));
}

RankedTensorType mlir::ncclx::hlo::typeOf(const Shape &shape, MLIRContext *context) {
  return RankedTensorType::get(shape.dims, typeOf(shape.element, context));
}

namespace {

/// Ops on scalars of one place; `type` is that of the first operand.
struct Scalars {
  OpBuilder &b;
  Location loc;
  Type type;

  template <typename OpTy, typename... Args> Value make(Args &&...args) {
    return OpTy::create(b, loc, std::forward<Args>(args)...).getResult();
  }
  Value integer(int64_t value, Type of) {
    return make<arith::ConstantOp>(cast<TypedAttr>(b.getIntegerAttr(of, value)));
  }
  Value integer(const APInt &value, Type of) {
    return make<arith::ConstantOp>(cast<TypedAttr>(b.getIntegerAttr(of, value)));
  }
  Value floating(double value, Type of) {
    return make<arith::ConstantOp>(cast<TypedAttr>(b.getFloatAttr(of, value)));
  }
  Value compare(arith::CmpIPredicate p, Value x, Value y) { return make<arith::CmpIOp>(p, x, y); }
  Value compare(arith::CmpFPredicate p, Value x, Value y) { return make<arith::CmpFOp>(p, x, y); }
  Value select(Value c, Value x, Value y) { return make<arith::SelectOp>(c, x, y); }

  Value divide(Value x, Value y, bool isSigned, bool remainder);
  Value shift(StringRef name, Value x, Value y);
  Value convert(Value x, Element from, Element to);
  Value toInteger(Value x, Element to);
  Value sign(Value x, Element element);
  Value compareOp(const Instruction &op, Value x, Value y, Element element);
  Value unary(StringRef name, Value x, Element element);
  Value binary(StringRef name, Value x, Value y, Element element);
};

/// x/0 is all ones (of signed: -1), x%0 is x; the least number over -1 is itself, its remainder 0.
Value Scalars::divide(Value x, Value y, bool isSigned, bool remainder) {
  using P = arith::CmpIPredicate;
  unsigned bits = type.getIntOrFloatBitWidth();
  Value byZero = compare(P::eq, y, integer(0, type)), safe = y;
  if (isSigned) {
    Value least = integer(APInt::getSignedMinValue(bits), type);
    Value overflow =
        make<arith::AndIOp>(compare(P::eq, x, least), compare(P::eq, y, integer(-1, type)));
    safe = select(overflow, integer(1, type), safe);
  }
  safe = select(byZero, integer(1, type), safe);
  if (remainder) {
    Value rest = isSigned ? make<arith::RemSIOp>(x, safe) : make<arith::RemUIOp>(x, safe);
    return select(byZero, x, rest);
  }
  Value quotient = isSigned ? make<arith::DivSIOp>(x, safe) : make<arith::DivUIOp>(x, safe);
  return select(byZero, integer(-1, type), quotient);
}

/// A shift by as many bits as there are, or more, leaves zeros or signs.
Value Scalars::shift(StringRef name, Value x, Value y) {
  unsigned bits = type.getIntOrFloatBitWidth();
  Value inside = compare(arith::CmpIPredicate::ult, y, integer(APInt(bits, bits), type));
  if (name == "shift-right-arithmetic")
    return make<arith::ShRSIOp>(x, select(inside, y, integer(APInt(bits, bits - 1), type)));
  Value zero = integer(0, type), by = select(inside, y, zero);
  Value shifted = name == "shift-left" ? make<arith::ShLIOp>(x, by) : make<arith::ShRUIOp>(x, by);
  return select(inside, shifted, zero);
}

/// Towards zero; a NaN is 0, what is out of range the nearest number in it.
Value Scalars::toInteger(Value x, Element to) {
  using P = arith::CmpFPredicate;
  Type result = typeOf(to, b.getContext());
  bool isSigned = to.kind == Element::Signed;
  if (cast<FloatType>(x.getType()).getWidth() < 32)
    x = make<arith::ExtFOp>(b.getF32Type(), x);
  double end = std::ldexp(1.0, int(to.bits) - (isSigned ? 1 : 0));
  Value high = floating(end, x.getType()), low = floating(isSigned ? -end : 0.0, x.getType());
  Value tooHigh = compare(P::OGE, x, high), tooLow = compare(P::OLT, x, low);
  Value number = compare(P::ORD, x, x);
  Value inside = make<arith::AndIOp>(
      number, make<arith::AndIOp>(compare(P::ULT, x, high), compare(P::UGE, x, low)));
  Value safe = select(inside, x, floating(0.0, x.getType()));
  Value converted =
      isSigned ? make<arith::FPToSIOp>(result, safe) : make<arith::FPToUIOp>(result, safe);
  APInt most = isSigned ? APInt::getSignedMaxValue(to.bits) : APInt::getMaxValue(to.bits);
  APInt least = isSigned ? APInt::getSignedMinValue(to.bits) : APInt(to.bits, 0);
  return select(tooHigh, integer(most, result), select(tooLow, integer(least, result), converted));
}

Value Scalars::convert(Value x, Element from, Element to) {
  if (from == to)
    return x;
  Type result = typeOf(to, b.getContext());
  bool fromFloat = from.kind == Element::Float, toFloat = to.kind == Element::Float;
  if (to.kind == Element::Predicate) {
    if (fromFloat)
      return compare(arith::CmpFPredicate::UNE, x, floating(0.0, x.getType()));
    return compare(arith::CmpIPredicate::ne, x, integer(0, x.getType()));
  }
  if (fromFloat && toFloat) {
    if (from.bits < to.bits)
      return make<arith::ExtFOp>(result, x);
    if (from.bits > to.bits)
      return make<arith::TruncFOp>(result, x);
    return make<arith::TruncFOp>(result, make<arith::ExtFOp>(b.getF32Type(), x));
  }
  if (fromFloat)
    return toInteger(x, to);
  if (toFloat)
    return from.kind == Element::Signed ? make<arith::SIToFPOp>(result, x)
                                        : make<arith::UIToFPOp>(result, x);
  unsigned bits = x.getType().getIntOrFloatBitWidth();
  if (bits == to.bits)
    return x;
  if (bits > to.bits)
    return make<arith::TruncIOp>(result, x);
  return from.kind == Element::Signed ? make<arith::ExtSIOp>(result, x)
                                      : make<arith::ExtUIOp>(result, x);
}

Value Scalars::sign(Value x, Element element) {
  if (element.kind == Element::Float) {
    using P = arith::CmpFPredicate;
    Value zeroOrNan = compare(P::UEQ, x, floating(0.0, type));
    return select(zeroOrNan, x, make<math::CopySignOp>(floating(1.0, type), x));
  }
  using P = arith::CmpIPredicate;
  Value zero = integer(0, type);
  Value positive = select(compare(P::eq, x, zero), zero, integer(1, type));
  if (element.kind == Element::Unsigned)
    return positive;
  return select(compare(P::slt, x, zero), integer(-1, type), positive);
}

Value Scalars::compareOp(const Instruction &op, Value x, Value y, Element element) {
  StringRef direction = op.find("direction").value_or("");
  int which = llvm::StringSwitch<int>(direction)
                  .Case("EQ", 0)
                  .Case("NE", 1)
                  .Case("LT", 2)
                  .Case("LE", 3)
                  .Case("GT", 4)
                  .Case("GE", 5)
                  .Default(-1);
  if (which < 0)
    return Value();
  if (element.kind == Element::Float) {
    using P = arith::CmpFPredicate;
    if (op.find("type").value_or("FLOAT") != "FLOAT")
      return Value(); // a total order
    constexpr P predicates[] = {P::OEQ, P::UNE, P::OLT, P::OLE, P::OGT, P::OGE};
    return compare(predicates[which], x, y);
  }
  using P = arith::CmpIPredicate;
  constexpr P asSigned[] = {P::eq, P::ne, P::slt, P::sle, P::sgt, P::sge};
  constexpr P asUnsigned[] = {P::eq, P::ne, P::ult, P::ule, P::ugt, P::uge};
  return compare(element.kind == Element::Signed ? asSigned[which] : asUnsigned[which], x, y);
}

Value Scalars::unary(StringRef name, Value x, Element element) {
  if (name == "copy")
    return x;
  if (name == "sign" && element.kind != Element::Predicate)
    return sign(x, element);
  if (element.kind != Element::Float) {
    if (name == "not")
      return make<arith::XOrIOp>(x, integer(-1, type));
    if (element.kind == Element::Predicate)
      return Value();
    if (name == "negate")
      return make<arith::SubIOp>(integer(0, type), x);
    if (name == "abs") {
      if (element.kind == Element::Unsigned)
        return x;
      return select(compare(arith::CmpIPredicate::slt, x, integer(0, type)),
                    make<arith::SubIOp>(integer(0, type), x), x);
    }
    if (name == "popcnt")
      return make<math::CtPopOp>(x);
    if (name == "count-leading-zeros")
      return make<math::CountLeadingZerosOp>(x);
    return Value();
  }
  if (name == "logistic") {
    Value one = floating(1.0, type);
    Value e = make<math::ExpOp>(make<arith::NegFOp>(x));
    return make<arith::DivFOp>(one, make<arith::AddFOp>(one, e));
  }
  if (name == "is-finite") {
    Value size = make<math::AbsFOp>(x);
    Value infinity = floating(std::numeric_limits<double>::infinity(), type);
    return compare(arith::CmpFPredicate::OLT, size, infinity);
  }
  using Make = Value (*)(Scalars &, Value);
  auto make =
      llvm::StringSwitch<Make>(name)
#define NCCLX_UNARY(NAME, OP)                                                                      \
  .Case(NAME, [](Scalars &s, Value x) -> Value { return s.make<OP>(x); })
          NCCLX_UNARY("abs", math::AbsFOp) NCCLX_UNARY("negate", arith::NegFOp) NCCLX_UNARY(
              "exponential", math::ExpOp) NCCLX_UNARY("exponential-minus-one", math::ExpM1Op)
              NCCLX_UNARY("log", math::LogOp) NCCLX_UNARY("log-plus-one", math::Log1pOp)
                  NCCLX_UNARY("sine", math::SinOp) NCCLX_UNARY("cosine", math::CosOp)
                      NCCLX_UNARY("tan", math::TanOp) NCCLX_UNARY("tanh", math::TanhOp)
                          NCCLX_UNARY("erf", math::ErfOp) NCCLX_UNARY("sqrt", math::SqrtOp)
                              NCCLX_UNARY("rsqrt", math::RsqrtOp) NCCLX_UNARY("cbrt", math::CbrtOp)
                                  NCCLX_UNARY("floor", math::FloorOp)
                                      NCCLX_UNARY("ceil", math::CeilOp)
                                          NCCLX_UNARY("round-nearest-afz", math::RoundOp)
                                              NCCLX_UNARY("round-nearest-even", math::RoundEvenOp)
#undef NCCLX_UNARY
                                                  .Default(nullptr);
  return make ? make(*this, x) : Value();
}

Value Scalars::binary(StringRef name, Value x, Value y, Element element) {
  if (name.starts_with("shift-"))
    return element.kind == Element::Float || element.kind == Element::Predicate ? Value()
                                                                                : shift(name, x, y);
  if (element.kind == Element::Float) {
    using Make = Value (*)(Scalars &, Value, Value);
    auto make = llvm::StringSwitch<Make>(name)
#define NCCLX_BINARY(NAME, OP)                                                                     \
  .Case(NAME, [](Scalars &s, Value x, Value y) -> Value { return s.make<OP>(x, y); })
                    NCCLX_BINARY("add", arith::AddFOp) NCCLX_BINARY("subtract", arith::SubFOp)
                        NCCLX_BINARY("multiply", arith::MulFOp)
                            NCCLX_BINARY("divide", arith::DivFOp)
                                NCCLX_BINARY("remainder", arith::RemFOp)
                                    NCCLX_BINARY("maximum", arith::MaximumFOp)
                                        NCCLX_BINARY("minimum", arith::MinimumFOp)
                                            NCCLX_BINARY("power", math::PowFOp)
                                                NCCLX_BINARY("atan2", math::Atan2Op)
#undef NCCLX_BINARY
                                                    .Default(nullptr);
    return make ? make(*this, x, y) : Value();
  }
  bool isSigned = element.kind == Element::Signed, predicate = element.kind == Element::Predicate;
  if (name == "and" || (predicate && (name == "multiply" || name == "minimum")))
    return make<arith::AndIOp>(x, y);
  if (name == "or" || (predicate && (name == "add" || name == "maximum")))
    return make<arith::OrIOp>(x, y);
  if (name == "xor")
    return make<arith::XOrIOp>(x, y);
  if (predicate)
    return Value();
  if (name == "add")
    return make<arith::AddIOp>(x, y);
  if (name == "subtract")
    return make<arith::SubIOp>(x, y);
  if (name == "multiply")
    return make<arith::MulIOp>(x, y);
  if (name == "divide" || name == "remainder")
    return divide(x, y, isSigned, name == "remainder");
  if (name == "maximum")
    return isSigned ? make<arith::MaxSIOp>(x, y) : make<arith::MaxUIOp>(x, y);
  if (name == "minimum")
    return isSigned ? make<arith::MinSIOp>(x, y) : make<arith::MinUIOp>(x, y);
  return Value();
}

} // namespace

Value mlir::ncclx::hlo::scalarOp(OpBuilder &b, Location loc, const Instruction &op,
                                 llvm::ArrayRef<Element> elements, ValueRange operands) {
  Element to = op.shape.element;
  if (elements.empty() || to.kind == Element::Complex ||
      llvm::any_of(elements, [](Element e) { return e.kind == Element::Complex; }))
    return Value();
  Scalars s{b, loc, operands[0].getType()};
  StringRef name = op.opcode;
  size_t count = operands.size();
  if (name == "select")
    return count == 3 && elements[0].kind == Element::Predicate && elements[1] == to &&
                   elements[2] == to
               ? s.select(operands[0], operands[1], operands[2])
               : Value();
  if (name == "convert")
    return count == 1 ? s.convert(operands[0], elements[0], to) : Value();
  if (name == "bitcast-convert") {
    Type type = typeOf(to, b.getContext());
    if (count != 1 || elements[0].bits != to.bits || elements[0].kind == Element::Predicate ||
        to.kind == Element::Predicate)
      return Value();
    return type == s.type ? operands[0] : s.make<arith::BitcastOp>(type, operands[0]);
  }
  if (llvm::any_of(elements, [&](Element e) { return !(e == elements[0]); }))
    return Value();
  if (name == "compare")
    return count == 2 && to.kind == Element::Predicate
               ? s.compareOp(op, operands[0], operands[1], elements[0])
               : Value();
  bool sameType = elements[0] == to || name == "is-finite";
  if (!sameType || (name == "is-finite" && to.kind != Element::Predicate))
    return Value();
  if (name == "clamp" && count == 3) {
    s.type = operands[1].getType();
    Value low = s.binary("maximum", operands[0], operands[1], to);
    return low ? s.binary("minimum", low, operands[2], to) : Value();
  }
  if (count == 1)
    return s.unary(name, operands[0], elements[0]);
  return count == 2 ? s.binary(name, operands[0], operands[1], elements[0]) : Value();
}

DenseElementsAttr mlir::ncclx::hlo::literalOf(const Instruction &op, MLIRContext *context,
                                              std::string &wrong) {
  Element element = op.shape.element;
  RankedTensorType type = typeOf(op.shape, context);
  if (element.kind == Element::Complex || op.literal.contains("..."))
    return {};
  SmallVector<Attribute> values;
  auto separator = [](char c) { return c == '{' || c == '}' || c == ',' || llvm::isSpace(c); };
  auto bad = [&](StringRef word) {
    wrong = ("'" + word.take_front(40) + "' is no " + element.name).str();
    return DenseElementsAttr();
  };
  for (StringRef rest = op.literal;;) {
    while (!rest.empty() && (separator(rest.front()) || rest.starts_with("/*")))
      rest = rest.starts_with("/*") ? rest.split("*/").second : rest.drop_front();
    if (rest.empty())
      break;
    StringRef word = rest.take_until(separator);
    rest = rest.drop_front(word.size());
    if (element.kind == Element::Predicate) {
      if (word != "true" && word != "false" && word != "0" && word != "1")
        return bad(word);
      values.push_back(BoolAttr::get(context, word == "true" || word == "1"));
    } else if (element.kind == Element::Float) {
      auto semantics = &cast<FloatType>(type.getElementType()).getFloatSemantics();
      llvm::APFloat value(llvm::APFloat::IEEEdouble());
      StringRef size = word;
      bool negative = size.consume_front("-");
      if (size.starts_with("nan")) {
        value = llvm::APFloat::getNaN(llvm::APFloat::IEEEdouble(), negative);
      } else {
        auto status = value.convertFromString(word, llvm::APFloat::rmNearestTiesToEven);
        if (!status) {
          llvm::consumeError(status.takeError());
          return bad(word);
        }
      }
      bool inexact;
      value.convert(*semantics, llvm::APFloat::rmNearestTiesToEven, &inexact);
      values.push_back(FloatAttr::get(type.getElementType(), value));
    } else {
      APInt value;
      StringRef digits = word;
      bool negative = digits.consume_front("-");
      if (digits.getAsInteger(10, value) || value.getActiveBits() > element.bits ||
          (negative && element.kind == Element::Unsigned))
        return bad(word);
      value = value.zextOrTrunc(element.bits);
      if (negative)
        value.negate();
      values.push_back(IntegerAttr::get(type.getElementType(), value));
    }
  }
  if (int64_t(values.size()) != op.shape.elements()) {
    wrong = llvm::formatv("has {0} elements, its shape {1}", values.size(), op.shape.elements());
    return {};
  }
  return DenseElementsAttr::get(type, values);
}

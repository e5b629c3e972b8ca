//===- Quantity.cpp -------------------------------------------------------===//
#include "Quantity.h"

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

std::optional<Rational> topology::parseQuantity(llvm::StringRef text, llvm::StringRef unit) {
  auto [number, suffix] = text.trim().split(' ');
  Rational factor = 1;
  suffix = suffix.trim();
  if (!suffix.empty()) {
    if (!suffix.consume_back(unit) || suffix.size() > 1)
      return std::nullopt;
    size_t power = llvm::StringRef("kMGTP").find(suffix);
    if (!suffix.empty() && power == llvm::StringRef::npos)
      return std::nullopt;
    for (size_t i = 0; !suffix.empty() && i <= power; ++i)
      factor = factor * Rational(1000);
  }
  std::optional<Rational> value = Rational::parse(number);
  if (!value)
    return std::nullopt;
  Rational result = *value * factor;
  return result.isValid() ? std::optional<Rational>(result) : std::nullopt;
}

std::string topology::formatQuantity(const Rational &value, llvm::StringRef unit) {
  // In G with at most nine decimals, exactly the whole numbers of the base unit.
  if (value.isValid() && value.denominator() == 1 && value >= Rational(0)) {
    constexpr int64_t giga = 1'000'000'000;
    Rational whole = Rational::make(value.numerator() / giga, 1);
    auto rest = int64_t(value.numerator() % giga);
    std::string text = whole.str();
    if (rest != 0) {
      std::string decimals = std::to_string(rest + giga).substr(1);
      text += "." + decimals.substr(0, decimals.find_last_not_of('0') + 1);
    }
    return text + " G" + unit.str();
  }
  return value.str() + " " + unit.str();
}

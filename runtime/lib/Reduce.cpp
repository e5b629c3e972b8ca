//===- Reduce.cpp - Reductions in a fixed order ---------------------------===//
//
// Works block by block: each operand's block is converted to the accumulation type and combined
// with the accumulator in the operands' order; then the block is rounded and stored. All operands
// of a block are read before it is stored, so that the destination may be one of them. Compiled
// without contraction and without fast-math.
//
//===----------------------------------------------------------------------===//
#include "Reduce.h"
#include "Floats.h"

#include <algorithm>
#include <type_traits>

using namespace ncclxrt;

static constexpr int64_t blockElements = 1024;

int64_t ncclxrt::sizeOf(int64_t dtype) {
  switch (dtype) {
  case ncclxrtE4m3:
  case ncclxrtE5m2:
  case ncclxrtI8:
  case ncclxrtU8:
    return 1;
  case ncclxrtBf16:
  case ncclxrtF16:
  case ncclxrtI16:
  case ncclxrtU16:
    return 2;
  case ncclxrtF32:
  case ncclxrtI32:
  case ncclxrtU32:
    return 4;
  case ncclxrtF64:
  case ncclxrtI64:
  case ncclxrtU64:
    return 8;
  default:
    return 0;
  }
}

namespace {
enum class Kind { Float, Signed, Unsigned };
} // namespace

static Kind kindOf(int64_t dtype) {
  switch (dtype) {
  case ncclxrtI8:
  case ncclxrtI16:
  case ncclxrtI32:
  case ncclxrtI64:
    return Kind::Signed;
  case ncclxrtU8:
  case ncclxrtU16:
  case ncclxrtU32:
  case ncclxrtU64:
    return Kind::Unsigned;
  default:
    return Kind::Float;
  }
}

bool ncclxrt::isFloat(int64_t dtype) { return sizeOf(dtype) && kindOf(dtype) == Kind::Float; }

bool ncclxrt::accumulates(int64_t dtype, int64_t acc) {
  if (!sizeOf(dtype) || !sizeOf(acc))
    return false;
  return dtype == acc || (kindOf(dtype) == kindOf(acc) && sizeOf(acc) > sizeOf(dtype));
}

namespace {

template <typename T>
constexpr bool isNarrow = std::is_same_v<T, Bf16> || std::is_same_v<T, F16> ||
                          std::is_same_v<T, E4m3> || std::is_same_v<T, E5m2>;

/// The accumulator is held in a native type; a narrow accumulation type is a float that is rounded
/// after each operation, which is exact for one operation (24 >= 2 * 11 + 2 bits).
template <typename T> using Native = std::conditional_t<isNarrow<T>, float, T>;

/// To, for a value of From: rounds at most once.
template <typename To, typename From> To convert(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<To, Bf16> && !std::is_same_v<From, double>)
    return Bf16::from(float(value));
  else if constexpr (isNarrow<To>)
    return To::from(double(value));
  else if constexpr (isNarrow<From>)
    return To(float(value));
  else
    return To(value);
}

/// Rounded to the accumulation type, and held in its native type.
template <typename Acc, typename From> Native<Acc> widen(From value) {
  return Native<Acc>(convert<Acc>(value));
}

template <ncclxrtReduceKind_t kind, typename T> T combine(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (kind == ncclxrtReduceSum)
      return T(uint64_t(a) + uint64_t(b));
    else if constexpr (kind == ncclxrtReduceProd)
      return T(uint64_t(a) * uint64_t(b));
    else
      return kind == ncclxrtReduceMin ? std::min(a, b) : std::max(a, b);
  } else if constexpr (kind == ncclxrtReduceSum) {
    return a + b;
  } else if constexpr (kind == ncclxrtReduceProd) {
    return a * b;
  } else {
    using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr bool min = kind == ncclxrtReduceMin;
    T smaller = (min ? a < b : a > b) ? a : b;
    // Equal operands are the same bits, or zeros of different sign.
    U x = std::bit_cast<U>(a), y = std::bit_cast<U>(b);
    T same = std::bit_cast<T>(min ? x | y : x & y);
    T result = a == b ? same : smaller;
    return a != a || b != b ? a + b : result;
  }
}

/// Where the `n` elements from element `first` lie in a row; gathered into `buffer` where they do
/// not.
template <typename T>
const T *view(const Placed &operand, int64_t shift, int64_t first, int64_t n, T *buffer) {
  const Range &r = operand.range;
  int64_t at = first * int64_t(sizeof(T)), want = n * int64_t(sizeof(T));
  int64_t row = r.rows == 1 ? 0 : at / r.rowBytes, within = at - row * r.rowBytes;
  const std::byte *data = operand.base + r.offset + shift + row * r.stride + within;
  if (within + want <= r.rowBytes && reinterpret_cast<uintptr_t>(data) % alignof(T) == 0)
    return reinterpret_cast<const T *>(data);
  auto *out = reinterpret_cast<std::byte *>(buffer);
  while (want > 0) {
    int64_t piece = std::min(want, r.rowBytes - within);
    std::memcpy(out, data, size_t(piece));
    out += piece;
    want -= piece;
    data += r.stride - within;
    within = 0;
  }
  return buffer;
}

template <typename T> void scatter(const Placed &dst, int64_t first, int64_t n, const T *values) {
  const Range &r = dst.range;
  int64_t at = first * int64_t(sizeof(T)), left = n * int64_t(sizeof(T));
  int64_t row = r.rows == 1 ? 0 : at / r.rowBytes, within = at - row * r.rowBytes;
  std::byte *data = dst.base + r.offset + row * r.stride + within;
  auto *from = reinterpret_cast<const std::byte *>(values);
  while (left > 0) {
    int64_t piece = std::min(left, r.rowBytes - within);
    std::memmove(data, from, size_t(piece));
    from += piece;
    left -= piece;
    data += r.stride - within;
    within = 0;
  }
}

template <ncclxrtReduceKind_t kind, typename Acc>
void combineAll(Native<Acc> *total, const Native<Acc> *x, int64_t n) {
  for (int64_t k = 0; k < n; ++k)
    total[k] = widen<Acc>(combine<kind>(total[k], x[k]));
}

template <typename Acc>
void combineBlock(ncclxrtReduceKind_t kind, Native<Acc> *total, const Native<Acc> *x, int64_t n) {
  switch (kind) {
  case ncclxrtReduceSum:
    return combineAll<ncclxrtReduceSum, Acc>(total, x, n);
  case ncclxrtReduceMin:
    return combineAll<ncclxrtReduceMin, Acc>(total, x, n);
  case ncclxrtReduceMax:
    return combineAll<ncclxrtReduceMax, Acc>(total, x, n);
  case ncclxrtReduceProd:
    return combineAll<ncclxrtReduceProd, Acc>(total, x, n);
  }
}

template <typename Acc> void scaleBlock(Native<Acc> *values, int64_t n, double scale) {
  if constexpr (!std::is_integral_v<Acc>) {
    Native<Acc> factor = widen<Acc>(scale);
    for (int64_t k = 0; k < n; ++k)
      values[k] = widen<Acc>(values[k] * factor);
  }
}

template <typename Acc> void divideBlock(Native<Acc> *values, int64_t n, int64_t divisor) {
  for (int64_t k = 0; k < n; ++k) {
    if constexpr (std::is_unsigned_v<Acc>)
      values[k] = Acc(values[k] / uint64_t(divisor));
    else if constexpr (std::is_integral_v<Acc>)
      values[k] = Acc(int64_t(values[k]) / divisor);
    else
      values[k] = widen<Acc>(double(values[k]) / double(divisor));
  }
}

/// Sources of the accumulation type itself, neither scaled nor divided: combined where they lie,
/// the last of them straight into the destination.
template <ncclxrtReduceKind_t kind, typename T>
void runPlain(const Placed &dst, const Placed &a, int64_t count, int64_t step, Further more) {
  int64_t elements = dst.range.bytes() / int64_t(sizeof(T)), sources = count + int64_t(more.size());
  T buffers[2][blockElements], total[blockElements];
  for (int64_t first = 0; first < elements; first += blockElements) {
    int64_t n = std::min(blockElements, elements - first);
    auto source = [&](int64_t i, T *buffer) {
      return i < count ? view(a, i * step, first, n, buffer)
                       : view(more[size_t(i - count)], 0, first, n, buffer);
    };
    const T *x = source(0, buffers[0]);
    std::byte *place = dst.base + dst.range.offset;
    bool inPlace = dst.range.rows == 1 && reinterpret_cast<uintptr_t>(place) % alignof(T) == 0;
    T *direct = inPlace ? reinterpret_cast<T *>(place) + first : nullptr;
    for (int64_t i = 1; i < sources; ++i) {
      const T *y = source(i, buffers[1]);
      // Whatever of them lies in the destination lies there at the same element.
      T *to = i + 1 == sources && direct ? direct : total;
#pragma clang loop vectorize(assume_safety)
      for (int64_t k = 0; k < n; ++k)
        to[k] = combine<kind>(x[k], y[k]);
      x = to;
    }
    if (sources == 1 || !direct)
      scatter(dst, first, n, x);
  }
}

template <typename T>
void runPlain(ncclxrtReduceKind_t kind, const Placed &dst, const Placed &a, int64_t count,
              int64_t step, Further more) {
  switch (kind) {
  case ncclxrtReduceSum:
    return runPlain<ncclxrtReduceSum, T>(dst, a, count, step, more);
  case ncclxrtReduceMin:
    return runPlain<ncclxrtReduceMin, T>(dst, a, count, step, more);
  case ncclxrtReduceMax:
    return runPlain<ncclxrtReduceMax, T>(dst, a, count, step, more);
  case ncclxrtReduceProd:
    return runPlain<ncclxrtReduceProd, T>(dst, a, count, step, more);
  }
}

template <typename T, typename Acc>
void run(const Reduction &reduction, const Placed &dst, const Placed &a, int64_t count,
         int64_t step, Further more) {
  if constexpr (std::is_same_v<T, Acc> && std::is_same_v<Native<Acc>, T>)
    if (reduction.scale == 1 && reduction.divisor == 1 && count + int64_t(more.size()) > 0)
      return runPlain<T>(reduction.kind, dst, a, count, step, more);
  using Held = Native<Acc>;
  int64_t elements = dst.range.bytes() / int64_t(sizeof(T)), sources = count + int64_t(more.size());
  T buffer[blockElements];
  Held total[blockElements], other[blockElements];
  for (int64_t first = 0; first < elements; first += blockElements) {
    int64_t n = std::min(blockElements, elements - first);
    for (int64_t i = 0; i < sources; ++i) {
      const T *x = i < count ? view(a, i * step, first, n, buffer)
                             : view(more[size_t(i - count)], 0, first, n, buffer);
      Held *into = i ? other : total;
      for (int64_t k = 0; k < n; ++k)
        into[k] = widen<Acc>(x[k]);
      if (reduction.scale != 1)
        scaleBlock<Acc>(into, n, reduction.scale);
      if (i)
        combineBlock<Acc>(reduction.kind, total, other, n);
    }
    if (reduction.divisor != 1)
      divideBlock<Acc>(total, n, reduction.divisor);
    for (int64_t k = 0; k < n; ++k)
      buffer[k] = convert<T>(total[k]);
    scatter(dst, first, n, buffer);
  }
}

/// Calls `function` with a value of the type that `dtype` stands for.
template <typename Function> void withType(ncclxrtDtype_t dtype, Function function) {
  switch (dtype) {
  case ncclxrtF32:
    return function(float());
  case ncclxrtF64:
    return function(double());
  case ncclxrtBf16:
    return function(Bf16());
  case ncclxrtF16:
    return function(F16());
  case ncclxrtE4m3:
    return function(E4m3());
  case ncclxrtE5m2:
    return function(E5m2());
  case ncclxrtI8:
    return function(int8_t());
  case ncclxrtI16:
    return function(int16_t());
  case ncclxrtI32:
    return function(int32_t());
  case ncclxrtI64:
    return function(int64_t());
  case ncclxrtU8:
    return function(uint8_t());
  case ncclxrtU16:
    return function(uint16_t());
  case ncclxrtU32:
    return function(uint32_t());
  case ncclxrtU64:
    return function(uint64_t());
  }
}

/// accumulates(), of types.
template <typename T, typename Acc>
constexpr bool accumulatesIn =
    std::is_same_v<T, Acc> ||
    (sizeof(Acc) > sizeof(T) && std::is_integral_v<T> == std::is_integral_v<Acc> &&
     std::is_unsigned_v<T> == std::is_unsigned_v<Acc>);

} // namespace

void ncclxrt::reduceRanges(const Reduction &reduction, const Placed &dst, const Placed &a,
                           int64_t count, int64_t step, Further more) {
  if (dst.range.bytes() == 0)
    return;
  withType(reduction.dtype, [&](auto element) {
    withType(reduction.acc, [&](auto acc) {
      if constexpr (accumulatesIn<decltype(element), decltype(acc)>)
        run<decltype(element), decltype(acc)>(reduction, dst, a, count, step, more);
    });
  });
}

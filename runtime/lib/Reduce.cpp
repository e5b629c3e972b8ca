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
  case ncclxrtF32:
  case ncclxrtI32:
    return 4;
  case ncclxrtF64:
  case ncclxrtI64:
    return 8;
  case ncclxrtBf16:
  case ncclxrtF16:
    return 2;
  default:
    return 0;
  }
}

bool ncclxrt::accumulates(int64_t dtype, int64_t acc) {
  if (!sizeOf(dtype) || !sizeOf(acc))
    return false;
  bool isInt = dtype >= ncclxrtI32, accIsInt = acc >= ncclxrtI32;
  return isInt == accIsInt && (!isInt || sizeOf(acc) >= sizeOf(dtype));
}

namespace {

/// The accumulator is held in a native type; a 16-bit accumulation type is a float that is rounded
/// after each operation, which is exact for one operation (24 >= 2 * 11 + 2 bits).
template <typename T> struct Native {
  using Type = T;
};
template <> struct Native<Bf16> {
  using Type = float;
};
template <> struct Native<F16> {
  using Type = float;
};

/// To, for a value of From: rounds at most once.
template <typename To, typename From> To convert(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<To, Bf16>) {
    if constexpr (std::is_same_v<From, double>)
      return Bf16::from(value);
    else
      return Bf16::from(float(value));
  } else if constexpr (std::is_same_v<To, F16>) {
    if constexpr (std::is_same_v<From, double>)
      return F16::from(value);
    else
      return F16::from(double(float(value)));
  } else if constexpr (std::is_same_v<From, Bf16> || std::is_same_v<From, F16>)
    return To(float(value));
  else
    return To(value);
}

/// To the accumulation type, and there held in its native type.
template <typename Acc, typename From> typename Native<Acc>::Type widen(From value) {
  return typename Native<Acc>::Type(convert<Acc>(value));
}

template <ncclxrtReduceKind_t kind, typename T> T combine(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if constexpr (kind == ncclxrtReduceSum)
      return T(U(a) + U(b));
    else
      return kind == ncclxrtReduceMin ? std::min(a, b) : std::max(a, b);
  } else if constexpr (kind == ncclxrtReduceSum) {
    return a + b;
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
  int64_t row = at / r.rowBytes, within = at % r.rowBytes;
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
  int64_t row = at / r.rowBytes, within = at % r.rowBytes;
  std::byte *data = dst.base + r.offset + row * r.stride + within;
  auto *from = reinterpret_cast<const std::byte *>(values);
  while (left > 0) {
    int64_t piece = std::min(left, r.rowBytes - within);
    std::memcpy(data, from, size_t(piece));
    from += piece;
    left -= piece;
    data += r.stride - within;
    within = 0;
  }
}

template <ncclxrtReduceKind_t kind, typename T, typename Acc>
void run(const Placed &dst, const Placed &a, int64_t count, int64_t step, const Placed *b) {
  using Held = typename Native<Acc>::Type;
  int64_t elements = dst.range.bytes() / int64_t(sizeof(T));
  T buffer[blockElements];
  Held total[blockElements];
  for (int64_t first = 0; first < elements; first += blockElements) {
    int64_t n = std::min(blockElements, elements - first);
    for (int64_t i = 0; i < count + (b ? 1 : 0); ++i) {
      const T *x = i < count ? view(a, i * step, first, n, buffer) : view(*b, 0, first, n, buffer);
      if (i == 0)
        for (int64_t k = 0; k < n; ++k)
          total[k] = widen<Acc>(x[k]);
      else
        for (int64_t k = 0; k < n; ++k)
          total[k] = widen<Acc>(combine<kind>(total[k], widen<Acc>(x[k])));
    }
    for (int64_t k = 0; k < n; ++k)
      buffer[k] = convert<T>(total[k]);
    scatter(dst, first, n, buffer);
  }
}

template <typename T, typename Acc, typename... Args>
void withKind(ncclxrtReduceKind_t kind, Args &&...args) {
  switch (kind) {
  case ncclxrtReduceSum:
    return run<ncclxrtReduceSum, T, Acc>(args...);
  case ncclxrtReduceMin:
    return run<ncclxrtReduceMin, T, Acc>(args...);
  case ncclxrtReduceMax:
    return run<ncclxrtReduceMax, T, Acc>(args...);
  }
}

template <typename T, typename... Args> void withFloat(ncclxrtDtype_t acc, Args &&...args) {
  switch (acc) {
  case ncclxrtF32:
    return withKind<T, float>(args...);
  case ncclxrtF64:
    return withKind<T, double>(args...);
  case ncclxrtBf16:
    return withKind<T, Bf16>(args...);
  case ncclxrtF16:
    return withKind<T, F16>(args...);
  default:
    return;
  }
}

} // namespace

void ncclxrt::reduceRanges(ncclxrtReduceKind_t kind, ncclxrtDtype_t dtype, ncclxrtDtype_t acc,
                           const Placed &dst, const Placed &a, int64_t count, int64_t step,
                           const Placed *b) {
  if (dst.range.bytes() == 0)
    return;
  switch (dtype) {
  case ncclxrtF32:
    return withFloat<float>(acc, kind, dst, a, count, step, b);
  case ncclxrtF64:
    return withFloat<double>(acc, kind, dst, a, count, step, b);
  case ncclxrtBf16:
    return withFloat<Bf16>(acc, kind, dst, a, count, step, b);
  case ncclxrtF16:
    return withFloat<F16>(acc, kind, dst, a, count, step, b);
  case ncclxrtI32:
    if (acc == ncclxrtI32)
      return withKind<int32_t, int32_t>(kind, dst, a, count, step, b);
    return withKind<int32_t, int64_t>(kind, dst, a, count, step, b);
  case ncclxrtI64:
    return withKind<int64_t, int64_t>(kind, dst, a, count, step, b);
  }
}

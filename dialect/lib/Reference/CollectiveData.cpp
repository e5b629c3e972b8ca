//===- CollectiveData.cpp - What a collective does to bytes ---------------===//
#include "CollectiveData.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

using namespace mlir::ncclx::reference;

namespace {

/// f32 to the nearest bf16, ties to even; NaN stays one.
uint16_t roundToBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

struct BF16 {
  uint16_t bits = 0;
  BF16() = default;
  explicit BF16(float value) : bits(roundToBF16(value)) {}
  /// By way of an f32 rounded to odd, so that the value is rounded once.
  explicit BF16(double value) {
    float nearest = static_cast<float>(value);
    double back = nearest;
    uint32_t word = std::bit_cast<uint32_t>(nearest);
    if (std::fabs(back) > std::fabs(value))
      --word;
    if (back != value && !std::isnan(value))
      word |= 1;
    bits = roundToBF16(std::bit_cast<float>(word));
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
  explicit operator double() const { return static_cast<float>(*this); }
};

/// Its own class, so that no sum is held in more digits than it has.
struct F16 {
  _Float16 value = 0;
  F16() = default;
  explicit F16(float from) : value(static_cast<_Float16>(from)) {}
  explicit F16(double from) : value(static_cast<_Float16>(from)) {}
  explicit operator float() const { return value; }
  explicit operator double() const { return value; }
};

template <typename T> constexpr bool isHalf = std::is_same_v<T, BF16> || std::is_same_v<T, F16>;

/// Element to accumulation type and back. All pairs occur in a template, few in a program.
template <typename To, typename From> To convert(From from) {
  if constexpr (std::is_same_v<To, From>)
    return from;
  else if constexpr (isHalf<From>)
    return convert<To>(static_cast<float>(from));
  else
    return static_cast<To>(from);
}

/// a op b, rounded to T. Integers wrap; min and max are IEEE 754-2019 minimum and maximum: a NaN
/// wins, and -0 < +0.
template <typename T> T combine(Reduction reduction, T a, T b) {
  if constexpr (isHalf<T>) {
    return T(combine(reduction, static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    if (reduction == Reduction::Sum)
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    return reduction == Reduction::Min ? std::min(a, b) : std::max(a, b);
  } else {
    if (reduction == Reduction::Sum)
      return a + b;
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? a : b;
    if (a == b)
      return std::signbit(a) == (reduction == Reduction::Min) ? a : b;
    return (a < b) == (reduction == Reduction::Min) ? a : b;
  }
}

int64_t product(const std::vector<int64_t> &shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i)
    result *= shape[i];
  return result;
}

/// The rows of a dimension of `size` that belong to `member` of `n`: ceil(size/n) each, until they
/// run out.
struct Rows {
  int64_t begin, end;
  Rows(int64_t size, int64_t n, int64_t member) {
    int64_t each = (size + n - 1) / n;
    begin = std::min(member * each, size);
    end = std::min(begin + each, size);
  }
};

const char *at(const void *data, int64_t bytes) { return static_cast<const char *>(data) + bytes; }
char *at(void *data, int64_t bytes) { return static_cast<char *>(data) + bytes; }

/// The elements [first, first + count) of all members' inputs, reduced from member `start` round to
/// the one before it, go to `write(index, value)`.
template <typename E, typename A, typename Write>
void reduceRange(Reduction reduction, const std::vector<const void *> &in, int64_t start,
                 int64_t first, int64_t count, Write write) {
  int64_t n = in.size();
  for (int64_t i = first; i < first + count; ++i) {
    auto value = [&](int64_t member) {
      E element;
      std::memcpy(&element, at(in[member], i * sizeof(E)), sizeof(E));
      return convert<A>(element);
    };
    A sum = value(start % n);
    for (int64_t step = 1; step < n; ++step)
      sum = combine(reduction, sum, value((start + step) % n));
    write(i, convert<E>(sum));
  }
}

template <typename E, typename A>
void reduce(const Collective &op, const std::vector<const void *> &in,
            const std::vector<void *> &out) {
  int64_t n = in.size();
  if (op.kind == Collective::AllReduce) {
    int64_t count = product(op.inShape, 0, op.inShape.size());
    // Chunk c of the ring: pieces that differ by at most one granule of 16 bytes.
    int64_t granule = 16 / sizeof(E), granules = (count + granule - 1) / granule;
    auto bound = [&](int64_t c) { return std::min(c * granules / n * granule, count); };
    auto write = [&](int64_t i, E value) {
      for (void *destination : out)
        std::memcpy(at(destination, i * sizeof(E)), &value, sizeof(E));
    };
    if (op.order == Order::Member)
      return reduceRange<E, A>(op.reduction, in, 0, 0, count, write);
    for (int64_t c = 0; c < n; ++c)
      reduceRange<E, A>(op.reduction, in, c + 1, bound(c), bound(c + 1) - bound(c), write);
    return;
  }
  int64_t outer = product(op.inShape, 0, op.dim), rows = op.inShape[op.dim];
  int64_t inner = product(op.inShape, op.dim + 1, op.inShape.size());
  for (int64_t member = 0; member < n; ++member) {
    Rows own(rows, n, member);
    int64_t start = op.order == Order::Ring ? member + 1 : 0;
    for (int64_t o = 0; o < outer; ++o) {
      int64_t first = (o * rows + own.begin) * inner, shift = o * op.outShape[op.dim] * inner;
      auto write = [&](int64_t i, E value) {
        std::memcpy(at(out[member], (i - first + shift) * sizeof(E)), &value, sizeof(E));
      };
      reduceRange<E, A>(op.reduction, in, start, first, (own.end - own.begin) * inner, write);
    }
  }
}

/// Calls `function` with a value of the C++ type of `element`.
template <typename Function> void withElement(Element element, Function function) {
  switch (element) {
  case Element::F32:
    return function(float());
  case Element::F64:
    return function(double());
  case Element::BF16:
    return function(BF16());
  case Element::F16:
    return function(F16());
  case Element::I32:
    return function(int32_t());
  case Element::I64:
    return function(int64_t());
  }
}

void allGather(const Collective &op, int64_t size, const std::vector<const void *> &in,
               const std::vector<void *> &out) {
  int64_t n = in.size(), rows = op.outShape[op.dim];
  int64_t outer = product(op.outShape, 0, op.dim);
  int64_t inner = size * product(op.outShape, op.dim + 1, op.outShape.size());
  for (int64_t from = 0; from < n; ++from) {
    Rows slice(rows, n, from);
    int64_t bytes = (slice.end - slice.begin) * inner;
    for (int64_t o = 0; o < outer && bytes > 0; ++o)
      for (void *destination : out)
        std::memcpy(at(destination, (o * rows + slice.begin) * inner),
                    at(in[from], o * op.inShape[op.dim] * inner), bytes);
  }
}

void allToAll(const Collective &op, int64_t size, const std::vector<const void *> &in,
              const std::vector<void *> &out) {
  int64_t n = in.size(), rank = op.inShape.size();
  int64_t slice = op.inShape[op.dim] / n;
  int64_t place = op.outShape[op.concat] / n;
  int64_t total = product(op.inShape, 0, rank);
  std::vector<int64_t> index(rank, 0);
  for (int64_t i = 0; i < total; ++i) {
    // Element `index` of every member goes to the member whose slice it is in.
    int64_t to = index[op.dim] / slice;
    for (int64_t from = 0; from < n; ++from) {
      std::vector<int64_t> target = index;
      target[op.dim] -= to * slice;
      target[op.concat] += from * place;
      int64_t flat = 0;
      for (int64_t d = 0; d < rank; ++d)
        flat = flat * op.outShape[d] + target[d];
      std::memcpy(at(out[to], flat * size), at(in[from], i * size), size);
    }
    for (int64_t d = rank; d-- > 0;) {
      if (++index[d] < op.inShape[d])
        break;
      index[d] = 0;
    }
  }
}

} // namespace

int64_t mlir::ncclx::reference::sizeOf(Element element) {
  int64_t size = 0;
  withElement(element, [&](auto value) { size = sizeof(value); });
  return size;
}

void Collective::execute(const std::vector<const void *> &in,
                         const std::vector<void *> &out) const {
  int64_t size = sizeOf(element);
  switch (kind) {
  case AllGather:
    return allGather(*this, size, in, out);
  case AllToAll:
    return allToAll(*this, size, in, out);
  case Permute: {
    int64_t bytes = size * product(inShape, 0, inShape.size());
    for (size_t member = 0; member < out.size() && bytes > 0; ++member) {
      if (sources[member] < 0)
        std::memset(out[member], 0, bytes);
      else
        std::memcpy(out[member], in[sources[member]], bytes);
    }
    return;
  }
  case ReduceScatter:
  case AllReduce:
    return withElement(element, [&](auto e) {
      withElement(accumulate, [&](auto a) {
        // The language allows the element type, or a wider one of its kind (reduction C1).
        using E = decltype(e);
        using A = decltype(a);
        if constexpr (std::is_same_v<E, A> ||
                      (std::is_integral_v<E> == std::is_integral_v<A> && sizeof(A) > sizeof(E)))
          reduce<E, A>(*this, in, out);
      });
    });
  }
}

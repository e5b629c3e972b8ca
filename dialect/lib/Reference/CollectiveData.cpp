//===- CollectiveData.cpp - What a collective does to bytes ---------------===//
#include "CollectiveData.h"
#include "CollectiveNumbers.h"

#include <cstring>

using namespace mlir::ncclx::reference;

namespace {

int64_t product(const std::vector<int64_t> &shape) {
  int64_t result = 1;
  for (int64_t size : shape)
    result *= size;
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
  int64_t size() const { return end - begin; }
};

const char *at(const void *data, int64_t bytes) { return static_cast<const char *>(data) + bytes; }
char *at(void *data, int64_t bytes) { return static_cast<char *>(data) + bytes; }

/// The elements of a box of a tensor in row-major order, as runs that lie together in memory.
class Runs {
public:
  Runs(const std::vector<int64_t> &shape, int64_t dim, int64_t begin, int64_t size) {
    if (dim < 0) {
      length = product(shape);
      count = length ? 1 : 0;
      return;
    }
    int64_t inner = 1;
    count = 1;
    for (size_t d = 0; d < shape.size(); ++d)
      (int64_t(d) < dim ? count : inner) *= int64_t(d) == dim ? 1 : shape[d];
    first = begin * inner;
    step = shape[dim] * inner;
    length = size * inner;
    if (!length)
      count = 0;
  }
  int64_t elements() const { return count * length; }
  /// The place in the tensor of element i of the box.
  int64_t place(int64_t i) const { return first + i / length * step + i % length; }

private:
  int64_t first = 0, step = 0, length = 0, count = 0;
};

} // namespace

int64_t mlir::ncclx::reference::sizeOf(Element element) {
  int64_t size = 0;
  withElement(element, [&](auto value) { size = sizeof(value); });
  return size;
}

bool Collective::sends(int64_t from, int64_t to) const {
  switch (route) {
  case All:
    return true;
  case FromRoot:
    return from == root;
  case ToRoot:
    return to == root;
  case Listed:
    return sources[to] == from;
  }
  return false;
}

std::string Collective::readSizes(const std::vector<const void *> &from) {
  int64_t n = from.size(), most = inShape[inCut] / n;
  sizes.clear();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int64_t rows = 0;
      if (sizeBytes == 4) {
        int32_t narrow;
        std::memcpy(&narrow, at(from[i], j * 4), 4);
        rows = narrow;
      } else {
        std::memcpy(&rows, at(from[i], j * 8), 8);
      }
      if (rows < 0 || rows > most)
        return "member " + std::to_string(i) + " sends " + std::to_string(rows) +
               " rows to member " + std::to_string(j) + ", expected 0 to " + std::to_string(most);
      sizes.push_back(rows);
    }
  return "";
}

std::string Collective::compareInputs(const std::vector<const void *> &in) const {
  std::string text;
  withElement(element, [&](auto e) {
    using E = decltype(e);
    auto valueOf = [&](size_t member) {
      E value;
      std::memcpy(&value, in[member], sizeof(E));
      if constexpr (isNarrow<E>)
        return std::to_string(static_cast<float>(value));
      else
        return std::to_string(value);
    };
    for (size_t member = 1; member < in.size() && text.empty(); ++member)
      if (std::memcmp(in[0], in[member], sizeof(E)) != 0)
        text = "rank 0 has " + valueOf(0) + ", rank " + std::to_string(member) + " has " +
               valueOf(member) + ": not the same on all ranks, as the graph assumes";
  });
  return text;
}

Collective::Box Collective::inBox(int64_t n, int64_t from, int64_t to) const {
  if (sizeBytes)
    return {inCut, to * (inShape[inCut] / n), sizes[from * n + to]};
  if (!counts.empty()) {
    int64_t begin = 0;
    for (int64_t j = 0; j < to; ++j)
      begin += counts[from * n + j];
    return {inCut, begin, counts[from * n + to]};
  }
  if (inCut >= 0) {
    Rows rows(inShape[inCut], n, to);
    return {inCut, rows.begin, rows.size()};
  }
  if (outCut >= 0) // a shard of the output, at the start of its room
    return {outCut, 0, Rows(outShape[outCut], n, from).size()};
  return {};
}

Collective::Box Collective::outBox(int64_t n, int64_t from, int64_t to) const {
  if (sizeBytes)
    return {outCut, from * (outShape[outCut] / n), sizes[from * n + to]};
  if (!counts.empty()) {
    int64_t begin = 0;
    for (int64_t i = 0; i < from; ++i)
      begin += counts[i * n + to];
    return {outCut, begin, counts[from * n + to]};
  }
  if (outCut >= 0) {
    Rows rows(outShape[outCut], n, from);
    return {outCut, rows.begin, rows.size()};
  }
  if (inCut >= 0)
    return {inCut, 0, Rows(inShape[inCut], n, to).size()};
  return {};
}

/// The members' values in the declared order, for an element that member `owner` ends with first.
template <typename A, typename Value>
static A inOrder(Reduction reduction, Order order, int64_t n, int64_t owner, Value value) {
  if (order == Order::Tree) {
    auto tree = [&](auto &self, int64_t t, int64_t d) -> A {
      if (d >= n)
        return value((owner - t + n) % n);
      A left = self(self, t, 2 * d);
      return t + d < n ? combine(reduction, left, self(self, t + d, 2 * d)) : left;
    };
    return tree(tree, 0, 1);
  }
  int64_t start = order == Order::Ring ? owner + 1 : 0;
  A total = value(start % n);
  for (int64_t step = 1; step < n; ++step)
    total = combine(reduction, total, value((start + step) % n));
  return total;
}

template <typename E, typename A>
void Collective::reduce(const std::vector<const void *> &in, const std::vector<void *> &out) const {
  int64_t n = in.size();
  auto element = [&](int64_t place, int64_t owner) {
    A total = inOrder<A>(reduction, order, n, owner, [&](int64_t member) {
      E one;
      std::memcpy(&one, at(in[member], place * sizeof(E)), sizeof(E));
      A value = convert<A>(one);
      return scale ? multiply(value, *scale) : value;
    });
    return convert<E>(reduction == Reduction::Avg ? divide(total, n) : total);
  };
  if (route == All && inCut < 0) {
    // Everybody gets the same bits. Chunk c, which is member c's first, is cut at granules of 16
    // bytes, so that chunks differ by one granule at most.
    int64_t count = product(inShape);
    int64_t granule = 16 / sizeof(E), granules = (count + granule - 1) / granule;
    auto bound = [&](int64_t c) { return std::min(c * granules / n * granule, count); };
    for (int64_t c = 0; c < n; ++c)
      for (int64_t i = bound(c); i < bound(c + 1); ++i) {
        E value = element(i, c);
        for (void *destination : out)
          std::memcpy(at(destination, i * sizeof(E)), &value, sizeof(E));
      }
    return;
  }
  for (int64_t to = 0; to < n; ++to) {
    if (!sends(to, to))
      continue;
    Box source = inBox(n, to, to), target = outBox(n, to, to);
    Runs from(inShape, source.dim, source.begin, source.size);
    Runs into(outShape, target.dim, target.begin, target.size);
    for (int64_t i = 0; i < from.elements(); ++i) {
      E value = element(from.place(i), to);
      std::memcpy(at(out[to], into.place(i) * sizeof(E)), &value, sizeof(E));
    }
  }
}

Collective::Box Collective::padding(int64_t n, int64_t member) const {
  if (inCut < 0 || outCut >= 0 || !counts.empty() || sizeBytes)
    return {0, 0, 0};
  int64_t share = outBox(n, member, member).size;
  return {inCut, share, outShape[inCut] - share};
}

void Collective::execute(const std::vector<const void *> &in, const std::vector<void *> &out,
                         uint8_t unspecified) const {
  int64_t size = sizeOf(element), n = in.size();
  for (int64_t to = 0; to < n; ++to) {
    bool gets = keeps;
    for (int64_t from = 0; from < n && !gets; ++from)
      gets = sends(from, to);
    if (int64_t bytes = size * product(outShape); (!gets || !counts.empty() || sizeBytes) && bytes)
      std::memset(out[to], 0, bytes);
    Box behind = padding(n, to);
    if (!gets || !behind.size)
      continue;
    Runs rows(outShape, behind.dim, behind.begin, behind.size);
    for (int64_t i = 0; i < rows.elements(); ++i)
      std::memset(at(out[to], rows.place(i) * size), unspecified, size);
  }
  if (combines)
    return withElement(element, [&](auto e) {
      withElement(accumulate, [&](auto a) {
        // The language allows the element type, or a wider one of its kind (reduction C1).
        using E = decltype(e);
        using A = decltype(a);
        if constexpr (std::is_same_v<E, A> ||
                      (std::is_integral_v<E> == std::is_integral_v<A> &&
                       std::is_unsigned_v<E> == std::is_unsigned_v<A> && sizeof(A) > sizeof(E)))
          reduce<E, A>(in, out);
      });
    });
  for (int64_t from = 0; from < n; ++from)
    for (int64_t to = 0; to < n; ++to) {
      if (!sends(from, to))
        continue;
      Box source = inBox(n, from, to), target = outBox(n, from, to);
      Runs read(inShape, source.dim, source.begin, source.size);
      Runs write(outShape, target.dim, target.begin, target.size);
      for (int64_t i = 0; i < read.elements(); ++i)
        std::memcpy(at(out[to], write.place(i) * size), at(in[from], read.place(i) * size), size);
    }
}

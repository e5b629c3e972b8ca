//===- Shape.h - What a plan's memory looks like ----------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_SHAPE_H
#define NCCLXRT_LIB_SHAPE_H

#include "Base.h"
#include "Range.h"

#include <functional>
#include <vector>

namespace ncclxrt {

/// A plan's own copy of its description, and where each window and slot lies in its segment. The
/// same on every rank, so that one offset names the same thing everywhere.
struct Shape {
  /// Gives the number and the shape of a plan, if it may be shared with.
  using FindPlan = std::function<const Shape *(ncclxrtPlan_t plan, int64_t &number)>;

  struct Window {
    std::string name;
    int64_t bytes; // of one generation
    int64_t generations;
    int32_t role;
    int64_t offset; // in the segment
    int64_t pitch;  // between generations
    // Of one that is another plan's: the number of that plan, its window, and where that lies.
    int64_t plan = -1, with = -1, from = 0;
    /// Makes it so; what is wrong with that, or "".
    std::string share(const ncclxrtSharing_t &sharing, const FindPlan &find);
  };
  struct Slots {
    std::string name;
    int64_t count;
    int64_t generations;
    int64_t writers; // ranks that raise one counter; 0: any number
    int64_t first;   // number of the first slot in the segment
  };
  struct Lane {
    std::string name;
    int32_t kind, index;
  };
  struct Op {
    std::string name, location;
  };

  struct Size {
    std::string name;
    int64_t value;
  };

  std::string name;
  uint64_t hash = 0;
  std::vector<Size> sizes;
  std::vector<Window> windows;
  std::vector<Slots> slots;
  std::vector<Lane> lanes;
  std::vector<Op> ops;
  int64_t traceCapacity = 0;
  int64_t slotCount = 0; // of all arrays and generations
  int64_t windowsAt = 0; // where the windows begin
  int64_t bytes = 0;     // of the segment

  /// Checks a description and lays it out.
  static Status make(const ncclxrtPlanDesc_t *desc, const FindPlan &find, Shape &shape);
  /// What is wrong with a range that a program gives, or "". `moved`: the furthest that a source
  /// moves from its offset. `unit`: pieces and offsets are multiples of it.
  std::string wrongRange(const char *what, const Where &where, bool isTarget, int64_t moved,
                         int64_t unit) const;
  /// What is wrong with the slots [index, index + count), or "".
  std::string wrongSlots(int64_t slots, int64_t index, int64_t count) const;
  /// All that ranks must agree on, one fact a line.
  std::string manifest() const;
};

/// Compares the manifests of all ranks; the error names the ranks that differ from most others and
/// the first fact in which they do.
Status compareManifests(const std::vector<std::string> &manifests);

/// Reads a struct that begins with its size. `smallest` is the size of its first version.
template <typename T>
Status readStruct(const T *source, size_t smallest, const char *what, T &target) {
  if (!source)
    return error(ncclxrtInvalidArgument, "{} is null", what);
  size_t size = source->struct_size;
  if (size < smallest || size > 4096)
    return error(ncclxrtInvalidArgument, "{} has struct_size {}, expected at least {}", what, size,
                 smallest);
  const char *bytes = reinterpret_cast<const char *>(source);
  for (size_t i = sizeof(T); i < size; ++i)
    if (bytes[i])
      return error(ncclxrtVersionMismatch, "{} sets fields that this runtime does not know", what);
  __builtin_memcpy(static_cast<void *>(&target), source, size < sizeof(T) ? size : sizeof(T));
  return {};
}

} // namespace ncclxrt

#endif // NCCLXRT_LIB_SHAPE_H

//===- Value.h - What a box holds, symbolically (S8) ---------------*- C++ -*-===//
#ifndef NCCLX_MACHINE_LIB_VALUE_H
#define NCCLX_MACHINE_LIB_VALUE_H

#include "Frame.h"

#include "llvm/ADT/IntrusiveRefCntPtr.h"

namespace mlir::ctran::machine {

/// One index of the global array that a value is a box of.
struct Component {
  int32_t axis = -1;   ///< of a relative coordinate, only with one representative; else -1
  uint32_t layout = 0; ///< how the dimension cuts; 0: not known (a label's own path)
  int64_t index = 0;

  friend bool operator==(const Component &a, const Component &b) {
    return a.index == b.index && a.axis == b.axis &&
           (a.layout == b.layout || !a.layout || !b.layout);
  }
};

/// The coordinates [start, start + length) of a cyclic axis.
struct Arc {
  uint32_t start = 0, length = 0;
  friend bool operator==(const Arc &, const Arc &) = default;
};

struct Value;
using ValueRef = llvm::IntrusiveRefCntPtr<const Value>;

/// Immutable; null stands for "never written".
struct Value : llvm::RefCountedBase<Value> {
  int64_t run = 0;
  int64_t name = 0;    ///< index into valueNames; negative: the result of a compute, its own
  uint32_t summed = 0; ///< axes over which contributions are summed, a bit each
  // What has been done to the contributions. No kind: there is one.
  std::optional<ReduceKind> kind = std::nullopt;
  std::optional<double> scale = std::nullopt;
  int64_t divide = 1;
  /// Its box may be larger: then the box's pieces are not the value's, nor is what the box is a
  /// piece of known from it.
  bool startOnly = false;
  llvm::SmallVector<Component, 3> label;
  /// Disjoint boxes of contributing ranks, one Arc per summed axis each.
  llvm::SmallVector<Arc, 2> contributors;
};

/// Does the label, apart from `run` and the contributions, agree?
bool sameLabel(const Value &a, const Value &b);
bool sameValue(const Value &a, const Value &b);
/// Have the contributions of both been through the same?
bool sameCombination(const Value &a, const Value &b);

/// Value algebra relative to one frame.
class Values {
public:
  explicit Values(const Frame &frame) : frame(frame) {}

  ValueRef child(const ValueRef &value, const Box &box, size_t depth, int64_t index) const;
  /// The same in a box that it fills, or that may be larger.
  ValueRef filling(const ValueRef &value, bool fills) const;
  /// As the rank at displacement `d` names it.
  ValueRef shift(const ValueRef &value, uint32_t d) const;
  // Null, with `why`, where the value cannot be combined so.
  ValueRef scaled(const ValueRef &value, double by, std::string &why) const;
  ValueRef combined(const ValueRef &a, const ValueRef &b, ReduceKind kind, std::string &why) const;
  ValueRef divided(const ValueRef &value, int64_t by, std::string &why) const;
  /// What a label says of `box`, executed by `me` in run `run`: Source (own contribution) or Sink.
  ValueRef of(const ValueLabel &label, const Box &box, uint32_t me, int64_t run, bool sink) const;
  /// A value of its own.
  ValueRef term(int64_t id, uint32_t me, int64_t run) const;
  std::string describe(const ValueRef &value) const;

private:
  const Frame &frame;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_VALUE_H

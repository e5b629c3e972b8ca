//===- CollectiveData.h - What a collective does to bytes ----------*- C++ -*-===//
//
// The meaning of each collective, as plain loops over the data of all members. Knows no IR and
// shares no code with any schedule, lowering or runtime: it is what they are compared with.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_REFERENCE_COLLECTIVEDATA_H
#define NCCLX_LIB_REFERENCE_COLLECTIVEDATA_H

#include <cstdint>
#include <vector>

namespace mlir::ncclx::reference {

enum class Element : uint8_t { F32, F64, BF16, F16, I32, I64 };
enum class Reduction : uint8_t { Sum, Min, Max };
enum class Order : uint8_t { Member, Ring };

int64_t sizeOf(Element element);

/// One collective over `members` ranks; buffers are row-major and dense.
struct Collective {
  enum Kind : uint8_t { AllGather, ReduceScatter, AllReduce, AllToAll, Permute } kind = AllGather;
  Element element = Element::F32;
  std::vector<int64_t> inShape, outShape;
  int64_t dim = 0, concat = 0; ///< dim: of the cut (all_to_all: split)
  Reduction reduction = Reduction::Sum;
  Element accumulate = Element::F32;
  Order order = Order::Member;
  /// permute: the member that member i receives from, or -1 for zeros.
  std::vector<int64_t> sources;

  /// in[i] and out[i] are member i's buffers. out[i] may be in[i] in an all_reduce, nowhere else.
  /// Rows of padding are left as they are.
  void execute(const std::vector<const void *> &in, const std::vector<void *> &out) const;
};

} // namespace mlir::ncclx::reference
#endif // NCCLX_LIB_REFERENCE_COLLECTIVEDATA_H

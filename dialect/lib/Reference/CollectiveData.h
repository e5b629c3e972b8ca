//===- CollectiveData.h - What a collective does to bytes ----------*- C++ -*-===//
//
// The meaning of each collective, as plain loops over the data of all members. Knows no IR and
// shares no code with any schedule, lowering or runtime: it is what they are compared with.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_REFERENCE_COLLECTIVEDATA_H
#define NCCLX_LIB_REFERENCE_COLLECTIVEDATA_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::ncclx::reference {

enum class Element : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  E4M3,
  E5M2,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64
};
enum class Reduction : uint8_t { Sum, Min, Max, Prod, Avg };
enum class Order : uint8_t { Member, Ring, Tree };

int64_t sizeOf(Element element);

/// One collective over the members of a group; buffers are row-major and dense. For each member i
/// and each j that it sends to, box (i, j) of i's input becomes box (i, j) of j's output or is
/// combined with the other members'.
struct Collective {
  enum Route : uint8_t { All, FromRoot, ToRoot, Listed } route = All;
  Element element = Element::F32;
  std::vector<int64_t> inShape, outShape;
  int64_t inCut = -1;  ///< dimension in which the input is cut among receivers, or -1
  int64_t outCut = -1; ///< dimension in which the output is cut among senders, or -1
  int64_t root = 0;
  /// Listed: the member that member i receives from, or -1.
  std::vector<int64_t> sources;
  /// Who receives nothing keeps what its output holds; else it gets zeros.
  bool keeps = false;
  /// Rows from i to j at [i * n + j], without gaps. Empty: the cuts are shards.
  std::vector<int64_t> counts;
  /// Bytes of the numbers by which a member says how many rows each gets, or 0: it says nothing.
  int64_t sizeBytes = 0;
  /// What they say, at [i * n + j]: so many rows at the start of block j of i's input, and of block
  /// i of j's output. Set by readSizes.
  std::vector<int64_t> sizes;

  /// from[i] is where member i says it. Gives what is wrong with that, or nothing.
  std::string readSizes(const std::vector<const void *> &from);

  /// Of inputs of one number: which two members differ, and what they have; empty where none do.
  std::string compareInputs(const std::vector<const void *> &in) const;

  bool combines = false;
  Reduction reduction = Reduction::Sum;
  std::optional<double> scale;
  Element accumulate = Element::F32;
  Order order = Order::Member;

  /// in[i] and out[i] are member i's buffers. out[i] may be in[i] in an all_reduce, nowhere else.
  /// Bytes of padding, which the language leaves unspecified, are `padding` in a result.
  void execute(const std::vector<const void *> &in, const std::vector<void *> &out,
               uint8_t padding = 0xff) const;

private:
  /// Rows [begin, begin + size) of a dimension; dim -1: everything.
  struct Box {
    int64_t dim = -1, begin = 0, size = 0;
  };
  bool sends(int64_t from, int64_t to) const;
  Box inBox(int64_t n, int64_t from, int64_t to) const;
  Box outBox(int64_t n, int64_t from, int64_t to) const;
  /// The rows of an output that are behind the member's share.
  Box padding(int64_t n, int64_t member) const;
  template <typename E, typename A>
  void reduce(const std::vector<const void *> &in, const std::vector<void *> &out) const;
};

} // namespace mlir::ncclx::reference
#endif // NCCLX_LIB_REFERENCE_COLLECTIVEDATA_H

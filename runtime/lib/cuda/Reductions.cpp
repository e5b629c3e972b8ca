//===- Reductions.cpp - The runtime's own kernels, as text ----------------===//
#include "Reductions.h"

#include "../Reduce.h"
#include "ncclxrt/device/serve.h"

using namespace ncclxrt;
using namespace ncclxrt::cuda;

namespace {
/// By ncclxrtDtype_t.
struct Type {
  const char *name, *text;
};
constexpr Type types[] = {
    {"f32", "float"},          {"f64", "double"},        {"bf16", "__nv_bfloat16"},
    {"f16", "__half"},         {"i32", "int32_t"},       {"i64", "int64_t"},
    {"i8", "int8_t"},          {"i16", "int16_t"},       {"u8", "uint8_t"},
    {"u16", "uint16_t"},       {"u32", "uint32_t"},      {"u64", "uint64_t"},
    {"e4m3", "__nv_fp8_e4m3"}, {"e5m2", "__nv_fp8_e5m2"}};
/// By operation.
constexpr Type operations[] = {{"sum", "Sum"},   {"min", "Min"}, {"max", "Max"},
                               {"prod", "Prod"}, {"avg", "Avg"}, {"scaled", "ScaledSum"}};
constexpr int averages = 4, scales = 5;
} // namespace

Status cuda::findReduction(const ncclxrtCudaReduction_t &wanted, std::pair<int, int> &reduction) {
  if (wanted.kind < ncclxrtReduceSum || wanted.kind > ncclxrtReduceProd || !sizeOf(wanted.dtype))
    return error(ncclxrtInvalidArgument, "reduction of kind {}, dtype {}", wanted.kind,
                 wanted.dtype);
  bool narrow = isFloat(wanted.dtype) && sizeOf(wanted.dtype) < 4;
  if (wanted.acc_dtype != (narrow ? int32_t(ncclxrtF32) : wanted.dtype))
    return error(ncclxrtUnsupported,
                 "accumulates {} in dtype {}; GPUs add floats of less than 32 bits in f32, all "
                 "else in itself",
                 types[wanted.dtype].name, wanted.acc_dtype);
  if ((wanted.scaled || wanted.divided) &&
      (wanted.kind != ncclxrtReduceSum || (wanted.scaled && wanted.divided)))
    return error(ncclxrtUnsupported,
                 "a sum is scaled or divided on a GPU, not both, and nothing else is");
  reduction = {wanted.scaled ? scales : wanted.divided ? averages : wanted.kind, wanted.dtype};
  return {};
}

std::string cuda::reductionName(std::pair<int, int> reduction) {
  return fmt::format("ncclxrt_reduce_{}_{}", operations[reduction.first].name,
                     types[reduction.second].name);
}

std::string cuda::reductionSource(const Reductions &reductions) {
  std::string source = "#include \"ncclxrt/device/serve.cuh\"\n"
                       "using namespace ncclxrt::device;\n"
                       "extern \"C\" __global__ void ncclxrt_raise(uint64_t *slot) {\n"
                       "  addRelease<Scope::System>(slot, uint64_t(1));\n}\n"
                       "extern \"C\" __global__ void ncclxrt_size(const __grid_constant__ SizeJob "
                       "job) {\n  serveSize(job);\n}\n";
  source +=
      fmt::format("extern \"C\" __global__ void __launch_bounds__({}) ncclxrt_copy_sized(const "
                  "__grid_constant__ SizedCopy job) {{\n  serveSizedCopy(job);\n}}\n",
                  device::sizedThreads);
  for (std::pair<int, int> r : reductions)
    source += fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(const "
                          "__grid_constant__ ReduceJob job) {{\n"
                          "  serveReduce<{}, ReduceOp::{}>(job);\n}}\n",
                          device::reduceThreads, reductionName(r), types[r.second].text,
                          operations[r.first].text);
  return source;
}

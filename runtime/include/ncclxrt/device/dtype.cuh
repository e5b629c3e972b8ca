//===- dtype.cuh - What reductions do with elements -------------*- C++ -*-===//
//
// Elements of 16 and 8 bits that are floats are accumulated in fp32, in the order of the ranks, and
// rounded once, to nearest even. Sums and products of integers wrap. min and max are IEEE 754-2019
// minimum and maximum: a NaN stays, and -0 is less than +0.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_DEVICE_DTYPE_CUH
#define NCCLXRT_DEVICE_DTYPE_CUH

#include "ncclxrt/device/dtype.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <type_traits>

namespace ncclxrt::device {

/// How an element is held in memory, and in what it is accumulated.
template <class T> struct Element {
  using Acc = T;
  static __device__ __forceinline__ Acc widen(T v) { return v; }
  static __device__ __forceinline__ T narrow(Acc v) { return v; }
};
template <> struct Element<__half> {
  using Acc = float;
  static __device__ __forceinline__ float widen(__half v) { return __half2float(v); }
  static __device__ __forceinline__ __half narrow(float v) { return __float2half_rn(v); }
};
template <> struct Element<__nv_bfloat16> {
  using Acc = float;
  static __device__ __forceinline__ float widen(__nv_bfloat16 v) { return __bfloat162float(v); }
  static __device__ __forceinline__ __nv_bfloat16 narrow(float v) { return __float2bfloat16_rn(v); }
};
/// Every fp8 value is an f16. What is too large for e4m3 becomes NaN, for e5m2 infinity.
template <> struct Element<__nv_fp8_e4m3> {
  using Acc = float;
  static __device__ __forceinline__ float widen(__nv_fp8_e4m3 v) {
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(v.__x, __NV_E4M3)));
  }
  static __device__ __forceinline__ __nv_fp8_e4m3 narrow(float v) {
    __nv_fp8_e4m3 r;
    r.__x = __nv_cvt_float_to_fp8(v, __NV_NOSAT, __NV_E4M3);
    return r;
  }
};
template <> struct Element<__nv_fp8_e5m2> {
  using Acc = float;
  static __device__ __forceinline__ float widen(__nv_fp8_e5m2 v) {
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(v.__x, __NV_E5M2)));
  }
  static __device__ __forceinline__ __nv_fp8_e5m2 narrow(float v) {
    __nv_fp8_e5m2 r;
    r.__x = __nv_cvt_float_to_fp8(v, __NV_NOSAT, __NV_E5M2);
    return r;
  }
};

template <ReduceOp Op, class Acc> __device__ __forceinline__ Acc combine(Acc a, Acc b) {
  constexpr bool isMin = Op == ReduceOp::Min;
  if constexpr (Op == ReduceOp::Min || Op == ReduceOp::Max) {
    if constexpr (std::is_same_v<Acc, float>) {
      float r;
      if constexpr (isMin)
        asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
      else
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
      return r;
    } else if constexpr (std::is_same_v<Acc, double>) {
      if (a != a || b != b)
        return a + b;
      return isMin ? fmin(a, b) : fmax(a, b); // min.f64 takes -0 for less than +0
    } else {
      return (isMin ? b < a : a < b) ? b : a;
    }
  } else if constexpr (std::is_same_v<Acc, float>) {
    // No contraction with what comes before: every operation rounds for itself.
    return Op == ReduceOp::Prod ? __fmul_rn(a, b) : __fadd_rn(a, b);
  } else if constexpr (std::is_same_v<Acc, double>) {
    return Op == ReduceOp::Prod ? __dmul_rn(a, b) : __dadd_rn(a, b);
  } else {
    using U = std::make_unsigned_t<Acc>;
    // The product of two 16-bit numbers would overflow an int.
    uint64_t x = U(a), y = U(b);
    return Acc(U(Op == ReduceOp::Prod ? x * y : x + y));
  }
}

/// What a reduction needs besides its operands.
struct ReduceArgs {
  double scale = 1; ///< of ScaledSum
  int64_t ranks = 1;
};

/// Words of 8 bytes, element by element: begin with the first rank's word, add the others, end.
template <class T, ReduceOp Op> class Accumulator {
  using Acc = typename Element<T>::Acc;
  static constexpr int count = 8 / sizeof(T);
  union Word {
    uint64_t bits;
    T element[count];
    __device__ Word() {}
  };
  Acc sum[count];

  static __device__ __forceinline__ Acc first(T v, const ReduceArgs &args) {
    Acc a = Element<T>::widen(v);
    if constexpr (Op == ReduceOp::ScaledSum)
      return combine<ReduceOp::Prod>(a, Acc(args.scale));
    return a;
  }

public:
  __device__ __forceinline__ void begin(uint64_t bits, const ReduceArgs &args) {
    Word w;
    w.bits = bits;
#pragma unroll
    for (int i = 0; i < count; ++i)
      sum[i] = first(w.element[i], args);
  }
  __device__ __forceinline__ void add(uint64_t bits, const ReduceArgs &args) {
    Word w;
    w.bits = bits;
#pragma unroll
    for (int i = 0; i < count; ++i)
      sum[i] = combine<Op>(sum[i], first(w.element[i], args));
  }
  __device__ __forceinline__ uint64_t end(const ReduceArgs &args) const {
    Word w;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      Acc a = sum[i];
      if constexpr (Op == ReduceOp::Avg) {
        // Ranks may be more than a small integer counts.
        if constexpr (!std::is_integral_v<Acc>)
          a = a / Acc(args.ranks);
        else if constexpr (std::is_signed_v<Acc>)
          a = Acc(int64_t(a) / args.ranks);
        else
          a = Acc(uint64_t(a) / uint64_t(args.ranks));
      }
      w.element[i] = Element<T>::narrow(a);
    }
    return w.bits;
  }
};

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_DTYPE_CUH

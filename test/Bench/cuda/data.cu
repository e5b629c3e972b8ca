// Fresh inputs whose result has one exact answer, and the kernels that check it.
#include "data.h"

#include "ncclxrt/device/dtype.cuh"

namespace bench {
using namespace ncclxrt::device;

/// A small whole number of rank, element and run: sums of 8 of them are exact in every type but the
/// 8-bit floats, whose reference rounds once, as the kernels do.
static __device__ int valueOf(int rank, int64_t i, uint64_t run, ReduceOp op) {
  uint64_t x = (uint64_t(i) * 0x9e3779b97f4a7c15ull) ^ (run * 0xd1b54a32d192ed03ull) ^
               (uint64_t(rank + 1) * 0x94d049bb133111ebull);
  x ^= x >> 31;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 29;
  return op == ReduceOp::Prod ? int(x % 3) + 1 : int(x % 5) + (op == ReduceOp::Avg ? 0 : -2);
}
template <class T> static __device__ T make(int v) {
  return Element<T>::narrow(typename Element<T>::Acc(v));
}

/// Elements of the input; of 8-bit payloads all 256 values, of 64-bit ones those that look like
/// flags.
template <class T>
__global__ void fill(T *to, int64_t n, int rank, const uint64_t *run, ReduceOp op, bool flags) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * blockDim.x)
    if constexpr (sizeof(T) == 8)
      to[i] = flags ? T(*run + i % 3) : make<T>(valueOf(rank, i, *run, op));
    else
      to[i] = make<T>(valueOf(rank, i, *run, op));
}

template <class T> static __device__ bool same(T a, T b) {
  const char *x = reinterpret_cast<const char *>(&a), *y = reinterpret_cast<const char *>(&b);
  for (unsigned i = 0; i < sizeof(T); ++i)
    if (x[i] != y[i])
      return false;
  return true;
}

/// Output element i stands for element `offset(i)` of rank source(i)'s input, or for the reduction.
template <class T>
__global__ void check(const T *out, int64_t n, Expect e, unsigned long long *bad) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * blockDim.x) {
    T want;
    if (e.reduces) {
      auto sum = typename Element<T>::Acc();
      for (int r = 0; r < e.ranks; ++r) {
        auto v = Element<T>::widen(make<T>(valueOf(r, e.first + i, *e.run, e.op)));
        if (e.op == ReduceOp::ScaledSum)
          v = v * typename Element<T>::Acc(e.scale);
        sum = r == 0                   ? v
              : e.op == ReduceOp::Prod ? sum * v
              : e.op == ReduceOp::Min  ? (v < sum ? v : sum)
              : e.op == ReduceOp::Max  ? (sum < v ? v : sum)
                                       : sum + v;
      }
      if (e.op == ReduceOp::Avg)
        sum = sum / typename Element<T>::Acc(e.ranks);
      want = Element<T>::narrow(sum);
    } else {
      int64_t source = e.source >= 0 ? e.source : i / e.piece;
      int64_t at = e.first + (e.source >= 0 ? i : i % e.piece);
      if constexpr (sizeof(T) == 8)
        want = e.flags ? T(*e.run + at % 3) : make<T>(valueOf(source, at, *e.run, e.op));
      else
        want = make<T>(valueOf(source, at, *e.run, e.op));
    }
    if (!same(want, out[i]))
      atomicAdd(bad, 1ull);
  }
}

__global__ void checkPoison(const unsigned char *at, int64_t n, unsigned long long *bad) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * blockDim.x)
    if (at[i] != poison)
      atomicAdd(bad, 1ull);
}
__global__ void nextRun(uint64_t *run) { ++*run; }
/// Late by some microseconds, another number in each run and on each rank.
__global__ void linger(const uint64_t *run, int rank, unsigned most) {
  uint64_t x = (*run * 2654435761u) ^ (uint64_t(rank + 1) * 0x9e3779b97f4a7c15ull);
  x ^= x >> 29;
  long long until = clock64() + (long long)(x % (most + 1)) * 1500;
  while (clock64() < until) {
  }
}

template <class F> static void withType(Dtype dtype, F f) {
  switch (dtype) {
  case Dtype::F32:
    return f(float());
  case Dtype::F64:
    return f(double());
  case Dtype::F16:
    return f(__half());
  case Dtype::BF16:
    return f(__nv_bfloat16());
  case Dtype::F8E4M3:
    return f(__nv_fp8_e4m3());
  case Dtype::F8E5M2:
    return f(__nv_fp8_e5m2());
  case Dtype::I8:
    return f(int8_t());
  case Dtype::I16:
    return f(int16_t());
  case Dtype::I32:
    return f(int32_t());
  case Dtype::I64:
    return f(int64_t());
  case Dtype::U8:
    return f(uint8_t());
  case Dtype::U16:
    return f(uint16_t());
  case Dtype::U32:
    return f(uint32_t());
  case Dtype::U64:
    return f(uint64_t());
  }
}

void fillInput(cudaStream_t s, Dtype dtype, void *to, int64_t bytes, int rank, const uint64_t *run,
               ReduceOp op, bool flags) {
  withType(dtype, [&](auto t) {
    using T = decltype(t);
    fill<T>
        <<<64, 256, 0, s>>>(static_cast<T *>(to), bytes / int64_t(sizeof(T)), rank, run, op, flags);
  });
  CUDA(cudaGetLastError());
}
void checkOutput(cudaStream_t s, Dtype dtype, const void *out, int64_t bytes, Expect e,
                 unsigned long long *bad) {
  withType(dtype, [&](auto t) {
    using T = decltype(t);
    e.first /= int64_t(sizeof(T));
    e.piece = e.piece / int64_t(sizeof(T)) ? e.piece / int64_t(sizeof(T)) : 1;
    check<T><<<64, 256, 0, s>>>(static_cast<const T *>(out), bytes / int64_t(sizeof(T)), e, bad);
  });
  CUDA(cudaGetLastError());
}
void checkUntouched(cudaStream_t s, const void *at, int64_t bytes, unsigned long long *bad) {
  if (bytes > 0)
    checkPoison<<<8, 256, 0, s>>>(static_cast<const unsigned char *>(at), bytes, bad);
  CUDA(cudaGetLastError());
}
void countRun(cudaStream_t s, uint64_t *run) { nextRun<<<1, 1, 0, s>>>(run); }
void delay(cudaStream_t s, const uint64_t *run, int rank, unsigned mostMicroseconds) {
  linger<<<1, 1, 0, s>>>(run, rank, mostMicroseconds);
}
static __global__ void nothing() {}
void launchNothing(cudaStream_t s, bool early) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(1);
  launch.blockDim = dim3(32);
  launch.stream = s;
  launch.attrs = &attribute;
  launch.numAttrs = early ? 1 : 0;
  CUDA(cudaLaunchKernelEx(&launch, nothing));
}
} // namespace bench

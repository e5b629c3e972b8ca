//===- CublasLt.h - cuBLASLt, loaded at run time ------------------*- C++ -*-===//
//
// The few of its functions and numbers that products need. test/Cuda/Inputs/fake-cublaslt.cpp
// compares the numbers with those of the toolkit's header.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_LIB_CUDA_CUBLASLT_H
#define NCCLXRT_LIB_CUDA_CUBLASLT_H

#include "Driver.h"

namespace ncclxrt::cuda::lt {

using Handle = struct cublasLtContext *;
/// Operations, layouts and preferences: whatever has attributes.
using Operation = void *;
using Layout = void *;
using Preference = void *;

struct Algorithm { // cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct Choice { // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

constexpr int success = 0, notSupported = 15;
// cublasComputeType_t
constexpr int computeF32 = 68, computeF64 = 70, computeTf32 = 77;
// cudaDataType_t
constexpr int typeF32 = 0, typeF64 = 1, typeF16 = 2, typeBF16 = 14, typeF8E4M3 = 28,
              typeF8E5M2 = 29;
// cublasOperation_t
constexpr int32_t transpose = 1;
// cublasLtMatmulDescAttributes_t
constexpr int transA = 3, transB = 4, smCountTarget = 15, scaleA = 17, scaleB = 18;
// cublasLtMatrixLayoutAttribute_t
constexpr int batchCount = 5, batchStride = 6;
// cublasLtMatmulPreferenceAttributes_t
constexpr int maxWorkspace = 1, alignmentA = 5, alignmentB = 6, alignmentC = 7, alignmentD = 8;

/// Name of the member, of the function, and its arguments.
#define NCCLXRT_CUBLASLT(F)                                                                        \
  F(create, cublasLtCreate, (Handle *))                                                            \
  F(destroy, cublasLtDestroy, (Handle))                                                            \
  F(createOperation, cublasLtMatmulDescCreate, (Operation *, int, int))                            \
  F(destroyOperation, cublasLtMatmulDescDestroy, (Operation))                                      \
  F(setOperation, cublasLtMatmulDescSetAttribute, (Operation, int, const void *, size_t))          \
  F(createLayout, cublasLtMatrixLayoutCreate, (Layout *, int, uint64_t, uint64_t, int64_t))        \
  F(destroyLayout, cublasLtMatrixLayoutDestroy, (Layout))                                          \
  F(setLayout, cublasLtMatrixLayoutSetAttribute, (Layout, int, const void *, size_t))              \
  F(createPreference, cublasLtMatmulPreferenceCreate, (Preference *))                              \
  F(destroyPreference, cublasLtMatmulPreferenceDestroy, (Preference))                              \
  F(setPreference, cublasLtMatmulPreferenceSetAttribute, (Preference, int, const void *, size_t))  \
  F(choose, cublasLtMatmulAlgoGetHeuristic,                                                        \
    (Handle, Operation, Layout, Layout, Layout, Layout, Preference, int, Choice *, int *))         \
  F(multiply, cublasLtMatmul,                                                                      \
    (Handle, Operation, const void *, const void *, Layout, const void *, Layout, const void *,    \
     const void *, Layout, void *, Layout, const Algorithm *, void *, size_t, Stream))

/// All of them; every one returns a cublasStatus_t.
struct CublasLt {
#define NCCLXRT_MEMBER(member, symbol, arguments) int(*member) arguments = nullptr;
  NCCLXRT_CUBLASLT(NCCLXRT_MEMBER)
#undef NCCLXRT_MEMBER
  const char *(*statusName)(int) = nullptr;

  /// The functions of the library `path` (empty: libcublasLt.so of CUDA 13 or 12), or NULL and why.
  /// Loaded once a process for each path; stays. Any thread.
  static const CublasLt *load(const std::string &path, std::string &why);
};

} // namespace ncclxrt::cuda::lt

#endif // NCCLXRT_LIB_CUDA_CUBLASLT_H

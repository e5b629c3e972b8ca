//===- Compile.h - CUDA C++ to machine code in this process -------*- C++ -*-===//
#ifndef NCCLXRT_LIB_CUDA_COMPILE_H
#define NCCLXRT_LIB_CUDA_COMPILE_H

#include "../Base.h"

namespace ncclxrt::cuda {

struct CompileOptions {
  int architecture = 90; ///< of the GPU: 90 is 9.0
  std::string nvrtc;     ///< library; empty: libnvrtc.so of CUDA 13 or 12
  std::string headers;   ///< folder of the toolkit's headers; empty: /usr/local/cuda/include
  std::string cache;     ///< folder; empty: none
};

/// A cubin of `source`, which may include ncclxrt/device: those headers are part of this library.
/// One that the cache has is taken without a compiler; its key is the text, those headers and the
/// architecture. Any thread.
Status compile(const std::string &source, const CompileOptions &options, std::string &image);

/// The key, for tests.
std::string cacheKey(const std::string &source, const CompileOptions &options);

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_COMPILE_H

//===- Compile.h - CUDA C++ to machine code in this process -------*- C++ -*-===//
#ifndef NCCLXRT_LIB_CUDA_COMPILE_H
#define NCCLXRT_LIB_CUDA_COMPILE_H

#include "../Base.h"
#include "ncclxrt/cuda.h"

#include <vector>

namespace ncclxrt::cuda {

struct CompileOptions {
  int architecture = 90; ///< of the GPU: 90 is 9.0
  std::string nvrtc;     ///< library; empty: libnvrtc.so of CUDA 13 or 12
  std::string headers;   ///< folder of the toolkit's headers; empty: /usr/local/cuda/include
  std::string cache;     ///< folder; empty: none
  std::vector<ncclxrtCudaImage_t> images; ///< not empty: nothing is compiled here

  /// Whether the images that were brought, if there are any, are for this architecture.
  Status suit() const;
};

/// The options of a plan's description.
template <typename Desc> CompileOptions compileOptionsOf(const Desc &desc, int architecture) {
  auto text = [](const char *t) { return std::string(t ? t : ""); };
  return {architecture,
          text(desc.nvrtc),
          text(desc.headers),
          text(desc.cache),
          {desc.images, desc.images + desc.num_images}};
}

/// A cubin of `source`, which may include ncclxrt/device: those headers are part of this library.
/// One that was brought or that the cache has is taken without a compiler. Any thread.
Status compile(const std::string &source, const CompileOptions &options, std::string &image);

/// What the driver loads of PTX: the image that was brought, or the text, which it assembles.
Status assemble(const std::string &ptx, const CompileOptions &options, std::string &image);

/// Names an image: its text, this library's headers and the architecture.
std::string imageKey(const std::string &text, int architecture);

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_COMPILE_H

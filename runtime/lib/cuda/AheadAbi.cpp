//===- AheadAbi.cpp - The C interface of what is made ahead of time -------===//
#include "Comm.h"
#include "Compile.h"
#include "Reductions.h"

using namespace ncclxrt;

const char *ncclxrtCudaImageKey(const char *text, int32_t architecture) {
  thread_local std::string key;
  key = cuda::imageKey(text ? text : "", architecture);
  return key.c_str();
}

const char *ncclxrtCudaReductionSource(const ncclxrtCudaReduction_t *reductions, size_t count) {
  thread_local std::string source;
  cuda::Reductions found;
  for (size_t r = 0; r < count; ++r) {
    std::pair<int, int> reduction;
    if (Status s = cuda::findReduction(reductions[r], reduction); !s.ok()) {
      cuda::tellThread(s.text());
      return nullptr;
    }
    found.insert(reduction);
  }
  source = cuda::reductionSource(found);
  return source.c_str();
}

ncclxrtResult_t ncclxrtCudaCompile(const char *source, int32_t architecture, const char *nvrtc,
                                   const char *headers, const void **image, size_t *bytes) {
  if (!source || !image || !bytes) {
    cuda::tellThread("ncclxrtCudaCompile was given no source or no place for its result");
    return ncclxrtInvalidArgument;
  }
  thread_local std::string made;
  cuda::CompileOptions options;
  options.architecture = architecture;
  options.nvrtc = nvrtc ? nvrtc : "";
  options.headers = headers ? headers : "";
  Status s = cuda::compile(source, options, made);
  if (!s.ok())
    cuda::tellThread(s.text());
  *image = made.data();
  *bytes = s.ok() ? made.size() : 0;
  return s.code();
}

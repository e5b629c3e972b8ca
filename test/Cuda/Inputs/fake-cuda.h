//===- fake-cuda.h - What the fake driver lends to other fakes ----------------------------===//
#ifndef NCCLX_TEST_CUDA_FAKE_CUDA_H
#define NCCLX_TEST_CUDA_FAKE_CUDA_H

#include "cuda/Driver.h"

#include <functional>
#include <string>

namespace fakecuda {

/// The stream does `act` behind what it holds, or each time that what is captured is replayed.
void enqueue(ncclxrt::cuda::Stream stream, std::function<void()> act);
/// Whether FAKE_CUDA_FAIL says that this call of `name` fails.
bool fails(const char *name);
/// A line of FAKE_CUDA_LOG.
void log(const std::string &line);
/// Bytes of device memory from `at` on; 0 where there is none.
size_t roomAt(ncclxrt::cuda::Address at);

} // namespace fakecuda

#endif // NCCLX_TEST_CUDA_FAKE_CUDA_H

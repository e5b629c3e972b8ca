//===- Files.h - Open files from process to process ---------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_CUDA_FILES_H
#define NCCLXRT_LIB_CUDA_FILES_H

#include "Comm.h"

#include <vector>

namespace ncclxrt::cuda {

/// Gives each rank r with gives[r] this rank's file, and takes one of each with takes[r] into
/// files[r]. Ranks are processes of one machine that share a network name space. Collective; within
/// the communicator's deadline.
Status passFiles(Comm &comm, const Fd &file, const std::vector<bool> &gives,
                 const std::vector<bool> &takes, std::vector<Fd> &files);

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_FILES_H

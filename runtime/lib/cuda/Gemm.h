//===- Gemm.h - Products of matrices on a plan's streams ----------*- C++ -*-===//
#ifndef NCCLXRT_LIB_CUDA_GEMM_H
#define NCCLXRT_LIB_CUDA_GEMM_H

#include "Comm.h"
#include "CublasLt.h"

#include <array>

namespace ncclxrt::cuda {

/// cuBLASLt for one communicator: made by the first product that needs it.
class Gemms {
public:
  Gemms(Comm &comm, std::string library) : comm(comm), library(std::move(library)) {}
  ~Gemms();
  Gemms(const Gemms &) = delete;
  Gemms &operator=(const Gemms &) = delete;

  Status open();
  Status call(int result, const char *what) const;
  const lt::CublasLt &functions() const { return *loaded; }
  lt::Handle handle() const { return made; }

  Comm &comm;
  const std::string library;

private:
  const lt::CublasLt *loaded = nullptr;
  lt::Handle made = nullptr;
};

/// One product (ncclxrtCudaGemm_t).
class Gemm {
public:
  explicit Gemm(const ncclxrtCudaGemm_t &description) : gemm(description) {}
  ~Gemm();
  Gemm(const Gemm &) = delete;
  Gemm &operator=(const Gemm &) = delete;

  /// What is wrong with the description of a launch with so many arguments, or "".
  static std::string wrong(const ncclxrtCudaGemm_t &gemm, int32_t arguments);

  /// Notes a launch that is to come: what its addresses are multiples of.
  void rehearse(const std::vector<Address> &arguments);
  /// Whether it is launched at all, and there is something to multiply.
  bool isNeeded() const {
    return rehearsed && gemm.m > 0 && gemm.n > 0 && gemm.k > 0 && gemm.batch > 0;
  }
  /// Chooses an algorithm that takes no more scratch memory than `workspace`; afterwards
  /// `workspaceBytes` says how much. The same problem gets the same algorithm in this process.
  Status prepare(Gemms &gemms, uint64_t workspace);
  uint64_t workspaceBytes() const { return choice.workspace; }
  /// Multiplies once into memory of its own, so that all code is on the GPU before streams wait.
  Status warmUp(const std::vector<Address> &arguments, Address workspace, Stream stream);
  Status launch(Comm &comm, const std::vector<Address> &arguments, Address workspace,
                Stream stream);

private:
  enum Part { A, B, C, D };
  const ncclxrtCudaGemm_t gemm;
  bool rehearsed = false;
  std::array<uint32_t, 4> alignment{256, 256, 256, 256};
  Gemms *gemms = nullptr;
  lt::Operation operation = nullptr;
  std::array<lt::Layout, 4> layouts{};
  lt::Choice choice{};

  std::array<const ncclxrtCudaMatrix_t *, 4> parts() const {
    return {&gemm.a, &gemm.b, &gemm.c, &gemm.d};
  }
  Status describe();
  Status choose(uint64_t workspace);
  std::string problem(uint64_t workspace) const;
  std::array<Address, 4> places(const std::vector<Address> &arguments) const;
  Status multiply(const std::vector<Address> &arguments, const std::array<Address, 4> &at,
                  Address workspace, Stream stream);
  /// Without anything to multiply: d = beta c.
  Status scale(Comm &comm, const std::array<Address, 4> &at, Stream stream) const;
  int64_t extent(const ncclxrtCudaMatrix_t &matrix) const;
};

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_GEMM_H

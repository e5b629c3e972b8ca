//===- word.cuh - Words of 8 bytes at any address ---------------*- C++ -*-===//
#ifndef NCCLXRT_DEVICE_WORD_CUH
#define NCCLXRT_DEVICE_WORD_CUH

#include "ncclxrt/device/memory.cuh"

namespace ncclxrt::device {

/// Reads and writes the words of [base, base + bytes). `aligned`: base and bytes are multiples of
/// 8, and the code is as short as can be; kernels of microseconds wait for their instructions, too.
/// Otherwise any alignment, and the last word may be a part of one, which reads as if zeros
/// followed. Nothing outside is touched.
template <bool aligned> class Words {
public:
  __device__ __forceinline__ Words(const void *base, int64_t bytes)
      : base(reinterpret_cast<uint64_t>(base)), bytes(bytes) {}

  __device__ __forceinline__ uint64_t load(int64_t word) const {
    if constexpr (aligned)
      return reinterpret_cast<const uint64_t *>(base)[word];
    uint64_t at = base + word * 8;
    if ((base & 7) == 0 && word * 8 + 8 <= bytes)
      return *reinterpret_cast<const uint64_t *>(at);
    return loadParts(at, bytes - word * 8);
  }
  __device__ __forceinline__ void store(int64_t word, uint64_t value) const {
    if constexpr (aligned) {
      reinterpret_cast<uint64_t *>(base)[word] = value;
      return;
    }
    uint64_t at = base + word * 8;
    if ((base & 7) == 0 && word * 8 + 8 <= bytes)
      *reinterpret_cast<uint64_t *>(at) = value;
    else
      storeParts(at, bytes - word * 8, value);
  }

private:
  uint64_t base;
  int64_t bytes;

  static __device__ __noinline__ uint64_t loadParts(uint64_t at, int64_t left) {
    uint64_t value = 0;
    if ((at & 3) == 0 && left >= 8) {
      auto p = reinterpret_cast<const uint32_t *>(at);
      return uint64_t(p[1]) << 32 | p[0];
    }
    if ((at & 1) == 0 && left >= 8) {
      auto p = reinterpret_cast<const uint16_t *>(at);
      for (int i = 0; i < 4; ++i)
        value |= uint64_t(p[i]) << 16 * i;
      return value;
    }
    for (int i = 0; i < 8 && i < left; ++i)
      value |= uint64_t(reinterpret_cast<const uint8_t *>(at)[i]) << 8 * i;
    return value;
  }
  static __device__ __noinline__ void storeParts(uint64_t at, int64_t left, uint64_t value) {
    if ((at & 3) == 0 && left >= 8) {
      auto p = reinterpret_cast<uint32_t *>(at);
      p[0] = uint32_t(value);
      p[1] = uint32_t(value >> 32);
    } else if ((at & 1) == 0 && left >= 8) {
      auto p = reinterpret_cast<uint16_t *>(at);
      for (int i = 0; i < 4; ++i)
        p[i] = uint16_t(value >> 16 * i);
    } else {
      for (int i = 0; i < 8 && i < left; ++i)
        reinterpret_cast<uint8_t *>(at)[i] = uint8_t(value >> 8 * i);
    }
  }
};

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_WORD_CUH

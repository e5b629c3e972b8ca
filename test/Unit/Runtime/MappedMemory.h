//===- MappedMemory.h - Memory that a caller makes and maps himself ----------===//
#ifndef NCCLX_TEST_UNIT_RUNTIME_MAPPEDMEMORY_H
#define NCCLX_TEST_UNIT_RUNTIME_MAPPEDMEMORY_H

#include "cuda/Driver.h"

#include <dlfcn.h>

/// `size` bytes of a GPU by the fake driver's cuMemCreate and cuMemMap, for that GPU alone; 0 where
/// that fails.
inline uint64_t makeMapped(int device, size_t size, int handleTypes = ncclxrt::cuda::posixFile) {
  using namespace ncclxrt::cuda;
  struct { // CUmemAllocationProp
    int type, handleTypes;
    struct {
      int type, id;
    } location;
    char rest[16];
  } prop{1, handleTypes, {onDevice, device}, {}};
  auto create = reinterpret_cast<int (*)(MemoryHandle *, size_t, const void *, unsigned long long)>(
      dlsym(dlopen(FAKE_CUDA, RTLD_NOW), "cuMemCreate"));
  std::string why;
  const Driver *driver = Driver::load(FAKE_CUDA, why);
  MemoryHandle handle = 0;
  Address at = 0;
  AccessDesc own{{onDevice, device}, readAndWrite};
  bool good = create && driver && create(&handle, size, &prop, 0) == success &&
              driver->reserve(&at, size, 0, 0, 0) == success &&
              driver->map(at, size, 0, handle, 0) == success &&
              driver->setAccess(at, size, &own, 1) == success &&
              driver->releaseHandle(handle) == success;
  return good ? at : 0;
}

#endif // NCCLX_TEST_UNIT_RUNTIME_MAPPEDMEMORY_H

//===- Driver.cpp - The CUDA driver, loaded at run time -------------------===//
#include "Driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <mutex>
#include <sys/stat.h>

using namespace ncclxrt::cuda;

void *ncclxrt::cuda::openLibrary(const std::string &path, std::string &why) {
  // The loader would wait for ever for somebody to write into a pipe.
  if (struct stat status = {}; stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) {
    why = path + ": is a pipe";
    return nullptr;
  }
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    why = dlerror();
  return library;
}

const Driver *Driver::load(const char *given, std::string &why) {
  static std::mutex lock;
  static std::map<std::string, std::unique_ptr<Driver>> loaded;
  std::string path = given && *given ? given : "libcuda.so.1";
  std::lock_guard<std::mutex> hold(lock);
  if (auto it = loaded.find(path); it != loaded.end())
    return it->second.get();
  void *library = openLibrary(path, why);
  if (!library) {
    why = "no CUDA driver: " + why;
    return nullptr;
  }
  auto driver = std::make_unique<Driver>();
#define NCCLXRT_FIND(member, symbol, arguments)                                                    \
  driver->member = reinterpret_cast<decltype(driver->member)>(dlsym(library, #symbol));            \
  if (!driver->member) {                                                                           \
    why = fmt::format("the CUDA driver {} has no {}; expected one of CUDA 12 or later", path,      \
                      #symbol);                                                                    \
    return nullptr;                                                                                \
  }
  NCCLXRT_CUDA_DRIVER(NCCLXRT_FIND)
#undef NCCLXRT_FIND
  if (int result = driver->init(0); result != success) {
    why = fmt::format("cuInit failed: {}", driver->text(result));
    return nullptr;
  }
  return (loaded[path] = std::move(driver)).get();
}

std::string Driver::text(int result) const {
  const char *sentence = nullptr;
  if (errorString(result, &sentence) != success || !sentence)
    return fmt::format("CUresult {}", result);
  return fmt::format("{} (CUresult {})", sentence, result);
}

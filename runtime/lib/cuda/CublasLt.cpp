//===- CublasLt.cpp - cuBLASLt, loaded at run time ------------------------===//
#include "CublasLt.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

using namespace ncclxrt::cuda::lt;

const CublasLt *CublasLt::load(const std::string &path, std::string &why) {
  static std::mutex lock;
  static std::map<std::string, std::unique_ptr<CublasLt>> loaded;
  std::lock_guard<std::mutex> hold(lock);
  if (auto it = loaded.find(path); it != loaded.end())
    return it->second.get();
  std::vector<std::string> paths{path};
  if (path.empty())
    paths = {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so"};
  void *library = nullptr;
  std::string first;
  for (const std::string &name : paths)
    if (!library && !(library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) && first.empty())
      first = dlerror();
  if (!library) {
    why = first;
    return nullptr;
  }
  auto made = std::make_unique<CublasLt>();
  const char *missing = nullptr;
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function && !missing)
      missing = name;
  };
#define NCCLXRT_FIND(member, symbol, arguments) find(made->member, #symbol);
  NCCLXRT_CUBLASLT(NCCLXRT_FIND)
#undef NCCLXRT_FIND
  find(made->statusName, "cublasLtGetStatusName");
  if (missing) {
    why = fmt::format("{} has no {}", path.empty() ? "libcublasLt.so" : path, missing);
    return nullptr;
  }
  return (loaded[path] = std::move(made)).get();
}

//===- Compile.cpp - CUDA C++ to machine code in this process -------------===//
#include "Compile.h"
#include "Driver.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <vector>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

namespace {

struct Header {
  const char *name, *text;
};
/// ncclxrt/device, and the few names of the standard library that it uses: NVRTC has none.
const Header headers[] = {
#include "DeviceHeaders.inc"
    {"cstdint", R"(#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
)"},
    {"type_traits", R"(#pragma once
namespace std {
template <class A, class B> constexpr bool is_same_v = false;
template <class A> constexpr bool is_same_v<A, A> = true;
template <class T> constexpr bool is_integral_v = false;
template <class T> constexpr bool is_signed_v = T(-1) < T(0);
template <class T> struct make_unsigned;
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
#define NCCLXRT_INTEGER(S, U) \
  template <> constexpr bool is_integral_v<S> = true; \
  template <> constexpr bool is_integral_v<U> = true; \
  template <> struct make_unsigned<S> { using type = U; }; \
  template <> struct make_unsigned<U> { using type = U; };
NCCLXRT_INTEGER(signed char, unsigned char)
NCCLXRT_INTEGER(short, unsigned short)
NCCLXRT_INTEGER(int, unsigned)
NCCLXRT_INTEGER(long, unsigned long)
#undef NCCLXRT_INTEGER
}
)"},
};

using Program = struct nvrtcProgramState *;

struct Nvrtc {
  int (*create)(Program *, const char *, const char *, int, const char *const *,
                const char *const *);
  int (*compile)(Program, int, const char *const *);
  int (*logSize)(Program, size_t *);
  int (*log)(Program, char *);
  int (*imageSize)(Program, size_t *);
  int (*image)(Program, char *);
  int (*destroy)(Program *);
};

const Nvrtc *load(const std::string &given, std::string &why) {
  static std::map<std::string, Nvrtc> loaded;
  if (auto it = loaded.find(given); it != loaded.end())
    return &it->second;
  std::vector<std::string> paths{given};
  if (given.empty())
    paths = {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"};
  void *library = nullptr;
  for (const std::string &path : paths)
    if (std::string here; !library && !(library = openLibrary(path, here)) && why.empty())
      why = here;
  if (!library)
    return nullptr;
  Nvrtc nvrtc;
  bool all = true;
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    all &= function != nullptr;
  };
  find(nvrtc.create, "nvrtcCreateProgram");
  find(nvrtc.compile, "nvrtcCompileProgram");
  find(nvrtc.logSize, "nvrtcGetProgramLogSize");
  find(nvrtc.log, "nvrtcGetProgramLog");
  find(nvrtc.imageSize, "nvrtcGetCUBINSize");
  find(nvrtc.image, "nvrtcGetCUBIN");
  find(nvrtc.destroy, "nvrtcDestroyProgram");
  if (!all) {
    why = "it has not all of NVRTC's functions";
    return nullptr;
  }
  return &(loaded[given] = nvrtc);
}

std::string flags(int architecture) {
  return fmt::format("--gpu-architecture=sm_{} --std=c++17 --fmad=false -default-device",
                     architecture);
}

constexpr char mark[] = "ncclxrt cubin 1\n";

/// A file that was cut off, or is none of ours, is not there.
bool read(const std::string &path, std::string &image) {
  FILE *file = std::fopen(path.c_str(), "rb");
  if (!file)
    return false;
  std::string all;
  char buffer[65536];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
    all.append(buffer, n);
  std::fclose(file);
  uint64_t size = 0;
  size_t head = sizeof mark - 1 + sizeof size;
  if (all.size() < head || all.compare(0, sizeof mark - 1, mark) != 0)
    return false;
  __builtin_memcpy(&size, all.data() + sizeof mark - 1, sizeof size);
  if (size != all.size() - head)
    return false;
  image = all.substr(head);
  return true;
}

/// Whole or not at all: other processes read it.
void write(const std::string &folder, const std::string &path, const std::string &image) {
  for (size_t at = 0; at != std::string::npos;) {
    at = folder.find('/', at + 1);
    ::mkdir(folder.substr(0, at).c_str(), 0777);
  }
  std::string unfinished = fmt::format("{}.{}", path, ::getpid());
  FILE *file = std::fopen(unfinished.c_str(), "wb");
  if (!file)
    return;
  uint64_t size = image.size();
  bool good = std::fwrite(mark, sizeof mark - 1, 1, file) == 1 &&
              std::fwrite(&size, sizeof size, 1, file) == 1 &&
              std::fwrite(image.data(), image.size(), 1, file) == 1;
  good &= std::fclose(file) == 0;
  if (!good || std::rename(unfinished.c_str(), path.c_str()) != 0)
    std::remove(unfinished.c_str());
}

} // namespace

std::string cuda::imageKey(const std::string &text, int architecture) {
  uint64_t low = 0xcbf29ce484222325, high = 0x6c62272e07bb0142; // FNV-1a, twice
  auto add = [&](const std::string &part) {
    for (unsigned char c : part + '\0') {
      low = (low ^ c) * 0x100000001b3;
      high = (high ^ c) * 0x100000001b3 + (low >> 32);
    }
  };
  add(text);
  add(flags(architecture));
  for (const Header &header : headers)
    add(header.text);
  return fmt::format("{:016x}{:016x}", high, low);
}

/// What was compiled ahead of time; nothing replaces it.
static Status bring(const std::string &text, const CompileOptions &options, std::string &image) {
  std::string key = imageKey(text, options.architecture);
  for (const ncclxrtCudaImage_t &brought : options.images)
    if (brought.key && brought.data && key == brought.key) {
      image.assign(static_cast<const char *>(brought.data), brought.bytes);
      return {};
    }
  return error(ncclxrtVersionMismatch,
               "its kernels for sm_{} were compiled ahead of time for another version of this "
               "runtime, or are not those that its program needs",
               options.architecture);
}

Status CompileOptions::suit() const {
  std::set<int> brought;
  for (const ncclxrtCudaImage_t &image : images)
    brought.insert(image.architecture);
  if (brought.empty() || brought.count(architecture))
    return {};
  return error(ncclxrtUnsupported,
               "its kernels were compiled ahead of time for sm_{}, but its GPU is sm_{}",
               fmt::join(brought, ", sm_"), architecture);
}

Status cuda::assemble(const std::string &ptx, const CompileOptions &options, std::string &image) {
  if (!options.images.empty())
    return bring(ptx, options, image);
  // The driver says no more than that it cannot.
  size_t at = ptx.find("\n.target sm_");
  int wanted = at == std::string::npos ? 0 : std::atoi(ptx.c_str() + at + 12);
  if (wanted > options.architecture)
    return error(ncclxrtUnsupported, "its kernels are PTX for sm_{} or later, but its GPU is sm_{}",
                 wanted, options.architecture);
  image = ptx;
  return {};
}

Status cuda::compile(const std::string &source, const CompileOptions &options, std::string &image) {
  if (!options.images.empty())
    return bring(source, options, image);
  static std::mutex lock; // ranks that are threads want the same at once
  std::lock_guard<std::mutex> hold(lock);
  std::string path =
      fmt::format("{}/{}.cubin", options.cache, imageKey(source, options.architecture));
  if (!options.cache.empty() && read(path, image))
    return {};
  std::string why;
  const Nvrtc *nvrtc = load(options.nvrtc, why);
  if (!nvrtc)
    return error(ncclxrtUnsupported, "kernels cannot be compiled: {}; nor are they in the cache{}",
                 why, options.cache.empty() ? ", as there is none" : " as " + path);
  std::vector<const char *> texts, names, list;
  for (const Header &header : headers) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  std::string include =
      "-I" + (options.headers.empty() ? "/usr/local/cuda/include" : options.headers);
  std::string all = flags(options.architecture);
  std::vector<std::string> words;
  for (size_t at = 0, end; at < all.size(); at = end + 1) {
    end = std::min(all.find(' ', at), all.size());
    words.push_back(all.substr(at, end - at));
  }
  words.push_back(include);
  for (const std::string &word : words)
    list.push_back(word.c_str());
  Program program = nullptr;
  int result = nvrtc->create(&program, source.c_str(), "ncclxrt.cu", int(texts.size()),
                             texts.data(), names.data());
  if (result == 0)
    result = nvrtc->compile(program, int(list.size()), list.data());
  std::string log;
  size_t size = 0;
  if (result != 0 && program && nvrtc->logSize(program, &size) == 0) {
    log.resize(size);
    nvrtc->log(program, log.data());
  }
  if (result == 0 && (result = nvrtc->imageSize(program, &size)) == 0) {
    image.assign(size, '\0');
    result = nvrtc->image(program, image.data());
  }
  if (program)
    nvrtc->destroy(&program);
  if (result != 0)
    return error(ncclxrtSystemError, "NVRTC could not compile the kernels: result {}: {}", result,
                 log.c_str());
  if (!options.cache.empty())
    write(options.cache, path, image);
  return {};
}

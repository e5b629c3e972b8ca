//===- CppCarrier.cpp - A compilation as files, and back into this process ------------------===//
#include "CppCarrier.h"

#include "ncclx/Cpp/CppSource.h"
#include "ncclx/Reference/ObjectCode.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <dlfcn.h>

using namespace mlir;
using namespace mlir::ncclx;

static std::string pathOf(const CppOptions &options, StringRef suffix) {
  SmallString<128> path(options.directory);
  llvm::sys::path::append(path, options.name + suffix);
  return path.str().str();
}

static std::string printed(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::string hexadecimal(uint64_t value) {
  return "0x" + llvm::utohexstr(value, /*LowerCase=*/true, /*Width=*/16);
}

/// What a build or a caller may want to know of the files, in JSON.
static std::string manifest(const Compilation &compilation, const CppOptions &options) {
  const HostPlan &plan = compilation.plan();
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  auto windows = [&](StringRef key, ArrayRef<size_t> positions) {
    json.attributeArray(key, [&] {
      for (size_t w : positions)
        json.object([&] {
          const HostPlan::Window &window = plan.windows[w];
          json.attribute("type", printed(window.type));
          json.attribute("bytes", int64_t(window.bytes));
          if (window.role == ctran::WindowRole::InOut)
            json.attribute("in_place", true);
        });
    });
  };
  json.object([&] {
    json.attribute("schema", "ncclx-compile/1");
    json.attribute("name", options.name);
    json.attribute("function", plan.name);
    json.attribute("hash", hexadecimal(plan.hash));
    json.attribute("ranks", plan.ranks);
    json.attribute("abi_version", NCCLXRT_ABI_VERSION);
    json.attribute("cpu", options.cpu.empty() ? "native" : options.cpu);
    json.attributeArray("files", [&] {
      for (StringRef suffix : {".h", ".cpp", ".o", ".json"})
        json.value(options.name + suffix.str());
    });
    if (!plan.sizes.empty())
      json.attributeObject("sizes", [&] {
        for (const HostPlan::Size &size : plan.sizes)
          json.attribute(size.name, size.value);
      });
    windows("inputs", plan.inputs());
    windows("outputs", plan.outputs());
    json.attribute("scratch_bytes", int64_t(plan.scratchBytes()));
    json.attributeArray("collectives", [&] {
      for (const GraphCollective &c : compilation.collectives())
        json.object([&] {
          json.attribute("name", c.name);
          json.attribute("kind", c.kind);
          json.attribute("algorithm", c.algorithm);
          json.attribute("bytes", c.bytes);
          json.attribute("group_size", int64_t(c.group.size()));
          json.attribute("predicted_us", c.aloneSeconds * 1e6);
        });
    });
    json.attribute("proof", compilation.proof().str());
  });
  os << "\n";
  return text;
}

/// Where ncclxrt/abi.h is: beside this program where it is installed, else in the source tree.
static std::string runtimeInclude() {
  SmallString<128> path(llvm::sys::fs::getMainExecutable(nullptr, nullptr));
  llvm::sys::path::remove_filename(path);
  llvm::sys::path::append(path, "..", "include");
  SmallString<128> header(path);
  llvm::sys::path::append(header, "ncclxrt", "abi.h");
  return llvm::sys::fs::exists(header) ? path.str().str() : NCCLX_RUNTIME_INCLUDE;
}

LogicalResult mlir::ncclx::writeCpp(Compilation &compilation, const CppOptions &options) {
  if (failed(compilation.lowerForHost()))
    return failure();
  ModuleOp host = compilation.hostModule(), kernels = compilation.kernelModule();
  auto error = [&](const llvm::Twine &text) { return emitError(kernels.getLoc()) << text; };
  if (failed(nameKernels(options.name, kernels, host, compilation.plan())))
    return failure();
  FailureOr<CppSource> source = makeCppSource(options.name, compilation.plan(), host);
  if (failed(source))
    return failure();
  NativeOptions native;
  native.cpu = options.cpu;
  llvm::Expected<std::string> object = makeObject(kernels, native);
  if (!object)
    return error("the kernels cannot be compiled: " + llvm::toString(object.takeError()));
  if (std::error_code code = llvm::sys::fs::create_directories(options.directory))
    return error("cannot make the folder " + options.directory + ": " + code.message());
  const std::pair<StringRef, std::string> files[] = {{".h", source->header},
                                                     {".cpp", source->source},
                                                     {".o", *object},
                                                     {".json", manifest(compilation, options)}};
  for (auto &[suffix, text] : files) {
    std::string path = pathOf(options, suffix);
    std::error_code code;
    llvm::raw_fd_ostream os(path, code);
    if (!code) {
      os << text;
      os.close();
      code = os.error();
      os.clear_error();
    }
    if (code)
      return error("cannot write " + path + ": " + code.message());
  }
  return success();
}

llvm::Expected<std::unique_ptr<LoadedCpp>> LoadedCpp::create(const CppOptions &options,
                                                             StringRef compiler) {
  auto error = [](const llvm::Twine &text) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
  };
  llvm::ErrorOr<std::string> program = llvm::sys::findProgramByName(compiler);
  if (!program)
    return error("no C++ compiler '" + compiler + "'");
  std::string library = pathOf(options, ".so"), log = pathOf(options, ".log");
  std::string include = "-I" + runtimeInclude(), source = pathOf(options, ".cpp"),
              object = pathOf(options, ".o");
  StringRef arguments[] = {compiler, "-std=c++17", "-O1",  "-fPIC", "-shared",
                           include,  source,       object, "-o",    library};
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(log), StringRef(log)};
  std::string reason;
  int code = llvm::sys::ExecuteAndWait(*program, arguments, std::nullopt, redirects,
                                       /*SecondsToWait=*/300, /*MemoryLimit=*/0, &reason);
  if (code) {
    if (auto said = llvm::MemoryBuffer::getFile(log))
      reason += (*said)->getBuffer().take_front(4000);
    return error("'" + compiler + "' ended with " + llvm::Twine(code) + " on " + source + ": " +
                 reason);
  }
  std::unique_ptr<LoadedCpp> loaded(new LoadedCpp());
  // The runtime's functions are this program's own.
  loaded->library = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded->library)
    return error(llvm::Twine("cannot load ") + library + ": " + dlerror());
  loaded->entry = reinterpret_cast<ncclxrtProgram_t>(
      dlsym(loaded->library, (options.name + "_program").c_str()));
  if (!loaded->entry)
    return error(llvm::Twine("no program in ") + library + ": " + dlerror());
  return loaded;
}

LoadedCpp::~LoadedCpp() {
  if (library)
    dlclose(library);
}

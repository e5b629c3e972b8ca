//===- CppCarrier.cpp - A compilation as files, and back into this process ------------------===//
#include "CppCarrier.h"

#include "Artefact.h"

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
  Artefact files(options.directory, options.name);
  files.add(".h", source->header);
  files.add(".cpp", source->source);
  files.add(".o", *object);
  files.add(".json",
            files.manifest(compilation, {".h", ".cpp", ".o", ".json"},
                           compilation.plan().scratchBytes(), [&](llvm::json::OStream &json) {
                             json.attribute("cpu", options.cpu.empty() ? "native" : options.cpu);
                           }));
  if (llvm::Error failed = files.write())
    return error(llvm::toString(std::move(failed)));
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
  Artefact files(options.directory, options.name);
  std::string library = files.pathOf(".so"), log = files.pathOf(".log");
  std::string include = "-I" + runtimeInclude(), source = files.pathOf(".cpp"),
              object = files.pathOf(".o");
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
  loaded->name = options.name;
  if (!loaded->find("describe"))
    return error(llvm::Twine("no schedule in ") + library + ": " + dlerror());
  return loaded;
}

void *LoadedCpp::find(StringRef what) const {
  return dlsym(library, (name + "_" + what.str()).c_str());
}

LoadedCpp::~LoadedCpp() {
  if (library)
    dlclose(library);
}

//===- CudaCarrier.cpp - A schedule on GPUs as files ------------------------------------===//
#include "CudaCarrier.h"

#include "Artefact.h"
#include "ncclx/Cpp/CudaSource.h"
#include "ncclx/Reference/ObjectCode.h"
#include "ncclxrt/cuda.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::ncclx;

static llvm::Error because(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

//===--- compilers --------------------------------------------------------------------------===//

/// CUDA C++ to machine code, as the runtime does it when it prepares a plan.
static llvm::Expected<std::string> compileSource(const std::string &source, int32_t architecture,
                                                 const CudaFileOptions &options) {
  const void *image = nullptr;
  size_t bytes = 0;
  auto orNull = [](const std::string &text) { return text.empty() ? nullptr : text.c_str(); };
  if (ncclxrtCudaCompile(source.c_str(), architecture, orNull(options.nvrtc),
                         orNull(options.headers), &image, &bytes) != ncclxrtSuccess)
    return because(ncclxrtCudaLastError(nullptr));
  return std::string(static_cast<const char *>(image), bytes);
}

static llvm::Expected<std::string> findPtxas(const CudaFileOptions &options) {
  llvm::ErrorOr<std::string> found =
      llvm::sys::findProgramByName(options.ptxas.empty() ? "ptxas" : options.ptxas);
  if (!found && options.ptxas.empty())
    found = llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"});
  if (!found || !llvm::sys::fs::can_execute(*found))
    return because(
        "its computation cannot be compiled: there is no " +
        (options.ptxas.empty() ? std::string("ptxas (of the CUDA toolkit)") : options.ptxas) +
        "; --arch=source leaves it to the driver");
  return *found;
}

/// PTX to machine code.
static llvm::Expected<std::string> assemblePtx(const std::string &ptx, int32_t architecture,
                                               const CudaFileOptions &options) {
  llvm::Expected<std::string> program = findPtxas(options);
  if (!program)
    return program.takeError();
  SmallString<128> folder;
  if (std::error_code code = llvm::sys::fs::createUniqueDirectory("ncclx", folder))
    return because("cannot make a temporary folder: " + code.message());
  auto inFolder = [&](StringRef name) {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return path.str().str();
  };
  std::string text = inFolder("kernels.ptx"), image = inFolder("kernels.cubin"),
              log = inFolder("log");
  std::error_code code;
  {
    llvm::raw_fd_ostream os(text, code);
    if (!code)
      os << ptx;
  }
  std::string said = code ? code.message() : "";
  int ended = -1;
  if (!code) {
    std::string target = "-arch=sm_" + std::to_string(architecture);
    StringRef arguments[] = {*program, target, "-o", image, text};
    std::optional<StringRef> redirects[] = {std::nullopt, StringRef(log), StringRef(log)};
    ended = llvm::sys::ExecuteAndWait(*program, arguments, std::nullopt, redirects,
                                      /*SecondsToWait=*/600, /*MemoryLimit=*/0, &said);
    if (auto read = llvm::MemoryBuffer::getFile(log); read && ended)
      said += (*read)->getBuffer().take_front(2000);
  }
  std::string made;
  if (auto read = llvm::MemoryBuffer::getFile(image); read && !ended)
    made = (*read)->getBuffer().str();
  llvm::sys::fs::remove_directories(folder);
  if (made.empty())
    return because("its computation cannot be compiled for sm_" + llvm::Twine(architecture) + ": " +
                   *program + " ended with " + llvm::Twine(ended) + ": " + said);
  return made;
}

static llvm::Error makeImages(const std::string &source, const std::string &ptx,
                              const CudaFileOptions &options, std::vector<CudaImage> &images) {
  for (int32_t architecture : options.architectures)
    for (const std::string *text : {&source, &ptx}) {
      if (text->empty())
        continue;
      auto image = text == &source ? compileSource(source, architecture, options)
                                   : assemblePtx(ptx, architecture, options);
      if (!image)
        return image.takeError();
      images.push_back(
          {ncclxrtCudaImageKey(text->c_str(), architecture), architecture, std::move(*image)});
    }
  return llvm::Error::success();
}

/// The images as bytes of an object that links anywhere.
static llvm::Expected<std::string> imagesObject(MLIRContext &context, StringRef name,
                                                ArrayRef<CudaImage> images) {
  context.loadDialect<LLVM::LLVMDialect>();
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  b.setInsertionPointToEnd(module->getBody());
  for (auto [i, image] : llvm::enumerate(images))
    LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), image.data.size()),
                           /*isConstant=*/true, LLVM::Linkage::External, cudaImageName(name, i),
                           b.getStringAttr(image.data), /*alignment=*/16);
  NativeOptions native;
  native.cpu = "x86-64"; // there is no code
  return makeObject(*module, native);
}

//===--- files ------------------------------------------------------------------------------===//

static void describe(llvm::json::OStream &json, const HostPlan &plan, const CudaProgram &program,
                     const CudaFileOptions &options) {
  json.attribute("backend", "cuda");
  json.attribute("form", program.whole ? "kernel" : "streams");
  json.attributeArray("archs", [&] {
    for (int32_t architecture : options.architectures)
      json.value(architecture);
    if (options.architectures.empty())
      json.value("source");
  });
  json.attributeArray("windows", [&] {
    for (auto [w, window] : llvm::enumerate(plan.windows))
      json.object([&] {
        json.attribute("name", window.name);
        json.attribute("role", ctran::stringifyWindowRole(window.role));
        json.attribute("bytes",
                       program.whole ? program.whole->windows[w].bytes : int64_t(window.bytes));
        json.attribute("generations", window.generations);
      });
  });
  json.attributeArray("kernels", [&] {
    auto kernel = [&](StringRef name, int64_t blocks, int64_t threads, int64_t scratch,
                      StringRef refused) {
      json.object([&] {
        json.attribute("name", name);
        json.attribute("blocks", blocks);
        json.attribute("threads", threads);
        json.attribute("scratch_bytes", scratch);
        if (!refused.empty())
          json.attribute("not_cublaslt", refused);
      });
    };
    if (program.whole)
      kernel(program.whole->entry, program.whole->blocks, program.whole->threads, 0, "");
    for (const ComputeKernel &k : program.kernels)
      if (!k.gemm)
        kernel(k.name, k.blocks, k.threads, k.scratchBytes, k.refused);
  });
  json.attributeArray("products", [&] {
    for (const ComputeKernel &k : program.kernels)
      if (const std::optional<CudaGemm> &gemm = k.gemm)
        json.object([&] {
          json.attribute("name", k.name);
          json.attribute("m", gemm->m);
          json.attribute("n", gemm->n);
          json.attribute("k", gemm->k);
          json.attribute("batch", gemm->batch);
          json.attribute("sms", gemm->sms);
          json.attribute("workspace_bytes", k.scratchBytes);
        });
  });
  json.attribute("lanes", int64_t(plan.lanes.size()));
}

LogicalResult mlir::ncclx::writeCuda(Compilation &compilation, const CudaFileOptions &options,
                                     CudaProgram &program, std::vector<StringRef> &suffixes) {
  auto error = [&](const llvm::Twine &text) {
    return emitError(compilation.scheduleModule().getLoc()) << text;
  };
  // PTX of the oldest architecture serves all.
  int32_t oldest = 90;
  if (!options.architectures.empty())
    oldest = *llvm::min_element(options.architectures);
  if (options.kernelBlocks
          ? failed(program.makeKernel(compilation, *options.kernelBlocks, options.timeline))
          : failed(program.lower(compilation, oldest)))
    return failure();
  const HostPlan &plan = compilation.plan();
  std::string source;
  if (program.whole) {
    source = program.whole->source;
  } else {
    std::vector<ncclxrtCudaReduction_t> reductions;
    for (const HostPlan::Reduction &r : plan.reductions)
      reductions.push_back(
          {int32_t(r.kind), int32_t(r.dtype), int32_t(r.acc), r.scaled, r.divided});
    const char *made = ncclxrtCudaReductionSource(reductions.data(), reductions.size());
    if (!made)
      return error(llvm::Twine("a reduction ") + ncclxrtCudaLastError(nullptr));
    source = made;
  }
  CudaParts parts;
  parts.module = program.ptx;
  parts.kernels = program.kernels;
  parts.whole = program.whole ? &*program.whole : nullptr;
  if (llvm::Error failed = makeImages(source, program.ptx, options, parts.images))
    return error(llvm::toString(std::move(failed)));

  suffixes = {".h", ".cpp", ".o", ".json", ".cu"};
  if (!program.ptx.empty())
    suffixes.push_back(".ptx");
  Artefact files(options.directory, options.name);
  parts.manifest =
      files.manifest(compilation, suffixes, cudaWorkspaceBytes(plan, parts),
                     [&](llvm::json::OStream &json) { describe(json, plan, program, options); });
  FailureOr<CppSource> host = makeCudaSource(
      options.name, plan, program.whole ? ModuleOp() : compilation.hostModule(), parts);
  if (failed(host))
    return failure();
  llvm::Expected<std::string> object =
      imagesObject(*compilation.scheduleModule().getContext(), options.name, parts.images);
  if (!object)
    return error("the kernels make no object: " + llvm::toString(object.takeError()));
  files.add(".h", host->header);
  files.add(".cpp", host->source);
  files.add(".o", *object);
  files.add(".json", parts.manifest);
  files.add(".cu", source);
  if (!program.ptx.empty())
    files.add(".ptx", program.ptx);
  if (llvm::Error failed = files.write())
    return error(llvm::toString(std::move(failed)));
  return success();
}

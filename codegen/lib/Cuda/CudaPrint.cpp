//===- CudaPrint.cpp - A kernel with the function that launches it ---------------===//
#include "ncclx/Cuda/CudaEmitter.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::ncclx;
using llvm::formatv;

LogicalResult mlir::ncclx::emitCuda(ctran::ProgramOp program, raw_ostream &os,
                                    const CudaOptions &options) {
  FailureOr<CudaKernel> made = emitCudaKernel(program, options);
  if (failed(made))
    return failure();
  const CudaKernel &kernel = *made;
  os << kernel.source;
  os << "/// What the ops are called, by the step that a failed wait names.\n"
     << formatv("extern \"C\" const char *const {0}_steps[] = {{\n", kernel.name);
  for (const CudaKernel::Step &step : kernel.steps) {
    os << "    \"";
    llvm::printEscapedString(step.label, os);
    os << "\",\n";
  }
  os << "};\n";
  os << "/// Windows and slot arrays, in the order of the program, of every rank: windows[w * "
        "ranks + "
        "r].\n"
     << formatv("extern \"C\" const int64_t {0}_shape[] = {{{1}, {2}, {3}, {4}};\n", kernel.name,
                kernel.ranks, kernel.windows.size(), kernel.slotWords.size(), kernel.blocks)
     << formatv("extern \"C\" int64_t {0}_window_bytes(int w) {{ return windowBytes[w] * "
                "windowGenerations[w]; }\n",
                kernel.name);
  os << formatv("extern \"C\" int64_t {0}_slot_words(int s) {{ {1} }\n", kernel.name,
                kernel.slotWords.empty() ? "(void)s; return 0;"
                                         : "return slotCounts[s] * slotGenerations[s];");
  os << formatv(
      "\n/// Launches one run on the stream; the launch can be captured. Returns the cudaError_t.\n"
      "extern \"C\" int {0}_launch(void *const *windows, void *const *slots, uint64_t *epochs,\n"
      "    void *control, uint64_t timeoutNs, int64_t rank, void *stream) {{\n"
      "  Arguments a{{};\n"
      "  for (int w = 0; w < {1}; ++w)\n    for (int r = 0; r < {2}; ++r)\n"
      "      a.windows[w][r] = static_cast<char *>(windows[w * {2} + r]);\n"
      "  for (int s = 0; s < {3}; ++s)\n    for (int r = 0; r < {2}; ++r)\n"
      "      a.slots[s][r] = static_cast<uint64_t *>(slots[s * {2} + r]);\n"
      "  a.epochs = epochs;\n  a.guard = {{static_cast<Control *>(control), timeoutNs};\n"
      "  a.rank = rank;\n"
      "  cudaLaunchAttribute early{{};\n"
      "  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;\n"
      "  early.val.programmaticStreamSerializationAllowed = 1;\n"
      "  cudaLaunchConfig_t config{{};\n"
      "  config.gridDim = dim3({4});\n  config.blockDim = dim3({5});\n"
      "  config.stream = static_cast<cudaStream_t>(stream);\n"
      "  config.attrs = &early;\n  config.numAttrs = 1;\n"
      "  return cudaLaunchKernelEx(&config, {0}_kernel, a);\n}\n",
      kernel.name, kernel.windows.size(), kernel.ranks, kernel.slotWords.size(), kernel.blocks,
      kernel.threads);
  return success();
}

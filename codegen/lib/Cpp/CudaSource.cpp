//===- CudaSource.cpp - A schedule on GPUs as a C interface and C++ ----------------===//
#include "ncclx/Cpp/CudaSource.h"

#include "CppPrint.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;
using llvm::formatv;

uint64_t mlir::ncclx::cudaWorkspaceBytes(const HostPlan &plan, const CudaParts &parts) {
  if (!parts.whole) {
    uint64_t bytes = plan.scratchBytes();
    uint64_t products = 0; // share what they take
    for (const ComputeKernel &kernel : parts.kernels)
      if (kernel.gemm)
        products = std::max(products, uint64_t(kernel.scratchBytes));
      else
        bytes += uint64_t(kernel.scratchBytes);
    return bytes + products;
  }
  uint64_t bytes = 0;
  for (CudaKernel::Window window : parts.whole->windows)
    if (window.op.getRole() == ctran::WindowRole::Scratch)
      bytes += uint64_t(window.bytes * window.generations);
  return bytes;
}

std::string mlir::ncclx::cudaImageName(StringRef name, size_t index) {
  return formatv("{0}_image_{1}", name, index);
}

static StringRef descriptionOf(const CudaParts &parts) {
  return parts.whole ? "ncclxrtCudaKernelPlanDesc_t" : "ncclxrtCudaPlanDesc_t";
}

static void printHeader(StringRef name, const HostPlan &plan, const CudaParts &parts,
                        raw_ostream &os) {
  std::string guard = "NCCLX_SCHEDULE_" + name.upper() + "_H";
  os << "/* " << name << ".h - the schedule '" << plan.name << "' for " << plan.ranks
     << " ranks on GPUs, as " << (parts.whole ? "one kernel" : "streams")
     << ".\n * Made by ncclx-compile.\n *\n";
  printArguments(plan, os);
  os << formatv(R"( *
 * Link with the object of its kernels and with NCCLX::ncclxrt_cuda. Each rank calls, in this order:
 * prepare; then, as often as it likes, launch; then destroy, when the launches of all ranks that
 * share its GPU are done. prepare and launch are collective: every rank calls them, in the same
 * order. A rank is a thread or a process, as its communicator says. Results, and what they ask of
 * the process's environment, are those of ncclxrt/cuda.h; sentences are told by
 * ncclxrtCudaLastError.
 *
 * `buffers` is an array of {0}_inputs + {0}_outputs device pointers of the rank's GPU, the inputs
 * first. An entry that is NULL, or all of them where `buffers` is, stands for memory of the plan.
 */
#ifndef {1}
#define {1}

{6}

#ifdef __cplusplus
extern "C" {{
#endif

{2}
/** Bytes of device memory that a rank's plan takes beside its inputs and outputs. */
size_t {0}_workspace_bytes(void);

/** What it was made for and of, in JSON. */
const char *{0}_manifest(void);

/** What the schedule needs, for callers who prepare it by {3} with
 *  more of their own (streams, a cache, one stream). */
{4} {0}_describe(void);

/** Makes the plan, on the caller's buffers: what is given here is reached by other ranks where it
 * lies, and must stay until destroy. Collective. On failure *plan is NULL. Refused on a GPU that
 * the kernels were not compiled for. */
ncclxrtResult_t {0}_prepare(ncclxrtCudaComm_t comm, void *const *buffers, ncclxrtCudaPlan_t *plan);

{5}
/** Enqueues the schedule once behind what the stream (cudaStream_t) holds, and the stream behind
 * it; can be captured. Buffers other than those of the plan are copied from and to. Collective. */
ncclxrtResult_t {0}_launch(ncclxrtCudaPlan_t plan, void *stream, void *const *buffers);

/** Gives the memory back. Local. */
ncclxrtResult_t {0}_destroy(ncclxrtCudaPlan_t plan);
)",
                name, guard, sizesOf(name, plan),
                parts.whole ? "ncclxrtCudaKernelPrepare" : "ncclxrtCudaPlanPrepare",
                descriptionOf(parts), bufferDeclarations(name, "ncclxrtCudaPlan"),
                "#include \"ncclxrt/cuda.h\"");
  if (!parts.whole)
    os << "\n/** The program itself, for ncclxrtCudaPlanPrepare. */\nint32_t " << name
       << "_program(int64_t exec);\n";
  os << "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

/// `const char NAME[] =` and a line of C for each of the text's.
static void printText(StringRef name, StringRef text, raw_ostream &os) {
  os << "const char " << name << "[] =";
  if (text.empty())
    os << " \"\"";
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    os << "\n    " << literal(text.take_front(end));
    text = text.drop_front(end);
  }
  os << ";\n";
}

/// Every digit of a number.
static std::string exactly(double number) { return formatv("{0:e17}", number); }

static std::string printed(const CudaGemm &gemm) {
  auto matrix = [](const CudaGemm::Matrix &m) {
    return formatv("{{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}", m.argument, m.dtype,
                   int(m.transposed), m.scale, m.offset, m.scaleOffset, m.ld, m.batchStride)
        .str();
  };
  return formatv("{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, 0", gemm.m,
                 gemm.n, gemm.k, gemm.batch, matrix(gemm.a), matrix(gemm.b), matrix(gemm.c),
                 matrix(gemm.d), exactly(gemm.alpha), exactly(gemm.beta), gemm.accumulate,
                 int(gemm.tf32), gemm.sms);
}

/// The tables of a schedule on streams.
static void printStreamTables(const HostPlan &plan, const CudaParts &parts, raw_ostream &os) {
  printTables(plan, os);
  SmallVector<std::string> kernels, gemms, reductions;
  SmallVector<uint64_t> writers;
  for (const ComputeKernel &k : parts.kernels) {
    std::string gemm = k.gemm ? formatv("&gemms[{0}]", gemms.size()).str() : "nullptr";
    kernels.push_back(formatv("{0}, {1}, {2}, {3}, 0, {4}u, {5}", literal(k.name), k.blocks,
                              k.threads, k.arguments, k.scratchBytes, gemm));
    if (k.gemm)
      gemms.push_back(printed(*k.gemm));
  }
  printTable(os, "ncclxrtCudaGemm_t", "gemms", gemms);
  for (const HostPlan::Reduction &r : plan.reductions)
    reductions.push_back(
        formatv("{0}, {1}, {2}, {3}, {4}", r.kind, r.dtype, r.acc, int(r.scaled), int(r.divided)));
  for (const HostPlan::Slots &s : plan.slots)
    writers.push_back(uint64_t(s.writers));
  printTable(os, "ncclxrtCudaKernelDesc_t", "kernels", kernels);
  printTable(os, "ncclxrtCudaReduction_t", "reductions", reductions);
  printNumbers(os, "int64_t", "slotWriters", writers);
  if (!parts.module.empty())
    printText("module", parts.module, os);
  os << "const ncclxrtPlanDesc_t &hostPlan() {\n"
     << "  static const ncclxrtPlanDesc_t made = [] {\n"
     << planFields(plan) << "  return desc;\n  }();\n  return made;\n}\n";
}

/// The tables of a schedule that is one kernel.
static void printKernelTables(const CudaKernel &kernel, raw_ostream &os) {
  SmallVector<uint64_t> windows;
  for (const CudaKernel::Window &w : kernel.windows)
    windows.push_back(uint64_t(w.bytes * w.generations));
  printNumbers(os, "uint64_t", "windows", windows);
  printNumbers(os, "uint64_t", "slots",
               SmallVector<uint64_t>(kernel.slotWords.begin(), kernel.slotWords.end()));
  printText("source", kernel.source, os);
  SmallVector<std::string> sizes;
  for (const std::string &size : kernel.sizes)
    sizes.push_back(literal(size));
  printTable(os, "char *const", "sizes", sizes);
}

static void printDescribe(StringRef name, const HostPlan &plan, const CudaParts &parts,
                          raw_ostream &os) {
  os << descriptionOf(parts) << ' ' << name << "_describe(void) {\n  " << descriptionOf(parts)
     << " desc = "
     << (parts.whole ? "NCCLXRT_CUDA_KERNEL_PLAN_DESC_INIT" : "NCCLXRT_CUDA_PLAN_DESC_INIT")
     << ";\n";
  auto field = [&](StringRef field, const auto &value) {
    os << "  desc." << field << " = " << value << ";\n";
  };
  auto table = [&](StringRef name, size_t rows) {
    if (rows)
      field(name, name), field(("num_" + name).str(), rows);
  };
  if (const CudaKernel *kernel = parts.whole) {
    field("name", literal(plan.name));
    field("source", "source");
    field("entry", literal(kernel->entry));
    field("blocks", kernel->blocks);
    field("threads", kernel->threads);
    table("windows", kernel->windows.size());
    table("slots", kernel->slotWords.size());
    table("sizes", kernel->sizes.size());
    if (!kernel->order.empty())
      field("timeline_ops", kernel->order.size());
  } else {
    field("plan", "&hostPlan()");
    if (!plan.slots.empty())
      field("slot_writers", "slotWriters");
    if (!parts.module.empty())
      field("module", "module");
    table("kernels", parts.kernels.size());
    table("reductions", plan.reductions.size());
  }
  table("images", parts.images.size());
  field("ranks", plan.ranks);
  os << "  return desc;\n}\n\n";
}

FailureOr<CppSource> mlir::ncclx::makeCudaSource(StringRef name, const HostPlan &plan,
                                                 ModuleOp host, const CudaParts &parts) {
  CppSource out;
  llvm::raw_string_ostream header(out.header), os(out.source);
  printHeader(name, plan, parts, header);
  os << "// " << name << ".cpp - the host side of the schedule '" << plan.name << "' for "
     << plan.ranks << " ranks on GPUs. Made by ncclx-compile.\n"
     << "#include \"" << name << ".h\"\n\n#include <cstdint>\n\n";
  if (!parts.whole) {
    FailureOr<std::string> functions = printFunctions((name + "_program").str(), host);
    if (failed(functions))
      return failure();
    os << *functions << "\n";
  }
  SmallVector<std::string> images, buffers;
  for (auto [i, image] : llvm::enumerate(parts.images)) {
    std::string data = cudaImageName(name, i);
    os << "extern \"C\" const unsigned char " << data << "[];\n";
    images.push_back(formatv("{0}, {1}, 0, {2}, {3}u", literal(image.key), image.architecture, data,
                             image.data.size()));
  }
  auto list = [&](ArrayRef<size_t> windows) {
    for (size_t w : windows) {
      ctran::WindowRole role = plan.windows[w].role;
      buffers.push_back(formatv("{0}u, {1}, {2}", w, int(role != ctran::WindowRole::Output),
                                int(role != ctran::WindowRole::Input)));
    }
  };
  list(plan.inputs());
  list(plan.outputs());
  os << "namespace {\n";
  parts.whole ? printKernelTables(*parts.whole, os) : printStreamTables(plan, parts, os);
  printPositions(plan, os);
  printTable(os, "ncclxrtCudaImage_t", "images", images);
  printTable(os, "ncclxrtCudaBuffer_t", "table", buffers);
  printText("manifest", parts.manifest, os);
  os << "} // namespace\n\n";
  os << "size_t " << name << "_workspace_bytes(void) { return " << cudaWorkspaceBytes(plan, parts)
     << "u; }\n\nconst char *" << name << "_manifest(void) { return manifest; }\n\n";
  printDescribe(name, plan, parts, os);
  os << "ncclxrtResult_t " << name
     << "_prepare(ncclxrtCudaComm_t comm, void *const *buffers, ncclxrtCudaPlan_t *plan) {\n  "
     << descriptionOf(parts) << " desc = " << name << "_describe();\n";
  if (buffers.empty()) {
    os << "  (void)buffers;\n";
  } else {
    os << "  void *memory[" << plan.windows.size() << "] = {};\n"
       << "  for (size_t i = 0; buffers && i < " << buffers.size() << "; ++i)\n"
       << "    memory[table[i].window] = buffers[i];\n"
       << "  desc.memory = memory;\n";
  }
  if (parts.whole)
    os << "  return ncclxrtCudaKernelPrepare(comm, &desc, plan);\n}\n\n";
  else
    os << "  return ncclxrtCudaPlanPrepare(comm, &desc, " << name << "_program, plan);\n}\n\n";
  printBuffers(name, "ncclxrtCudaPlan", plan, os);
  os << "ncclxrtResult_t " << name
     << "_launch(ncclxrtCudaPlan_t plan, void *stream, void *const *buffers) {\n"
     << "  return ncclxrtCudaPlanLaunch(plan, stream, " << (buffers.empty() ? "nullptr" : "table")
     << ", " << buffers.size() << ", buffers);\n}\n\n"
     << "ncclxrtResult_t " << name << "_destroy(ncclxrtCudaPlan_t plan) {\n"
     << "  return ncclxrtCudaPlanDestroy(plan);\n}\n";
  return out;
}

//===- Gemm.cpp - Products of matrices on a plan's streams ----------------===//
#include "Gemm.h"

#include "../Reduce.h"

#include <algorithm>
#include <map>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

//===--- the library -------------------------------------------------------------------------===//

Gemms::~Gemms() {
  if (made)
    loaded->destroy(made);
}

Status Gemms::call(int result, const char *what) const {
  if (result == lt::success)
    return {};
  const char *name = loaded->statusName(result);
  return error(ncclxrtSystemError, "{} failed: {}", what,
               name ? name : fmt::format("cublasStatus_t {}", result));
}

Status Gemms::open() {
  if (made)
    return {};
  std::string why;
  loaded = lt::CublasLt::load(library, why);
  if (!loaded)
    return error(ncclxrtUnsupported,
                 "there is no cuBLASLt for its products of matrices: {}; expected the library of "
                 "CUDA 12 or 13, or a program without them (--gemm=generated)",
                 why);
  return call(loaded->create(&made), "cublasLtCreate");
}

//===--- descriptions ------------------------------------------------------------------------===//

static int typeOf(int32_t dtype) {
  switch (dtype) {
  case ncclxrtF32:
    return lt::typeF32;
  case ncclxrtF64:
    return lt::typeF64;
  case ncclxrtF16:
    return lt::typeF16;
  case ncclxrtBf16:
    return lt::typeBF16;
  case ncclxrtE4m3:
    return lt::typeF8E4M3;
  case ncclxrtE5m2:
    return lt::typeF8E5M2;
  default:
    return -1;
  }
}

std::string Gemm::wrong(const ncclxrtCudaGemm_t &gemm, int32_t arguments) {
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0 || gemm.batch < 0 || gemm.batch > INT32_MAX ||
      gemm.sms < 0)
    return fmt::format("expected sizes of at least 0, found {} x {} x {}, {} times, on {} SMs",
                       gemm.m, gemm.n, gemm.k, gemm.batch, gemm.sms);
  if (gemm.k == 0 && gemm.beta != 0 && gemm.beta != 1)
    return fmt::format("nothing is multiplied, and beta is {}, expected 0 or 1", gemm.beta);
  const ncclxrtCudaMatrix_t *parts[] = {&gemm.a, &gemm.b, &gemm.c, &gemm.d};
  const int64_t rows[] = {gemm.a.transposed ? gemm.k : gemm.m, gemm.b.transposed ? gemm.n : gemm.k,
                          gemm.m, gemm.m};
  for (int i = 0; i < 4; ++i) {
    const ncclxrtCudaMatrix_t &part = *parts[i];
    auto isArgument = [&](int32_t index) { return index >= 0 && index < arguments; };
    if (!isArgument(part.argument) || (part.scale != -1 && !isArgument(part.scale)) ||
        part.offset < 0 || part.scale_offset < 0 || part.batch_stride < 0 || part.ld < rows[i] ||
        typeOf(part.dtype) < 0)
      return fmt::format("matrix {} has argument {}, scale {}, dtype {}, {} rows and a leading "
                         "dimension of {}, of {} arguments",
                         "abcd"[i], part.argument, part.scale, part.dtype, rows[i], part.ld,
                         arguments);
  }
  if (gemm.c.dtype != gemm.d.dtype ||
      (gemm.accumulate != ncclxrtF32 && gemm.accumulate != ncclxrtF64))
    return fmt::format("c has dtype {}, d {}, accumulated in {}", gemm.c.dtype, gemm.d.dtype,
                       gemm.accumulate);
  return "";
}

int64_t Gemm::extent(const ncclxrtCudaMatrix_t &matrix) const {
  return ((gemm.batch - 1) * matrix.batch_stride + (gemm.n - 1) * matrix.ld + gemm.m) *
         sizeOf(matrix.dtype);
}

Gemm::~Gemm() {
  if (!gemms)
    return;
  const lt::CublasLt &lt = gemms->functions();
  for (lt::Layout layout : layouts)
    if (layout)
      lt.destroyLayout(layout);
  if (operation)
    lt.destroyOperation(operation);
}

//===--- preparing ---------------------------------------------------------------------------===//

std::array<Address, 4> Gemm::places(const std::vector<Address> &arguments) const {
  std::array<Address, 4> at{};
  for (int i = 0; i < 4; ++i)
    at[i] = arguments[parts()[i]->argument] + Address(parts()[i]->offset);
  return at;
}

void Gemm::rehearse(const std::vector<Address> &arguments) {
  rehearsed = true;
  std::array<Address, 4> at = places(arguments);
  for (int i = 0; i < 4; ++i) {
    // Generations of a window lie multiples of 64 bytes apart.
    uint32_t own = uint32_t(at[i] & -at[i] & 63);
    alignment[i] = std::min(alignment[i], own ? own : 64);
  }
}

Status Gemm::describe() {
  const lt::CublasLt &lt = gemms->functions();
  bool wide = gemm.accumulate == ncclxrtF64;
  int compute = wide ? lt::computeF64 : gemm.tf32 ? lt::computeTf32 : lt::computeF32;
  if (Status s =
          gemms->call(lt.createOperation(&operation, compute, wide ? lt::typeF64 : lt::typeF32),
                      "cublasLtMatmulDescCreate");
      !s.ok())
    return s;
  auto set = [&](int attribute, const auto &value) {
    return gemms->call(lt.setOperation(operation, attribute, &value, sizeof value),
                       "cublasLtMatmulDescSetAttribute");
  };
  if (gemm.a.transposed)
    if (Status s = set(lt::transA, lt::transpose); !s.ok())
      return s;
  if (gemm.b.transposed)
    if (Status s = set(lt::transB, lt::transpose); !s.ok())
      return s;
  if (gemm.sms)
    if (Status s = set(lt::smCountTarget, gemm.sms); !s.ok())
      return s;
  const int64_t rows[] = {gemm.m, gemm.k, gemm.m, gemm.m},
                columns[] = {gemm.k, gemm.n, gemm.n, gemm.n};
  for (int i = 0; i < 4; ++i) {
    // Without beta there is no c to read, and d stands for it.
    const ncclxrtCudaMatrix_t &part = gemm.beta == 0 && i == C ? gemm.d : *parts()[i];
    bool turned = i < 2 && part.transposed;
    if (Status s = gemms->call(lt.createLayout(&layouts[i], typeOf(part.dtype),
                                               uint64_t(turned ? columns[i] : rows[i]),
                                               uint64_t(turned ? rows[i] : columns[i]), part.ld),
                               "cublasLtMatrixLayoutCreate");
        !s.ok())
      return s;
    if (gemm.batch == 1)
      continue;
    int32_t count = int32_t(gemm.batch);
    for (int result :
         {lt.setLayout(layouts[i], lt::batchCount, &count, sizeof count),
          lt.setLayout(layouts[i], lt::batchStride, &part.batch_stride, sizeof part.batch_stride)})
      if (Status s = gemms->call(result, "cublasLtMatrixLayoutSetAttribute"); !s.ok())
        return s;
  }
  return {};
}

/// What the choice of an algorithm depends on, and nothing else.
std::string Gemm::problem(uint64_t workspace) const {
  ncclxrtCudaGemm_t plain = gemm;
  for (ncclxrtCudaMatrix_t *part : {&plain.a, &plain.b, &plain.c, &plain.d}) {
    part->argument = 0, part->scale = part->scale >= 0;
    part->offset = part->scale_offset = 0;
  }
  std::string key(reinterpret_cast<const char *>(&plain), sizeof plain);
  return key + fmt::format("{} {} {} {}", fmt::join(alignment, " "), workspace,
                           gemms->comm.deviceNumber(), gemms->library);
}

Status Gemm::choose(uint64_t workspace) {
  static std::mutex lock;
  static std::map<std::string, lt::Choice> known;
  std::string key = problem(workspace);
  std::lock_guard<std::mutex> hold(lock);
  if (auto it = known.find(key); it != known.end()) {
    choice = it->second;
    return {};
  }
  const lt::CublasLt &lt = gemms->functions();
  lt::Preference preference = nullptr;
  if (Status s = gemms->call(lt.createPreference(&preference), "cublasLtMatmulPreferenceCreate");
      !s.ok())
    return s;
  int result = lt.setPreference(preference, lt::maxWorkspace, &workspace, sizeof workspace);
  for (int i = 0; i < 4 && result == lt::success; ++i)
    result = lt.setPreference(preference, lt::alignmentA + i, &alignment[i], sizeof alignment[i]);
  int found = 0;
  if (result == lt::success)
    result = lt.choose(gemms->handle(), operation, layouts[A], layouts[B], layouts[C], layouts[D],
                       preference, 1, &choice, &found);
  lt.destroyPreference(preference);
  if (result == lt::notSupported || (result == lt::success && (!found || choice.status)))
    return error(ncclxrtUnsupported,
                 "cuBLASLt has no algorithm on this GPU for {} x {} x {}{}{} of types {}, {} and "
                 "{}, aligned to {} bytes, in {} bytes of workspace; --gemm=generated has one",
                 gemm.m, gemm.n, gemm.k, gemm.a.transposed ? ", a transposed" : "",
                 gemm.b.transposed ? ", b transposed" : "", gemm.a.dtype, gemm.b.dtype,
                 gemm.d.dtype, fmt::join(alignment, ", "), workspace);
  if (Status s = gemms->call(result, "cublasLtMatmulAlgoGetHeuristic"); !s.ok())
    return s;
  known.emplace(key, choice);
  return {};
}

Status Gemm::prepare(Gemms &opened, uint64_t workspace) {
  if (!isNeeded())
    return {};
  if (Status s = opened.open(); !s.ok())
    return s;
  gemms = &opened;
  auto setScale = [&](const ncclxrtCudaMatrix_t &part, int attribute) {
    const void *nothing = nullptr; // known to be there when the algorithm is chosen
    return part.scale < 0 ? Status()
                          : gemms->call(gemms->functions().setOperation(operation, attribute,
                                                                        &nothing, sizeof nothing),
                                        "cublasLtMatmulDescSetAttribute");
  };
  if (Status s = describe(); !s.ok())
    return s;
  if (Status s = setScale(gemm.a, lt::scaleA); !s.ok())
    return s;
  if (Status s = setScale(gemm.b, lt::scaleB); !s.ok())
    return s;
  return choose(workspace);
}

Status Gemm::warmUp(const std::vector<Address> &arguments, Address workspace, Stream stream) {
  if (!isNeeded())
    return {};
  Comm &comm = gemms->comm;
  const Driver &cuda = comm.cuda();
  std::array<Address, 4> at = places(arguments);
  Address memory = 0;
  if (Status s = comm.call(cuda.allocate(&memory, size_t(std::max(extent(gemm.c), extent(gemm.d)))),
                           "cuMemAlloc");
      !s.ok())
    return s;
  at[C] = at[D] = memory;
  Status done = multiply(arguments, at, workspace, stream);
  if (Status s = comm.synchronize(stream); done.ok())
    done = s;
  cuda.free(memory);
  return done;
}

//===--- running -----------------------------------------------------------------------------===//

Status Gemm::multiply(const std::vector<Address> &arguments, const std::array<Address, 4> &at,
                      Address workspace, Stream stream) {
  const lt::CublasLt &lt = gemms->functions();
  for (auto [part, attribute] : {std::pair(&gemm.a, lt::scaleA), std::pair(&gemm.b, lt::scaleB)})
    if (part->scale >= 0) {
      Address scale = arguments[part->scale] + Address(part->scale_offset);
      if (Status s = gemms->call(lt.setOperation(operation, attribute, &scale, sizeof scale),
                                 "cublasLtMatmulDescSetAttribute");
          !s.ok())
        return s;
    }
  float alpha = float(gemm.alpha), beta = float(gemm.beta);
  bool wide = gemm.accumulate == ncclxrtF64;
  auto pointer = [](Address address) { return reinterpret_cast<void *>(address); };
  return gemms->call(lt.multiply(gemms->handle(), operation,
                                 wide ? static_cast<const void *>(&gemm.alpha) : &alpha,
                                 pointer(at[A]), layouts[A], pointer(at[B]), layouts[B],
                                 wide ? static_cast<const void *>(&gemm.beta) : &beta,
                                 pointer(gemm.beta == 0 ? at[D] : at[C]), layouts[C],
                                 pointer(at[D]), layouts[D], &choice.algorithm, pointer(workspace),
                                 choice.workspace, stream),
                     "cublasLtMatmul");
}

Status Gemm::scale(Comm &comm, const std::array<Address, 4> &at, Stream stream) const {
  const Driver &cuda = comm.cuda();
  int64_t element = sizeOf(gemm.d.dtype);
  bool whole = gemm.d.ld == gemm.m || gemm.n == 1;
  for (int64_t i = 0; i < gemm.batch; ++i) {
    Address to = at[D] + Address(i * gemm.d.batch_stride * element),
            from = at[C] + Address(i * gemm.c.batch_stride * element);
    if (gemm.beta == 0) {
      for (int64_t column = 0; column < (whole ? 1 : gemm.n); ++column)
        if (Status s =
                comm.call(cuda.fill(to + Address(column * gemm.d.ld * element), 0,
                                    size_t((whole ? gemm.m * gemm.n : gemm.m) * element), stream),
                          "cuMemsetD8Async");
            !s.ok())
          return s;
      continue;
    }
    if (to == from)
      continue;
    Copy2D copy{};
    copy.fromType = copy.toType = unifiedMemory;
    copy.from = from, copy.fromPitch = size_t(gemm.c.ld * element);
    copy.to = to, copy.toPitch = size_t(gemm.d.ld * element);
    copy.width = size_t(gemm.m * element), copy.height = size_t(gemm.n);
    if (Status s = comm.call(cuda.copy2D(&copy, stream), "cuMemcpy2DAsync"); !s.ok())
      return s;
  }
  return {};
}

Status Gemm::launch(Comm &comm, const std::vector<Address> &arguments, Address workspace,
                    Stream stream) {
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0)
    return {};
  std::array<Address, 4> at = places(arguments);
  if (gemm.k == 0)
    return scale(comm, at, stream);
  if (!gemms)
    return error(ncclxrtInvalidUsage, "the program does in this run what it did not rehearse");
  return multiply(arguments, at, workspace, stream);
}

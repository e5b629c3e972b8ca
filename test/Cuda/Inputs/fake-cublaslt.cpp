//===- fake-cublaslt.cpp - Stands for cuBLASLt on the fake driver -------------------------===//
//
// Multiplies on the host, when the fake's stream comes to it, the later half of a sum first, so
// that sums differ from the reference's in their last bits. It is strict: what cuBLASLt's
// documentation of cublasLtMatmul and of its attributes rules out is refused, and so are addresses
// that the preferences did not promise, memory that is not there, and an algorithm that was chosen
// for another problem. Each product is a line of FAKE_CUDA_LOG.
//
//===----------------------------------------------------------------------===//
#include "fake-cuda.h"

#include "Floats.h"
#include "cuda/CublasLt.h"
#include "ncclxrt/abi.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <vector>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

using namespace ncclxrt;
using namespace ncclxrt::cuda;

#if __has_include(<cublasLt.h>)
static_assert(lt::success == CUBLAS_STATUS_SUCCESS &&
              lt::notSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(lt::computeF32 == CUBLAS_COMPUTE_32F && lt::computeF64 == CUBLAS_COMPUTE_64F &&
              lt::computeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(lt::typeF32 == CUDA_R_32F && lt::typeF64 == CUDA_R_64F && lt::typeF16 == CUDA_R_16F &&
              lt::typeBF16 == CUDA_R_16BF && lt::typeF8E4M3 == CUDA_R_8F_E4M3 &&
              lt::typeF8E5M2 == CUDA_R_8F_E5M2);
static_assert(lt::transpose == CUBLAS_OP_T);
static_assert(lt::transA == CUBLASLT_MATMUL_DESC_TRANSA &&
              lt::transB == CUBLASLT_MATMUL_DESC_TRANSB &&
              lt::smCountTarget == CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET &&
              lt::scaleA == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER &&
              lt::scaleB == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
static_assert(lt::batchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              lt::batchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(lt::maxWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
              lt::alignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              lt::alignmentB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES &&
              lt::alignmentC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES &&
              lt::alignmentD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(lt::Algorithm) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(lt::Choice) == sizeof(cublasLtMatmulHeuristicResult_t));
#endif

namespace {
constexpr int invalidValue = 7, executionFailed = 13;
constexpr size_t workspace = 1024; // of every algorithm

struct Operation {
  int compute, scaleType;
  int32_t transA = 0, transB = 0, sms = 0;
  Address scaleA = 0, scaleB = 0;
  bool scaled = false;
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};
/// What an algorithm was chosen for.
struct Chosen {
  uint64_t mark, problem;
  uint16_t alignment[4];
};

int sizeOfType(int type) {
  switch (type) {
  case lt::typeF64:
    return 8;
  case lt::typeF32:
    return 4;
  case lt::typeF16:
  case lt::typeBF16:
    return 2;
  default:
    return 1;
  }
}
const char *nameOf(int type) {
  switch (type) {
  case lt::typeF64:
    return "f64";
  case lt::typeF32:
    return "f32";
  case lt::typeF16:
    return "f16";
  case lt::typeBF16:
    return "bf16";
  case lt::typeF8E4M3:
    return "e4m3";
  case lt::typeF8E5M2:
    return "e5m2";
  default:
    return "?";
  }
}

template <typename T> T load(Address at, int64_t index) {
  T value;
  std::memcpy(&value, reinterpret_cast<const char *>(at) + index * int64_t(sizeof(T)), sizeof(T));
  return value;
}
double element(int type, Address at, int64_t index) {
  switch (type) {
  case lt::typeF64:
    return load<double>(at, index);
  case lt::typeF32:
    return load<float>(at, index);
  case lt::typeF16:
    return float(load<F16>(at, index));
  case lt::typeBF16:
    return float(load<Bf16>(at, index));
  case lt::typeF8E4M3:
    return float(load<E4m3>(at, index));
  default:
    return float(load<E5m2>(at, index));
  }
}
void store(int type, Address at, int64_t index, double value) {
  auto put = [&](auto bits) {
    std::memcpy(reinterpret_cast<char *>(at) + index * int64_t(sizeof bits), &bits, sizeof bits);
  };
  type == lt::typeF64   ? put(value)
  : type == lt::typeF32 ? put(float(value))
  : type == lt::typeF16 ? put(F16::from(float(value)))
                        : put(Bf16::from(float(value)));
}

/// To 11 bits, to nearest.
double tf32(double value) {
  int exponent;
  double fraction = std::frexp(value, &exponent);
  return std::isfinite(value) ? std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11)
                              : value;
}

/// 32 terms and the sum so far, each cut 13 bits below the largest exponent, and their sum, too:
/// Hopper's way with 8-bit floats.
double addBytes(const std::vector<double> &terms) {
  auto cut = [](double value, int exponent) {
    return std::ldexp(std::trunc(std::ldexp(value, 13 - exponent)), exponent - 13);
  };
  double sum = 0;
  for (size_t first = 0; first < terms.size(); first += 32) {
    size_t end = std::min(terms.size(), first + 32);
    double most = std::fabs(sum);
    for (size_t i = first; i < end; ++i)
      most = std::max(most, std::fabs(terms[i]));
    if (most == 0)
      continue;
    int exponent = std::ilogb(most);
    double total = cut(sum, exponent);
    for (size_t i = first; i < end; ++i)
      total += cut(terms[i], exponent);
    sum = total == 0 ? 0 : cut(total, std::ilogb(total));
  }
  return sum;
}

struct Problem {
  Operation op;
  Layout a, b, c, d;

  uint64_t hash() const {
    uint64_t h = 14695981039346656037u;
    auto add = [&](auto... values) { ((h = (h ^ uint64_t(values)) * 1099511628211u), ...); };
    add(op.compute, op.transA, op.transB, op.sms, op.scaled);
    for (const Layout &l : {a, b, c, d})
      add(l.type, l.rows, l.columns, l.ld, l.batch, l.stride);
    return h;
  }
  int check() const;
};

int Problem::check() const {
  bool turnA = op.transA, turnB = op.transB;
  uint64_t m = turnA ? a.columns : a.rows, k = turnA ? a.rows : a.columns,
           n = turnB ? b.rows : b.columns;
  if (!m || !n || !k || (turnB ? b.columns : b.rows) != k || c.rows != m || c.columns != n ||
      d.rows != m || d.columns != n)
    return invalidValue;
  for (const Layout &l : {a, b, c, d})
    if (l.ld < int64_t(l.rows) || l.batch != a.batch || l.batch < 1 || l.stride < 0)
      return invalidValue;
  auto isByte = [](int type) { return type == lt::typeF8E4M3 || type == lt::typeF8E5M2; };
  if (op.scaled && (!isByte(a.type) || !isByte(b.type)))
    return invalidValue;
  if (op.compute == lt::computeF64)
    return a.type == lt::typeF64 && b.type == lt::typeF64 && c.type == lt::typeF64 &&
                   d.type == lt::typeF64 && op.scaleType == lt::typeF64
               ? lt::success
               : lt::notSupported;
  if (op.scaleType != lt::typeF32 || c.type != d.type)
    return lt::notSupported;
  if (op.compute == lt::computeTf32 && a.type != lt::typeF32)
    return lt::notSupported;
  if (isByte(a.type) && isByte(b.type)) {
    bool along = turnA && !turnB && ((m | n | k | uint64_t(a.ld) | uint64_t(b.ld)) % 16 == 0);
    bool types = !(a.type == lt::typeF8E5M2 && b.type == lt::typeF8E5M2) &&
                 (d.type == lt::typeF32 || d.type == lt::typeF16 || d.type == lt::typeBF16);
    return along && types ? lt::success : lt::notSupported;
  }
  bool types = a.type == b.type &&
               (a.type == lt::typeF32 || a.type == lt::typeF16 || a.type == lt::typeBF16) &&
               (d.type == lt::typeF32 || d.type == a.type);
  return types ? lt::success : lt::notSupported;
}

int setAttribute(void *target, size_t size, const void *value, size_t given) {
  if (!value || size != given)
    return invalidValue;
  std::memcpy(target, value, size);
  return lt::success;
}

void multiply(const Problem &p, double alpha, double beta, Address a, Address b, Address c,
              Address d) {
  auto scale = [](Address at) { return at ? double(load<float>(at, 0)) : 1; };
  double factor = alpha * scale(p.op.scaleA) * scale(p.op.scaleB);
  int64_t k = int64_t(p.op.transA ? p.a.rows : p.a.columns);
  bool wide = p.op.compute == lt::computeF64, rounded = p.op.compute == lt::computeTf32;
  bool bytes = sizeOfType(p.a.type) == 1;
  std::vector<double> terms;
  auto at = [&](const Layout &l, Address base, int64_t row, int64_t column, int64_t i,
                bool turned) {
    double x =
        element(l.type, base, i * l.stride + (turned ? row * l.ld + column : column * l.ld + row));
    return rounded ? tf32(x) : x;
  };
  for (int64_t i = 0; i < p.d.batch; ++i)
    for (int64_t column = 0; column < int64_t(p.d.columns); ++column)
      for (int64_t row = 0; row < int64_t(p.d.rows); ++row) {
        double sum = 0;
        terms.clear();
        for (int64_t s = 0; s < k; ++s) {
          int64_t term = (s + k / 2) % k;
          terms.push_back(at(p.a, a, row, term, i, p.op.transA) *
                          at(p.b, b, term, column, i, p.op.transB));
          sum += terms.back();
          if (!wide)
            sum = float(sum);
        }
        if (bytes)
          sum = addBytes(terms);
        sum *= factor;
        if (beta != 0)
          sum += beta * element(p.c.type, c, i * p.c.stride + column * p.c.ld + row);
        store(p.d.type, d, i * p.d.stride + column * p.d.ld + row, sum);
      }
}
} // namespace

extern "C" {
#define FAKE_LT_ALIAS(name) __asm__(#name)
int fakeCreate(lt::Handle *handle) FAKE_LT_ALIAS(cublasLtCreate);
int fakeDestroy(lt::Handle) FAKE_LT_ALIAS(cublasLtDestroy);
const char *fakeName(int status) FAKE_LT_ALIAS(cublasLtGetStatusName);
int fakeOperation(Operation **, int, int) FAKE_LT_ALIAS(cublasLtMatmulDescCreate);
int fakeNoOperation(Operation *) FAKE_LT_ALIAS(cublasLtMatmulDescDestroy);
int fakeSetOperation(Operation *, int, const void *, size_t)
    FAKE_LT_ALIAS(cublasLtMatmulDescSetAttribute);
int fakeLayout(Layout **, int, uint64_t, uint64_t, int64_t)
    FAKE_LT_ALIAS(cublasLtMatrixLayoutCreate);
int fakeNoLayout(Layout *) FAKE_LT_ALIAS(cublasLtMatrixLayoutDestroy);
int fakeSetLayout(Layout *, int, const void *, size_t)
    FAKE_LT_ALIAS(cublasLtMatrixLayoutSetAttribute);
int fakePreference(Preference **) FAKE_LT_ALIAS(cublasLtMatmulPreferenceCreate);
int fakeNoPreference(Preference *) FAKE_LT_ALIAS(cublasLtMatmulPreferenceDestroy);
int fakeSetPreference(Preference *, int, const void *, size_t)
    FAKE_LT_ALIAS(cublasLtMatmulPreferenceSetAttribute);
int fakeChoose(lt::Handle, Operation *, Layout *, Layout *, Layout *, Layout *, Preference *, int,
               lt::Choice *, int *) FAKE_LT_ALIAS(cublasLtMatmulAlgoGetHeuristic);
int fakeMultiply(lt::Handle, Operation *, const void *, Address, Layout *, Address, Layout *,
                 const void *, Address, Layout *, Address, Layout *, const lt::Algorithm *, Address,
                 size_t, Stream) FAKE_LT_ALIAS(cublasLtMatmul);

int fakeCreate(lt::Handle *handle) {
  if (fakecuda::fails("cublasLtCreate"))
    return executionFailed;
  *handle = reinterpret_cast<lt::Handle>(new int);
  return lt::success;
}
int fakeDestroy(lt::Handle handle) {
  delete reinterpret_cast<int *>(handle);
  return lt::success;
}
const char *fakeName(int status) {
  return status == lt::success        ? "CUBLAS_STATUS_SUCCESS"
         : status == invalidValue     ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == lt::notSupported ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                      : "CUBLAS_STATUS_EXECUTION_FAILED";
}
int fakeOperation(Operation **made, int compute, int scaleType) {
  *made = new Operation{compute, scaleType};
  return lt::success;
}
int fakeNoOperation(Operation *op) {
  delete op;
  return lt::success;
}
int fakeSetOperation(Operation *op, int attribute, const void *value, size_t size) {
  switch (attribute) {
  case lt::transA:
    return setAttribute(&op->transA, sizeof op->transA, value, size);
  case lt::transB:
    return setAttribute(&op->transB, sizeof op->transB, value, size);
  case lt::smCountTarget:
    return setAttribute(&op->sms, sizeof op->sms, value, size);
  case lt::scaleA:
    op->scaled = true;
    return setAttribute(&op->scaleA, sizeof op->scaleA, value, size);
  case lt::scaleB:
    op->scaled = true;
    return setAttribute(&op->scaleB, sizeof op->scaleB, value, size);
  default:
    return invalidValue;
  }
}
int fakeLayout(Layout **made, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  *made = new Layout{type, rows, columns, ld};
  return lt::success;
}
int fakeNoLayout(Layout *layout) {
  delete layout;
  return lt::success;
}
int fakeSetLayout(Layout *layout, int attribute, const void *value, size_t size) {
  return attribute == lt::batchCount
             ? setAttribute(&layout->batch, sizeof layout->batch, value, size)
         : attribute == lt::batchStride
             ? setAttribute(&layout->stride, sizeof layout->stride, value, size)
             : invalidValue;
}
int fakePreference(Preference **made) {
  *made = new Preference;
  return lt::success;
}
int fakeNoPreference(Preference *preference) {
  delete preference;
  return lt::success;
}
int fakeSetPreference(Preference *preference, int attribute, const void *value, size_t size) {
  if (attribute == lt::maxWorkspace)
    return setAttribute(&preference->workspace, sizeof preference->workspace, value, size);
  if (attribute < lt::alignmentA || attribute > lt::alignmentD)
    return invalidValue;
  return setAttribute(&preference->alignment[attribute - lt::alignmentA], sizeof(uint32_t), value,
                      size);
}
int fakeChoose(lt::Handle handle, Operation *op, Layout *a, Layout *b, Layout *c, Layout *d,
               Preference *preference, int wanted, lt::Choice *choices, int *found) {
  if (fakecuda::fails("cublasLtMatmulAlgoGetHeuristic"))
    return executionFailed;
  *found = 0;
  Problem problem{*op, *a, *b, *c, *d};
  int result = problem.check();
  if (result != lt::success || wanted < 1)
    return result;
  if (preference->workspace < workspace)
    return lt::notSupported;
  fakecuda::log(fmt::format("cublasLtMatmulAlgoGetHeuristic {} bytes",
                            fmt::join(preference->alignment, " ")));
  Chosen chosen{0xb1a5, problem.hash(), {}};
  for (int i = 0; i < 4; ++i)
    chosen.alignment[i] = uint16_t(preference->alignment[i]);
  choices[0] = {};
  std::memcpy(&choices[0].algorithm, &chosen, sizeof chosen);
  choices[0].workspace = workspace;
  *found = 1;
  return lt::success;
}
int fakeMultiply(lt::Handle handle, Operation *op, const void *alpha, Address a, Layout *la,
                 Address b, Layout *lb, const void *beta, Address c, Layout *lc, Address d,
                 Layout *ld, const lt::Algorithm *algorithm, Address scratch, size_t scratchBytes,
                 Stream stream) {
  if (fakecuda::fails("cublasLtMatmul"))
    return executionFailed;
  Problem problem{*op, *la, *lb, *lc, *ld};
  Chosen chosen;
  std::memcpy(&chosen, algorithm, sizeof chosen);
  if (problem.check() != lt::success || chosen.mark != 0xb1a5 || chosen.problem != problem.hash())
    return invalidValue;
  const Layout *layouts[] = {la, lb, lc, ld};
  const Address places[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    const Layout &l = *layouts[i];
    size_t elements = size_t((l.batch - 1) * l.stride + int64_t(l.columns - 1) * l.ld) + l.rows;
    if (places[i] % std::min<uint64_t>(chosen.alignment[i], 64) ||
        fakecuda::roomAt(places[i]) < elements * sizeOfType(l.type))
      return invalidValue;
  }
  for (Address scale : {op->scaleA, op->scaleB})
    if (op->scaled && scale && (scale % 4 || fakecuda::roomAt(scale) < 4))
      return invalidValue;
  // c is d, or shares nothing with it.
  size_t bytes =
      size_t((ld->batch - 1) * ld->stride + int64_t(ld->columns - 1) * ld->ld) + ld->rows;
  bytes *= sizeOfType(ld->type);
  bool wide = op->compute == lt::computeF64;
  double x = wide ? *static_cast<const double *>(alpha) : *static_cast<const float *>(alpha),
         y = wide ? *static_cast<const double *>(beta) : *static_cast<const float *>(beta);
  if ((y != 0 && c != d && c < d + bytes && d < c + bytes) || (c == d && lc->ld != ld->ld) ||
      scratchBytes < workspace || scratch % 256 || fakecuda::roomAt(scratch) < scratchBytes)
    return invalidValue;
  fakecuda::log(fmt::format(
      "cublasLtMatmul {}{} {}x{}x{} x{} {},{}->{} compute {} ld {},{},{},{} stride {},{},{},{} "
      "alpha {} beta {} scales {}{} sms {}",
      op->transA ? "T" : "N", op->transB ? "T" : "N", ld->rows, ld->columns,
      op->transA ? la->rows : la->columns, ld->batch, nameOf(la->type), nameOf(lb->type),
      nameOf(ld->type), op->compute, la->ld, lb->ld, lc->ld, ld->ld, la->stride, lb->stride,
      lc->stride, ld->stride, x, y, op->scaleA != 0, op->scaleB != 0, op->sms));
  fakecuda::enqueue(stream, [=] {
    // Its scratch memory is written.
    std::memset(reinterpret_cast<void *>(scratch), 0xee, scratchBytes);
    multiply(problem, x, y, a, b, c, d);
  });
  return lt::success;
}
}

//===- ComputeGemms.cpp - Kernels that are products of matrices -----------------------===//
//
// The function is run over symbols: a buffer holds zeros, what an argument held at first, perhaps
// scaled, or a product of two such. What is left in the one argument that was written is the
// answer. Every step is checked; the first that is another refuses the function.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Cuda/ComputeGemms.h"

#include "GemmLayout.h"

#include "ncclx/Analysis/Products.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclxrt/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// What an argument held at first, each element extended and multiplied.
struct Term {
  GemmPlace place;
  double factor = 1;
  std::optional<GemmPlace> scale; ///< an element that all are multiplied with, besides
};
struct Product {
  linalg::LinalgOp op;
  Term a, b;
  std::optional<Term> c; ///< none: zeros
  double alpha = 1;
  Type sum;  ///< what it is added up in
  Type type; ///< what its elements have been rounded to since
};
struct Content {
  enum Kind { Nothing, Zeros, Held, Multiplied } kind = Nothing;
  GemmPlace at; ///< where in the buffer
  Term term;
  Product product;
};

class Finder {
public:
  Finder(func::FuncOp function, std::string &why) : function(function), why(why) {}
  std::optional<CudaGemm> find();

private:
  func::FuncOp function;
  std::string &why;
  llvm::MapVector<Value, Content> contents; ///< by root: of arguments, those that were written

  bool refuse(const llvm::Twine &reason) {
    why = reason.str();
    return false;
  }
  bool visit(Operation &op);
  bool visitProduct(linalg::LinalgOp op);
  bool visitScaling(linalg::GenericOp op);
  std::optional<Content> read(Value memref);
  std::optional<Term> readTerm(Value memref);
  bool write(Value memref, Content content);
  bool attachScale(Product &product, const GemmPlace &scale);
  std::optional<CudaGemm> describe(const Content &content);
  bool checkTypes(const Product &product, CudaGemm &gemm, Type d);
};

} // namespace

static bool isByte(Type type) { return type.getIntOrFloatBitWidth() == 8; }

static std::optional<int64_t> dtypeOf(Type type) {
  if (type.isF32())
    return ncclxrtF32;
  if (type.isF64())
    return ncclxrtF64;
  if (type.isF16())
    return ncclxrtF16;
  if (type.isBF16())
    return ncclxrtBf16;
  if (isa<Float8E4M3FNType>(type))
    return ncclxrtE4m3;
  if (isa<Float8E5M2Type>(type))
    return ncclxrtE5m2;
  return std::nullopt;
}

std::optional<Content> Finder::read(Value memref) {
  std::optional<GemmPlace> place = placeOf(memref);
  if (!place) {
    refuse("an operand's place is not a box of an argument that is known here");
    return std::nullopt;
  }
  auto it = contents.find(place->root);
  if (it == contents.end()) {
    if (!isa<BlockArgument>(place->root)) {
      refuse("it reads memory that nobody has written");
      return std::nullopt;
    }
    Content first;
    first.kind = Content::Held;
    first.at = first.term.place = *place;
    return first;
  }
  if (!(it->second.at == *place)) {
    refuse("it reads another part of a buffer than it has written");
    return std::nullopt;
  }
  return it->second;
}

std::optional<Term> Finder::readTerm(Value memref) {
  std::optional<Content> content = read(memref);
  if (!content)
    return std::nullopt;
  if (content->kind != Content::Held) {
    refuse("it multiplies what it has computed itself");
    return std::nullopt;
  }
  return content->term;
}

bool Finder::write(Value memref, Content content) {
  std::optional<GemmPlace> place = placeOf(memref);
  if (!place)
    return refuse("its result's place is not a box of an argument that is known here");
  auto it = contents.find(place->root);
  if (it != contents.end() && !(it->second.at == *place))
    return refuse("it writes two parts of a buffer");
  content.at = *place;
  contents[place->root] = content;
  return true;
}

bool Finder::attachScale(Product &product, const GemmPlace &scale) {
  for (Term *term : {&product.a, &product.b})
    if (isByte(term->place.type) && !term->scale) {
      term->scale = scale;
      return true;
    }
  return refuse("a scale in memory is taken with factors of 8-bit floats alone, one for each");
}

bool Finder::visitScaling(linalg::GenericOp op) {
  std::optional<Scaling> scaling = matchScaling(op);
  if (!scaling)
    return refuse("an elementwise op does more than extend, scale and round");
  std::optional<Content> content = read(op.getDpsInputs().front());
  if (!content)
    return false;
  SmallVector<GemmPlace> scales;
  for (OpOperand *scalar : scaling->scalars) {
    std::optional<Term> term = readTerm(scalar->get());
    if (!term)
      return false;
    if (term->factor != 1 || term->scale || !term->place.type.isF32())
      return refuse("a scale in memory is not an f32 that an argument holds");
    scales.push_back(term->place);
  }
  Type result = cast<MemRefType>(op.getDpsInits().front().getType()).getElementType();
  bool multiplies = scaling->factor != 1 || !scales.empty();
  if (!std::isfinite(scaling->factor) || scaling->factor == 0) // with 0, nothing would be read
    return refuse("it scales by 0, or by what is no number");
  if (content->kind == Content::Held) {
    if (scaling->rounds || (multiplies && result.getIntOrFloatBitWidth() < 32))
      return refuse("it rounds a factor before it multiplies");
    content->term.factor *= scaling->factor;
    for (const GemmPlace &scale : scales) {
      if (content->term.scale)
        return refuse("a factor has two scales in memory");
      content->term.scale = scale;
    }
  } else if (content->kind == Content::Multiplied) {
    Product &product = content->product;
    if (scaling->extends || (multiplies && product.type != product.sum))
      return refuse("it computes with a result that has been rounded");
    if (!scales.empty() && product.c)
      return refuse("what it is added to is scaled from memory, too");
    product.alpha *= scaling->factor;
    if (product.c)
      product.c->factor *= scaling->factor;
    for (const GemmPlace &scale : scales)
      if (!attachScale(product, scale))
        return false;
    product.type = result;
  } else if (multiplies) {
    return refuse("it scales zeros, which need not stay zeros");
  }
  return write(op.getDpsInits().front(), *content);
}

bool Finder::visitProduct(linalg::LinalgOp op) {
  Content result;
  result.kind = Content::Multiplied;
  result.product.op = op;
  std::optional<Term> a = readTerm(op.getDpsInputs()[0]), b;
  if (a)
    b = readTerm(op.getDpsInputs()[1]);
  std::optional<Content> c;
  if (b)
    c = read(op.getDpsInits().front());
  if (!c)
    return false;
  result.product.a = *a, result.product.b = *b;
  if (c->kind == Content::Held)
    result.product.c = c->term;
  else if (c->kind != Content::Zeros)
    return refuse("it adds to what it has computed itself");
  result.product.sum = result.product.type =
      cast<MemRefType>(op.getDpsInits().front().getType()).getElementType();
  return write(op.getDpsInits().front(), result);
}

bool Finder::visit(Operation &op) {
  if (isa<memref::AllocOp, memref::DeallocOp, func::ReturnOp, ViewLikeOpInterface>(op) ||
      isMemoryEffectFree(&op))
    return true;
  if (auto fill = dyn_cast<linalg::FillOp>(op)) {
    if (!matchPattern(fill.getInputs().front(), m_AnyZeroFloat()))
      return refuse("it fills memory with something else than zeros");
    Content zeros;
    zeros.kind = Content::Zeros;
    return write(fill.getOutputs().front(), zeros);
  }
  if (isa<memref::CopyOp, linalg::CopyOp>(op)) {
    if (getElementTypeOrSelf(op.getOperand(0)) != getElementTypeOrSelf(op.getOperand(1)))
      return refuse("a copy changes the type of elements"); // of linalg's: it may round
    std::optional<Content> content = read(op.getOperand(0));
    return content && write(op.getOperand(1), *content);
  }
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (structured && isProduct(structured))
    return visitProduct(structured);
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return visitScaling(generic);
  return refuse("it has a " + op.getName().getStringRef());
}

/// What cuBLASLt combines; its documentation of cublasLtMatmul has the table.
bool Finder::checkTypes(const Product &product, CudaGemm &gemm, Type d) {
  Type a = product.a.place.type, b = product.b.place.type;
  bool bytes = isByte(a) && isByte(b);
  auto text = [](Type type) {
    std::string name;
    llvm::raw_string_ostream(name) << type;
    return name;
  };
  for (Type type : {a, b, d})
    if (!dtypeOf(type))
      return refuse("cuBLASLt has no elements of " + text(type));
  bool wide = a.isF64();
  if ((bytes ? isa<Float8E5M2Type>(a) && isa<Float8E5M2Type>(b) : a != b || isByte(a)) ||
      (wide ? !d.isF64() || !product.sum.isF64() : product.sum.isF64()) ||
      (!wide && !d.isF32() && (bytes ? !d.isF16() && !d.isBF16() : d != a)))
    return refuse("cuBLASLt does not combine " + text(a) + " and " + text(b) + " to " + text(d));
  if (product.c && product.c->place.type != d)
    return refuse("it adds to " + text(product.c->place.type) + " and gives " + text(d));
  for (const Term *term : {&product.a, &product.b})
    if (term->scale && !isByte(term->place.type))
      return refuse("a scale in memory is taken with factors of 8-bit floats alone");
  if (product.c && product.c->scale)
    return refuse("what it is added to is scaled from memory");
  gemm.accumulate = wide ? ncclxrtF64 : ncclxrtF32;
  gemm.tf32 = a.isF32() && linalg::LinalgOp(product.op)->hasAttr(kAllowTf32AttrName);
  return true;
}

std::optional<CudaGemm> Finder::describe(const Content &content) {
  const Product &product = content.product;
  CudaGemm gemm;
  if (!checkTypes(product, gemm, content.at.type))
    return std::nullopt;
  const GemmPlace &c = product.c ? product.c->place : content.at;
  std::string reason =
      layOutGemm(product.op, product.a.place, product.b.place, c, content.at, gemm);
  if (!reason.empty()) {
    refuse(reason);
    return std::nullopt;
  }
  auto argument = [](const GemmPlace &place) {
    return int64_t(cast<BlockArgument>(place.root).getArgNumber());
  };
  auto set = [&](CudaGemm::Matrix &matrix, const GemmPlace &place) {
    matrix.argument = argument(place);
    matrix.dtype = *dtypeOf(place.type);
    matrix.offset = place.offset * (place.type.getIntOrFloatBitWidth() / 8);
  };
  // By columns, a result with rows in memory is the transposed one: its factors change places.
  bool swapped = gemm.a.argument == 1;
  const Term &first = swapped ? product.b : product.a, &second = swapped ? product.a : product.b;
  set(gemm.a, first.place);
  set(gemm.b, second.place);
  set(gemm.c, c);
  set(gemm.d, content.at);
  for (auto [matrix, term] : {std::pair(&gemm.a, &first), std::pair(&gemm.b, &second)})
    if (term->scale) {
      matrix->scale = argument(*term->scale);
      matrix->scaleOffset = term->scale->offset * 4;
    }
  gemm.alpha = product.alpha * product.a.factor * product.b.factor;
  gemm.beta = product.c ? product.c->factor : 0;
  // They are handed over in the type that is computed in, and one that has become 0 says that
  // nothing is to be read.
  for (double factor : {gemm.alpha, product.c ? gemm.beta : 1.0}) {
    bool wide = gemm.accumulate == ncclxrtF64;
    if (!(wide ? std::isnormal(factor) : std::isnormal(float(factor)))) {
      refuse(llvm::formatv("its factors make {0:e} together, which is no normal number of the type "
                           "that it computes in",
                           factor)
                 .str());
      return std::nullopt;
    }
  }
  if (gemm.k == 0 && gemm.beta != 0 && gemm.beta != 1) {
    refuse("nothing is multiplied, and what is there is scaled");
    return std::nullopt;
  }
  for (const CudaGemm::Matrix *factor : {&gemm.a, &gemm.b})
    if (gemm.d.argument == factor->argument || gemm.d.argument == factor->scale) {
      refuse("the result is written over a factor, or its scale");
      return std::nullopt;
    }
  if (product.c && c.root == content.at.root && !(c == content.at)) {
    refuse("the result is written over another part of what it is added to");
    return std::nullopt;
  }
  if (isByte(first.place.type) && gemm.m && gemm.n && gemm.k) {
    // Hopper's 8-bit products: both factors along k, and 16 bytes at a time.
    bool whole = (gemm.m | gemm.n | gemm.k | gemm.a.ld | gemm.b.ld | gemm.a.offset | gemm.b.offset |
                  gemm.a.batchStride | gemm.b.batchStride) %
                     16 ==
                 0;
    if (!whole || !gemm.a.transposed || gemm.b.transposed) {
      refuse("cuBLASLt multiplies 8-bit floats whose factors lie along the sum in memory, in "
             "sizes that are multiples of 16");
      return std::nullopt;
    }
  }
  return gemm;
}

std::optional<CudaGemm> Finder::find() {
  if (function.isExternal() || !function.getBody().hasOneBlock()) {
    refuse("it has no body, or branches");
    return std::nullopt;
  }
  for (Operation &op : function.getBody().front())
    if (!visit(op))
      return std::nullopt;
  const Content *left = nullptr;
  for (auto &[root, content] : contents) {
    if (!isa<BlockArgument>(root))
      continue;
    if (left) {
      refuse("it writes two arguments");
      return std::nullopt;
    }
    left = &content;
  }
  if (!left || left->kind != Content::Multiplied) {
    refuse("it multiplies nothing");
    return std::nullopt;
  }
  return describe(*left);
}

std::optional<CudaGemm> mlir::ncclx::findGemm(func::FuncOp function, std::string &why) {
  return Finder(function, why).find();
}

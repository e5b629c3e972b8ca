//===- HostCompute.cpp - linalg, arith, math, scf, func to LLVM -----------===//
#include "ncclx/Reference/HostCompute.h"
#include "ncclx/Reference/CountedLoops.h"

#include "HostLowering.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::ncclx;

void mlir::ncclx::registerHostComputeDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect, cf::ControlFlowDialect,
                  func::FuncDialect, linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, ub::UBDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

/// Says of every type whether host code can hold it.
static bool isSupported(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<FloatType>(element))
    return isa<Float64Type, Float32Type, Float16Type, BFloat16Type, Float8E4M3FNType,
               Float8E5M2Type>(element);
  if (auto integer = dyn_cast<IntegerType>(element))
    return integer.getWidth() <= 64;
  return true;
}

static LogicalResult checkTypes(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    auto check = [&](Type type) {
      if (isa<TensorType>(type)) {
        op->emitOpError("must be on memrefs before it is lowered to host code, found ") << type;
        return false;
      }
      if (!isSupported(type)) {
        op->emitOpError("host code has bf16, f16, f32, f64 and integers up to 64 bits, found ")
            << type;
        return false;
      }
      return true;
    };
    if (isa<arith::ConstantOp>(op) && isa<TensorType>(op->getResult(0).getType()))
      check(op->getResult(0).getType());
    if (!llvm::all_of(op->getOperandTypes(), check) || !llvm::all_of(op->getResultTypes(), check))
      return WalkResult::interrupt();
    if (auto function = dyn_cast<func::FuncOp>(op)) {
      for (Type type :
           llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes())) {
        if (!check(type))
          return WalkResult::interrupt();
        if (auto memref = dyn_cast<MemRefType>(type);
            memref && !LLVMTypeConverter::canConvertToBarePtr(memref)) {
          function.emitOpError("takes and returns memrefs of static shape and layout only, found ")
              << memref;
          return WalkResult::interrupt();
        }
      }
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// MLIR finds no strides in memref<3x0xf32>, so that it neither converts nor is a plain address.
/// Such types get the strides that row-major order gives them, spelled out.
static void spellOutEmptyLayouts(ModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](MemRefType type) -> std::optional<Type> {
    if (!type.getLayout().isIdentity() || !type.hasStaticShape() ||
        !llvm::is_contained(type.getShape().drop_front(type.getRank() > 0), 0))
      return std::nullopt;
    SmallVector<int64_t> strides(type.getRank(), 1);
    for (int64_t i = type.getRank() - 1; i-- > 0;)
      strides[i] = strides[i + 1] * type.getDimSize(i + 1);
    return MemRefType::get(type.getShape(), type.getElementType(),
                           StridedLayoutAttr::get(type.getContext(), 0, strides),
                           type.getMemorySpace());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  // An alloc has the identity layout.
  SmallVector<memref::AllocOp> allocs;
  module.walk([&](memref::AllocOp op) {
    if (!op.getType().getLayout().isIdentity() && llvm::is_contained(op.getType().getShape(), 0))
      allocs.push_back(op);
  });
  for (memref::AllocOp op : allocs) {
    OpBuilder b(op);
    auto type = op.getType();
    Value flat =
        memref::AllocOp::create(b, op.getLoc(), MemRefType::get({0}, type.getElementType()));
    auto [strides, offset] = type.getStridesAndOffset();
    Value view = memref::ReinterpretCastOp::create(b, op.getLoc(), type, flat, offset,
                                                   type.getShape(), strides);
    op.replaceAllUsesWith(view);
    op.erase();
  }
}

/// What graphs say of their arguments means nothing to LLVM, which warns of what it does not know.
static void dropArgumentAttributes(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      for (NamedAttribute attribute : mlir::function_interface_impl::getArgAttrs(function, i))
        if (!attribute.getName().strref().starts_with("llvm."))
          function.removeArgAttr(i, attribute.getName());
}

static LogicalResult convertToLLVM(ModuleOp module) {
  dropArgumentAttributes(module);
  MLIRContext *context = module.getContext();
  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;
  options.useGenericFunctions = true;
  options.allocLowering = LowerToLLVMOptions::AllocLowering::AlignedAlloc;
  LLVMTypeConverter converter(context, options);
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  // Full, not partial: upstream's convert-to-llvm leaves what it does not know and succeeds.
  return applyFullConversion(module, target, std::move(patterns));
}

/// Whatever the conversions left behind is an error here, not at translation.
static LogicalResult checkOnlyLLVM(ModuleOp module) {
  LogicalResult result = success();
  module->walk([&](Operation *op) {
    if (op == module || isa_and_nonnull<LLVM::LLVMDialect>(op->getDialect()))
      return;
    op->emitOpError("has no host lowering");
    result = failure();
  });
  return result;
}

LogicalResult mlir::ncclx::lowerComputeToLLVM(ModuleOp module) {
  DialectRegistry registry;
  registerHostComputeDialects(registry);
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()
      ->loadDialect<affine::AffineDialect, arith::ArithDialect, cf::ControlFlowDialect,
                    linalg::LinalgDialect, LLVM::LLVMDialect, memref::MemRefDialect,
                    scf::SCFDialect>();

  spellOutEmptyLayouts(module);
  if (failed(checkTypes(module)) || failed(lowerLinalgToLoops(module)))
    return failure();
  PassManager views(module.getContext());
  views.addPass(memref::createExpandStridedMetadataPass());
  views.addPass(createLowerAffinePass());
  if (failed(views.run(module)) || failed(legalizeFloats(module)))
    return failure();
  countLoops(module);
  PassManager branches(module.getContext());
  branches.addPass(createSCFToControlFlowPass());
  if (failed(branches.run(module)) || failed(convertToLLVM(module)))
    return failure();
  PassManager casts(module.getContext());
  casts.addPass(createReconcileUnrealizedCastsPass());
  if (failed(casts.run(module)))
    return failure();
  return checkOnlyLLVM(module);
}

//===- HloImporter.h - From HLO as plain data to a graph -----------------*- C++ -*-===//
//
// One importer, by kinds of instruction: ImportHlo.cpp (computations), HloCalls.cpp (kernels, what
// is opaque), HloControlFlow.cpp, HloScalars.cpp (arithmetic), HloTensors.cpp (elementwise ops,
// shapes), HloProducts.cpp (dots, reductions), HloCollectives.cpp, HloAsync.cpp (starts and dones),
// HloScatters.cpp (all-reduces of which a slice is used).
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_IMPORT_HLOIMPORTER_H
#define NCCLX_LIB_IMPORT_HLOIMPORTER_H

#include "HloGroups.h"
#include "HloModule.h"
#include "ncclx/Import/Hlo.h"
#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

#include <deque>

namespace mlir::ncclx::hlo {

Type typeOf(Element element, MLIRContext *context);
/// Of an array.
RankedTensorType typeOf(const Shape &shape, MLIRContext *context);

/// One number of an elementwise op; null where the opcode, or its variant, is not known.
Value scalarOp(OpBuilder &b, Location loc, const Instruction &op, llvm::ArrayRef<Element> elements,
               ValueRange operands);

/// A literal's elements; null where it is left out ("{...}") or is not taken. `wrong` is set where
/// the text does not fit the shape.
DenseElementsAttr literalOf(const Instruction &op, MLIRContext *context, std::string &wrong);

/// A number in a custom call's configuration: `name = 8 : i64`, or `"name":"8"`.
std::optional<double> configured(StringRef config, StringRef name);

/// Where a computation's instructions have their values. An array has one value, a tuple those of
/// its arrays in order.
struct Scope {
  const Computation &computation;
  std::vector<SmallVector<Value>> values;
};

/// Whether an opcode, or what it starts, is a collective.
bool isCollective(StringRef opcode);

class Importer {
public:
  Importer(Module &module, StringRef text, StringRef file, MLIRContext *context, HloReport &report);
  OwningOpRef<ModuleOp> run();

private:
  static constexpr unsigned kDeepest = 64;    ///< calls in calls
  static constexpr int64_t kMost = 4'000'000; ///< instructions, calls written out

  Module &module;
  StringRef text, file;
  MLIRContext *context;
  HloReport &report;
  OwningOpRef<ModuleOp> result;
  OpBuilder b;
  std::vector<size_t> lines; ///< offsets of line ends
  unsigned depth = 0;
  double times = 1; ///< how often the instructions at hand run
  Axes axes{1};
  int64_t devices = 1, partitions = 1, replicas = 1;
  func::FuncOp main;
  Value partitionId, replicaId;
  llvm::StringMap<func::FuncOp> kernels; ///< by name and type
  /// What a start has in flight.
  struct InFlight {
    SmallVector<Value> futures;
    bool flips = false; ///< unsigned numbers travel with their sign bit turned over
  };
  llvm::DenseMap<const Instruction *, InFlight> inFlight;
  llvm::DenseMap<const Instruction *, std::unique_ptr<std::vector<int64_t>>> deviceValues;
  std::deque<std::string> texts; ///< of attributes that are added

  // ImportHlo.cpp
  LocationAttr at(size_t offset) const;
  Location at(const Instruction &op) const { return Location(at(op.offset)); }
  InFlightDiagnostic error(const Instruction &op) {
    return emitError(at(op)) << op.opcode << " '" << op.name << "': ";
  }
  const Computation *callee(const Instruction &op, StringRef attribute, size_t index = 0);
  LogicalResult computation(const Computation &computation,
                            llvm::ArrayRef<SmallVector<Value>> arguments,
                            SmallVector<Value> &results);
  LogicalResult instruction(Scope &scope, const Instruction &op, SmallVector<Value> &results);
  /// All arrays of all operands.
  SmallVector<Value> leaves(const Scope &scope, const Instruction &op) const;
  const Shape &shapeOf(const Scope &scope, const Instruction &op, unsigned operand) const {
    return scope.computation.instructions[op.operands[operand]].shape;
  }

  // HloCalls.cpp
  LogicalResult customCall(Scope &scope, const Instruction &op, SmallVector<Value> &results);
  /// Of the arrays that a shape is made of.
  SmallVector<Type> typesOf(const Shape &shape);
  LogicalResult known(const Instruction &op, StringRef name, ValueRange operands, double flops,
                      SmallVector<Value> &results);
  /// What is not understood, counted.
  LogicalResult opaque(const Instruction &op, StringRef name, ValueRange operands, bool effects,
                       SmallVector<Value> &results);
  func::FuncOp kernel(StringRef name, TypeRange operands, TypeRange results);

  // HloControlFlow.cpp
  LogicalResult call(Scope &scope, const Instruction &op, StringRef attribute,
                     SmallVector<Value> &results);
  LogicalResult whileLoop(Scope &scope, const Instruction &op, SmallVector<Value> &results);
  LogicalResult conditional(Scope &scope, const Instruction &op, SmallVector<Value> &results);
  std::optional<int64_t> tripCount(const Scope &scope, const Instruction &op,
                                   const Computation &condition, const Computation &body);

  // HloTensors.cpp
  /// The operands are `count` arrays, and the result is one.
  LogicalResult arrays(const Scope &scope, const Instruction &op, size_t count);
  std::optional<SmallVector<int64_t>> numbers(const Instruction &op, StringRef attribute) const;
  // Null without an error: it is not understood.
  FailureOr<Value> tensorOp(Scope &scope, const Instruction &op);
  FailureOr<Value> elementwise(Scope &scope, const Instruction &op);
  FailureOr<Value> broadcast(Scope &scope, const Instruction &op);
  FailureOr<Value> iota(const Instruction &op);
  FailureOr<Value> reshape(Scope &scope, const Instruction &op);
  FailureOr<Value> transpose(Scope &scope, const Instruction &op);
  FailureOr<Value> slice(Scope &scope, const Instruction &op);
  FailureOr<Value> concatenate(Scope &scope, const Instruction &op);
  FailureOr<Value> pad(Scope &scope, const Instruction &op);
  FailureOr<Value> dynamicSlice(Scope &scope, const Instruction &op, bool update);
  Value value(const Scope &scope, const Instruction &op, unsigned operand) const {
    return scope.values[op.operands[operand]].front();
  }
  Value empty(const Instruction &op, const Shape &shape);
  Value extract(Location loc, Value scalarTensor);
  /// An elementwise conversion of a tensor.
  Value mapElements(Location loc, Value tensor, Type element,
                    llvm::function_ref<Value(OpBuilder &, Value)> convert);

  // HloProducts.cpp
  FailureOr<Value> dot(Scope &scope, const Instruction &op);
  LogicalResult reduce(Scope &scope, const Instruction &op, SmallVector<Value> &results,
                       bool &understood);
  /// Each of the scalars in the computation's place of a parameter; empty where it is not all
  /// arithmetic on scalars.
  SmallVector<Value> inlineScalars(OpBuilder &b, Location loc, const Computation &computation,
                                   ValueRange arguments, unsigned depth = 0);

  // HloCollectives.cpp
  LogicalResult countDevices();
  LogicalResult findGrid();
  Groups groupsOf(const Instruction &op);
  LogicalResult collective(const Instruction &op, ValueRange operands,
                           llvm::ArrayRef<const Shape *> shapes, llvm::ArrayRef<const Shape *> to,
                           bool start, SmallVector<Value> &results, bool &understood);
  Value carried(Location loc, Value value, const Shape &shape, bool reduces, bool flips);
  Value restored(Location loc, Value value, const Shape &shape, bool flips);
  Type carrier(Element element, bool reduces);
  bool comparesUnsigned(const Instruction &op, const Element &element);
  std::optional<ReductionKind> reductionOf(const Instruction &op, const Element &element);

  // HloAsync.cpp
  LogicalResult collectiveInstruction(Scope &scope, const Instruction &op,
                                      SmallVector<Value> &results);
  LogicalResult start(Scope &scope, const Instruction &op, SmallVector<Value> &results);
  LogicalResult done(Scope &scope, const Instruction &op, SmallVector<Value> &results);

  // HloScatters.cpp
  void findScatters();
  const std::vector<int64_t> *perDevice(const Computation &computation, unsigned number);
  std::optional<int64_t> slicedByPlace(const Computation &computation, const Instruction &slice,
                                       const Shape &whole, llvm::ArrayRef<Digit> digits);
};

} // namespace mlir::ncclx::hlo
#endif // NCCLX_LIB_IMPORT_HLOIMPORTER_H

//===- HloModule.h - XLA's HLO text as plain data -----------------------*- C++ -*-===//
//
// What the text says, checked for form alone: names are defined before they are used, parameters
// are numbered without gaps, brackets match. What an instruction means is the importer's business.
// All names and values are parts of the text, which outlives the module.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_IMPORT_HLOMODULE_H
#define NCCLX_LIB_IMPORT_HLOMODULE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::ncclx::hlo {

using llvm::SmallVector;
using llvm::StringRef;

/// What the elements of an array are.
struct Element {
  enum Kind { Predicate, Signed, Unsigned, Float, Complex, Token } kind = Token;
  unsigned bits = 0;
  StringRef name; ///< "bf16": as HLO has it
  bool operator==(const Element &other) const { return name == other.name; }
};

/// An array, or a tuple of shapes. Of the layout only what `bitcast` depends on is kept.
struct Shape {
  bool tuple = false;
  bool rowMajor = true; ///< the last dimension varies fastest
  Element element;
  SmallVector<int64_t, 4> dims;
  std::vector<Shape> parts;

  bool array() const { return !tuple && element.kind != Element::Token; }
  int64_t elements() const;
  int64_t bytes() const; ///< of all arrays in it; elements of less than a byte are packed
  unsigned leaves() const;
  bool operator==(const Shape &other) const {
    return tuple == other.tuple && element == other.element && dims == other.dims &&
           parts == other.parts;
  }
};

struct Instruction {
  StringRef name, opcode;
  Shape shape;
  SmallVector<unsigned, 4> operands; ///< numbers of instructions of the same computation
  StringRef literal;                 ///< what stands in a constant's or parameter's parentheses
  SmallVector<std::pair<StringRef, StringRef>, 4> attributes; ///< name and text of the value
  size_t offset = 0;                                          ///< in the text

  bool is(StringRef op) const { return opcode == op; }
  /// An attribute's text; nothing if it is not there.
  std::optional<StringRef> find(StringRef attribute) const;
};

struct Computation {
  StringRef name;
  size_t offset = 0;
  std::vector<Instruction> instructions;
  unsigned root = 0;
  SmallVector<unsigned> parameters; ///< the instruction of each number
  const Instruction &rootInstruction() const { return instructions[root]; }
};

struct Module {
  StringRef name;
  int64_t replicas = 0, partitions = 0;  ///< 0: the text does not say
  std::vector<Computation> computations; ///< each behind those that it calls
  llvm::StringMap<unsigned> byName;
  unsigned entry = 0;
  const Computation *find(StringRef name) const;
};

/// What is wrong with a text, and where.
struct Fault {
  size_t offset = 0;
  std::string what;
};

/// Reads a text. Without a result the fault is set.
std::optional<Module> read(StringRef text, Fault &fault);

/// Numbers in an attribute's text: "{0,1}" or "0,1"; nothing where it is no such list.
std::optional<SmallVector<int64_t>> readNumbers(StringRef text);

/// Computation names in an attribute's text: "%a" or "{%a, %b}".
SmallVector<StringRef> readNames(StringRef text);

} // namespace mlir::ncclx::hlo
#endif // NCCLX_LIB_IMPORT_HLOMODULE_H

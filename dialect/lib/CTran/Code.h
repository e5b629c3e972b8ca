//===- Code.h - A program as a flat list of instructions ----------------*- C++ -*-===//
//
// What Reader.cpp compiles a ctran.program into and Stream.cpp steps. Numbers (indices, conditions,
// displacements of coordinates) live in registers of 64 bits, tokens in registers of their own.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_CTRAN_CODE_H
#define NCCLX_LIB_CTRAN_CODE_H

#include "ncclx/Machine/Schedule.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir::ctran::code {

using Reg = uint32_t;
inline constexpr Reg none = ~Reg(0);

enum class Code : uint8_t {
  // dest = a op b
  Add,
  Sub,
  Mul,
  DivS,
  DivU,
  CeilDiv,
  FloorDiv,
  RemS,
  RemU,
  Mod,
  MinS,
  MaxS,
  MinU,
  MaxU,
  And,
  Or,
  Xor,
  Equal,
  NotEqual,
  LessS,
  LessEqualS,
  LessU,
  LessEqualU,
  Select,      ///< dest = a ? b : c
  SelectToken, ///< the same, of tokens b and c
  Move,
  MoveToken,
  Shift,      ///< dest = displacement a moved by b, modulo the size of axis `aux`
  CoordValue, ///< dest = the coordinate at displacement a on axis `aux`; c: why it is asymmetric
  Table,      ///< dest = tables[b] at that coordinate
  Jump,       ///< to `aux`
  JumpIfZero, ///< when a is 0
  LoopTest,   ///< to `aux` unless a < b
  LoopStep,   ///< dest += a and to `aux`, unless that overflows
  Emit        ///< ops[aux]
};

struct Instr {
  Code code;
  Reg dest = none, a = none, b = none, c = none;
  uint32_t aux = 0;
};

struct Index {
  bool own = false; ///< `reg` is a displacement on `axis`
  unsigned axis = 0;
  Reg reg = none;
};

struct Peer {
  enum class Kind : uint8_t { Own, Shift, Rank } kind = Kind::Own;
  std::vector<Reg> regs; ///< one displacement for each axis, or one rank
};

struct Place {
  Peer peer;
  std::vector<Index> path;
  Index first;
  Reg count = none; ///< none: no interval
};

struct Box : Place {
  unsigned window = 0, space = 0;
  /// Not empty: the interval stands for the smallest boxes in it, one by one; these are its
  /// dimension and those below. Where one is bound and taken as a whole, the representative begins
  /// at the own coordinate and goes round; a rank begins at the first place.
  struct Apart {
    int64_t size = 0;
    std::optional<unsigned> wholeAxis;
  };
  std::vector<Apart> apart;
};

struct Slot : Place {
  unsigned slots = 0;
};

struct Op {
  machine::OpKind kind = machine::OpKind::Nop;
  machine::LaneKind lane = machine::LaneKind::User;
  Reg laneIndex = none;
  std::vector<Box> reads, writes;
  std::optional<Slot> slot;
  Reg k = none;
  std::vector<Reg> after;
  Reg size = none; ///< the token of the count whose size its boxes have
  Reg token = none;
  unsigned name = 0;
  std::vector<Index> labelPath;
  std::vector<unsigned> summed, shared;
  std::vector<int64_t> among;
  std::optional<machine::Combination> how;
  machine::Combination combination;
  bool inNetwork = false;
  int64_t countMax = 0, sms = 0;
  double flops = 0, bytes = 0;
  unsigned location = 0;
  int collective = -1;
  /// Not empty: why a symmetric stream cannot tell this op.
  std::string asymmetry;
};

struct Program {
  std::vector<Instr> instrs;
  std::vector<Op> ops;
  std::vector<std::vector<int64_t>> tables;
  std::vector<std::string> reasons; ///< of CoordValue and Table
  std::vector<int64_t> initial;     ///< of the number registers: the constants
  uint32_t tokens = 0;              ///< number of token registers
  std::vector<int64_t> axes;        ///< sizes of the grid
};

/// Steps `program` for the rank at `point`, or for the representative.
std::unique_ptr<machine::OpStream> open(std::shared_ptr<const Program> program,
                                        const std::vector<int64_t> *point);

} // namespace mlir::ctran::code
#endif // NCCLX_LIB_CTRAN_CODE_H

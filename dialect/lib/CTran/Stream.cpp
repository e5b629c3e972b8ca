//===- Stream.cpp - Steps a compiled program --------------------------------------===//
#include "Code.h"

#include <algorithm>
#include <limits>

using namespace mlir::ctran;
using namespace mlir::ctran::code;
namespace machine = mlir::ctran::machine;

namespace {

/// Instructions between two ops, after which a program counts as one that never ends.
constexpr uint64_t patience = uint64_t(1) << 28;

/// Sources of one reduction, beyond which a program is not stepped.
constexpr int64_t mostBoxes = int64_t(1) << 24;

/// a op b. False where it has no value. Sums wrap, as they do in the code that is emitted.
bool compute(Code code, int64_t a, int64_t b, int64_t &out) {
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  bool overflows = a == std::numeric_limits<int64_t>::min() && b == -1;
  switch (code) {
  case Code::Add:
    out = static_cast<int64_t>(x + y);
    return true;
  case Code::Sub:
    out = static_cast<int64_t>(x - y);
    return true;
  case Code::Mul:
    out = static_cast<int64_t>(x * y);
    return true;
  case Code::DivS:
    if (b == 0 || overflows)
      return false;
    out = a / b;
    return true;
  case Code::CeilDiv:
    if (b == 0 || overflows)
      return false;
    out = a / b + (a % b != 0 && (a < 0) == (b < 0));
    return true;
  case Code::FloorDiv:
    if (b == 0 || overflows)
      return false;
    out = a / b - (a % b != 0 && (a < 0) != (b < 0));
    return true;
  case Code::RemS:
    if (b == 0 || overflows)
      return false;
    out = a % b;
    return true;
  case Code::Mod:
    if (b <= 0)
      return false;
    out = machine::wrapped(a, b);
    return true;
  case Code::DivU:
    if (b == 0)
      return false;
    out = static_cast<int64_t>(x / y);
    return true;
  case Code::RemU:
    if (b == 0)
      return false;
    out = static_cast<int64_t>(x % y);
    return true;
  case Code::MinS:
    out = std::min(a, b);
    return true;
  case Code::MaxS:
    out = std::max(a, b);
    return true;
  case Code::MinU:
    out = static_cast<int64_t>(std::min(x, y));
    return true;
  case Code::MaxU:
    out = static_cast<int64_t>(std::max(x, y));
    return true;
  case Code::And:
    out = a & b;
    return true;
  case Code::Or:
    out = a | b;
    return true;
  case Code::Xor:
    out = a ^ b;
    return true;
  case Code::Equal:
    out = a == b;
    return true;
  case Code::NotEqual:
    out = a != b;
    return true;
  case Code::LessS:
    out = a < b;
    return true;
  case Code::LessEqualS:
    out = a <= b;
    return true;
  case Code::LessU:
    out = x < y;
    return true;
  case Code::LessEqualU:
    out = x <= y;
    return true;
  default:
    return false;
  }
}

class Stream final : public machine::OpStream {
public:
  Stream(std::shared_ptr<const Program> program, const std::vector<int64_t> *point)
      : program(std::move(program)), numbers(this->program->initial),
        tokens(this->program->tokens) {
    if (point)
      here = *point;
    symmetric = !point;
  }

  Result next(machine::Op &op) override;

private:
  Result fail(std::string reason) {
    why = std::move(reason);
    return Result::Asymmetric;
  }
  machine::Index index(const Index &index) const {
    return {index.own, index.axis, numbers[index.reg]};
  }
  void setPeer(const Peer &peer, machine::Peer &out) const;
  template <typename Ref> bool setPlace(const Place &place, Ref &out) const;
  bool setBoxes(const std::vector<Box> &boxes, std::vector<machine::Access> &out);
  bool takeApart(const Box &box, std::vector<machine::Access> &out, size_t &used);
  void setLabel(const Op &from, machine::ValueLabel &out) const;
  Result emit(const Op &from, machine::Op &op);

  std::shared_ptr<const Program> program;
  std::vector<int64_t> numbers;
  std::vector<machine::TokenRef> tokens;
  std::vector<int64_t> here;
  bool symmetric;
  uint32_t at = 0;
};

} // namespace

void Stream::setPeer(const Peer &peer, machine::Peer &out) const {
  out.remote = peer.kind != Peer::Kind::Own;
  out.absolute = peer.kind == Peer::Kind::Rank;
  out.rank = out.absolute ? numbers[peer.regs[0]] : 0;
  out.shift.clear();
  if (peer.kind == Peer::Kind::Shift)
    for (Reg reg : peer.regs)
      out.shift.push_back(numbers[reg]);
}

/// False when an interval has a negative length.
template <typename Ref> bool Stream::setPlace(const Place &place, Ref &out) const {
  setPeer(place.peer, out.peer);
  out.path.clear();
  for (const Index &i : place.path)
    out.path.push_back(index(i));
  out.first = {};
  out.count = -1;
  if (place.count == none)
    return true;
  out.first = index(place.first);
  out.count = numbers[place.count];
  return out.count >= 0;
}

/// Replaces the interval out[used] by the boxes that it stands for, in ascending order.
bool Stream::takeApart(const Box &box, std::vector<machine::Access> &out, size_t &used) {
  machine::Access next = out[used];
  int64_t boxes = next.count;
  if (boxes > box.apart.front().size)
    return false;
  llvm::SmallVector<int64_t, 4> done; // of the places of each dimension
  for (const Box::Apart &dim : box.apart) {
    machine::Index first = done.empty() ? next.first : machine::Index();
    if (symmetric && dim.wholeAxis && !first.own)
      first = {true, *dim.wholeAxis, 0};
    next.path.push_back(first);
    if (!done.empty() && __builtin_mul_overflow(boxes, dim.size, &boxes))
      boxes = mostBoxes + 1;
    done.push_back(0);
  }
  next.count = -1;
  if (boxes > mostBoxes) {
    why = "an interval is taken apart into too many boxes";
    return false;
  }
  for (int64_t i = 0; i < boxes; ++i) {
    if (used == out.size())
      out.push_back(next);
    else
      out[used] = next;
    ++used;
    // On to the next box, the last dimension fastest.
    for (size_t k = done.size(); k-- > 0;) {
      machine::Index &index = next.path.end()[static_cast<ptrdiff_t>(k) - ptrdiff_t(done.size())];
      int64_t size = box.apart[k].size;
      bool over = ++done[k] == size;
      index.value += over ? 1 - size : 1;
      if (index.own)
        index.value = machine::wrapped(index.value, size);
      if (!over)
        break;
      done[k] = 0;
    }
  }
  return true;
}

bool Stream::setBoxes(const std::vector<Box> &boxes, std::vector<machine::Access> &out) {
  size_t used = 0;
  for (const Box &box : boxes) {
    if (used == out.size())
      out.emplace_back();
    machine::Access &access = out[used++];
    access.window = box.window;
    access.space = box.space;
    if (!setPlace(box, access))
      return false;
    if (!box.apart.empty() && !takeApart(box, out, --used))
      return false;
  }
  out.resize(used);
  return true;
}

void Stream::setLabel(const Op &from, machine::ValueLabel &out) const {
  out.name = from.name;
  if (from.kind != machine::OpKind::Source && from.kind != machine::OpKind::Sink) {
    out.path.clear();
    out.summed.clear();
    out.shared.clear();
    out.among.clear();
    out.how.reset();
    return;
  }
  out.path.clear();
  for (const Index &i : from.labelPath)
    out.path.push_back(index(i));
  out.summed = from.summed;
  out.shared = from.shared;
  out.among = from.among;
  out.how = from.how;
}

machine::OpStream::Result Stream::emit(const Op &from, machine::Op &op) {
  if (symmetric && !from.asymmetry.empty())
    return fail(from.asymmetry);
  op.kind = from.kind;
  op.lane = {from.lane, from.laneIndex == none ? 0 : numbers[from.laneIndex]};
  if (op.lane.index < 0)
    return fail("a lane has a negative index");
  bool good = setBoxes(from.reads, op.reads) && setBoxes(from.writes, op.writes);
  if (from.slot) {
    if (!op.slot)
      op.slot.emplace();
    op.slot->slots = from.slot->slots;
    good = good && setPlace(*from.slot, *op.slot);
  } else {
    op.slot.reset();
  }
  if (!good)
    return fail(!why.empty() ? why
                             : "an interval is shorter than nothing or longer than its dimension");
  op.k = from.k == none ? 0 : numbers[from.k];
  op.after.clear();
  for (Reg token : from.after)
    op.after.push_back(tokens[token]);
  op.size = from.size == none ? nullptr : tokens[from.size];
  op.token = llvm::makeIntrusiveRefCnt<machine::Token>();
  if (from.token != none)
    tokens[from.token] = op.token;
  setLabel(from, op.label);
  op.combination = from.combination;
  op.inNetwork = from.inNetwork;
  op.countMax = from.countMax;
  op.flops = from.flops;
  op.bytes = from.bytes;
  op.sms = from.sms;
  op.location = from.location;
  op.collective = from.collective;
  return Result::Op;
}

machine::OpStream::Result Stream::next(machine::Op &op) {
  for (uint64_t steps = 0; at < program->instrs.size(); ++steps) {
    if (steps == patience)
      return fail("the program runs on without an op of a lane");
    const Instr &i = program->instrs[at++];
    switch (i.code) {
    case Code::Emit:
      return emit(program->ops[i.aux], op);
    case Code::Move:
      numbers[i.dest] = numbers[i.a];
      break;
    case Code::MoveToken:
      tokens[i.dest] = tokens[i.a];
      break;
    case Code::Select:
      numbers[i.dest] = numbers[numbers[i.a] ? i.b : i.c];
      break;
    case Code::SelectToken:
      tokens[i.dest] = tokens[numbers[i.a] ? i.b : i.c];
      break;
    case Code::Shift: {
      int64_t size = program->axes[i.aux];
      numbers[i.dest] = machine::wrapped(numbers[i.a] + machine::wrapped(numbers[i.b], size), size);
      break;
    }
    case Code::CoordValue:
    case Code::Table: {
      if (symmetric)
        return fail(program->reasons[i.c]);
      int64_t value = machine::wrapped(here[i.aux] + numbers[i.a], program->axes[i.aux]);
      numbers[i.dest] = i.code == Code::Table ? program->tables[i.b][value] : value;
      break;
    }
    case Code::Jump:
      at = i.aux;
      break;
    case Code::JumpIfZero:
      if (!numbers[i.a])
        at = i.aux;
      break;
    case Code::LoopTest:
      if (numbers[i.a] >= numbers[i.b])
        at = i.aux;
      break;
    case Code::LoopStep: {
      int64_t sum;
      if (!__builtin_add_overflow(numbers[i.dest], numbers[i.a], &sum)) {
        numbers[i.dest] = sum;
        at = i.aux;
      }
      break;
    }
    default:
      if (!compute(i.code, numbers[i.a], numbers[i.b], numbers[i.dest]))
        return fail("an index is divided by zero");
    }
  }
  return Result::End;
}

std::unique_ptr<machine::OpStream> code::open(std::shared_ptr<const Program> program,
                                              const std::vector<int64_t> *point) {
  return std::make_unique<Stream>(std::move(program), point);
}

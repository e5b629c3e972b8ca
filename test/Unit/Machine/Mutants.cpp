//===- Mutants.cpp - One op of a schedule, changed ----------------------------===//

#include "Examples.h"

namespace mlir::ctran::machine::examples {

static bool isMove(const Op &op) { return op.kind == OpKind::Copy || op.kind == OpKind::Reduce; }

static void shiftPeer(Peer &peer) {
  if (peer.remote && !peer.shift.empty())
    ++peer.shift.back();
}

const std::vector<std::pair<std::string, Mutator>> &mutators() {
  static const std::vector<std::pair<std::string, Mutator>> all = {
      {"drop",
       [](Op &op, const Where &) {
         if (op.kind != OpKind::Wait && op.kind != OpKind::Signal && op.kind != OpKind::Flush)
           return false;
         op.kind = OpKind::Nop;
         op.slot.reset();
         return true;
       }},
      {"notify",
       [](Op &op, const Where &) {
         bool applies = op.kind == OpKind::Copy && op.slot;
         if (applies)
           op.slot.reset();
         return applies;
       }},
      {"peer",
       [](Op &op, const Where &) {
         if (op.kind != OpKind::Copy && op.kind != OpKind::Signal)
           return false;
         const Peer *first = !op.writes.empty() ? &op.writes[0].peer
                             : op.slot          ? &op.slot->peer
                                                : nullptr;
         if (!first || !first->remote)
           return false;
         for (Access &write : op.writes)
           shiftPeer(write.peer);
         if (op.slot)
           shiftPeer(op.slot->peer);
         return true;
       }},
      {"data_peer",
       [](Op &op, const Where &) {
         if (op.kind != OpKind::Copy || !op.slot)
           return false;
         for (Access &write : op.writes)
           shiftPeer(write.peer);
         return true;
       }},
      {"dst",
       [](Op &op, const Where &) {
         if (!isMove(op) || op.writes[0].path.empty())
           return false;
         for (Access &write : op.writes)
           ++write.path.back().value;
         return true;
       }},
      {"src",
       [](Op &op, const Where &) {
         if (!isMove(op) || op.reads[0].path.empty())
           return false;
         ++op.reads[0].path.back().value;
         return true;
       }},
      {"token",
       [](Op &op, const Where &) {
         bool applies = !op.after.empty() && op.kind != OpKind::Source;
         if (applies)
           op.after.clear();
         return applies;
       }},
      {"value",
       [](Op &op, const Where &where) {
         bool applies = op.kind == OpKind::Wait && where.absolute > 0;
         op.k -= applies;
         return applies;
       }},
      {"copy",
       [](Op &op, const Where &) {
         if (op.kind != OpKind::Reduce)
           return false;
         op.kind = OpKind::Copy;
         op.reads.resize(1);
         return true;
       }},
      {"twice",
       [](Op &op, const Where &) {
         if (op.kind != OpKind::Reduce)
           return false;
         op.reads.push_back(Access(op.reads.back()));
         return true;
       }},
      {"early",
       [](Op &op, const Where &) {
         bool applies = op.kind == OpKind::Wait;
         op.k += applies;
         return applies;
       }},
  };
  return all;
}

bool forgetOwnPuts(Op &op, const Where &) {
  if (op.after.size() > 2)
    op.after.erase(op.after.begin(), op.after.end() - 2);
  return true;
}

Mutant::Mutant(std::shared_ptr<const Schedule> base, int64_t index, Mutator mutator, int64_t rank)
    : Schedule(*base), base(std::move(base)), index(index), mutator(std::move(mutator)),
      rank(rank) {}

class MutantStream : public OpStream {
public:
  MutantStream(const Mutant &mutant, const std::vector<int64_t> *point, int64_t run)
      : mutant(mutant), stream(mutant.base->open(point, run)), run(run) {
    if (point)
      at = *point;
    known = point != nullptr;
    applies = mutant.rank < 0 || (point && mutant.grid.rankOf(*point) == mutant.rank);
  }
  Result next(Op &op) override {
    Result result = stream->next(op);
    why = stream->why;
    if (result != Result::Op || (index++ != mutant.index && !mutant.everyOp))
      return result;
    if (!known && (mutant.rank >= 0 || mutant.needsPoint)) {
      why = "a coordinate is compared with a number";
      return Result::Asymmetric;
    }
    Where where{op.k, run, known ? &at : nullptr};
    if (op.kind == OpKind::Wait) {
      const Slots &slots = mutant.slots[op.slot->slots];
      where.absolute += slots.perRun * (run / slots.generations);
    }
    if (applies && mutant.mutator(op, where))
      ++mutant.hits;
    return result;
  }

private:
  const Mutant &mutant;
  std::unique_ptr<OpStream> stream;
  std::vector<int64_t> at;
  bool known = false, applies = true;
  int64_t run, index = 0;
};

std::unique_ptr<OpStream> Mutant::open(const std::vector<int64_t> *point, int64_t run) const {
  return std::make_unique<MutantStream>(*this, point, run);
}

std::vector<Op> firstRun(const Schedule &schedule) {
  std::vector<Op> ops;
  std::vector<int64_t> point = schedule.grid.pointOf(0);
  std::unique_ptr<OpStream> stream = schedule.open(&point, 0);
  for (Op op; stream->next(op) == OpStream::Result::Op;)
    ops.push_back(op);
  return ops;
}

int64_t find(const Schedule &schedule, const std::string &note, int64_t nth) {
  std::vector<Op> ops = firstRun(schedule);
  for (size_t i = 0; i < ops.size(); ++i)
    if (schedule.locations[ops[i].location].op == note && nth-- == 0)
      return static_cast<int64_t>(i);
  return -1;
}

} // namespace mlir::ctran::machine::examples

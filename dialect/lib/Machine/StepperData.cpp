//===- StepperData.cpp - Data ops of the Stepper ------------------------------===//

#include "StepperState.h"

#include <fmt/format.h>

namespace mlir::ctran::machine {

bool Stepper::refused(const Refusal &refusal, const Box &box, const Who &who, const char *what) {
  Box cell = box;
  cell.path = refusal.where;
  cell.count = -1;
  std::string place = frame.describe(cell);
  const Who *other = refusal.other ? &*refusal.other : nullptr;
  switch (refusal.verdict) {
  case Verdict::Undefined:
    return fail(refusal.verdict,
                fmt::format("{} {} {}, which was never written", text(who), what, place), &who);
  case Verdict::Race:
    return fail(refusal.verdict,
                fmt::format("{} {} {}, and nothing orders that after its {} by {}{}", text(who),
                            what, place, refusal.otherWrites ? "write" : "read", text(*other),
                            refusal.note),
                &who, other);
  default:
    return fail(refusal.verdict, fmt::format("{} {} {}{}", text(who), what, place, refusal.note),
                &who);
  }
}

/// Entry writes every input and has read every output; exit reads every output (S22).
bool Stepper::caller(Process &p, LaneState &lane, Queued &q, const Who &who) {
  bool entry = q.op.kind == OpKind::Entry;
  End end{lane.key, lane.clock[lane.key] + 1, who};
  Refusal refusal;
  for (unsigned w = 0; w < schedule.windows.size(); ++w) {
    Box box;
    box.owner = p.rank;
    box.window = w;
    Window::Role role = schedule.windows[w].role;
    WindowMemory &window = memory(p, w, q.run);
    if (entry && (role == Window::Role::Input || role == Window::Role::InOut)) {
      Pieces pieces;
      pieces.push_back({{}, values.term(nextTerm++, p.rank, q.run), false});
      if (!window.write(box, lane.clock, end, lane.key, end.count, pieces, refusal))
        return refused(refusal, box, who, "writes");
    } else if (role == Window::Role::Output || role == Window::Role::InOut) {
      if (!window.touch(box, lane.clock, end, refusal))
        return refused(refusal, box, who, entry ? "has read" : "reads");
    }
  }
  return true;
}

/// Compares the sizes of the ends of a move. `pieces`, what is written, fills its box unless all
/// that it is made from is known only to fill the start of one. `known`: which sources do fill
/// theirs.
bool Stepper::fitValue(const Op &op, const Access &to, llvm::ArrayRef<bool> known, Pieces &pieces,
                       const Who &who) {
  if (pieces.empty()) // an empty interval
    return true;
  size_t below = 0;
  for (const Piece &piece : pieces)
    below = std::max(below, piece.sub.size());
  // How much of its box a computed value fills, nobody says.
  bool fills = false, named = pieces[0].value && pieces[0].value->name >= 0;
  for (size_t i = 0; i < op.reads.size(); ++i) {
    Frame::Fit fit;
    Resolve r = frame.fits(op.reads[i], to, who.process, below, fit);
    if (r == Resolve::Ok && fit == Frame::Fit::FromLarger && known[i] && named) {
      frame.why = "a box is filled, and its end does not fit into a smaller one";
      r = frame.representative ? Resolve::Asymmetric : Resolve::Invalid;
    }
    if (r != Resolve::Ok)
      return failResolve(r, who);
    fills |= fit == Frame::Fit::FromLarger || (fit == Frame::Fit::Equal && known[i]);
  }
  if (below == 0)
    pieces[0].value = values.filling(pieces[0].value, fills);
  return true;
}

bool Stepper::moveData(Process &p, LaneState &lane, Queued &q, const Who &who) {
  const Op &op = q.op;
  Clock &clock = lane.clock;
  uint32_t index = clock[lane.key] + 1;
  // Where a lane only issues, its own next op does not wait for this one's end.
  uint32_t localCount = lane.issueOnly ? lane.doneCount + 1 : index;
  End local{lane.done, localCount, who};
  Refusal refusal;
  bool opaque = op.kind == OpKind::Compute || op.kind == OpKind::Count;

  // On the caller's own lane a source is the caller's write.
  bool makes = op.kind == OpKind::Source && op.lane.kind == LaneKind::User;

  llvm::SmallVector<Pieces, 2> sources;
  llvm::SmallVector<Box, 2> boxes;
  for (const Access &access : op.reads) {
    Box &box = boxes.emplace_back();
    if (Resolve r = frame.resolve(access, p.rank, box); r != Resolve::Ok)
      return failResolve(r, who);
    Pieces &pieces = sources.emplace_back();
    if (op.kind == OpKind::Source)
      break;
    uint32_t d = frame.representative ? box.owner : 0;
    const Clock *at = &clock;
    if (d) {
      keys.shift(clock, d, scratch);
      at = &scratch;
    }
    End end{keys.shift(local.key, d), localCount, who};
    if (end.key == KeyTable::never)
      return fail(Verdict::Undecided,
                  fmt::format("{}: the peer is outside the clock's window", text(who)), &who);
    if (!memory(process(box.owner), box.window, q.run)
             .read(box, *at, end, opaque ? nullptr : &pieces, refusal, frame.valueFor(op)))
      return refused(refusal, box, who, "reads");
    if (d)
      for (Piece &piece : pieces)
        piece.value = values.shift(piece.value, frame.negate(d));
  }

  llvm::SmallVector<bool, 4> known; // which sources fill their boxes
  for (const Pieces &pieces : sources)
    known.push_back(pieces.size() != 1 || !pieces[0].value || !pieces[0].value->startOnly);

  Pieces result;
  ValueRef term;
  switch (op.kind) {
  case OpKind::Copy:
    result = std::move(sources[0]);
    break;
  case OpKind::Reduce: {
    // Values that no label names may be combined: the result is a new one.
    bool terms = true;
    for (const Pieces &pieces : sources)
      for (const Piece &piece : pieces)
        terms &= piece.value && piece.value->name < 0;
    if (terms)
      term = values.term(nextTerm++, p.rank, q.run);
    else if (std::string why;
             !combinePieces(frame, values, op.combination, sources, boxes, result, why))
      return fail(
          why.empty() ? Verdict::Undecided : Verdict::Result,
          fmt::format("{} {}", text(who), why.empty() ? "adds differently split boxes" : why),
          &who);
    break;
  }
  case OpKind::Sink:
    if (std::string bad = checkLabel(frame, values, sources[0], op.label, boxes[0], p.rank, q.run);
        !bad.empty())
      return fail(Verdict::Result, fmt::format("{}: {}", text(who), bad), &who);
    break;
  case OpKind::Source:
    if (makes) {
      term = values.of(op.label, boxes[0], p.rank, q.run, false);
      break;
    }
    if (!memory(process(boxes[0].owner), boxes[0].window, q.run)
             .label(boxes[0], clock, local, values.of(op.label, boxes[0], p.rank, q.run, false),
                    refusal))
      return refused(refusal, boxes[0], who, "labels");
    break;
  case OpKind::Compute:
    term = values.term(nextTerm++, p.rank, q.run);
    break;
  default:
    break;
  }

  SlotRange raised;
  if (op.slot)
    if (Resolve r = frame.resolve(*op.slot, p.rank, raised); r != Resolve::Ok)
      return failResolve(r, who);
  bool landing = false;
  Box box;
  const std::vector<Access> &places = makes ? op.reads : op.writes;
  for (const Access &access : places) {
    if (Resolve r = frame.resolve(access, p.rank, box); r != Resolve::Ok)
      return failResolve(r, who);
    uint32_t d = frame.representative ? box.owner : 0;
    const Clock *at = &clock;
    if (d) {
      keys.shift(clock, d, scratch);
      at = &scratch;
    }
    uint32_t readKey = keys.shift(local.key, d);
    if (readKey == KeyTable::never)
      return fail(Verdict::Undecided,
                  fmt::format("{}: the peer is outside the clock's window", text(who)), &who);
    End end{readKey, localCount, who};
    if (access.peer.remote && lane.issueOnly) {
      // Only its own notify, raised at the same rank, ever tells that a put has landed (S18).
      end.key = KeyTable::never;
      if (op.slot && raised.owner == box.owner && raised.count == 1) {
        landing = true;
        Turn turn(q.run, schedule.slots[raised.slots].generations);
        SlotState &slot =
            slotState(process(raised.owner), raised.slots, turn.generation, raised.begin);
        end.key = landedKey(slot, raised.owner, raised.slots, turn.generation, raised.begin);
        end.count = static_cast<uint32_t>(slot.count + 1);
      }
    }
    Pieces pieces;
    if (term) {
      if (box.count < 0)
        pieces.push_back({{}, term, false});
      for (int64_t j = 0; j < box.count; ++j)
        pieces.push_back({Path{j}, values.child(term, box, box.path.size(), box.first + j), false});
    } else {
      if (&access == &places.back())
        pieces = std::move(result);
      else
        pieces = result;
      if (box.count > 0 && !boxes.empty() &&
          !splitPieces(frame, values, boxes[0], box.count, pieces))
        return fail(Verdict::Undecided,
                    fmt::format("{} writes {}, an interval, from a box that has no such pieces",
                                text(who), frame.describe(box)),
                    &who);
      if (d)
        for (Piece &piece : pieces)
          piece.value = values.shift(piece.value, d);
    }
    if ((op.kind == OpKind::Copy || op.kind == OpKind::Reduce) &&
        !fitValue(op, access, known, pieces, who))
      return false;
    if (!memory(process(box.owner), box.window, q.run)
             .write(box, *at, end, readKey, localCount, pieces, refusal))
      return refused(refusal, box, who, "writes");
    Packets &packet = packets[box.window];
    bool inband =
        op.slot && schedule.slots[op.slot->slots].realisation == Slots::Realisation::Inband;
    (inband ? packet.byPacket : packet.otherwise) = true;
    (inband ? packet.packet : packet.other) = who;
  }
  clock.raise(lane.key, index);
  if (lane.issueOnly)
    lane.doneCount = localCount;
  return !op.slot || deliver(p, lane, op, who, raised, clock, landing);
}

} // namespace mlir::ctran::machine

//===- Scan.cpp - What the streams of one run say -----------------------------===//

#include "Stepper.h"

#include "ncclx/Machine/Trace.h"

#include <fmt/format.h>

namespace mlir::ctran::machine {

int64_t runsToProve(const Schedule &schedule) {
  int64_t generations = 1;
  for (const Window &window : schedule.windows)
    generations = std::max(generations, window.generations);
  for (const Slots &slots : schedule.slots)
    generations = std::max(generations, slots.generations);
  return generations + 1;
}

Scan scan(const Frame &frame, int64_t budget) {
  Scan out;
  const Schedule &schedule = frame.schedule;
  uint32_t processes = frame.representative ? 1 : frame.numRanks();
  std::vector<int64_t> point;
  out.signals.resize(schedule.slots.size());
  const auto over = llvm::makeIntrusiveRefCnt<TokenState>();
  SlotRange range;
  Op op;
  auto notePeer = [&](const Peer &peer) {
    if (peer.remote && !peer.absolute)
      out.peers.insert(frame.target(peer, 0));
  };
  for (uint32_t rank = 0; rank < processes; ++rank) {
    point = schedule.grid.pointOf(rank);
    std::unique_ptr<OpStream> stream = schedule.open(frame.representative ? nullptr : &point, 0);
    while (stream) {
      OpStream::Result result = stream->next(op);
      if (result == OpStream::Result::End)
        break;
      if (result == OpStream::Result::Asymmetric) {
        out.asymmetric = frame.representative;
        out.verdict = frame.representative ? Verdict::Undecided : Verdict::Invalid;
        out.message = stream->why;
        return out;
      }
      if (++out.events > budget) {
        out.overBudget = true;
        out.verdict = Verdict::Undecided;
        out.message = fmt::format("a run has more than {} ops", budget);
        return out;
      }
      auto where = [&] {
        return op.location < schedule.locations.size() ? schedule.locations[op.location].op
                                                       : std::string(toString(op.kind));
      };
      if (std::string bad = frame.check(op); !bad.empty()) {
        out.verdict = Verdict::Invalid;
        out.message = fmt::format("'{}': {}", where(), bad);
        return out;
      }
      if (frame.representative)
        for (const auto *list : {&op.reads, &op.writes})
          for (const Access &access : *list)
            notePeer(access.peer);
      // With one process, the serial form is this very walk.
      bool serial = frame.representative && out.serialFormFailsAt.empty();
      if (serial) {
        for (const TokenRef &token : op.after)
          if (!token->state)
            out.serialFormFailsAt = fmt::format("'{}' waits for a later op", where());
        op.token->state = over;
      }
      if (!op.slot)
        continue;
      if (frame.representative)
        notePeer(op.slot->peer);
      if (op.kind == OpKind::Wait && !serial)
        continue;
      Resolve r = frame.resolve(*op.slot, rank, range);
      if (r != Resolve::Ok) {
        out.asymmetric = r == Resolve::Asymmetric;
        out.verdict = out.asymmetric ? Verdict::Undecided : Verdict::Invalid;
        out.message = fmt::format("'{}': {}", where(), frame.why);
        return out;
      }
      auto &counts = out.signals[range.slots];
      uint32_t owner = frame.representative ? 0 : range.owner;
      int64_t k = schedule.slots[range.slots].awaited(op.k);
      for (int64_t i = 0; i < range.count; ++i) {
        int64_t slot = range.begin + i;
        if (op.kind != OpKind::Wait)
          ++counts[Scan::slotKey(owner, slot)];
        else if (int64_t count = k > 0 ? counts.lookup(Scan::slotKey(owner, slot)) : k;
                 count < k && out.serialFormFailsAt.empty())
          out.serialFormFailsAt =
              fmt::format("'{}' waits for {} >= {} on every rank, which has {}", where(),
                          frame.describeSlot(range.slots, slot), k, count);
      }
    }
    if (!stream) {
      out.verdict = Verdict::Invalid;
      out.message = "the schedule opens no stream";
      return out;
    }
  }
  return out;
}

} // namespace mlir::ctran::machine

//===- StepperEnd.cpp - What is checked once nothing moves --------------------===//

#include "StepperState.h"

#include <fmt/format.h>

#include <set>

namespace mlir::ctran::machine {

/// The chain of who waits for whom, from the first blocked lane until it closes or ends.
bool Stepper::deadlock() {
  using Place = std::pair<Process *, LaneState *>;
  std::map<const Token *, Place> tokens;
  std::map<std::tuple<uint32_t, unsigned, int64_t, int64_t>, Place> signals;
  std::optional<Place> start;
  for (auto &p : processes)
    for (auto &lane : p->lanes)
      for (auto &q : lane->queue) {
        Place here{p.get(), lane.get()};
        tokens.try_emplace(q->op.token.get(), here);
        SlotRange range;
        if (q->op.kind != OpKind::Wait && q->op.slot &&
            frame.resolve(*q->op.slot, p->rank, range) == Resolve::Ok)
          for (int64_t i = 0; i < range.count; ++i)
            signals.try_emplace({process(range.owner).rank, range.slots,
                                 q->run % schedule.slots[range.slots].generations, range.begin + i},
                                here);
      }
  for (auto &p : processes)
    for (auto &lane : p->lanes) {
      if (start || lane->queue.empty())
        continue;
      const Op &head = lane->queue.front()->op;
      bool ready = true;
      for (const TokenRef &token : head.after)
        ready &= token->state != nullptr;
      if (ready)
        start = Place{p.get(), lane.get()};
    }
  if (!start) // every head waits for a token
    for (auto &p : processes)
      for (auto &lane : p->lanes)
        if (!start && !lane->queue.empty())
          start = Place{p.get(), lane.get()};
  std::vector<std::string> chain;
  std::optional<Who> first;
  std::set<LaneState *> seen;
  std::optional<Place> at = start;
  while (at && seen.insert(at->second).second) {
    Queued &q = *at->second->queue.front();
    Who who{at->first->rank, at->second->id, q.op.location, q.run, q.step};
    if (!first)
      first = who;
    std::optional<Place> next;
    std::string link = text(who);
    const Token *missing = nullptr;
    for (const TokenRef &token : q.op.after)
      if (!token->state && !missing)
        missing = token.get();
    if (missing) {
      link += " waits for an op";
      if (auto it = tokens.find(missing); it != tokens.end())
        next = it->second;
    } else if (SlotRange range; q.op.kind == OpKind::Wait &&
                                frame.resolve(*q.op.slot, at->first->rank, range) == Resolve::Ok) {
      const Slots &decl = schedule.slots[range.slots];
      int64_t g = decl.generations;
      for (int64_t i = 0; i < range.count; ++i) {
        SlotState &slot = slotState(*at->first, range.slots, q.run % g, range.begin + i);
        int64_t k = slot.perRun * (q.run / g) + decl.awaited(q.op.k);
        if (slot.count >= k)
          continue;
        link += fmt::format(" waits for {} >= {}, which has {}",
                            frame.describeSlot(range.slots, range.begin + i), k, slot.count);
        if (auto it = signals.find({at->first->rank, range.slots, q.run % g, range.begin + i});
            it != signals.end())
          next = it->second;
        break;
      }
    }
    chain.push_back(link);
    at = next;
  }
  if (at) {
    Queued &q = *at->second->queue.front();
    chain.push_back(text({at->first->rank, at->second->id, q.op.location, q.run, q.step}) +
                    " (a cycle)");
  } else {
    std::string last = "nobody will";
    for (auto &p : processes)
      if (p->pending && options.depth) {
        last = fmt::format("the issuer of rank {} is blocked, as its lane {} is full",
                           frame.representative ? std::string("own") : std::to_string(p->rank),
                           toString(p->pending->op.lane));
        break;
      }
    chain.push_back(last);
  }
  std::string all;
  for (const std::string &link : chain)
    all += (all.empty() ? "" : " <- ") + link;
  (void)fail(Verdict::Deadlock, all, first ? &*first : nullptr);
  witness.chain = std::move(chain);
  return false;
}

/// Every run that uses a slot adds the same number of signals, its waits move on by as many, and
/// look at no later run: then run e is run 0 shifted by e (Theorem 2).
bool Stepper::balance() {
  for (auto &p : processes)
    for (unsigned s = 0; s < p->slots.size(); ++s) {
      std::vector<int64_t> order;
      for (auto &entry : p->slots[s])
        order.push_back(entry.first);
      llvm::sort(order);
      for (int64_t at : order) {
        const SlotState &slot = *p->slots[s][at];
        std::string bad;
        for (size_t i = 0; i < slot.uses.size() && bad.empty(); ++i) {
          const auto &use = slot.uses[i];
          if (use.signals != slot.perRun)
            bad = fmt::format("gets {} signals in its use {}, but {} per run", use.signals, i,
                              slot.perRun);
          else if (use.waits && use.lastWait > slot.perRun * static_cast<int64_t>(i + 1))
            bad = fmt::format("is waited for up to {} in its use {}, but gets {} signals per run",
                              use.lastWait, i, slot.perRun);
          else if (i && (use.waits != slot.uses[i - 1].waits ||
                         (use.waits && use.lastWait - slot.uses[i - 1].lastWait != slot.perRun)))
            bad = fmt::format("is not waited for in use {} as in the one before", i);
        }
        if (!bad.empty())
          return fail(
              Verdict::Balance,
              fmt::format("slot {} of rank {} {}", frame.describeSlot(s, at % frame.numSlots(s)),
                          frame.representative ? std::string("own") : std::to_string(p->rank),
                          bad));
        slotUse[s].perRun = std::max(slotUse[s].perRun, slot.perRun);
        slotUse[s].lead = std::max(slotUse[s].lead, slot.lead);
      }
    }
  return true;
}

/// Whether the realisations that were chosen for the slots fit their use (S32, S33).
bool Stepper::realisations() {
  for (unsigned s = 0; s < schedule.slots.size(); ++s) {
    const Slots &decl = schedule.slots[s];
    auto bad = [&](const std::string &rule) {
      return fail(Verdict::Realisation, fmt::format("slots '{}': {}", decl.name, rule));
    };
    if (decl.realisation == Slots::Realisation::Consume) {
      if (decl.writers != 1)
        return bad(fmt::format("a consumed slot has one writer (S33), {} declared", decl.writers));
      if (slotUse[s].lead > 1)
        return bad(
            fmt::format("a consumed slot needs lead 1 (S33), this one has {}", slotUse[s].lead));
      for (auto &p : processes)
        for (auto &entry : p->slots[s])
          if (entry.second->smallestWait <= 0)
            return bad("a consumed slot cannot be awaited for an earlier run's signal (S33)");
    }
    if (decl.realisation == Slots::Realisation::Inband) {
      if (slotUse[s].perRun > 1)
        return bad(fmt::format("a packet's flag is the run's number (S32), so one packet a run, "
                               "not {}",
                               slotUse[s].perRun));
      if (slotUse[s].lead > 1)
        return bad(fmt::format("a packet's flag may equal a stale one (S32): lead {} in its "
                               "generation",
                               slotUse[s].lead));
      for (auto &p : processes)
        for (auto &entry : p->slots[s])
          if (entry.second->waiter && entry.second->waiter->name.kind != LaneKind::SM)
            return bad("a packet's flag is polled by an sm lane (S32), not by " +
                       toString(entry.second->waiter->name));
    }
  }
  for (unsigned w = 0; w < packets.size(); ++w)
    if (packets[w].byPacket && packets[w].otherwise)
      return fail(Verdict::Realisation,
                  fmt::format("window '{}' is written by packets ({}) and otherwise ({}) (S32)",
                              schedule.windows[w].name, text(packets[w].packet),
                              text(packets[w].other)),
                  &packets[w].other, &packets[w].packet);
  return true;
}

} // namespace mlir::ctran::machine

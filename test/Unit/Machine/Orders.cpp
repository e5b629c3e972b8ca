//===- Orders.cpp - Every order in which a schedule may happen ----------------===//

#include "Orders.h"
#include "Steps.h"

#include <algorithm>
#include <bit>

namespace mlir::ctran::machine {

using namespace orders;

namespace {

/// A partial order of steps: a bit for each step that comes before another.
class Order {
public:
  explicit Order(size_t n) : n(n), words((n + 63) / 64), bits(n * words) {}
  bool before(int a, int b) const { return bits[b * words + a / 64] >> a % 64 & 1; }
  bool ordered(int a, int b) const { return before(a, b) || before(b, a); }
  /// Says that a comes before b; false: b comes before a already.
  bool add(int a, int b) {
    if (a == b || before(b, a))
      return false;
    if (before(a, b))
      return true;
    for (size_t x = 0; x < n; ++x)
      if (static_cast<int>(x) == b || before(b, static_cast<int>(x)))
        follow(a, static_cast<int>(x));
    return true;
  }
  /// The same where nothing comes after b yet.
  void follow(int a, int b) {
    for (size_t w = 0; w < words; ++w)
      bits[b * words + w] |= bits[a * words + w];
    bits[b * words + a / 64] |= uint64_t(1) << a % 64;
  }
  size_t numBefore(int b) const {
    size_t count = 0;
    for (size_t w = 0; w < words; ++w)
      count += std::popcount(bits[b * words + w]);
    return count;
  }

private:
  size_t n, words;
  std::vector<uint64_t> bits;
};

class Search {
public:
  Search(Steps &machine, const OrdersOptions &options, Orders &out)
      : m(machine), options(options), out(out) {}
  void run();

private:
  /// What is decided: `known` is what lanes know of one another, `order` also how races went.
  struct Decided {
    Order known, order;
  };
  bool follow(Decided &d) const;
  void decide(Decided d, size_t from);
  void execute(const Order &order);
  void collectConflicts(const Order &order);

  Steps &m;
  const OrdersOptions &options;
  Orders &out;
  std::vector<std::pair<int, int>> conflicts;
  bool stop = false;
};

/// Adds what every order that resolves the races so must have. False: there is none.
bool Search::follow(Decided &d) const {
  for (bool again = true; again;) {
    again = false;
    for (const Steps::Counted &wait : m.counted) {
      std::vector<int> possible;
      for (int add : wait.adds)
        if (!d.order.before(wait.step, add))
          possible.push_back(add);
      if (static_cast<int64_t>(possible.size()) < wait.k)
        return false;
      if (static_cast<int64_t>(possible.size()) > wait.k)
        continue;
      for (int add : possible) // none can be missed
        if (!d.known.before(add, wait.step)) {
          if (!d.known.add(add, wait.step) || !d.order.add(add, wait.step))
            return false;
          again = true;
        }
    }
    // A flush shows what its lane knows to have arrived (S21).
    for (int flush : m.flushes)
      for (const Steps::Landing &landing : m.landings)
        if (landing.rank == m.rankOf(flush) && d.known.before(landing.arrive, flush) &&
            !d.order.before(landing.shown, flush)) {
          if (!d.order.add(landing.shown, flush))
            return false;
          again = true;
        }
  }
  return true;
}

void Search::collectConflicts(const Order &order) {
  struct Touch {
    int step;
    Region region;
    bool writes;
  };
  std::map<int, std::vector<Touch>> byMemory;
  for (int step : m.walk) {
    Touch touch{step, {}, false};
    if (m.touches(step, touch.region, touch.writes))
      byMemory[touch.region.memory].push_back(touch);
  }
  for (auto &[memory, touches] : byMemory)
    for (size_t i = 0; i < touches.size(); ++i)
      for (size_t j = i + 1; j < touches.size(); ++j) {
        const Touch &a = touches[i], &b = touches[j];
        if ((a.writes || b.writes) && a.region.begin < b.region.end &&
            b.region.begin < a.region.end && !order.ordered(a.step, b.step))
          conflicts.emplace_back(a.step, b.step);
      }
  out.races = static_cast<int64_t>(conflicts.size());
}

/// One order of those that come before each other alike: all of them do the same.
void Search::execute(const Order &order) {
  std::vector<std::pair<size_t, int>> line;
  for (int step : m.walk)
    line.emplace_back(order.numBefore(step), step);
  std::sort(line.begin(), line.end());
  Steps::State state = m.begin();
  for (auto [before, step] : line)
    m.execute(step, state);
  ++out.tried;
  out.seen.insert(state.sum());
  if (out.wrong.empty())
    out.wrong = state.wrong;
  stop = out.tried >= options.limit || (options.stopAtWrong && !out.wrong.empty());
}

void Search::decide(Decided d, size_t from) {
  if (!follow(d))
    return;
  auto both = [&](int a, int b, bool knows, size_t next) {
    for (bool first : {true, false}) {
      if (stop) {
        out.all = false; // this way is left
        return;
      }
      Decided way = d;
      bool possible =
          first ? way.order.add(a, b) && (!knows || way.known.add(a, b)) : way.order.add(b, a);
      if (possible)
        decide(std::move(way), next);
    }
  };
  for (; from < conflicts.size(); ++from)
    if (auto [a, b] = conflicts[from]; !d.order.ordered(a, b))
      return both(a, b, false, from + 1);
  for (const Steps::Counted &wait : m.counted) {
    int64_t certain = 0;
    int open = -1;
    for (int add : wait.adds) {
      certain += d.order.before(add, wait.step);
      if (!d.order.ordered(add, wait.step))
        open = add;
    }
    if (certain < wait.k)
      return both(open, wait.step, true, from);
  }
  execute(d.order);
}

void Search::run() {
  out.steps = static_cast<int64_t>(m.steps.size());
  if (!m.unexplored.empty()) {
    out.unexplored = m.unexplored;
    return;
  }
  out.wrong = m.mismatch;
  if (m.walk.size() < m.steps.size()) {
    out.hangs = out.all = true;
    return;
  }
  Order order(m.steps.size());
  for (int step : m.walk)
    for (int before : m.steps[step].after)
      order.follow(before, step);
  Decided d{order, order};
  out.all = true;
  if (!follow(d))
    return;
  collectConflicts(d.order);
  decide(std::move(d), 0);
  if (!m.unexplored.empty())
    out.unexplored = m.unexplored;
}

/// One step after another, every choice; equal states are gone on from once.
class EveryOrder {
public:
  EveryOrder(Steps &machine, const OrdersOptions &options, Orders &out)
      : m(machine), options(options), out(out), done(m.steps.size()), knows(m.steps.size()) {}
  void run() {
    out.steps = static_cast<int64_t>(m.steps.size());
    out.unexplored = m.unexplored;
    out.wrong = m.mismatch;
    out.all = true;
    if (out.unexplored.empty())
      go(m.begin());
  }

private:
  bool ready(int step) {
    for (int before : m.steps[step].after)
      if (!done[before])
        return false;
    for (const Steps::Counted &wait : m.counted)
      if (wait.step == step && std::count_if(wait.adds.begin(), wait.adds.end(),
                                             [&](int add) { return done[add]; }) < wait.k)
        return false;
    for (int flush : m.flushes)
      for (const Steps::Landing &landing : m.landings)
        if (flush == step && landing.rank == m.rankOf(step) && !done[landing.shown] &&
            knownTo(step).count(landing.arrive))
          return false;
    return true;
  }
  std::set<int> knownTo(int step) const {
    std::set<int> all;
    for (int before : m.steps[step].after) {
      all.insert(before);
      all.insert(knows[before].begin(), knows[before].end());
    }
    return all;
  }
  void go(const Steps::State &state) {
    if (out.tried >= options.limit) {
      out.all = false;
      return;
    }
    if (!known.insert({done, state.memory, state.seen}).second)
      return;
    bool moved = false;
    for (size_t i = 0; i < m.steps.size(); ++i) {
      int step = static_cast<int>(i);
      if (done[i] || !ready(step))
        continue;
      moved = true;
      Steps::State next = state;
      m.execute(step, next);
      knows[i] = knownTo(step);
      done[i] = true;
      go(next);
      done[i] = false;
    }
    if (moved)
      return;
    ++out.tried;
    out.hangs |= std::count(done.begin(), done.end(), false) > 0;
    if (!out.hangs)
      out.seen.insert(state.sum());
    if (out.wrong.empty() && !out.hangs)
      out.wrong = state.wrong;
  }

  Steps &m;
  const OrdersOptions &options;
  Orders &out;
  std::vector<bool> done;
  std::vector<std::set<int>> knows;
  std::set<std::tuple<std::vector<bool>, std::vector<std::vector<Cell>>, std::vector<uint64_t>>>
      known;
};

} // namespace

std::string Orders::str() const {
  if (!unexplored.empty())
    return "not explored: " + unexplored;
  return std::to_string(tried) + (all ? " orders, all" : " orders, not all") + " of " +
         std::to_string(steps) + " steps with " + std::to_string(races) + " races" +
         (hangs           ? ": hangs"
          : wrong.empty() ? ""
                          : ": " + wrong);
}

Orders tryAllOrders(const Schedule &schedule, const OrdersOptions &options) {
  Steps machine(schedule, options);
  Orders out;
  Search(machine, options, out).run();
  return out;
}

Orders tryEveryOrder(const Schedule &schedule, const OrdersOptions &options) {
  Steps machine(schedule, options);
  Orders out;
  EveryOrder(machine, options, out).run();
  return out;
}

} // namespace mlir::ctran::machine

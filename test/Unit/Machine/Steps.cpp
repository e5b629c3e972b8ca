//===- Steps.cpp - A schedule as steps, and what they do ----------------------===//

#include "Steps.h"

#include "ncclx/Machine/Trace.h"

#include <algorithm>
#include <utility>

namespace mlir::ctran::machine::orders {

struct Steps::Lane {
  int id = 0;
  bool issues = false;        ///< issues in order, completes in any (S9)
  int last = -1;              ///< what the next op's start comes after
  int lastOver = -1;          ///< local completions are told in order
  std::vector<int> left;      ///< when each of its ops left its queue
  std::map<int, int> arrival; ///< by slot: its last, as arrivals are counted in sequence (S18)
};

Steps::Steps(const Schedule &schedule, const OrdersOptions &options)
    : schedule(schedule), options(options) {
  if (this->options.runs <= 0) {
    int64_t generations = 1;
    for (const Window &window : schedule.windows)
      generations = std::max(generations, window.generations);
    for (const Slots &slots : schedule.slots)
      generations = std::max(generations, slots.generations);
    this->options.runs = generations + 1;
  }
  load();
  if (!unexplored.empty())
    return;
  resolveWaits();
  greedy();
}

int Steps::newStep(Step::Kind kind, unsigned access, std::vector<int> after) {
  Step step;
  step.kind = kind;
  step.action = static_cast<int>(actions.size()) - 1;
  step.access = access;
  for (int before : after)
    if (before >= 0)
      step.after.push_back(before);
  steps.push_back(std::move(step));
  return static_cast<int>(steps.size()) - 1;
}

void Steps::load() {
  int64_t ranks = schedule.grid.numRanks();
  if (ranks > 64) {
    unexplored = "more than 64 ranks";
    return;
  }
  int lanes = 0;
  std::vector<std::pair<int, std::vector<TokenRef>>> tokens; // start step, what it awaits
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<int64_t> point = schedule.grid.pointOf(rank);
    std::map<std::pair<LaneKind, int64_t>, Lane> mine;
    int issued = -1;
    for (int64_t run = 0; run < options.runs; ++run) {
      std::unique_ptr<OpStream> stream = schedule.open(&point, run);
      for (Op op; stream->next(op) == OpStream::Result::Op;) {
        auto [it, isNew] = mine.try_emplace({op.lane.kind, op.lane.index});
        if (isNew) {
          it->second.id = lanes++;
          it->second.issues = isIssueLane(op.lane.kind);
        }
        Action action;
        action.op = op;
        action.rank = rank;
        action.run = run;
        size_t first = steps.size();
        add(std::move(action), it->second, issued);
        if (!unexplored.empty())
          return;
        // The start is the first step, or the second behind the issuer's.
        first += steps[first].kind == Step::Kind::Issue;
        tokens.emplace_back(static_cast<int>(first), op.after);
      }
    }
  }
  for (auto &[step, awaited] : tokens)
    for (const TokenRef &token : awaited) {
      auto end = ends.find(token.get());
      if (end == ends.end())
        unexplored = "a token of no op";
      else
        steps[step].after.push_back(end->second);
    }
}

void Steps::add(Action action, Lane &lane, int &issued) {
  uint32_t rank = action.rank;
  int64_t run = action.run;
  const Op op = action.op;
  bool caller = op.kind == OpKind::Entry || op.kind == OpKind::Exit;
  bool makes = op.kind == OpKind::Source && op.lane.kind == LaneKind::User;
  if (op.kind == OpKind::Source && !makes)
    unexplored = "a source that is not the caller's";
  for (const Access &access : op.reads)
    (makes ? action.writes : action.reads).push_back(region(access, rank, run));
  for (const Access &access : op.writes)
    action.writes.push_back(region(access, rank, run));
  for (unsigned w = 0; caller && w < schedule.windows.size(); ++w) {
    Window::Role role = schedule.windows[w].role;
    if (op.kind == OpKind::Entry && (role == Window::Role::Input || role == Window::Role::InOut))
      action.writes.push_back(whole(w, rank, run));
    else if (role == Window::Role::Output || role == Window::Role::InOut)
      action.reads.push_back(whole(w, rank, run));
  }
  action.looksOnly = caller;
  // A larger box of scratch memory is used from its start.
  auto scratch = [&](const Access &access) {
    return schedule.windows[access.window].role == Window::Role::Scratch;
  };
  if (op.kind == OpKind::Copy || op.kind == OpKind::Reduce)
    for (size_t i = 0; i < op.reads.size(); ++i)
      for (size_t j = 0; j < op.writes.size(); ++j) {
        int64_t from = action.reads[i].size(), to = action.writes[j].size();
        if (from != to && !scratch(from > to ? op.reads[i] : op.writes[j]))
          mismatch =
              name(action) + " moves " + std::to_string(from) + " cells into " + std::to_string(to);
      }
  actions.push_back(std::move(action));
  const Action &made = actions.back();

  using Kind = Step::Kind;
  if (options.depth) {
    auto full = static_cast<int64_t>(lane.left.size()) - *options.depth;
    issued = newStep(Kind::Issue, 0, {issued, full >= 0 ? lane.left[full] : -1});
  }
  int start = newStep(Kind::Start, 0, {lane.last, options.depth ? issued : -1});
  bool data = !made.reads.empty() || !made.writes.empty();
  lane.last = start;
  if (!data) {
    ends[op.token.get()] = start;
    lane.left.push_back(start);
    if (op.kind == OpKind::Flush)
      flushes.push_back(start);
    if (op.kind == OpKind::Signal)
      raise(made, lane, start);
    if (op.kind == OpKind::Wait)
      for (const Place &place : places(*op.slot, rank))
        waits.push_back({start, slotId(place, run), place,
                         run / schedule.slots[op.slot->slots].generations,
                         schedule.slots[op.slot->slots].awaited(op.k)});
    return;
  }

  std::vector<int> reads{start}, locals, shown;
  for (unsigned i = 0; i < made.reads.size(); ++i)
    reads.push_back(newStep(Kind::Read, i, {start}));
  for (unsigned i = 0; i < made.writes.size(); ++i) {
    bool remote = lane.issues && i < op.writes.size() && op.writes[i].peer.remote;
    (remote ? shown : locals).push_back(newStep(Kind::Write, i, reads));
  }
  std::vector<int> done(reads);
  done.insert(done.end(), locals.begin(), locals.end());
  done.push_back(lane.lastOver);
  int over = newStep(Kind::Over, 0, done);
  ends[op.token.get()] = over;
  if (!lane.issues) {
    lane.last = over;
    lane.left.push_back(over);
    if (op.slot)
      raise(made, lane, over);
    return;
  }
  lane.lastOver = over;
  lane.left.push_back(start);
  if (!op.slot)
    return;
  // Arrived means landed, and landed is not yet seen (S10, S21).
  uint32_t at = target(op.slot->peer, rank);
  int arrive = newStep(Kind::Arrive, 0, reads);
  for (int step : shown) {
    uint32_t to = target(op.writes[steps[step].access].peer, rank);
    if (to == at && schedule.rxVisible)
      steps[arrive].after.push_back(step);
    else if (to == at)
      landings.push_back({arrive, step, to});
  }
  raise(made, lane, arrive);
}

//===- Indices ----------------------------------------------------------------===//

int64_t Steps::index(const Index &index, uint32_t rank) const {
  if (!index.own)
    return index.value;
  int64_t n = schedule.grid.sizes[index.axis];
  return ((schedule.grid.pointOf(rank)[index.axis] + index.value) % n + n) % n;
}

uint32_t Steps::target(const Peer &peer, uint32_t rank) const {
  if (!peer.remote)
    return rank;
  if (peer.absolute)
    return static_cast<uint32_t>(peer.rank);
  std::vector<int64_t> point = schedule.grid.pointOf(rank);
  for (size_t axis = 0; axis < point.size(); ++axis) {
    int64_t n = schedule.grid.sizes[axis];
    point[axis] = ((point[axis] + peer.shift[axis]) % n + n) % n;
  }
  return static_cast<uint32_t>(schedule.grid.rankOf(point));
}

Region Steps::whole(unsigned window, uint32_t rank, int64_t run) {
  const Window &decl = schedule.windows[window];
  const Space &first = decl.spaces[0];
  for (const Space &space : decl.spaces)
    if (space.resident || space.rows != first.rows || space.unitBytes != first.unitBytes ||
        space.extent != first.extent)
      unexplored = "window '" + decl.name + "', which has spaces of other cells";
  auto [it, isNew] =
      memories.try_emplace({rank, window, run % decl.generations}, static_cast<int>(sizes.size()));
  if (isNew)
    sizes.push_back(first.extent);
  return {it->second, 0, first.extent};
}

Region Steps::region(const Access &access, uint32_t rank, int64_t run) {
  Region out = whole(access.window, target(access.peer, rank), run);
  const Space &space = schedule.windows[access.window].spaces[access.space];
  std::vector<int64_t> path;
  auto push = [&](int64_t at) {
    if (at < 0 || at >= space.dims[path.size()].size) {
      unexplored = "an index outside its dimension";
      at = 0;
    }
    path.push_back(at);
  };
  for (const Index &i : access.path)
    push(index(i, rank));
  if (access.count == 0)
    return {out.memory, 0, 0};
  if (access.count < 0 || access.count == space.dims[path.size()].size) {
    space.interval(path, out.begin, out.end);
    return out;
  }
  push(index(access.first, rank));
  space.interval(path, out.begin, out.end);
  int64_t last = path.back() + access.count - 1, ignored;
  path.pop_back();
  push(last);
  space.interval(path, ignored, out.end);
  return out;
}

std::vector<Steps::Place> Steps::places(const SlotRef &ref, uint32_t rank) {
  const std::vector<Dim> &dims = schedule.slots[ref.slots].dims;
  int64_t begin = 0, count = 1;
  size_t depth = 0;
  auto push = [&](int64_t at, int64_t room) {
    if (at < 0 || at + room > dims[depth].size)
      unexplored = "a slot outside its dimension";
    begin = begin * dims[depth++].size + at;
  };
  for (const Index &i : ref.path)
    push(index(i, rank), 1);
  if (ref.count >= 0) {
    count = ref.count;
    push(count > 0 && count < dims[depth].size ? index(ref.first, rank) : 0, count);
  }
  for (; depth < dims.size(); ++depth) {
    begin *= dims[depth].size;
    count *= dims[depth].size;
  }
  std::vector<Place> out;
  for (int64_t i = 0; i < count; ++i)
    out.emplace_back(target(ref.peer, rank), ref.slots, begin + i);
  return out;
}

//===- Signals ----------------------------------------------------------------===//

int Steps::slotId(const Place &place, int64_t run) {
  auto [owner, slots, at] = place;
  auto [it, isNew] = slotIds.try_emplace(
      {owner, slots, at, run % schedule.slots[slots].generations}, static_cast<int>(adds.size()));
  if (isNew)
    adds.emplace_back();
  return it->second;
}

void Steps::raise(const Action &action, Lane &lane, int step) {
  for (const Place &place : places(*action.op.slot, action.rank)) {
    int slot = slotId(place, action.run);
    adds[slot].push_back({lane.id, step, action.run});
    firstRun[place] += action.run == 0;
    auto [it, isFirst] = lane.arrival.try_emplace(slot, step);
    if (!isFirst)
      steps[step].after.push_back(std::exchange(it->second, step));
  }
}

void Steps::resolveWaits() {
  for (const Wait &wait : waits) {
    int64_t declared = schedule.slots[std::get<1>(wait.place)].perRun;
    int64_t k = (declared >= 0 ? declared : firstRun[wait.place]) * wait.use + wait.k;
    const std::vector<Add> &all = adds[wait.slot];
    auto size = static_cast<int64_t>(all.size());
    bool one = std::all_of(all.begin(), all.end(),
                           [&](const Add &add) { return add.lane == all[0].lane; });
    if (k <= 0)
      continue;
    if (one && k <= size) {
      steps[wait.step].after.push_back(all[k - 1].step);
      continue;
    }
    counted.push_back({wait.step, {}, k});
    for (const Add &add : all)
      counted.back().adds.push_back(add.step);
  }
}

/// Nothing is ever taken back, so whatever can happen is found in any order of looking.
void Steps::greedy() {
  std::vector<char> done(steps.size());
  std::multimap<int, const Counted *> more;
  for (const Counted &wait : counted)
    more.emplace(wait.step, &wait);
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < steps.size(); ++i) {
      bool ready = !done[i];
      for (size_t j = 0; ready && j < steps[i].after.size(); ++j)
        ready = done[steps[i].after[j]];
      auto [from, to] = more.equal_range(static_cast<int>(i));
      for (auto it = from; ready && it != to; ++it)
        ready = std::count_if(it->second->adds.begin(), it->second->adds.end(),
                              [&](int add) { return done[add]; }) >= it->second->k;
      if (!ready)
        continue;
      done[i] = again = true;
      walk.push_back(static_cast<int>(i));
    }
  }
}

//===- Values -----------------------------------------------------------------===//

static uint64_t mix(uint64_t h, uint64_t x) {
  h ^= x + 0x9e3779b97f4a7c15 + (h << 6) + (h >> 2);
  h ^= h >> 30;
  h *= 0xbf58476d1ce4e5b9;
  return h ^ h >> 27;
}

uint64_t Steps::State::sum() const {
  uint64_t h = 0;
  for (uint64_t x : seen)
    h = mix(h, x);
  return h;
}

Cell Steps::number(Value value) {
  Cell h = mix(mix(mix(value.name, value.run), value.summed), value.from);
  for (int64_t i : value.label)
    h = mix(h, i);
  auto it = values.try_emplace(h, value).first;
  if (!(it->second == value) || !h)
    unexplored = "two values of one number"; // has not been seen to happen
  return h;
}

/// What a source says that `cell` of its box holds, or a sink that it must (S8).
Cell Steps::labelled(const Action &action, int64_t cell) {
  const Op &op = action.op;
  const Access &box = op.reads[0];
  const Grid &grid = schedule.grid;
  bool sink = op.kind == OpKind::Sink;
  std::vector<int64_t> point = grid.pointOf(action.rank);
  Value value;
  value.name = op.label.name;
  value.run = action.run;
  uint32_t mentioned = 0;
  for (unsigned axis : op.label.summed)
    value.summed |= 1u << axis;
  for (unsigned axis : op.label.shared)
    mentioned |= 1u << axis;
  for (const Index &i : op.label.path)
    if (i.own)
      mentioned |= 1u << i.axis;
  const Space &space = schedule.windows[box.window].spaces[box.space];
  size_t depth = box.path.size() + (box.count == 1);
  for (size_t d = depth; d < space.dims.size(); ++d)
    if (space.dims[d].axis)
      mentioned |= 1u << *space.dims[d].axis;
  int64_t place = 0, places = 1;
  for (unsigned axis = 0; axis < grid.sizes.size(); ++axis) {
    if (value.summed >> axis & 1) {
      place = place * grid.sizes[axis] + point[axis];
      places *= grid.sizes[axis];
    } else if (!(mentioned >> axis & 1)) {
      value.label.push_back(point[axis]);
    }
  }
  if (value.summed)
    value.from = !sink          ? uint64_t(1) << place
                 : places == 64 ? ~uint64_t(0)
                                : (uint64_t(1) << places) - 1;
  for (const Index &i : op.label.path)
    value.label.push_back(index(i, action.rank));
  // The indices of the cell below the box, then its place in the smallest piece.
  std::vector<int64_t> path;
  for (const Index &i : box.path)
    path.push_back(index(i, action.rank));
  if (depth > path.size())
    path.push_back(index(box.first, action.rank));
  int64_t begin, end;
  space.interval(path, begin, end);
  while (path.size() < space.dims.size()) {
    path.push_back(0);
    for (int64_t i = 0; i < space.dims[path.size() - 1].size; ++i) {
      path.back() = i;
      space.interval(path, begin, end);
      if (cell >= begin && cell < end)
        break;
    }
    value.label.push_back(path.back());
  }
  value.label.push_back(cell - begin);
  return number(std::move(value));
}

Cell Steps::sum(Cell a, Cell b) {
  Value x = values[a], y = values[b];
  if (a && b && x.name >= 0 && x.name == y.name && x.run == y.run && x.summed &&
      x.summed == y.summed && x.label == y.label && !(x.from & y.from)) {
    x.from |= y.from;
    return number(std::move(x));
  }
  Value made;
  made.label = {0, static_cast<int64_t>(a), static_cast<int64_t>(b)};
  return number(std::move(made));
}

int64_t Steps::used(const Action &action) const {
  int64_t n = INT64_MAX;
  for (const auto *list : {&action.reads, &action.writes})
    for (const Region &region : *list)
      n = std::min(n, region.size());
  return n;
}

//===- Execution --------------------------------------------------------------===//

std::string Steps::name(const Action &action) const {
  unsigned at = action.op.location;
  return "rank " + std::to_string(action.rank) + " " + toString(action.op.lane) + " run " +
         std::to_string(action.run) + " '" +
         (at < schedule.locations.size() ? schedule.locations[at].op : toString(action.op.kind)) +
         "'";
}

bool Steps::touches(int step, Region &region, bool &writes) const {
  const Step &s = steps[step];
  writes = s.kind == Step::Kind::Write;
  if (!writes && s.kind != Step::Kind::Read)
    return false;
  const Action &action = actions[s.action];
  region = writes ? action.writes[s.access] : action.reads[s.access];
  // The end of a larger box of scratch memory is not touched.
  if (action.op.kind == OpKind::Copy || action.op.kind == OpKind::Reduce)
    region.end = region.begin + used(action);
  return region.size() > 0;
}

Steps::State Steps::begin() const {
  State state;
  for (int64_t size : sizes)
    state.memory.emplace_back(size);
  for (const Action &action : actions)
    state.reads.emplace_back(action.reads.size());
  state.seen.resize(steps.size());
  return state;
}

std::vector<Cell> Steps::made(const Step &step, const State &state) {
  const Action &action = actions[step.action];
  const auto &reads = state.reads[step.action];
  std::vector<Cell> out;
  switch (action.op.kind) {
  case OpKind::Copy:
    return reads[0];
  case OpKind::Reduce:
    out = reads[0];
    for (size_t i = 1; i < reads.size(); ++i)
      for (size_t j = 0; j < out.size(); ++j)
        out[j] = sum(out[j], reads[i][j]);
    return out;
  case OpKind::Source:
    for (int64_t i = action.writes[0].begin; i < action.writes[0].end; ++i)
      out.push_back(labelled(action, i));
    return out;
  default:
    break;
  }
  Value term;
  term.label = {1, step.action, step.access};
  for (const std::vector<Cell> &cells : reads)
    for (Cell cell : cells)
      term.label.push_back(static_cast<int64_t>(cell));
  for (int64_t i = 0; i < action.writes[step.access].size(); ++i) {
    term.run = i; // each cell is a value of its own
    out.push_back(number(term));
  }
  return out;
}

void Steps::execute(int at, State &state) {
  const Step &step = steps[at];
  const Action &action = actions[step.action];
  Region region;
  bool writes;
  if (!touches(at, region, writes))
    return;
  std::vector<Cell> &memory = state.memory[region.memory];
  if (writes) {
    std::vector<Cell> cells = made(step, state);
    std::copy(cells.begin(), cells.end(), memory.begin() + region.begin);
    return;
  }
  std::vector<Cell> cells(memory.begin() + region.begin, memory.begin() + region.end);
  for (int64_t i = 0; i < region.size(); ++i) {
    state.seen[at] = mix(state.seen[at], cells[i]);
    if (!state.wrong.empty() || action.looksOnly)
      continue;
    if (!cells[i])
      state.wrong = name(action) + " reads what was never written";
    else if (action.op.kind == OpKind::Sink && cells[i] != labelled(action, region.begin + i))
      state.wrong = name(action) + " finds another value";
  }
  state.reads[step.action][step.access] = std::move(cells);
}

} // namespace mlir::ctran::machine::orders

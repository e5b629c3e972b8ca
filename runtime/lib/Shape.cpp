//===- Shape.cpp - What a plan's memory looks like ------------------------===//
#include "Shape.h"
#include "Segment.h"

#include <cstddef>
#include <map>
#include <unistd.h>

using namespace ncclxrt;

static std::string orEmpty(const char *text) { return text ? text : ""; }

static bool addTo(int64_t &total, int64_t count, int64_t size) {
  int64_t product;
  return !__builtin_mul_overflow(count, size, &product) &&
         !__builtin_add_overflow(total, product, &total);
}

std::string Shape::Window::share(const ncclxrtSharing_t &sharing, const FindPlan &find) {
  int64_t number = -1;
  const Shape *shape = find(sharing.plan, number);
  if (plan >= 0)
    return "is shared twice";
  if (!shape)
    return "is to be that of another plan, which is none of this communicator";
  if (sharing.with >= shape->windows.size())
    return fmt::format("is to be window {} of plan '{}', which has {}", sharing.with, shape->name,
                       shape->windows.size());
  const Window &other = shape->windows[sharing.with];
  for (const Window *w : {static_cast<const Window *>(this), &other})
    if (w->role == ncclxrtRoleScratch || w->generations != 1)
      return fmt::format(
          "is to be shared, but window '{}' has role {} and {} generations, expected "
          "an input or output of one",
          w->name, w->role, w->generations);
  if (bytes != other.bytes)
    return fmt::format("has {} bytes, but is to be window '{}' of plan '{}', which has {}", bytes,
                       other.name, shape->name, other.bytes);
  plan = number;
  with = int64_t(sharing.with);
  from = other.offset;
  return "";
}

Status Shape::make(const ncclxrtPlanDesc_t *source, const FindPlan &find, Shape &shape) {
  ncclxrtPlanDesc_t desc = NCCLXRT_PLAN_DESC_INIT;
  if (Status s =
          readStruct(source, offsetof(ncclxrtPlanDesc_t, sizes), "the plan description", desc);
      !s.ok())
    return s;
  shape.name = orEmpty(desc.name);
  shape.hash = desc.hash;
  auto bad = [&](fmt::string_view what, size_t i, const std::string &text) {
    return error(ncclxrtInvalidArgument, "plan '{}': {} {}: {}", shape.name, what, i, text);
  };
  auto missing = [](const void *array, size_t count) { return count && !array; };
  if (missing(desc.windows, desc.num_windows) || missing(desc.slots, desc.num_slots) ||
      missing(desc.lanes, desc.num_lanes) || missing(desc.ops, desc.num_ops) ||
      missing(desc.sizes, desc.num_sizes) || missing(desc.sharing, desc.num_sharing))
    return error(ncclxrtInvalidArgument, "plan '{}': an array is null, but its count is not 0",
                 shape.name);

  for (size_t i = 0; i < desc.num_sizes; ++i) {
    const ncclxrtSizeDesc_t &d = desc.sizes[i];
    if (d.min < 0 || d.max < d.min || d.multiple < 1)
      return bad("size", i,
                 fmt::format("expected 0 <= min <= max and multiple >= 1, found {}, {} and {}",
                             d.min, d.max, d.multiple));
    if (d.value < d.min || d.value > d.max || d.value % d.multiple)
      return error(ncclxrtInvalidArgument, "plan '{}': size '{}' ({}) is {}, expected {}{}{}",
                   shape.name, orEmpty(d.name), orEmpty(d.place), d.value, d.min,
                   d.max == d.min ? "" : fmt::format(" to {}", d.max),
                   d.multiple == 1 ? "" : fmt::format(", a multiple of {}", d.multiple));
    shape.sizes.push_back({orEmpty(d.name), d.value});
  }
  const Status tooBig = error(ncclxrtInvalidArgument,
                              "plan '{}': windows and slots need more than 2^63 bytes", shape.name);
  for (size_t i = 0; i < desc.num_slots; ++i) {
    const ncclxrtSlotsDesc_t &d = desc.slots[i];
    if (d.count < 0 || d.generations < 1 || d.writers < 0)
      return bad(
          "slots", i,
          fmt::format("expected count >= 0, generations >= 1, writers >= 0, found {}, {}, {}",
                      d.count, d.generations, d.writers));
    shape.slots.push_back({orEmpty(d.name), d.count, d.generations, d.writers, shape.slotCount});
    if (!addTo(shape.slotCount, d.count, d.generations))
      return tooBig;
  }
  constexpr int64_t align = Segment::alignment;
  const int64_t page = sysconf(_SC_PAGESIZE);
  shape.bytes = Segment::slotsAt;
  if (!addTo(shape.bytes, shape.slotCount, sizeof(Slot)) || !addTo(shape.bytes, 1, 4095))
    return tooBig;
  shape.windowsAt = shape.bytes = shape.bytes / 4096 * 4096;
  for (size_t i = 0; i < desc.num_windows; ++i) {
    const ncclxrtWindowDesc_t &d = desc.windows[i];
    if (d.bytes > uint64_t(INT64_MAX) - align || d.generations < 1)
      return bad("window", i,
                 fmt::format("expected bytes < 2^63 and generations >= 1, found {} and {}", d.bytes,
                             d.generations));
    if (d.role < ncclxrtRoleScratch || d.role > ncclxrtRoleOutput)
      return bad("window", i, fmt::format("{} is no role", d.role));
    int64_t pitch = (int64_t(d.bytes) + align - 1) / align * align;
    Window &made = shape.windows.emplace_back(
        Window{orEmpty(d.name), int64_t(d.bytes), d.generations, d.role, shape.bytes, pitch});
    for (size_t k = 0; k < desc.num_sharing; ++k)
      if (desc.sharing[k].window == i)
        if (std::string wrong = made.share(desc.sharing[k], find); !wrong.empty())
          return bad("window", i, wrong);
    if (made.plan >= 0) { // on pages of its own, at the same place of a page as there
      if (!addTo(made.offset, 1, page - 1))
        return tooBig;
      made.offset = made.offset / page * page + made.from % page;
      shape.bytes = made.offset;
      if (!addTo(shape.bytes, 1, page - 1 + pitch))
        return tooBig;
      shape.bytes = shape.bytes / page * page;
    } else if (!addTo(shape.bytes, pitch, d.generations)) {
      return tooBig;
    }
  }
  for (size_t k = 0; k < desc.num_sharing; ++k)
    if (desc.sharing[k].window >= desc.num_windows)
      return error(ncclxrtInvalidArgument, "plan '{}': shares window {}, but has {}", shape.name,
                   desc.sharing[k].window, desc.num_windows);
  for (size_t i = 0; i < desc.num_lanes; ++i) {
    const ncclxrtLaneDesc_t &d = desc.lanes[i];
    if (d.kind < ncclxrtLaneHost || d.kind > ncclxrtLaneNic)
      return bad("lane", i, fmt::format("{} is no kind of lane", d.kind));
    shape.lanes.push_back({orEmpty(d.name), d.kind, d.index});
  }
  for (size_t i = 0; i < desc.num_ops; ++i)
    shape.ops.push_back({orEmpty(desc.ops[i].name), orEmpty(desc.ops[i].location)});
  if (desc.trace_capacity > (size_t(1) << 32))
    return error(ncclxrtInvalidArgument, "plan '{}': a trace of {} events is more than 2^32",
                 shape.name, desc.trace_capacity);
  shape.traceCapacity = int64_t(desc.trace_capacity);
  return {};
}

std::string Shape::wrongRange(const char *what, const Where &where, bool isTarget, int64_t moved,
                              int64_t unit) const {
  if (where.window < 0 || where.window >= int64_t(windows.size()))
    return fmt::format("{}: there is no window {}, the plan has {}", what, where.window,
                       windows.size());
  const Window &w = windows[where.window];
  int64_t total, end;
  bool empty = where.rows == 0 || where.rowBytes == 0;
  bool fits = where.offset >= 0 && where.rows >= 0 && where.stride >= 0 && where.rowBytes >= 0 &&
              moved >= 0 && (empty || where.offset <= w.bytes) &&
              !__builtin_mul_overflow(where.rows, where.rowBytes, &total);
  if (fits && !empty)
    fits = !__builtin_mul_overflow(where.rows - 1, where.stride, &end) &&
           !__builtin_add_overflow(end, where.rowBytes, &end) &&
           !__builtin_add_overflow(end, moved, &end) && end <= w.bytes - where.offset;
  if (!fits)
    return fmt::format(
        "{}: offset {}, {} rows of {} bytes at stride {}{} do not lie in window '{}' of {} bytes",
        what, where.offset, where.rows, where.rowBytes, where.stride,
        moved ? fmt::format(", moved by up to {},", moved) : "", w.name, w.bytes);
  if (isTarget && !empty && where.rows > 1 && where.stride < where.rowBytes)
    return fmt::format("{}: rows of {} bytes at stride {} overlap in a destination", what,
                       where.rowBytes, where.stride);
  if (where.rowBytes % unit != 0)
    return fmt::format("{}: rows of {} bytes are not whole elements of {} bytes", what,
                       where.rowBytes, unit);
  return "";
}

std::string Shape::wrongSlots(int64_t at, int64_t index, int64_t count) const {
  if (at < 0 || at >= int64_t(slots.size()))
    return fmt::format("there are no slots {}, the plan has {} arrays", at, slots.size());
  const Slots &s = slots[at];
  if (index < 0 || count < 0 || index > s.count || count > s.count - index)
    return fmt::format("slots '{}' have {} counters, expected [{}, {} + {}) to lie among them",
                       s.name, s.count, index, index, count);
  return "";
}

std::string Shape::manifest() const {
  uint64_t fingerprint = 0xcbf29ce484222325; // FNV-1a over the ops' names
  for (const Op &op : ops)
    for (char c : op.name + "\n")
      fingerprint = (fingerprint ^ uint8_t(c)) * 0x100000001b3;
  std::string text = fmt::format("plan '{}'\n", name);
  for (const Size &s : sizes) // before the hash, which differs with them
    text += fmt::format("size '{}' = {}\n", s.name, s.value);
  text += fmt::format("hash {:#018x}\n", hash);
  for (const Window &w : windows) {
    text += fmt::format("window '{}' of {} bytes, {} generations, role {}\n", w.name, w.bytes,
                        w.generations, w.role);
    if (w.plan >= 0)
      text += fmt::format("window '{}' in window {} of plan number {}\n", w.name, w.with, w.plan);
  }
  for (const Slots &s : slots)
    text += fmt::format("slots '{}', count {}, {} generations, {} writers\n", s.name, s.count,
                        s.generations, s.writers);
  for (const Lane &l : lanes)
    text += fmt::format("lane '{}' of kind {}, index {}\n", l.name, l.kind, l.index);
  text += fmt::format("{} ops, fingerprint {:#018x}\n", ops.size(), fingerprint);
  return text;
}

/// The first line in which two texts differ, of each.
static std::pair<std::string, std::string> firstDifference(const std::string &a,
                                                           const std::string &b) {
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at])
    ++at;
  auto line = [&](const std::string &text) {
    size_t begin = at ? text.rfind('\n', at - 1) : std::string::npos;
    begin = begin == std::string::npos ? 0 : begin + 1;
    std::string found = text.substr(begin, text.find('\n', begin) - begin);
    return found.empty() ? "nothing more" : found;
  };
  return {line(a), line(b)};
}

Status ncclxrt::compareManifests(const std::vector<std::string> &manifests) {
  // What most ranks have is taken for right; among equals, what the lowest rank has.
  std::map<std::string, size_t> votes;
  for (const std::string &m : manifests)
    ++votes[m];
  if (votes.size() <= 1)
    return {};
  size_t right = 0;
  for (size_t r = 0; r < manifests.size(); ++r)
    if (votes[manifests[r]] > votes[manifests[right]])
      right = r;
  std::string text;
  for (size_t r = 0; r < manifests.size(); ++r) {
    if (manifests[r] == manifests[right])
      continue;
    auto [expected, found] = firstDifference(manifests[right], manifests[r]);
    text += fmt::format("{}rank {} has {}, where rank {} has {}", text.empty() ? "" : "; ", r,
                        found, right, expected);
  }
  return error(ncclxrtPlanMismatch, "the ranks prepare different plans: {}", text);
}

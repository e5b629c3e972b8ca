//===- HloGroups.cpp - Replica groups as axes of one grid ------------------------------===//
#include "HloGroups.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace mlir::ncclx::hlo;

static Groups wrong(const std::string &what) { return {std::nullopt, what, true, {}}; }
static Groups misfit(const std::string &what, GroupLists lists = {}) {
  return {std::nullopt, what, false, std::move(lists)};
}

/// Digits of size 1 say nothing; neighbours that continue each other are one.
static Digits simplify(const Digits &digits) {
  Digits simple;
  for (Digit digit : digits) {
    if (digit.size == 1)
      continue;
    if (!simple.empty() && simple.back().stride == digit.stride * digit.size) {
      simple.back() = {digit.stride, simple.back().size * digit.size};
      continue;
    }
    simple.push_back(digit);
  }
  return simple;
}

/// The product, or nothing where it is not positive or above `most`.
static std::optional<int64_t> product(llvm::ArrayRef<int64_t> sizes, int64_t most) {
  int64_t count = 1;
  for (int64_t size : sizes) {
    if (size < 1 || size > most / count)
      return std::nullopt;
    count *= size;
  }
  return count;
}

/// The fastest `members` numbers of the digits, which have `ids` together.
static Groups fastest(const Digits &all, int64_t members) {
  Digits taken;
  for (const Digit &digit : llvm::reverse(all)) {
    if (members == 1)
      break;
    int64_t size = std::gcd(digit.size, members);
    if (size != digit.size && size != members)
      return misfit("a group ends within an axis, at no multiple of what is left");
    taken.insert(taken.begin(), {digit.stride, size});
    members /= size;
  }
  return {simplify(taken), "", false, {}};
}

/// "[2,4]<=[8]", "[2,4]<=[4,2]T(1,0)": ids of a box, transposed, row by row.
static Groups readIota(StringRef text, int64_t ids) {
  auto [shape, box] = text.split("<=");
  StringRef order;
  std::tie(box, order) = box.split('T');
  auto list = [](StringRef part, char open, char close) -> std::optional<SmallVector<int64_t>> {
    part = part.trim();
    if (part.size() < 2 || part.front() != open || part.back() != close)
      return std::nullopt;
    return readNumbers(part.drop_front().drop_back());
  };
  std::optional<SmallVector<int64_t>> groups = list(shape, '[', ']'), dims = list(box, '[', ']');
  if (!groups || !dims || groups->size() != 2)
    return wrong("expected '[groups,members]<=[sizes]'");
  std::optional<int64_t> count = product(*dims, ids), listed = product(*groups, ids);
  if (count != ids || listed != ids)
    return wrong(llvm::formatv("groups are cut from {0} ids", ids));
  SmallVector<int64_t> permutation(dims->size());
  std::iota(permutation.begin(), permutation.end(), 0);
  if (!order.empty()) {
    std::optional<SmallVector<int64_t>> given = list(order, '(', ')');
    if (!given ||
        !std::is_permutation(permutation.begin(), permutation.end(), given->begin(), given->end()))
      return wrong("'T' is followed by a permutation of the sizes");
    permutation = *given;
  }
  SmallVector<int64_t> strides(dims->size());
  int64_t stride = 1;
  for (size_t i = dims->size(); i-- > 0; stride *= (*dims)[i])
    strides[i] = stride;
  Digits all;
  for (int64_t dim : permutation)
    all.push_back({strides[dim], (*dims)[dim]});
  return fastest(all, (*groups)[1]);
}

/// "mesh['x'=2,'y'=4] {'y'}", an axis cut as "'y':(2)2": the second factor, of size 2.
static Groups readMesh(StringRef text, int64_t ids) {
  auto [mesh, group] = text.drop_front(5).split(']');
  SmallVector<StringRef> parts, names;
  SmallVector<int64_t> sizes;
  mesh.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, size] = part.trim().split('=');
    if (name.size() < 3 || size.getAsInteger(10, sizes.emplace_back()))
      return wrong("expected an axis \"'name'=size\", found '" + part.str() + "'");
    names.push_back(name);
  }
  group = group.trim();
  if (group.starts_with(",") || group.starts_with("device_ids"))
    return misfit("a mesh with device ids of its own");
  if (!group.consume_front("{") || !group.consume_back("}"))
    return wrong("expected the axes of a group behind the mesh");
  if (product(sizes, ids) != ids)
    return wrong(llvm::formatv("the mesh has another number of devices than {0}", ids));
  Digits digits;
  parts.clear();
  group.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [name, cut] = part.trim().split(':');
    auto it = llvm::find(names, name);
    if (it == names.end())
      return wrong(("the mesh has no axis " + name).str());
    size_t axis = it - names.begin();
    int64_t stride = 1, size = sizes[axis];
    for (size_t i = axis + 1; i < sizes.size(); ++i)
      stride *= sizes[i];
    if (!cut.empty()) {
      int64_t before, factor;
      auto [first, second] = cut.split(')');
      if (!first.consume_front("(") || first.getAsInteger(10, before) ||
          second.getAsInteger(10, factor) || before < 1 || factor < 1 || size % before != 0 ||
          size / before % factor != 0)
        return wrong(("axis " + part + " is not cut into factors").str());
      stride *= size / before / factor;
      size = factor;
    }
    digits.push_back({stride, size});
  }
  return {simplify(digits), "", false, {}};
}

/// "{{0,1},{2,3}}": every group is listed.
static Groups readLists(StringRef text, int64_t ids) {
  text = text.trim().drop_front().drop_back().trim(); // the outer braces
  if (text.empty())
    return {simplify({{1, ids}}), "", false, {}};
  GroupLists groups;
  while (!text.empty()) {
    size_t end = text.find('}');
    std::optional<SmallVector<int64_t>> group = text.front() == '{' && end != StringRef::npos
                                                    ? readNumbers(text.take_front(end + 1))
                                                    : std::nullopt;
    if (!group || group->empty())
      return wrong("expected groups '{{0,1},{2,3}}'");
    groups.push_back(std::move(*group));
    text = text.drop_front(end + 1).ltrim();
    if (!text.empty() && !text.consume_front(","))
      return wrong("expected ',' between groups");
    text = text.ltrim();
  }
  std::vector<bool> seen(ids);
  int64_t count = 0;
  for (const auto &group : groups)
    for (int64_t id : group) {
      if (id < 0 || id >= ids)
        return wrong(llvm::formatv("id {0} is not one of {1}", id, ids));
      if (seen[id])
        return wrong(llvm::formatv("id {0} is listed twice", id));
      seen[id] = true;
      ++count;
    }
  if (count != ids)
    return misfit(llvm::formatv("{0} of {1} ids are in a group", count, ids));
  const SmallVector<int64_t> first = groups.front();
  for (const auto &group : groups) {
    if (group.size() != first.size())
      return misfit("groups differ in size", std::move(groups));
    for (size_t i = 0; i < group.size(); ++i)
      if (group[i] - group[0] != first[i] - first[0])
        return misfit("groups are not shifted copies of each other", std::move(groups));
  }
  // Digits of the first group, the fastest first: each runs as long as its steps are equal.
  Digits digits;
  for (size_t done = 1; done < first.size();) {
    int64_t stride = first[done] - first[0];
    size_t runs = 1;
    while ((runs + 1) * done <= first.size() &&
           first[runs * done] - first[0] == int64_t(runs) * stride)
      ++runs;
    if (stride < 1 || runs < 2 || first.size() % (runs * done) != 0)
      return misfit("a group's members do not run over axes", std::move(groups));
    for (size_t i = 0; i < runs * done; ++i)
      if (first[i] != first[i % done] + int64_t(i / done) * stride)
        return misfit("a group's members do not run over axes", std::move(groups));
    digits.insert(digits.begin(), {stride, int64_t(runs)});
    done *= runs;
  }
  for (const auto &group : groups)
    for (const Digit &digit : digits)
      if (group[0] / digit.stride % digit.size != 0)
        return misfit("groups do not begin at multiples of their axes", std::move(groups));
  return {simplify(digits), "", false, {}};
}

GroupLists mlir::ncclx::hlo::listGroups(llvm::ArrayRef<Digit> digits, int64_t ids) {
  GroupLists groups;
  for (int64_t base = 0; base < ids; ++base) {
    if (llvm::any_of(digits, [&](Digit d) { return base / d.stride % d.size != 0; }))
      continue;
    SmallVector<int64_t> members = {base};
    for (const Digit &digit : digits) {
      SmallVector<int64_t> more;
      for (int64_t member : members)
        for (int64_t i = 0; i < digit.size; ++i)
          more.push_back(member + i * digit.stride);
      members = std::move(more);
    }
    groups.push_back(members);
  }
  return groups;
}

Groups mlir::ncclx::hlo::readGroups(StringRef text, int64_t ids) {
  text = text.trim();
  if (text.starts_with("mesh["))
    return readMesh(text, ids);
  if (text.starts_with("["))
    return readIota(text, ids);
  if (text.size() >= 2 && text.front() == '{' && text.back() == '}')
    return readLists(text, ids);
  return wrong("expected groups as a list, as '[..]<=[..]' or of a mesh");
}

int64_t mlir::ncclx::hlo::idsNamed(StringRef text) {
  text = text.trim();
  bool multiply = text.starts_with("mesh[") || text.starts_with("[");
  StringRef part = text.starts_with("mesh[")
                       ? text.take_until([](char c) { return c == ']'; })
                       : (multiply ? text.split("<=").second.split('T').first : text);
  int64_t most = multiply ? 1 : 0;
  bool quoted = false;
  for (size_t i = 0; i < part.size();) {
    quoted ^= part[i] == '\'';
    if (quoted || !llvm::isDigit(part[i])) {
      ++i;
      continue;
    }
    StringRef digits = part.substr(i).take_while(llvm::isDigit);
    int64_t number;
    if (digits.getAsInteger(10, number) || number > (1 << 24))
      return 0;
    most = multiply ? std::min<int64_t>(most * std::max<int64_t>(number, 1), 1 << 24)
                    : std::max(most, number + 1);
    i += digits.size();
  }
  return most;
}

Axes::Axes(int64_t devices) : cuts({1}) {
  if (devices > 1)
    cuts.push_back(devices);
}

bool Axes::add(llvm::ArrayRef<Digit> digits) {
  SmallVector<int64_t> all = cuts;
  for (const Digit &digit : digits) {
    all.push_back(digit.stride);
    all.push_back(digit.stride * digit.size);
  }
  llvm::sort(all);
  all.erase(llvm::unique(all), all.end());
  for (size_t i = 0; i + 1 < all.size(); ++i)
    if (all[i + 1] % all[i] != 0)
      return false;
  if (all.back() != cuts.back())
    return false;
  cuts = all;
  return true;
}

SmallVector<int64_t> Axes::sizes() const {
  SmallVector<int64_t> sizes;
  for (size_t i = cuts.size() - 1; i-- > 0;)
    sizes.push_back(cuts[i + 1] / cuts[i]);
  if (sizes.empty())
    sizes.push_back(1);
  return sizes;
}

SmallVector<unsigned> Axes::spanned(llvm::ArrayRef<Digit> digits) const {
  SmallVector<unsigned> axes;
  for (const Digit &digit : digits)
    for (size_t i = cuts.size() - 1; i-- > 0;)
      if (cuts[i] >= digit.stride && cuts[i + 1] <= digit.stride * digit.size)
        axes.push_back(cuts.size() - 2 - i);
  return axes;
}

//===- GraphText.cpp - Writing graphs as text -----------------------------===//
#include "GraphText.h"

#include <algorithm>

using namespace equivalence;

int64_t Tensor::count() const {
  int64_t n = 1;
  for (int64_t size : shape)
    n *= size;
  return n;
}

std::string Tensor::type() const {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

std::string Tensor::valueType() const {
  return isFuture ? "!ncclx.future<" + type() + ">" : type();
}

int64_t GraphText::ranks() const {
  int64_t n = 1;
  for (auto &[name, size] : grids.at("g"))
    n *= size;
  return n;
}

int64_t GraphText::groupSize(const Axes &axes) const {
  int64_t n = 1;
  for (const Shape &ranks : axes.groups)
    n = std::max<int64_t>(n, ranks.size());
  for (const std::string &axis : axes)
    for (auto &[name, size] : grids.at(axes.grid))
      n *= name == axis ? size : 1;
  return n;
}

int64_t GraphText::member(int64_t rank, const Axes &axes) const {
  for (const Shape &ranks : axes.groups)
    if (auto it = std::find(ranks.begin(), ranks.end(), rank); it != ranks.end())
      return it - ranks.begin();
  const Grid &grid = grids.at(axes.grid);
  int64_t member = 0;
  for (const std::string &axis : axes) {
    int64_t below = 1;
    for (size_t i = grid.size(); i-- > 0; below *= grid[i].second)
      if (grid[i].first == axis)
        member = member * grid[i].second + rank / below % grid[i].second;
  }
  return member;
}

Tensor GraphText::argument(Shape shape, const std::string &element, bool mayChange) {
  Tensor t{"%a" + std::to_string(arguments.size()), std::move(shape), element, {}, 0};
  arguments.push_back(t.name + ": " + t.type() +
                      (mayChange ? " {bufferization.writable = true}" : ""));
  writable.push_back(mayChange);
  uniform.push_back(false);
  return t;
}

Tensor GraphText::uniformArgument(Shape shape, const std::string &element) {
  Tensor t = argument(std::move(shape), element);
  arguments.back() += " {ncclx.uniform}";
  uniform.back() = true;
  return t;
}

std::string GraphText::index(int64_t i) {
  std::string name = fresh();
  line(name + " = arith.constant " + std::to_string(i) + " : index");
  return name;
}

std::string GraphText::condition(const Tensor &flags, int64_t i) {
  return condition(flags, index(i));
}

std::string GraphText::condition(const Tensor &flags, const std::string &i) {
  std::string number = index(flags.count());
  std::string place = fresh(), flag = fresh(), zero = fresh(), isSet = fresh();
  line(place + " = arith.remui " + i + ", " + number + " : index");
  line(flag + " = tensor.extract " + flags.name + "[" + place + "] : " + flags.type());
  line(zero + " = arith.constant 0 : " + flags.element);
  line(isSet + " = arith.cmpi sgt, " + flag + ", " + zero + " : " + flags.element);
  return isSet;
}

std::string GraphText::assumed(const std::string &value, const std::string &type) {
  std::string name = fresh();
  line(name + " = ncclx.assume_uniform " + value + " : " + type);
  return name;
}

std::string GraphText::count(const Tensor &flags, int64_t i, int64_t most) {
  std::string place = index(i), flag = fresh(), wide = fresh(), folded = fresh();
  std::string number = index(most + 1);
  line(flag + " = tensor.extract " + flags.name + "[" + place + "] : " + flags.type());
  line(wide + " = arith.index_castui " + flag + " : " + flags.element + " to index");
  line(folded + " = arith.remui " + wide + ", " + number + " : index");
  return folded;
}

Tensor GraphText::branch(const std::string &condition, const std::function<Tensor()> &then,
                         const std::function<Tensor()> &otherwise) {
  std::string before = std::move(body);
  auto region = [&](const std::function<Tensor()> &write) {
    body.clear();
    Tensor t = write();
    line("scf.yield " + t.name + " : " + t.valueType());
    return std::pair(t, std::move(body));
  };
  auto [t, taken] = region(then);
  auto [other, left] = region(otherwise);
  body = std::move(before);
  t.name = fresh();
  line(t.name + " = scf.if " + condition + " -> " + t.valueType() + " {\n" + taken +
       "  } else {\n" + left + "  }");
  return t;
}

GraphText::Carried
GraphText::loop(int64_t from, int64_t to, int64_t step, const Carried &carried,
                const std::function<Carried(const std::string &i, const Carried &)> &write) {
  return loopOver(index(from) + " to " + index(to) + " step " + index(step), carried, write);
}

GraphText::Carried
GraphText::loop(const std::string &turns, const Carried &carried,
                const std::function<Carried(const std::string &i, const Carried &)> &write) {
  return loopOver(index(0) + " to " + turns + " step " + index(1), carried, write);
}

GraphText::Carried
GraphText::whileLoop(const std::string &turns, const Carried &carried,
                     const std::function<std::string(const std::string &i)> &goesOn,
                     const std::function<Carried(const std::string &i, const Carried &)> &write) {
  std::string zero = index(0), one = index(1), loop = fresh(), k = fresh(), i = fresh();
  Carried inside = carried, results = carried;
  std::string inits, types, held, arguments, yields;
  for (size_t n = 0; n < carried.size(); ++n) {
    std::string before = fresh(), type = carried[n].valueType();
    inside[n].name = fresh();
    results[n].name = loop + "#" + std::to_string(n);
    inits += before + " = " + carried[n].name + ", ";
    types += type + ", ";
    held += before + ", ";
    arguments += inside[n].name + ": " + type + ", ";
  }
  types += "index";
  std::string outside = std::move(body);
  body.clear();
  std::string more = goesOn(k), inRange = fresh(), go = fresh();
  line(inRange + " = arith.cmpi slt, " + k + ", " + turns + " : index");
  line(go + " = arith.andi " + inRange + ", " + more + " : i1");
  line("scf.condition(" + go + ") " + held + k + " : " + types);
  std::string before = std::move(body);
  body.clear();
  for (const Tensor &t : write(i, inside))
    yields += t.name + ", ";
  std::string next = fresh();
  line(next + " = arith.addi " + i + ", " + one + " : index");
  line("scf.yield " + yields + next + " : " + types);
  std::string after = std::move(body);
  body = std::move(outside);
  line(loop + ":" + std::to_string(carried.size() + 1) + " = scf.while (" + inits + k + " = " +
       zero + ") : (" + types + ") -> (" + types + ") {\n" + before + "  } do {\n  ^bb0(" +
       arguments + i + ": index):\n" + after + "  }");
  return results;
}

GraphText::Carried
GraphText::loopOver(const std::string &bounds, const Carried &carried,
                    const std::function<Carried(const std::string &i, const Carried &)> &write) {
  std::string i = fresh(), loop = fresh(), inits, types, yields;
  Carried inside = carried, results = carried;
  for (size_t k = 0; k < carried.size(); ++k) {
    std::string comma = k ? ", " : "";
    inside[k].name = fresh();
    results[k].name = loop + "#" + std::to_string(k);
    inits += comma + inside[k].name + " = " + carried[k].name;
    types += comma + carried[k].valueType();
  }
  std::string before = std::move(body);
  body.clear();
  Carried next = write(i, inside);
  for (size_t k = 0; k < next.size(); ++k)
    yields += (k ? ", " : "") + next[k].name;
  line("scf.yield " + yields + " : " + types);
  std::string written = std::move(body);
  body = std::move(before);
  line(loop + ":" + std::to_string(carried.size()) + " = scf.for " + i + " = " + bounds +
       " iter_args(" + inits + ") -> (" + types + ") {\n" + written + "  }");
  return results;
}

Tensor GraphText::op(const std::string &words, Shape shape, const std::string &element) {
  Tensor t{fresh(), std::move(shape), element, {}, 0};
  line(t.name + " = " + words);
  return t;
}

Tensor GraphText::empty(Shape shape, const std::string &element) {
  Tensor t{fresh(), std::move(shape), element, {}, 0};
  line(t.name + " = tensor.empty() : " + t.type());
  return t;
}

Tensor GraphText::collective(const std::string &op, const std::string &words, const Tensor &in,
                             Shape shape, const Axes &axes) {
  Tensor t{fresh(), std::move(shape), in.element, {}, groupSize(axes)};
  std::string text = "ncclx." + op + " " + in.name + " " + words + " over " + over(axes) +
                     (algorithm.empty() || !schedule.empty() ? "" : " algorithm " + algorithm) +
                     (into ? " into(" + into->name + " : " + into->type() + ")" : "") +
                     (!schedule.empty()   ? " {ncclx.schedule = @" + schedule + "}"
                      : !pipeline.empty() ? " {ncclx.pipeline = {" + pipeline + "}}"
                                          : "") +
                     " : " + in.type() + " -> " + t.type();
  if (async)
    line(t.name + " = ncclx.start { %r = " + text + " ncclx.yield %r : " + t.type() +
         " } : !ncclx.future<" + t.type() + ">");
  else
    line(t.name + " = " + text);
  into.reset();
  t.isFuture = std::exchange(async, false);
  schedule.clear();
  return t;
}

std::string GraphText::over(const Axes &axes) const {
  std::string text;
  for (const std::string &axis : axes)
    text += (text.empty() ? "\"" : ", \"") + axis + "\"";
  if (axes.groups.empty())
    return "@" + axes.grid + "[" + text + "]";
  for (const Shape &ranks : axes.groups) {
    std::string list;
    for (int64_t rank : ranks)
      list += (list.empty() ? "" : ", ") + std::to_string(rank);
    text += (text.empty() ? "[" : ", [") + list + "]";
  }
  return "@" + axes.grid + " groups [" + text + "]";
}

static std::string listed(const Shape &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

static std::string windowType(const Tensor &window) {
  return "!ncclx.window<" + window.type() + ">";
}

Tensor GraphText::window(Shape shape, const std::string &element, const Axes &axes,
                         const std::optional<Tensor> &init) {
  Tensor t{fresh(), std::move(shape), element, {}, groupSize(axes)};
  line(t.name + " = ncclx.window over " + over(axes) +
       (init ? " init(" + init->name + " : " + init->type() + ")" : "") + " : " + windowType(t));
  return t;
}

void GraphText::put(const Tensor &in, const Tensor &window, const Shape &offsets,
                    const std::string &peers) {
  line("ncclx.put " + in.name + " into " + window.name + listed(offsets) + " " + peers + " : " +
       in.type() + " into " + windowType(window));
}

Tensor GraphText::get(const Tensor &window, const Shape &offsets, Shape shape,
                      const std::string &peers) {
  Tensor t{fresh(), std::move(shape), window.element, {}, 0};
  line(t.name + " = ncclx.get " + window.name + listed(offsets) + " " + peers + " : " +
       windowType(window) + " -> " + t.type());
  return t;
}

void GraphText::signal(const Tensor &window, const std::string &peers) {
  line("ncclx.signal " + window.name + " " + peers + " : " + windowType(window));
}

void GraphText::wait(const Tensor &window, const std::string &peers, int64_t count) {
  line("ncclx.wait " + window.name + " " + peers + " count " + std::to_string(count) + " : " +
       windowType(window));
}

std::string GraphText::rootWords(int64_t root, const Axes &axes) const {
  if (!axes.groups.empty())
    return " root [" + std::to_string(root) + "] ";
  std::string text;
  for (size_t i = axes.size(); i-- > 0;) {
    Axes one{axes[i]};
    one.grid = axes.grid;
    int64_t size = groupSize(one);
    text = std::to_string(root % size) + (text.empty() ? "" : ", ") + text;
    root /= size;
  }
  return " root [" + text + "] ";
}

void GraphText::barrier(const Axes &axes) { line("ncclx.barrier over " + over(axes)); }

Tensor GraphText::broadcast(const Tensor &in, int64_t root, const Axes &axes) {
  return collective("broadcast", rootWords(root, axes), in, in.shape, axes);
}

Tensor GraphText::reduce(const Tensor &in, int64_t root, const std::string &reduction,
                         const Axes &axes) {
  return collective("reduce", rootWords(root, axes) + reduction, in, in.shape, axes);
}

Tensor GraphText::gather(const Tensor &in, int64_t dim, int64_t extent, int64_t root,
                         const Axes &axes) {
  Shape out = in.shape;
  out[dim] = extent;
  return collective("gather", "dim " + std::to_string(dim) + rootWords(root, axes), in, out, axes);
}

Tensor GraphText::scatter(const Tensor &in, int64_t dim, int64_t root, const Axes &axes) {
  Shape out = in.shape;
  out[dim] = ceilDiv(in.shape[dim], groupSize(axes));
  Tensor t =
      collective("scatter", "dim " + std::to_string(dim) + rootWords(root, axes), in, out, axes);
  if (in.shape[dim] % groupSize(axes))
    t.padding = Padding{dim, in.shape[dim], axes};
  return t;
}

Tensor GraphText::allToAllV(const Tensor &in, int64_t dim, const std::vector<Shape> &counts,
                            const Axes &axes) {
  Shape received(counts.size());
  std::string matrix;
  for (const Shape &row : counts) {
    std::string line;
    for (size_t j = 0; j < row.size(); ++j) {
      line += (j ? ", " : "") + std::to_string(row[j]);
      received[j] += row[j];
    }
    matrix += (matrix.empty() ? "[" : ", [") + line + "]";
  }
  std::string n = std::to_string(counts.size());
  Shape out = in.shape;
  out[dim] = *std::max_element(received.begin(), received.end());
  Tensor t = collective("all_to_all_v",
                        "dim " + std::to_string(dim) + " counts dense<[" + matrix + "]> : tensor<" +
                            n + "x" + n + "xi64>",
                        in, out, axes);
  return t;
}

Tensor GraphText::sizes(int64_t n, int64_t most, const std::string &element) {
  Tensor any = argument({n}, element), out = empty({n}, element);
  return op("linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], "
            "iterator_types = [\"parallel\"]} ins(" +
                any.name + " : " + any.type() + ") outs(" + out.name + " : " + out.type() +
                ") {\n  ^bb0(%in: " + element + ", %out: " + element +
                "):\n    %n = arith.constant " + std::to_string(most + 1) + " : " + element +
                "\n    %s = arith.remui %in, %n : " + element +
                "\n    linalg.yield %s : " + element + "\n  } -> " + out.type(),
            {n}, element);
}

Tensor GraphText::allToAllSized(const Tensor &in, int64_t dim, const Tensor &sizes,
                                const Axes &axes) {
  return collective("all_to_all_v",
                    "dim " + std::to_string(dim) + " sizes " + sizes.name + " : " + sizes.type(),
                    in, in.shape, axes);
}

Tensor GraphText::allGather(const Tensor &in, int64_t dim, int64_t extent, const Axes &axes) {
  Shape out = in.shape;
  out[dim] = extent;
  return collective("all_gather", "dim " + std::to_string(dim), in, out, axes);
}

Tensor GraphText::reduceScatter(const Tensor &in, int64_t dim, const std::string &reduction,
                                const Axes &axes) {
  Shape out = in.shape;
  out[dim] = ceilDiv(in.shape[dim], groupSize(axes));
  Tensor t =
      collective("reduce_scatter", "dim " + std::to_string(dim) + " " + reduction, in, out, axes);
  if (in.shape[dim] % groupSize(axes))
    t.padding = Padding{dim, in.shape[dim], axes};
  return t;
}

Tensor GraphText::allReduce(const Tensor &in, const std::string &reduction, const Axes &axes) {
  return collective("all_reduce", reduction, in, in.shape, axes);
}

Tensor GraphText::allToAll(const Tensor &in, int64_t split, int64_t concat, const Axes &axes) {
  Shape out = in.shape;
  out[split] /= groupSize(axes);
  out[concat] *= groupSize(axes);
  return collective("all_to_all",
                    "split " + std::to_string(split) + " concat " + std::to_string(concat), in, out,
                    axes);
}

Tensor GraphText::permute(const Tensor &in, const std::string &how, const Axes &axes) {
  return collective("permute", how, in, in.shape, axes);
}

Tensor GraphText::await(const Tensor &future) {
  Tensor t = future;
  t.name = fresh();
  t.isFuture = false;
  line(t.name + " = ncclx.await " + future.name + " : " + future.valueType() + " -> " + t.type());
  return t;
}

Tensor GraphText::chunk(const Tensor &future, int64_t i, int64_t dim) {
  return chunk(future, index(i), dim);
}

Tensor GraphText::chunk(const Tensor &future, const std::string &i, int64_t dim) {
  Tensor t = future;
  t.name = fresh();
  t.isFuture = false;
  t.shape[dim] /= future.number;
  line(t.name + " = ncclx.await " + future.name + " chunk " + i + " of " +
       std::to_string(future.number) + " dim " + std::to_string(dim) + " : " + future.valueType() +
       " -> " + t.type());
  return t;
}

Tensor GraphText::elementwise(const std::string &what, const Tensor &a, const Tensor &b,
                              const std::optional<Tensor> &out) {
  Tensor dest = out ? *out : empty(a.shape, a.element);
  Tensor t = a;
  t.name = fresh();
  std::string type = a.type();
  line(t.name + " = linalg." + what + " ins(" + a.name + ", " + b.name + " : " + type + ", " +
       type + ") outs(" + dest.name + " : " + type + ") -> " + type);
  return t;
}

Tensor GraphText::matmul(const Tensor &a, const Tensor &b) {
  Tensor out = empty({a.shape[0], b.shape[1]}, a.element);
  std::string zero = fresh(), filled = fresh();
  line(zero + " = arith.constant " + (a.element[0] == 'i' ? "0" : "0.0") + " : " + a.element);
  line(filled + " = linalg.fill ins(" + zero + " : " + a.element + ") outs(" + out.name + " : " +
       out.type() + ") -> " + out.type());
  Tensor t = out;
  t.name = fresh();
  line(t.name + " = linalg.matmul ins(" + a.name + ", " + b.name + " : " + a.type() + ", " +
       b.type() + ") outs(" + filled + " : " + out.type() + ") -> " + out.type());
  return t;
}

/// "[0, 2, 0] [4, 3, 5] [1, 1, 1]": the box that has `size` rows of `dim` from `begin`.
static std::string box(const Shape &shape, int64_t dim, const std::string &begin, int64_t size) {
  std::string offsets, sizes, strides;
  for (int64_t i = 0; i < int64_t(shape.size()); ++i) {
    std::string comma = i ? ", " : "";
    offsets += comma + (i == dim ? begin : "0");
    sizes += comma + std::to_string(i == dim ? size : shape[i]);
    strides += comma + "1";
  }
  return "[" + offsets + "] [" + sizes + "] [" + strides + "]";
}

Tensor GraphText::slice(const Tensor &in, int64_t dim, int64_t begin, int64_t size) {
  return slice(in, dim, std::to_string(begin), size);
}

Tensor GraphText::slice(const Tensor &in, int64_t dim, const std::string &begin, int64_t size) {
  Tensor t{fresh(), in.shape, in.element, {}, 0};
  t.shape[dim] = size;
  line(t.name + " = tensor.extract_slice " + in.name + box(in.shape, dim, begin, size) + " : " +
       in.type() + " to " + t.type());
  return t;
}

Tensor GraphText::insert(const Tensor &in, const Tensor &whole, int64_t dim, int64_t begin) {
  Tensor t = whole;
  t.name = fresh();
  line(t.name + " = tensor.insert_slice " + in.name + " into " + whole.name +
       box(whole.shape, dim, std::to_string(begin), in.shape[dim]) + " : " + in.type() + " into " +
       whole.type());
  return t;
}

std::string GraphText::str() const {
  std::string defined, args, types, values;
  for (auto &[name, grid] : grids) {
    std::string axes;
    for (auto &[axis, size] : grid)
      axes += (axes.empty() ? "\"" : ", \"") + axis + "\" = " + std::to_string(size);
    defined += "ncclx.grid @" + name + " [" + axes + "]\n";
  }
  for (const std::string &argument : arguments)
    args += (args.empty() ? "" : ", ") + argument;
  for (const Tensor &t : results) {
    types += (types.empty() ? "" : ", ") + t.type();
    values += (values.empty() ? "" : ", ") + t.name;
  }
  std::string text = defined + others + "func.func @f(" + args + ") -> (" + types + ") {\n" + body +
                     "  return " + values + " : " + types + "\n}\n";
  return topology.empty() ? text
                          : "module attributes {ncclx.topology = #ncclx.topology<" + topology +
                                ">} {\n" + text + "}\n";
}

//===- ReadMscclppJson.cpp - MSCCL++ plans to a structure, with their faults named --------===//
#include "MscclppPlan.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <limits>
#include <set>

using namespace mlir;
using namespace mlir::ncclx::msccl;
using llvm::json::Object;

namespace {

/// Nesting beyond this is refused before parsing: llvm::json recurses.
constexpr unsigned kMaxDepth = 32;
constexpr int64_t kMaxChunks = int64_t(1) << 24;

/// Where an operand lies.
enum class At { None, Here, There, Anywhere, Group };
enum class Packets { None, From, To, Both, Combined };

/// What a word of the format means. Of a reduction the first operand of each side is data of the own
/// GPU; the others lie where it says.
struct Word {
  StringRef name;
  PlanOpKind kind;
  At sources = At::None, dests = At::None;
  Packets packets = Packets::None;
  bool signals = false, flushes = false;
};
constexpr Word kWords[] = {
    {"nop", PlanOpKind::Nop},
    {"signal", PlanOpKind::Signal},
    {"rlxsignal", PlanOpKind::Signal},
    {"wait", PlanOpKind::Wait},
    {"rlxwait", PlanOpKind::Wait},
    {"put", PlanOpKind::Move, At::Here, At::There},
    {"pws", PlanOpKind::Move, At::Here, At::There, Packets::None, true},
    {"pwsf", PlanOpKind::Move, At::Here, At::There, Packets::None, true, true},
    {"get", PlanOpKind::Move, At::There, At::Here},
    {"copy", PlanOpKind::Move, At::Here, At::Here},
    {"re", PlanOpKind::Reduce, At::Here, At::None},
    {"res", PlanOpKind::Reduce, At::Here, At::There},
    {"rre", PlanOpKind::Reduce, At::There, At::None},
    {"rres", PlanOpKind::Reduce, At::There, At::There},
    {"ppkt", PlanOpKind::Move, At::Here, At::There, Packets::To},
    {"rppkt", PlanOpKind::Move, At::Here, At::There, Packets::Both},
    {"upkt", PlanOpKind::Move, At::Here, At::Here, Packets::From},
    {"cpkt", PlanOpKind::Move, At::Here, At::Here, Packets::To},
    {"repkt", PlanOpKind::Reduce, At::Here, At::None, Packets::Combined},
    {"respkt", PlanOpKind::Reduce, At::Here, At::There, Packets::Combined},
    {"recpkt", PlanOpKind::Reduce, At::Here, At::Here, Packets::Combined},
    {"recspkt", PlanOpKind::Reduce, At::Here, At::Anywhere, Packets::Combined},
    {"glres", PlanOpKind::Reduce, At::Group, At::Group},
    {"gstore", PlanOpKind::Move, At::Here, At::Group},
    {"sem_acquire", PlanOpKind::Acquire},
    {"sem_release", PlanOpKind::Release},
    {"barrier", PlanOpKind::Barrier},
    {"flush", PlanOpKind::Flush},
};

/// Where each object of an array begins: "gpus[0].threadblocks[1].ops[3]" to line and column.
class Lines {
public:
  explicit Lines(StringRef text);
  std::optional<std::pair<unsigned, unsigned>> tooDeep;
  std::pair<unsigned, unsigned> find(StringRef path) const {
    auto it = starts.find(path);
    return it == starts.end() ? std::pair(1u, 1u) : it->second;
  }

private:
  llvm::StringMap<std::pair<unsigned, unsigned>> starts;
};

Lines::Lines(StringRef text) {
  struct Level {
    bool array;
    std::string path; ///< of what is in it, without the index
    int64_t index;
  };
  std::vector<Level> levels;
  std::string last;
  unsigned line = 1;
  size_t lineStart = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\n') {
      ++line;
      lineStart = i + 1;
    } else if (c == '"') {
      size_t start = i + 1;
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\';
      last = text.slice(start, std::min(i, text.size())).str();
    } else if (c == '{' || c == '[') {
      std::string path;
      if (!levels.empty()) {
        Level &in = levels.back();
        path = in.array ? in.path + "[" + std::to_string(in.index) + "]"
                        : in.path + (in.path.empty() ? "" : ".") + last;
        if (in.array && c == '{')
          starts[path] = {line, unsigned(i - lineStart) + 1};
      }
      levels.push_back({c == '[', path, 0});
      if (levels.size() > kMaxDepth && !tooDeep)
        tooDeep = {line, unsigned(i - lineStart) + 1};
    } else if (c == '}' || c == ']') {
      if (!levels.empty())
        levels.pop_back();
    } else if (c == ',' && !levels.empty()) {
      ++levels.back().index;
    }
  }
}

class PlanReader {
public:
  PlanReader(StringRef text, StringRef file, MLIRContext *context)
      : text(text), file(file), context(context), lines(text) {}
  std::optional<Plan> run();

private:
  /// An object of the file and where it is.
  struct Node {
    const Object *object = nullptr;
    std::string path;
    LocationAttr loc;
    const llvm::json::Value *get(StringRef key) const { return object->get(key); }
  };
  /// A block's own lists of channels and remote buffers, by the word of the channel's type.
  struct Lists {
    std::map<std::string, std::vector<int64_t>> channels, buffers;
  };
  struct Group {
    char buffer;
    std::vector<int64_t> ranks;
  };
  /// What the ops of one GPU name by number.
  struct Names {
    std::vector<size_t> memory, port; ///< positions in PlanGpu::channels
    std::vector<Group> groups;
    std::vector<std::pair<int64_t, char>> buffers; ///< rank and buffer
  };

  StringRef text, file;
  MLIRContext *context;
  Lines lines;
  bool bad = false;
  Plan plan;
  std::set<std::string> said; ///< warnings that one file has once

  LocationAttr at(StringRef path) const {
    auto [line, column] = lines.find(path);
    return FileLineColLoc::get(context, file, line, column);
  }
  InFlightDiagnostic error(LocationAttr loc) {
    bad = true;
    return emitError(loc);
  }
  void warnOnce(LocationAttr loc, const std::string &what) {
    if (said.insert(what).second)
      emitWarning(loc) << what;
  }
  InFlightDiagnostic error(const Node &node) {
    InFlightDiagnostic diag = error(node.loc);
    diag << (node.path.empty() ? std::string("the plan") : node.path) << ": ";
    return diag;
  }

  static std::string show(const llvm::json::Value *value);
  int64_t number(const Node &node, StringRef key, std::optional<int64_t> ifMissing, int64_t least,
                 int64_t most);
  std::string word(const Node &node, StringRef key, std::optional<StringRef> ifMissing);
  bool flag(const Node &node, StringRef key, bool ifMissing);
  std::vector<Node> objects(const Node &node, StringRef key, bool required);
  std::vector<int64_t> numbers(const Node &node, StringRef key, bool required, int64_t most);
  void known(const Node &node, ArrayRef<StringRef> keys, bool strict = false);
  std::optional<char> buffer(const Node &node, StringRef key);

  void readGpu(const Node &node, int64_t id);
  Names readNames(const Node &node, PlanGpu &gpu);
  void readBlock(const Node &node, int64_t rank, PlanGpu &gpu, const Names &names);
  void readOp(const Node &node, int64_t rank, PlanOp &op, const PlanGpu &gpu, const Names &names,
              const Lists &lists);
  void readOperands(const Node &node, int64_t rank, PlanOp &op, const Word &meaning,
                    const Names &names, const Lists &lists);
  std::optional<PlanOperand> operand(const Node &node, const Node &inOp, int64_t rank, At where,
                                     StringRef channelType, const Names &names, const Lists &lists);
  void pairChannels();
  void checkCounts();
  void checkPackets();
  void checkMeetings();
  void checkThreads();
};

std::string PlanReader::show(const llvm::json::Value *value) {
  if (!value)
    return "nothing";
  std::string text;
  llvm::raw_string_ostream(text) << *value;
  return text.size() > 40 ? text.substr(0, 40) + "..." : text;
}

int64_t PlanReader::number(const Node &node, StringRef key, std::optional<int64_t> ifMissing,
                           int64_t least, int64_t most) {
  const llvm::json::Value *value = node.get(key);
  if (!value) {
    if (ifMissing)
      emitWarning(node.loc) << (node.path.empty() ? "the plan" : node.path) << " has no '" << key
                            << "', taken as " << *ifMissing;
    else
      error(node) << "has no '" << key << "'";
    return ifMissing.value_or(least);
  }
  std::optional<int64_t> found = value->getAsInteger();
  if (!found || *found < least || *found > most) {
    error(node) << "'" << key << "' is " << show(value) << ", expected a whole number from "
                << least << " to " << most;
    return least;
  }
  return *found;
}

std::string PlanReader::word(const Node &node, StringRef key, std::optional<StringRef> ifMissing) {
  const llvm::json::Value *value = node.get(key);
  if (!value && ifMissing) {
    emitWarning(node.loc) << (node.path.empty() ? "the plan" : node.path) << " has no '" << key
                          << "', taken as '" << *ifMissing << "'";
    return ifMissing->str();
  }
  std::optional<StringRef> found = value ? value->getAsString() : std::nullopt;
  if (!found)
    error(node) << "'" << key << "' is " << show(value) << ", expected a text";
  return found.value_or("").str();
}

bool PlanReader::flag(const Node &node, StringRef key, bool ifMissing) {
  const llvm::json::Value *value = node.get(key);
  if (!value) {
    emitWarning(node.loc) << "the plan has no '" << key << "', taken as "
                          << (ifMissing ? "true" : "false");
    return ifMissing;
  }
  if (std::optional<bool> found = value->getAsBoolean())
    return *found;
  error(node) << "'" << key << "' is " << show(value) << ", expected true or false";
  return ifMissing;
}

std::vector<PlanReader::Node> PlanReader::objects(const Node &node, StringRef key, bool required) {
  const llvm::json::Value *value = node.get(key);
  std::vector<Node> found;
  const llvm::json::Array *list = value ? value->getAsArray() : nullptr;
  if (value ? !list : required)
    error(node) << "'" << key << "' is " << show(value) << ", expected a list of objects";
  if (!list)
    return found;
  for (size_t i = 0; i < list->size(); ++i) {
    std::string path =
        llvm::formatv("{0}{1}{2}[{3}]", node.path, node.path.empty() ? "" : ".", key, i);
    if (const Object *object = (*list)[i].getAsObject())
      found.push_back({object, path, at(path)});
    else
      error(node) << key << "[" << i << "] is " << show(&(*list)[i]) << ", expected an object";
  }
  return found;
}

std::vector<int64_t> PlanReader::numbers(const Node &node, StringRef key, bool required,
                                         int64_t most) {
  const llvm::json::Value *value = node.get(key);
  const llvm::json::Array *list = value ? value->getAsArray() : nullptr;
  if (value ? !list : required)
    error(node) << "'" << key << "' is " << show(value) << ", expected a list of numbers";
  std::vector<int64_t> found;
  if (!list)
    return found;
  for (const llvm::json::Value &each : *list) {
    std::optional<int64_t> number = each.getAsInteger();
    if (number && *number >= 0 && *number <= most)
      found.push_back(*number);
    else
      error(node) << "'" << key << "' has " << show(&each) << ", expected whole numbers from 0 to "
                  << most;
  }
  return found;
}

void PlanReader::known(const Node &node, ArrayRef<StringRef> keys, bool strict) {
  std::vector<std::string> others;
  for (const auto &entry : *node.object)
    if (!llvm::is_contained(keys, entry.first.str()))
      others.push_back(entry.first.str());
  llvm::sort(others);
  for (const std::string &other : others)
    if (strict)
      error(node) << "'" << other << "' is not understood here";
    else
      warnOnce(node.loc, llvm::formatv("'{0}' is not known here, and is left out", other));
}

std::optional<char> PlanReader::buffer(const Node &node, StringRef key) {
  std::string name = word(node, key, std::nullopt);
  if (name == "i" || name == "o" || name == "s")
    return name[0];
  error(node) << "'" << key << "' is '" << name << "', expected i, o or s";
  return std::nullopt;
}

//===--- what ops name --------------------------------------------------------------------===//

PlanReader::Names PlanReader::readNames(const Node &node, PlanGpu &gpu) {
  Names names;
  int64_t last = plan.ranks - 1;
  for (const Node &list : objects(node, "channels", false)) {
    std::string type = word(list, "channel_type", std::nullopt);
    if (type == "switch") {
      known(list, {"channel_type", "buffer_type", "rank_groups"});
      std::optional<char> which = buffer(list, "buffer_type");
      for (const Node &group : objects(list, "rank_groups", true)) {
        known(group, {"size", "ranks"});
        names.groups.push_back({which.value_or('i'), numbers(group, "ranks", true, last)});
        if (names.groups.back().ranks.empty())
          error(group) << "a group of no ranks";
      }
      continue;
    }
    known(list, {"channel_type", "connected_to"});
    if (type != "memory" && type != "port") {
      error(list) << "'channel_type' is '" << type << "', expected memory, port or switch";
      continue;
    }
    for (int64_t peer : numbers(list, "connected_to", true, last)) {
      (type == "port" ? names.port : names.memory).push_back(gpu.channels.size());
      gpu.channels.push_back({type == "port", peer, 0});
    }
  }
  for (const Node &remote : objects(node, "remote_buffers", false)) {
    known(remote, {"rank", "type", "access_channel_types"});
    int64_t rank = number(remote, "rank", std::nullopt, 0, last);
    names.buffers.push_back({rank, buffer(remote, "type").value_or('i')});
  }
  for (const Node &semaphore : objects(node, "semaphores", false)) {
    known(semaphore, {"init_value"});
    gpu.semaphores.push_back(number(semaphore, "init_value", 0, 0, 1 << 30));
  }
  return names;
}

void PlanReader::readGpu(const Node &node, int64_t id) {
  known(node, {"id", "input_chunks", "output_chunks", "scratch_chunks", "threadblocks", "channels",
               "remote_buffers", "semaphores"});
  PlanGpu &gpu = plan.gpus[id];
  if (gpu.loc) {
    error(node) << "a second GPU " << id;
    return;
  }
  gpu.loc = node.loc;
  Names names = readNames(node, gpu);
  std::vector<Node> blocks = objects(node, "threadblocks", true);
  std::map<int64_t, size_t> positions;
  for (const Node &block : blocks) {
    int64_t number = this->number(block, "id", std::nullopt, 0, 1 << 20);
    if (!positions.insert({number, positions.size()}).second)
      error(block) << "a second thread block " << number << " of this GPU";
  }
  for (const Node &block : blocks)
    readBlock(block, id, gpu, names);
  for (PlanBlock &block : gpu.blocks)
    for (PlanOp &op : block.ops)
      for (auto &[on, steps] : op.deps) {
        auto found = positions.find(int64_t(on));
        if (found == positions.end() ||
            steps > int64_t(gpu.blocks[found->second].ops.size())) {
          error(op.loc) << "depends on step " << steps - 1 << " of thread block " << on
                        << ", which this GPU does not have";
          on = 0, steps = 0;
        } else {
          on = found->second;
        }
      }
}

void PlanReader::readBlock(const Node &node, int64_t rank, PlanGpu &gpu, const Names &names) {
  known(node, {"id", "ops", "channels", "remote_buffer_refs"});
  PlanBlock block;
  block.loc = node.loc;
  block.id = node.get("id") ? node.get("id")->getAsInteger().value_or(0) : 0;
  Lists lists;
  auto take = [&](const Node &list, StringRef typeKey, StringRef idKey, int64_t memory,
                  int64_t port, int64_t groups, auto &into) {
    known(list, {typeKey, idKey});
    std::string type = word(list, typeKey, std::nullopt);
    int64_t count = type == "port" ? port : type == "switch" ? groups : memory;
    auto &ids = into[type];
    for (int64_t number : numbers(list, idKey, true, 1 << 24)) {
      if (number >= count)
        error(list) << "'" << idKey << "' has " << number << ", but this GPU has " << count
                    << " of type " << type;
      else
        ids.push_back(number);
    }
  };
  int64_t buffers = int64_t(names.buffers.size());
  for (const Node &list : objects(node, "channels", false))
    take(list, "channel_type", "channel_ids", int64_t(names.memory.size()),
         int64_t(names.port.size()), int64_t(names.groups.size()), lists.channels);
  for (const Node &list : objects(node, "remote_buffer_refs", false))
    take(list, "access_channel_type", "remote_buffer_ids", buffers, buffers, buffers,
         lists.buffers);
  for (const Node &each : objects(node, "ops", true)) {
    PlanOp op;
    op.loc = each.loc;
    op.number = int64_t(block.ops.size());
    readOp(each, rank, op, gpu, names, lists);
    block.ops.push_back(std::move(op));
  }
  gpu.blocks.push_back(std::move(block));
}

//===--- ops ------------------------------------------------------------------------------===//

void PlanReader::readOp(const Node &node, int64_t rank, PlanOp &op, const PlanGpu &gpu,
                        const Names &names, const Lists &lists) {
  op.word = word(node, "name", std::nullopt);
  const Word *meaning = llvm::find_if(kWords, [&](const Word &w) { return w.name == op.word; });
  if (meaning == std::end(kWords)) {
    std::string understood;
    for (const Word &w : kWords)
      understood += (understood.empty() ? "" : ", ") + w.name.str();
    error(node) << "op '" << op.word << "' is not understood; understood are " << understood;
    return;
  }
  op.kind = meaning->kind;
  op.signals = meaning->signals;
  op.flushes = meaning->flushes;
  known(node,
        {"name", "channel_ids", "channel_type", "src_buff", "dst_buff", "reduce_op", "deps",
         "barrier_id", "num_threadblocks", "semaphore_ids"},
        /*strict=*/true);
  if (StringRef(op.word).starts_with("rlx"))
    warnOnce(op.loc, "relaxed signals and waits are taken as if they ordered memory, too");
  if (meaning->sources == At::Group || meaning->dests == At::Group)
    warnOnce(op.loc, "what the switch reduces and multicasts is taken as loads from and stores to "
                     "each rank of the group");
  if (node.get("reduce_op"))
    if (std::string how = word(node, "reduce_op", std::nullopt); how != "sum")
      error(node) << "'reduce_op' is '" << how << "', expected sum";
  std::string type =
      node.get("channel_type") ? word(node, "channel_type", std::nullopt) : std::string("memory");
  op.port = type == "port";
  bool usesChannels = op.kind == PlanOpKind::Signal || op.kind == PlanOpKind::Wait ||
                      op.kind == PlanOpKind::Flush || op.signals;
  for (int64_t number : numbers(node, "channel_ids", usesChannels, 1 << 24)) {
    auto own = lists.channels.find(type);
    int64_t count = own == lists.channels.end() ? 0 : int64_t(own->second.size());
    if (number >= count)
      error(node) << "'channel_ids' has " << number << ", but its thread block has " << count
                  << " channels of type " << type;
    else if (type != "switch")
      op.channels.push_back((op.port ? names.port : names.memory)[own->second[number]]);
  }
  for (const Node &dep : objects(node, "deps", false)) {
    known(dep, {"tb", "step"}, /*strict=*/true);
    if (op.kind != PlanOpKind::Nop)
      error(dep) << "'" << op.word << "' depends on another step; a nop does";
    op.deps.push_back({size_t(number(dep, "tb", std::nullopt, 0, 1 << 20)),
                       number(dep, "step", std::nullopt, 0, 1 << 24) + 1});
  }
  bool semaphore = op.kind == PlanOpKind::Acquire || op.kind == PlanOpKind::Release;
  for (int64_t number : numbers(node, "semaphore_ids", semaphore, 1 << 24)) {
    if (number >= int64_t(gpu.semaphores.size()))
      error(node) << "'semaphore_ids' has " << number << ", but this GPU has "
                  << gpu.semaphores.size() << " semaphores";
    else
      op.semaphores.push_back(size_t(number));
  }
  if (op.kind == PlanOpKind::Barrier) {
    op.barrier = number(node, "barrier_id", std::nullopt, 0, 1 << 20);
    op.participants = number(node, "num_threadblocks", std::nullopt, 1, 1 << 20);
  }
  if (op.kind == PlanOpKind::Move || op.kind == PlanOpKind::Reduce)
    readOperands(node, rank, op, *meaning, names, lists);
}

std::optional<PlanOperand> PlanReader::operand(const Node &node, const Node &inOp, int64_t rank,
                                               At where, StringRef channelType, const Names &names,
                                               const Lists &lists) {
  known(node, {"type", "buffer_id", "switch_channel_id", "index", "size"}, /*strict=*/true);
  PlanOperand found;
  found.rank = rank;
  found.place.chunk = number(node, "index", std::nullopt, 0, kMaxChunks);
  found.count = number(node, "size", std::nullopt, 1, kMaxChunks);
  auto one = [&](StringRef key, const std::map<std::string, std::vector<int64_t>> &in,
                 StringRef type) -> std::optional<int64_t> {
    int64_t index = number(node, key, std::nullopt, 0, 1 << 24);
    auto list = in.find(type.str());
    int64_t count = list == in.end() ? 0 : int64_t(list->second.size());
    if (index < count)
      return list->second[index];
    error(node) << "'" << key << "' is " << index << ", but its thread block has " << count
                << " of type " << type;
    return std::nullopt;
  };
  bool here = node.get("type"), there = node.get("buffer_id"), group = node.get("switch_channel_id");
  if (here + there + group != 1) {
    error(node) << "an operand has one of 'type', 'buffer_id' and 'switch_channel_id', found "
                << int(here + there + group);
    return std::nullopt;
  }
  if ((here && where == At::There) || (there && where == At::Here) ||
      (group != (where == At::Group))) {
    error(node) << "lies "
                << (here    ? "on the own GPU"
                    : there ? "on another GPU"
                            : "behind the switch")
                << ", which '" << word(inOp, "name", "") << "' does not take in this place";
    return std::nullopt;
  }
  if (here) {
    std::optional<char> which = buffer(node, "type");
    if (!which)
      return std::nullopt;
    found.place.buffer = *which;
  } else if (there) {
    std::optional<int64_t> id = one("buffer_id", lists.buffers, channelType);
    if (!id)
      return std::nullopt;
    std::tie(found.rank, found.place.buffer) = names.buffers[*id];
    found.remote = true;
  } else {
    std::optional<int64_t> id = one("switch_channel_id", lists.channels, "switch");
    if (!id)
      return std::nullopt;
    found.group = true;
    found.place.buffer = names.groups[*id].buffer;
    found.ranks = names.groups[*id].ranks;
  }
  return found;
}

void PlanReader::readOperands(const Node &node, int64_t rank, PlanOp &op, const Word &meaning,
                              const Names &names, const Lists &lists) {
  bool reduce = op.kind == PlanOpKind::Reduce;
  StringRef type = op.port ? "port" : "memory";
  auto side = [&](StringRef key, At where, std::vector<PlanOperand> &into, bool packets) {
    std::vector<Node> nodes = objects(node, key, true);
    if (nodes.empty())
      error(node) << "'" << key << "' is empty";
    for (auto [i, each] : llvm::enumerate(nodes)) {
      bool first = reduce && i == 0 && where != At::Group;
      if (reduce && i > 0 && where == At::None) {
        error(each) << "'" << op.word << "' takes one operand here";
        continue;
      }
      if (auto found = operand(each, node, rank, first ? At::Here : where, type, names, lists)) {
        found->packets = packets && !first;
        into.push_back(*found);
      }
    }
  };
  bool combined = meaning.packets == Packets::Combined;
  bool from = combined || meaning.packets == Packets::From || meaning.packets == Packets::Both;
  bool to = combined || meaning.packets == Packets::To || meaning.packets == Packets::Both;
  side("src_buff", meaning.sources, op.sources, from);
  side("dst_buff", meaning.dests, op.dests, to);
  if (op.sources.empty() || op.dests.empty())
    return;
  if (!reduce && op.sources.size() != op.dests.size())
    error(node) << op.sources.size() << " sources and " << op.dests.size()
                << " destinations, expected as many";
  if (op.signals && op.channels.size() != op.dests.size())
    error(node) << op.channels.size() << " channels and " << op.dests.size()
                << " destinations, expected as many";
  if (op.port && (reduce || meaning.sources != At::Here || meaning.dests != At::There ||
                  meaning.packets != Packets::None))
    error(node) << "'" << op.word << "' over a port channel; what goes over one is put, pws, pwsf, "
                << "signal, wait and flush";
  else if (op.port && op.channels.size() != op.dests.size())
    error(node) << "a put over port channels has a channel for each destination, found "
                << op.channels.size() << " for " << op.dests.size();
  int64_t count = op.sources.front().count;
  for (const std::vector<PlanOperand> *list : {&op.sources, &op.dests})
    for (const PlanOperand &each : *list) {
      if (each.count != count)
        error(node) << "operands of " << count << " and of " << each.count
                    << " chunks, expected one size";
      if (each.packets && each.place.buffer != 's')
        error(node) << "packets in buffer " << StringRef(&each.place.buffer, 1)
                    << "; they live in scratch memory";
    }
}

//===--- the whole ------------------------------------------------------------------------===//

// The k-th channel from a to b and the k-th from b to a are the two ends of one.
void PlanReader::pairChannels() {
  std::map<std::tuple<int64_t, int64_t, bool>, std::vector<size_t>> ends;
  for (auto [rank, gpu] : llvm::enumerate(plan.gpus))
    for (auto [i, channel] : llvm::enumerate(gpu.channels))
      ends[{int64_t(rank), channel.peer, channel.port}].push_back(i);
  for (auto &[key, mine] : ends) {
    auto [from, to, port] = key;
    const std::vector<size_t> &theirs = ends[{to, from, port}];
    if (mine.size() != theirs.size()) {
      error(plan.gpus[from].loc) << "GPU " << from << " has " << mine.size()
                                 << (port ? " port" : " memory") << " channels to GPU " << to
                                 << ", which has " << theirs.size() << " back";
      continue;
    }
    for (size_t k = 0; k < mine.size(); ++k)
      plan.gpus[from].channels[mine[k]].there = theirs[k];
  }
}

// Counters live on from run to run: as much must come as is taken.
void PlanReader::checkCounts() {
  std::map<std::pair<size_t, size_t>, std::pair<int64_t, int64_t>> heard; // at the waiting end
  for (auto [rank, gpu] : llvm::enumerate(plan.gpus)) {
    std::vector<std::array<int64_t, 2>> semaphores(gpu.semaphores.size(), {0, 0});
    std::vector<std::array<std::set<int64_t>, 2>> users(gpu.semaphores.size());
    for (const PlanBlock &block : gpu.blocks)
      for (const PlanOp &op : block.ops) {
        for (size_t channel : op.channels) {
          const PlanChannel &c = gpu.channels[channel];
          if (op.kind == PlanOpKind::Wait)
            ++heard[{rank, channel}].second;
          else if (op.kind == PlanOpKind::Signal || op.signals)
            ++heard[{size_t(c.peer), c.there}].first;
        }
        for (auto [i, dest] : llvm::enumerate(op.dests))
          if ((op.port || op.signals) && i < op.channels.size() &&
              gpu.channels[op.channels[i]].peer != dest.rank)
            error(op.loc) << "puts to GPU " << dest.rank << " over a channel to GPU "
                          << gpu.channels[op.channels[i]].peer;
        bool release = op.kind == PlanOpKind::Release;
        for (size_t number : op.semaphores) {
          ++semaphores[number][release];
          users[number][release].insert(block.id);
        }
      }
    for (auto [i, counts] : llvm::enumerate(semaphores)) {
      if (counts[0] != counts[1])
        error(gpu.loc) << "semaphore " << i << " of GPU " << rank << " is acquired " << counts[0]
                       << " times and released " << counts[1] << " times in a run";
      for (bool release : {false, true})
        if (users[i][release].size() > 1)
          error(gpu.loc) << "semaphore " << i << " of GPU " << rank << " is "
                         << (release ? "released" : "acquired") << " by "
                         << users[i][release].size()
                         << " thread blocks; whose turn it is depends on time, and only one is "
                            "understood";
    }
  }
  for (auto &[end, counts] : heard)
    if (counts.first != counts.second) {
      const PlanChannel &c = plan.gpus[end.first].channels[end.second];
      error(plan.gpus[end.first].loc)
          << "GPU " << end.first << " waits " << counts.second << " times on a channel from GPU "
          << c.peer << ", which signals " << counts.first << " times in a run";
    }
}

void PlanReader::checkPackets() {
  std::map<std::pair<int64_t, int64_t>, LocationAttr> written;
  auto each = [&](auto &&visit) {
    for (const PlanGpu &gpu : plan.gpus)
      for (const PlanBlock &block : gpu.blocks)
        for (const PlanOp &op : block.ops)
          visit(op);
  };
  each([&](const PlanOp &op) {
    for (const PlanOperand &dest : op.dests)
      for (int64_t i = 0; dest.packets && i < dest.count; ++i)
        if (auto [it, isNew] = written.insert({{dest.rank, dest.place.chunk + i}, op.loc}); !isNew) {
          error(op.loc) << "a second packet in a run for chunk " << dest.place.chunk + i
                        << " of GPU " << dest.rank
                        << "'s scratch memory; its reader cannot tell them apart";
        }
  });
  each([&](const PlanOp &op) {
    for (const PlanOperand &source : op.sources)
      for (int64_t i = 0; source.packets && i < source.count; ++i)
        if (!written.count({source.rank, source.place.chunk + i}))
          error(op.loc) << "reads a packet in chunk " << source.place.chunk + i << " of GPU "
                        << source.rank << "'s scratch memory, where nobody puts one";
  });
}

void PlanReader::checkMeetings() {
  for (PlanGpu &gpu : plan.gpus) {
    std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, PlanOp *>> meetings;
    for (PlanBlock &block : gpu.blocks) {
      std::map<int64_t, int64_t> uses;
      for (PlanOp &op : block.ops)
        if (op.kind == PlanOpKind::Barrier) {
          op.meeting = uses[op.barrier]++;
          auto &[count, first] = meetings[{op.barrier, op.meeting}];
          ++count;
          first = first ? first : &op;
        }
    }
    for (auto &[key, met] : meetings)
      if (met.first != met.second->participants)
        error(met.second->loc) << "use " << key.second << " of barrier " << key.first << " is for "
                               << met.second->participants << " thread blocks, and " << met.first
                               << " come";
  }
}

// A lane stands for a block as a whole; its threads are another matter.
void PlanReader::checkThreads() {
  for (const PlanGpu &gpu : plan.gpus)
    for (const PlanBlock &block : gpu.blocks) {
      const PlanOp *moved = nullptr, *waited = nullptr;
      for (const PlanOp &op : block.ops) {
        bool packets = llvm::any_of(op.sources, [](auto &o) { return o.packets; }) ||
                       llvm::any_of(op.dests, [](auto &o) { return o.packets; });
        switch (op.kind) {
        case PlanOpKind::Nop:
        case PlanOpKind::Barrier:
          moved = waited = nullptr;
          break;
        case PlanOpKind::Wait:
        case PlanOpKind::Acquire:
          waited = &op;
          break;
        case PlanOpKind::Signal:
        case PlanOpKind::Release:
          if (moved && !op.port)
            warnOnce(op.loc, llvm::formatv("no nop between '{0}' and '{1}': nothing says that all "
                                           "threads of the block are done; taken as done",
                                           moved->word, op.word));
          break;
        case PlanOpKind::Move:
        case PlanOpKind::Reduce:
          if (waited && !packets)
            warnOnce(op.loc, llvm::formatv("no nop between '{0}' and '{1}': nothing makes all "
                                           "threads of the block wait; taken as if they did",
                                           waited->word, op.word));
          if (!packets && !op.port)
            moved = &op;
          break;
        case PlanOpKind::Flush:
          break;
        }
      }
    }
}

std::optional<Plan> PlanReader::run() {
  if (lines.tooDeep) {
    error(FileLineColLoc::get(context, file, lines.tooDeep->first, lines.tooDeep->second))
        << "nests deeper than " << kMaxDepth << " levels";
    return std::nullopt;
  }
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  plan.loc = FileLineColLoc::get(context, file, 1, 1);
  if (!parsed) {
    error(plan.loc) << "is not JSON: " << llvm::toString(parsed.takeError());
    return std::nullopt;
  }
  const Object *object = parsed->getAsObject();
  if (!object || !object->get("gpus")) {
    error(plan.loc) << "is not an MSCCL++ plan: expected an object with 'gpus'";
    return std::nullopt;
  }
  Node root{object, "", plan.loc};
  known(root, {"name", "collective", "protocol", "inplace", "reuse_resources",
               "num_threads_per_block", "use_double_scratch_buffer", "buffer_alignment",
               "min_message_size", "max_message_size", "gpus"});
  plan.name = word(root, "name", "plan");
  plan.collectiveName = word(root, "collective", std::nullopt);
  plan.collective = collectiveOf(plan.collectiveName);
  plan.protocol = word(root, "protocol", "Simple");
  plan.inPlace = flag(root, "inplace", false);
  plan.doubleScratch = flag(root, "use_double_scratch_buffer", false);
  flag(root, "reuse_resources", false);
  for (StringRef key : {"num_threads_per_block", "buffer_alignment"})
    number(root, key, key == "buffer_alignment" ? 16 : 1024, 1, 1 << 30);
  for (auto [key, most] : {std::pair<StringRef, uint64_t>{"min_message_size", 0},
                           {"max_message_size", std::numeric_limits<uint64_t>::max()}}) {
    const llvm::json::Value *value = root.get(key);
    if (!value)
      emitWarning(plan.loc) << "the plan has no '" << key << "', taken as " << most;
    else if (!value->getAsUINT64())
      error(root) << "'" << key << "' is " << show(value) << ", expected a whole number";
  }
  std::vector<Node> gpus = objects(root, "gpus", true);
  if (gpus.empty())
    error(root) << "has no GPUs";
  if (bad)
    return std::nullopt;
  plan.ranks = int64_t(gpus.size());
  plan.gpus.resize(gpus.size());
  for (const Node &gpu : gpus) {
    for (auto [key, chunks] : {std::pair<StringRef, int64_t *>{"input_chunks", &plan.inputChunks},
                               {"output_chunks", &plan.outputChunks},
                               {"scratch_chunks", &plan.scratchChunks}})
      *chunks = std::max(*chunks, number(gpu, key, 0, 0, kMaxChunks));
    readGpu(gpu, number(gpu, "id", std::nullopt, 0, plan.ranks - 1));
  }
  if (bad || !plan.completeSizes())
    return std::nullopt;
  for (auto [rank, gpu] : llvm::enumerate(plan.gpus))
    for (const PlanBlock &block : gpu.blocks)
      for (const PlanOp &op : block.ops)
        for (const std::vector<PlanOperand> *list : {&op.sources, &op.dests})
          for (const PlanOperand &each : *list) {
            Place found = plan.resolve(each.rank, each.place);
            if (found.chunk + each.count > plan.chunksOf(found.buffer))
              error(op.loc) << "chunks " << each.place.chunk << " to "
                            << each.place.chunk + each.count - 1 << " of buffer "
                            << StringRef(&each.place.buffer, 1) << ", which has "
                            << plan.chunksOf(found.buffer);
          }
  pairChannels();
  if (!bad) {
    checkCounts();
    checkPackets();
    checkMeetings();
  }
  if (bad)
    return std::nullopt;
  checkThreads();
  return std::move(plan);
}

} // namespace

std::optional<Plan> mlir::ncclx::msccl::readPlan(StringRef text, StringRef file,
                                                 MLIRContext *context) {
  return PlanReader(text, file, context).run();
}

//===- ReadMscclppJson.cpp - MSCCL++ plans to a structure, with their faults named --------===//
#include "JsonFile.h"
#include "MscclppPlan.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace mlir;
using namespace mlir::ncclx::msccl;
using Node = JsonFile::Node;

namespace {

constexpr int64_t kMaxChunks = int64_t(1) << 24;

/// Where an operand lies.
enum class At { None, Here, There, Anywhere, Group };
enum class Packets { None, From, To, Both, Combined };

/// What a word of the format means. Of a reduction the first operand of each side is data of the
/// own GPU; the others lie where it says.
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

class PlanReader : JsonFile {
public:
  PlanReader(StringRef text, StringRef file, MLIRContext *context)
      : JsonFile(text, file, context) {}
  std::optional<Plan> run();

private:
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

  Plan plan;

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
};

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
        if (found == positions.end() || steps > int64_t(gpu.blocks[found->second].ops.size())) {
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
  bool here = node.get("type"), there = node.get("buffer_id"),
       group = node.get("switch_channel_id");
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

std::optional<Plan> PlanReader::run() {
  std::optional<Node> found = parse();
  if (!found)
    return std::nullopt;
  const Node &root = *found;
  plan.loc = root.loc;
  if (!root.get("gpus")) {
    error(root.loc) << "is not an MSCCL++ plan: expected an object with 'gpus'";
    return std::nullopt;
  }
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
  if (!checkPlan(plan))
    return std::nullopt;
  return std::move(plan);
}

} // namespace

std::optional<Plan> mlir::ncclx::msccl::readPlan(StringRef text, StringRef file,
                                                 MLIRContext *context) {
  return PlanReader(text, file, context).run();
}

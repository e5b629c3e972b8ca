//===- ReadMscclXml.cpp - MSCCL XML to a structure, with its faults named -------------===//
#include "MscclAlgorithm.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

#include <pugixml.hpp>

using namespace mlir;
using namespace mlir::ncclx::msccl;

std::map<Connection, int64_t> Algorithm::connections() const {
  std::map<Connection, int64_t> found;
  for (auto [rank, gpu] : llvm::enumerate(gpus))
    for (const ThreadBlock &block : gpu.blocks) {
      int64_t sent = llvm::count_if(block.steps, [](const Step &s) { return sends(s.type); });
      if (block.send >= 0)
        found[{int64_t(rank), block.send, block.channel}] += sent;
      if (block.receive >= 0)
        found[{block.receive, int64_t(rank), block.channel}] += 0;
    }
  return found;
}

namespace {

// Of MSCCL's interpreter; files beyond them are imported all the same.
constexpr int64_t kMaxBlocks = 64, kMaxSteps = 256, kMaxCount = 72, kMaxOffset = 32767;

class Reader {
public:
  Reader(StringRef text, StringRef file, MLIRContext *context)
      : text(text), file(file), context(context) {
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n')
        lines.push_back(i);
  }

  std::optional<Algorithm> run();

private:
  StringRef text, file;
  MLIRContext *context;
  std::vector<size_t> lines; ///< offsets of line ends
  bool bad = false;
  Algorithm a;
  llvm::StringMap<bool> limits; ///< named once each

  LocationAttr at(ptrdiff_t offset) const {
    auto line = llvm::lower_bound(lines, size_t(std::max<ptrdiff_t>(0, offset)));
    size_t start = line == lines.begin() ? 0 : *(line - 1) + 1;
    return FileLineColLoc::get(context, file, unsigned(line - lines.begin()) + 1,
                               unsigned(std::max<ptrdiff_t>(0, offset) - start) + 1);
  }
  LocationAttr at(pugi::xml_node node) const { return at(node.offset_debug()); }
  InFlightDiagnostic error(LocationAttr loc) {
    bad = true;
    return emitError(loc);
  }
  void limit(LocationAttr loc, StringRef what, int64_t found, int64_t most) {
    if (found > most && limits.insert({what, true}).second)
      emitWarning(loc) << "has " << found << " " << what << "; MSCCL's interpreter takes " << most;
  }

  /// An attribute as a number; without a default it must be there.
  int64_t number(pugi::xml_node node, const char *name, std::optional<int64_t> ifMissing,
                 int64_t least, int64_t most);
  std::string word(pugi::xml_node node, const char *name, const char *ifMissing);
  void known(pugi::xml_node node, ArrayRef<StringRef> names);
  void readGpu(pugi::xml_node node, std::vector<std::optional<Gpu>> &gpus);
  void readBlock(pugi::xml_node node, Gpu &gpu, std::map<int64_t, size_t> &blocks);
  std::optional<Place> place(pugi::xml_node node, const char *buffer, const char *offset,
                             int64_t count, const Gpu &gpu);
  void largestRank();
  void check(int64_t rank, const Step &step, Place place, StringRef which);
  void checkConnections();
};

int64_t Reader::number(pugi::xml_node node, const char *name, std::optional<int64_t> ifMissing,
                       int64_t least, int64_t most) {
  pugi::xml_attribute attribute = node.attribute(name);
  if (!attribute) {
    if (!ifMissing)
      error(at(node)) << "<" << node.name() << "> has no " << name;
    else
      emitWarning(at(node)) << "<" << node.name() << "> has no " << name << ", taken as "
                            << *ifMissing;
    return ifMissing.value_or(least);
  }
  int64_t value = 0;
  if (StringRef(attribute.value()).trim().getAsInteger(10, value)) {
    error(at(node)) << name << " is '" << attribute.value() << "', expected a number";
    return least;
  }
  if (value < least || value > most) {
    error(at(node)) << name << " is " << value << ", expected " << least << " to " << most;
    return least;
  }
  return value;
}

std::string Reader::word(pugi::xml_node node, const char *name, const char *ifMissing) {
  if (pugi::xml_attribute attribute = node.attribute(name))
    return attribute.value();
  if (ifMissing)
    emitWarning(at(node)) << "<" << node.name() << "> has no " << name << ", taken as '"
                          << ifMissing << "'";
  else
    error(at(node)) << "<" << node.name() << "> has no " << name;
  return ifMissing ? ifMissing : "";
}

void Reader::known(pugi::xml_node node, ArrayRef<StringRef> names) {
  for (pugi::xml_attribute attribute : node.attributes())
    if (!llvm::is_contained(names, attribute.name()))
      emitWarning(at(node)) << "<" << node.name() << "> has an attribute '" << attribute.name()
                            << "' that is not known here, and is left out";
}

constexpr int64_t kMaxChunks = int64_t(1) << 24;

std::optional<Place> Reader::place(pugi::xml_node node, const char *buffer, const char *offset,
                                   int64_t count, const Gpu &gpu) {
  std::string name = word(node, buffer, nullptr);
  if (name != "i" && name != "o" && name != "s") {
    error(at(node)) << buffer << " is '" << name << "', expected i, o or s";
    return std::nullopt;
  }
  Place place{name[0], number(node, offset, std::nullopt, 0, kMaxChunks)};
  limit(at(node), "as a chunk's number", place.chunk + count - 1, kMaxOffset);
  return place;
}

void Reader::readBlock(pugi::xml_node node, Gpu &gpu, std::map<int64_t, size_t> &blocks) {
  known(node, {"id", "send", "recv", "chan"});
  ThreadBlock block;
  block.loc = at(node);
  int64_t last = a.ranks - 1;
  block.id = number(node, "id", std::nullopt, 0, 1 << 20);
  block.send = number(node, "send", -1, -1, last);
  block.receive = number(node, "recv", -1, -1, last);
  block.channel = number(node, "chan", 0, -1, 1 << 20);
  if (!blocks.insert({block.id, gpu.blocks.size()}).second)
    error(block.loc) << "a second thread block " << block.id << " of this GPU";
  int64_t next = 0;
  for (pugi::xml_node child : node.children()) {
    if (child.type() != pugi::node_element)
      continue;
    bool older = StringRef(child.name()) == "op"; // some files say op and step=
    if (StringRef(child.name()) != "step" && !older) {
      error(at(child)) << "<" << child.name() << "> in <tb>, expected <step>";
      continue;
    }
    known(child, {"s", "step", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid",
                  "deps", "hasdep"});
    Step step;
    step.loc = at(child);
    step.number =
        number(child, older && child.attribute("step") ? "step" : "s", std::nullopt, 0, 1 << 24);
    if (step.number != next++)
      error(step.loc) << "step " << step.number << " where step " << next - 1
                      << " was expected; the steps of a thread block are numbered from 0";
    step.word = word(child, "type", nullptr);
    auto type = llvm::StringSwitch<std::optional<StepType>>(step.word)
                    .Case("nop", StepType::Nop)
                    .Cases({"cpy", "c"}, StepType::Copy)
                    .Case("re", StepType::Reduce)
                    .Case("s", StepType::Send)
                    .Case("r", StepType::Receive)
                    .Case("rcs", StepType::ReceiveCopySend)
                    .Case("rrs", StepType::ReceiveReduceSend)
                    .Case("rrc", StepType::ReceiveReduceCopy)
                    .Case("rrcs", StepType::ReceiveReduceCopySend)
                    .Default(std::nullopt);
    if (!type) {
      error(step.loc) << "type is '" << step.word
                      << "', expected one of nop, cpy, re, s, r, rcs, rrs, rrc, rrcs";
      continue;
    }
    step.type = *type;
    if (step.type != StepType::Nop) {
      step.count = number(child, "cnt", 1, 1, kMaxChunks);
      limit(step.loc, "chunks in a step", step.count, kMaxCount);
      if (readsSource(step.type))
        if (auto source = place(child, "srcbuf", "srcoff", step.count, gpu))
          step.source = *source;
      if (stores(step.type))
        if (auto dest = place(child, "dstbuf", "dstoff", step.count, gpu))
          step.dest = *dest;
    }
    if (sends(step.type) && block.send < 0)
      error(step.loc) << "step " << step.number << " sends, but its thread block " << block.id
                      << " has no send peer";
    if (receives(step.type) && block.receive < 0)
      error(step.loc) << "step " << step.number << " receives, but its thread block " << block.id
                      << " has no receive peer";
    int64_t depends = number(child, "depid", -1, -1, 1 << 20),
            on = number(child, "deps", -1, -1, 1 << 24);
    if ((depends < 0) != (on < 0))
      error(step.loc) << "depid is " << depends << " and deps is " << on
                      << ", expected both or neither to be -1";
    else if (depends >= 0) // positions are filled in when all blocks are known
      step.dependency = {size_t(depends), size_t(on)};
    block.steps.push_back(std::move(step));
  }
  limit(block.loc, "steps in a thread block", int64_t(block.steps.size()), kMaxSteps);
  gpu.blocks.push_back(std::move(block));
}

void Reader::readGpu(pugi::xml_node node, std::vector<std::optional<Gpu>> &gpus) {
  known(node, {"id", "i_chunks", "o_chunks", "s_chunks"});
  int64_t id = number(node, "id", std::nullopt, 0, a.ranks - 1);
  Gpu gpu;
  gpu.loc = at(node);
  gpu.inputChunks = number(node, "i_chunks", 0, 0, kMaxChunks);
  gpu.outputChunks = number(node, "o_chunks", 0, 0, kMaxChunks);
  gpu.scratchChunks = number(node, "s_chunks", 0, 0, kMaxChunks);
  std::map<int64_t, size_t> blocks;
  for (pugi::xml_node child : node.children()) {
    if (child.type() != pugi::node_element)
      continue;
    if (StringRef(child.name()) == "tb") {
      readBlock(child, gpu, blocks);
    } else if (StringRef(child.name()) == "copy") {
      known(child, {"i_off", "o_off"});
      gpu.copies.push_back({Place{'i', number(child, "i_off", std::nullopt, 0, kMaxChunks)},
                            Place{'o', number(child, "o_off", std::nullopt, 0, kMaxChunks)}});
    } else {
      error(at(child)) << "<" << child.name() << "> in <gpu>, expected <tb> or <copy>";
    }
  }
  for (ThreadBlock &block : gpu.blocks)
    for (Step &step : block.steps) {
      if (!step.dependency)
        continue;
      auto on = blocks.find(int64_t(step.dependency->first));
      if (on == blocks.end() || step.dependency->second >= gpu.blocks[on->second].steps.size()) {
        error(step.loc) << "depends on step " << step.dependency->second << " of thread block "
                        << step.dependency->first << ", which this GPU does not have";
        step.dependency.reset();
      } else {
        step.dependency->first = on->second;
      }
    }
  limit(gpu.loc, "thread blocks", int64_t(gpu.blocks.size()), kMaxBlocks);
  if (gpus[id])
    error(gpu.loc) << "a second GPU " << id;
  gpus[id] = std::move(gpu);
}

void Reader::largestRank() {
  for (const Gpu &gpu : a.gpus) {
    a.inputChunks = std::max(a.inputChunks, gpu.inputChunks);
    a.outputChunks = std::max(a.outputChunks, gpu.outputChunks);
    a.scratchChunks = std::max(a.scratchChunks, gpu.scratchChunks);
  }
}

void Reader::check(int64_t rank, const Step &step, Place place, StringRef which) {
  Place found = a.resolve(rank, place);
  int64_t room = a.chunksOf(found.buffer);
  if (found.chunk + step.count > room)
    error(step.loc) << which << " is chunks " << place.chunk << " to "
                    << place.chunk + step.count - 1 << " of buffer " << StringRef(&place.buffer, 1)
                    << ", which has " << room;
}

void Reader::checkConnections() {
  std::map<Connection, std::pair<const ThreadBlock *, const ThreadBlock *>> ends;
  for (auto [rank, gpu] : llvm::enumerate(a.gpus))
    for (const ThreadBlock &block : gpu.blocks) {
      auto take = [&](const Connection &c, const ThreadBlock *&end, StringRef what) {
        if (end)
          error(block.loc) << "thread blocks " << end->id << " and " << block.id << " of GPU "
                           << rank << " both " << what << " channel " << std::get<2>(c)
                           << "; a connection belongs to one";
        end = &block;
      };
      for (int64_t peer : {block.send, block.receive})
        if (peer == int64_t(rank))
          error(block.loc) << "thread block " << block.id << " of GPU " << rank
                           << " talks to its own GPU";
      if (block.send >= 0 && llvm::any_of(block.steps, [](auto &s) { return sends(s.type); })) {
        Connection c{int64_t(rank), block.send, block.channel};
        take(c, ends[c].first, "send on");
      }
      if (block.receive >= 0 &&
          llvm::any_of(block.steps, [](auto &s) { return receives(s.type); })) {
        Connection c{block.receive, int64_t(rank), block.channel};
        take(c, ends[c].second, "receive on");
      }
      for (const Step &step : block.steps) {
        if (readsSource(step.type))
          check(int64_t(rank), step, step.source, "the source");
        if (stores(step.type))
          check(int64_t(rank), step, step.dest, "the destination");
      }
    }
  // The k-th send fills what the k-th receive takes: both ends must agree on its size.
  for (auto &[c, end] : ends) {
    auto [from, to, channel] = c;
    std::vector<const Step *> sent, received;
    if (end.first)
      for (const Step &step : end.first->steps)
        if (sends(step.type))
          sent.push_back(&step);
    if (end.second)
      for (const Step &step : end.second->steps)
        if (receives(step.type))
          received.push_back(&step);
    if (sent.size() != received.size()) {
      error(end.first ? end.first->loc : end.second->loc)
          << "GPU " << from << " sends " << sent.size() << " times to GPU " << to << " on channel "
          << channel << ", which receives " << received.size() << " times";
      continue;
    }
    for (auto [k, pair] : llvm::enumerate(llvm::zip(sent, received)))
      if (std::get<0>(pair)->count != std::get<1>(pair)->count)
        error(std::get<0>(pair)->loc)
            << "transfer " << k << " from GPU " << from << " to GPU " << to << " on channel "
            << channel << " has " << std::get<0>(pair)->count << " chunks where it is sent and "
            << std::get<1>(pair)->count << " where it is received";
  }
}

std::optional<Algorithm> Reader::run() {
  pugi::xml_document document;
  pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed) {
    error(at(parsed.offset)) << "is not XML: " << parsed.description();
    return std::nullopt;
  }
  pugi::xml_node root = document.document_element();
  a.loc = at(root);
  if (StringRef(root.name()) != "algo") {
    error(a.loc) << "the root is <" << root.name() << ">, expected <algo>";
    return std::nullopt;
  }
  known(root, {"name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace",
               "outofplace", "minBytes", "maxBytes", "redop", "nthreads"});
  a.name = word(root, "name", "algorithm");
  a.protocol = word(root, "proto", "Simple");
  int64_t n = number(root, "ngpus", std::nullopt, 1, 1 << 20);
  number(root, "nchannels", 1, 0, 1 << 20);
  number(root, "nchunksperloop", 0, 0, kMaxChunks);
  a.collectiveName = word(root, "coll", nullptr);
  a.collective = collectiveOf(a.collectiveName);
  bool in = number(root, "inplace", 0, 0, 1), out = number(root, "outofplace", !in, 0, 1);
  number(root, "minBytes", 0, 0, std::numeric_limits<int64_t>::max());
  number(root, "maxBytes", 0, 0, std::numeric_limits<int64_t>::max());
  a.inPlace = in;
  if (in && out)
    emitWarning(a.loc) << "is for in and out of place; imported in place";
  if (std::string op = root.attribute("redop").as_string("sum"); op != "sum" && op != "nop")
    emitWarning(a.loc) << "redop is '" << op << "'; imported with sums";
  if (bad)
    return std::nullopt;

  std::vector<std::optional<Gpu>> gpus(n);
  a.ranks = n;
  a.gpus.resize(n);
  for (pugi::xml_node child : root.children()) {
    if (child.type() != pugi::node_element)
      continue;
    if (StringRef(child.name()) == "gpu")
      readGpu(child, gpus);
    else
      error(at(child)) << "<" << child.name() << "> in <algo>, expected <gpu>";
  }
  for (auto [id, gpu] : llvm::enumerate(gpus)) {
    if (!gpu)
      error(a.loc) << "ngpus is " << n << ", but there is no GPU " << id;
    else
      a.gpus[id] = std::move(*gpu);
  }
  if (bad)
    return std::nullopt;
  largestRank();
  bad |= !a.completeSizes();
  if (!bad)
    checkConnections();
  return bad ? std::nullopt : std::optional<Algorithm>(std::move(a));
}

} // namespace

std::optional<Algorithm> mlir::ncclx::msccl::readAlgorithm(StringRef text, StringRef file,
                                                           MLIRContext *context) {
  return Reader(text, file, context).run();
}

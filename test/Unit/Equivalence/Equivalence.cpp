//===- Equivalence.cpp - A graph's meaning against its schedule, run for real ---------===//
#include "Equivalence.h"

#include "../Runtime/Harness.h"
#include "CppCarrier.h"

#include "ncclx/NCCLX/Hints.h"
#include "ncclx/NCCLX/Topology.h"
#include "ncclx/Overlap/Passes.h"
#include "ncclx/Reference/Data.h"
#include "ncclx/Reference/Interpreter.h"
#include "ncclx/Topology/Make.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/FileSystem.h"

#include <array>
#include <barrier>
#include <cstring>
#include <gtest/gtest.h>

using namespace equivalence;
using namespace mlir;
using namespace mlir::ncclx;

namespace {

using Bytes = std::vector<uint8_t>;

topology::Topology processes(int64_t ranks, int64_t hosts = 1) {
  topology::ProcessHost host;
  host.ranks = ranks / hosts;
  host.cores = 2;
  host.memoryBytesPerSec = 10'000'000'000;
  host.coreCopyBytesPerSec = 5'000'000'000;
  topology::Topology one = topology::makeProcessHost(host);
  if (hosts == 1)
    return one;
  topology::Node net;
  net.name = "net";
  net.kind = topology::NodeKind::net;
  one.nodes.push_back(net);
  unsigned memory = 0, network = one.nodes.size() - 1;
  topology::Rates rates = {1'000'000'000, 1'000'000'000};
  one.links.push_back({memory, network, topology::LinkKind::tcp, 1, rates, 5000, 0});
  one.links.push_back({network, memory, topology::LinkKind::tcp, 1, rates, 5000, 0});
  std::string problem;
  topology::Replication often;
  often.hosts = unsigned(hosts);
  return *topology::replicateHosts(one, often, problem);
}

bool namesMachine(const std::string &text) { return StringRef(text).contains("ncclx.topology"); }

/// The machine that the text names, or else processes.
topology::Topology machine(const std::string &text, int64_t ranks, int64_t hosts) {
  if (namesMachine(text)) {
    DialectRegistry registry;
    registerDriverDialects(registry);
    MLIRContext context(registry);
    if (auto module = parseSourceString<ModuleOp>(text, &context))
      if (auto named = (*module)->getAttrOfType<TopologyAttr>(NCCLXDialect::getTopologyAttrName()))
        if (topology::ReadResult read = readTopology(named); read.topology)
          return *read.topology;
  }
  return processes(ranks, hosts);
}

/// How far a text is taken: to its choices, which the reference needs, to a program, to its proof,
/// or to code.
enum class Depth { chosen, lowered, proved, code };

/// A text on its way to code, with what the stages say.
struct Compiled {
  Compiled(const std::string &text, int64_t ranks, const std::string &transport,
           Depth depth = Depth::code, int64_t hosts = 1)
      : topology(machine(text, ranks, hosts)),
        handler(&context,
                [this](Diagnostic &diagnostic) {
                  messages += diagnostic.str() + "\n";
                  for (Diagnostic &note : diagnostic.getNotes())
                    messages += "  " + note.str() + "\n";
                }),
        trees(topology, topology::Rate::payload),
        compilation(context, {&topology, topology::Rate::payload, transport == "shm", nullptr,
                              namesMachine(text) ? &trees : nullptr}) {
    DialectRegistry registry;
    registerDriverDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
    context.printOpOnDiagnostic(false);
    auto stages = [&]() -> const char * {
      if (failed(compilation.parseText(text, "f")))
        return "parse";
      if (failed(compilation.choose()))
        return "choose";
      if (depth == Depth::chosen)
        return nullptr;
      if (failed(compilation.lower()))
        return "lower";
      if (depth == Depth::lowered)
        return nullptr;
      compilation.prove();
      if (!compilation.proof()) {
        messages += compilation.proof().str() + "\n";
        return "prove";
      }
      if (depth == Depth::proved)
        return nullptr;
      if (failed(compilation.generate()))
        return "generate";
      return nullptr;
    };
    if (const char *stage = stages())
      failure = std::string(stage) + ": " + (messages.empty() ? "failed in silence" : messages);
  }

  topology::Topology topology;
  MLIRContext context;
  std::string messages, failure;
  ScopedDiagnosticHandler handler;
  topology::TreePacker trees;
  Compilation compilation;
};

void fill(const Options &options, int64_t run, int64_t rank, int64_t argument, ShapedType type,
          uint8_t *data) {
  auto memref = MemRefType::get(type.getShape(), type.getElementType());
  fillInputs(options.seed + run, rank, argument, memref, data, options.exact);
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (!options.specials || !element)
    return;
  const llvm::fltSemantics &semantics = element.getFloatSemantics();
  const APFloat specials[] = {APFloat::getNaN(semantics), APFloat::getInf(semantics),
                              APFloat::getInf(semantics, true), APFloat::getZero(semantics, true),
                              APFloat::getZero(semantics)};
  int64_t width = element.getWidth() / 8;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    if (uint64_t pick = (i * 7 + rank * 5 + run * 3) % 11; pick < std::size(specials)) {
      uint64_t bits = specials[pick].bitcastToAPInt().getZExtValue();
      memcpy(data + i * width, &bits, width);
    }
}

/// What the language leaves open in `found` becomes what is expected there.
void dropPadding(const Tensor &tensor, int64_t member, const uint8_t *expected, uint8_t *found,
                 int64_t width) {
  if (!tensor.padding)
    return;
  int64_t dim = tensor.padding->dim, each = tensor.shape[dim], inner = 1;
  int64_t share = std::clamp<int64_t>(tensor.padding->extent - member * each, 0, each);
  for (size_t i = dim + 1; i < tensor.shape.size(); ++i)
    inner *= tensor.shape[i];
  for (int64_t i = 0; i < tensor.count(); ++i)
    if (i / inner % each >= share)
      memcpy(found + i * width, expected + i * width, width);
}

/// expected[run][rank][output]
using Expected = std::vector<std::vector<std::vector<Bytes>>>;

/// `first`: argument 0 is output 0 of these.
std::string interpret(const GraphText &graph, ModuleOp module, const Options &options,
                      Expected &expected, const Expected *first = nullptr) {
  const int64_t ranks = graph.ranks();
  auto interpreter = Interpreter::create(module, "f", ranks);
  if (failed(interpreter))
    return "not taken by the interpreter";
  ArrayRef<Type> types = (*interpreter)->getTypes();
  size_t inputs = (*interpreter)->getNumInputs();
  for (int64_t run = 0; run < options.runs; ++run) {
    std::vector<std::vector<Bytes>> storage(ranks);
    std::vector<std::vector<void *>> buffers(ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      for (auto [i, type] : llvm::enumerate(types)) {
        storage[rank].emplace_back(getDenseBytes(type) + 8, 0x77);
        if (i == 0 && first)
          storage[rank].back() = (*first)[run][rank][0];
        else if (i < inputs)
          fill(options, run, graph.isUniform(i) ? 0 : rank, i, cast<ShapedType>(type),
               storage[rank].back().data());
      }
      for (Bytes &bytes : storage[rank])
        buffers[rank].push_back(bytes.data());
    }
    if (llvm::Error error = (*interpreter)->run(buffers))
      return "interpreter: " + llvm::toString(std::move(error));
    for (std::vector<Bytes> &own : storage)
      own.erase(own.begin(), own.begin() + inputs);
    expected.push_back(std::move(storage));
  }
  return "";
}

void must(const harness::Rank &rank, ncclxrtResult_t result) {
  harness::check(result == ncclxrtSuccess, rank.error());
}

/// A graph's plan on one rank.
class Prepared {
public:
  Prepared(harness::Rank &rank, const GraphText &graph, const HostPlan &plan,
           ncclxrtProgram_t program, const Options &options, const Expected &expected,
           const std::vector<ncclxrtSharing_t> &sharing = {})
      : rank(rank), graph(graph), plan(plan), program(program), options(options),
        expected(expected) {
    PlanDescription description(plan, 0);
    ncclxrtPlanDesc_t given = *description.get();
    given.sharing = sharing.data();
    given.num_sharing = sharing.size();
    must(rank, ncclxrtPlanPrepare(rank.comm, &given, &rank.plan));
    handle = rank.plan;
    for (size_t w = 0; w < plan.windows.size(); ++w) {
      void *data = nullptr;
      size_t bytes = 0;
      must(rank, ncclxrtPlanBuffer(handle, w, 0, &data, &bytes));
      harness::check(bytes == plan.windows[w].bytes, "a window has another size than planned");
      buffers.push_back(static_cast<uint8_t *>(data));
      for (int32_t g = 0; g < plan.windows[w].generations; ++g) {
        must(rank, ncclxrtPlanBuffer(handle, w, g, &data, &bytes));
        if (bytes)
          memset(data, 0xa5, bytes); // a program must not live on zeros
      }
    }
  }

  /// What an argument is before a run.
  void fillArgument(int64_t run, const HostPlan::Window &window, uint8_t *data) const {
    fill(options, run, graph.isUniform(window.argument) ? 0 : rank.rank, window.argument,
         window.type, data);
  }

  /// One run. `given`: argument 0 is there already.
  void run(int64_t run, bool given = false) {
    for (auto [w, window] : llvm::enumerate(plan.windows)) {
      if (window.role == ctran::WindowRole::Input && !(given && window.argument == 0))
        fillArgument(run, window, buffers[w]);
      else if (window.role == ctran::WindowRole::Output && window.bytes)
        memset(buffers[w], 0xe7, window.bytes);
    }
    must(rank, ncclxrtPlanRun(handle, program));
    for (auto [w, window] : llvm::enumerate(plan.windows)) {
      if (window.role == ctran::WindowRole::Input && !graph.isWritable(window.argument) &&
          !(given && window.argument == 0)) {
        Bytes before(window.bytes + 8);
        fillArgument(run, window, before.data());
        harness::check(memcmp(before.data(), buffers[w], window.bytes) == 0,
                       "run " + std::to_string(run) + " changes argument " +
                           std::to_string(window.argument));
      }
      if (window.role == ctran::WindowRole::Output && !options.withoutReference)
        compareOutput(run, window, buffers[w]);
    }
  }

  ncclxrtPlan_t handle;

private:
  harness::Rank &rank;
  const GraphText &graph;
  const HostPlan &plan;
  ncclxrtProgram_t program;
  const Options &options;
  const Expected &expected;
  std::vector<uint8_t *> buffers;

  void compareOutput(int64_t run, const HostPlan::Window &window, const uint8_t *data) const {
    const Tensor &tensor = graph.outputs()[window.argument];
    const Bytes &wanted = expected[run][rank.rank][window.argument];
    Bytes found(data, data + window.bytes);
    found.resize(window.bytes + 8);
    int64_t width = window.type.getElementTypeBitWidth() / 8;
    if (tensor.padding)
      dropPadding(tensor, graph.member(rank.rank, tensor.padding->axes), wanted.data(),
                  found.data(), width);
    Comparison c = compare(window.type, wanted.data(), found.data());
    harness::check(c.equal(), "run " + std::to_string(run) + " output " +
                                  std::to_string(window.argument) + " (" + tensor.type() +
                                  "): " + c.describe(window.type));
  }
};

/// Ranks as threads, each of which prepares its plans and then, when all have, runs them; empty, or
/// what went wrong.
template <typename Plans>
std::string onRanks(int64_t ranks, const std::string &transport,
                    const std::function<Plans(harness::Rank &)> &prepare,
                    const std::function<void(harness::Rank &, Plans &)> &runAll) {
  harness::Job job;
  job.mode = harness::Mode::Threads;
  job.transport = transport;
  job.nranks = int(ranks);
  job.timeoutMs = 60'000;
  std::barrier<> poisoned(ranks);
  std::string wrong;
  std::vector<harness::Outcome> outcomes =
      harness::run(job, [&](const ::ncclxrt::LaunchedRank &launched) {
        std::optional<harness::Rank> rank;
        std::optional<Plans> plans;
        std::string text;
        try {
          rank.emplace(launched.config());
          plans.emplace(prepare(*rank));
        } catch (...) {
          poisoned.arrive_and_drop();
          throw;
        }
        poisoned.arrive_and_wait();
        try {
          runAll(*rank, *plans);
        } catch (const std::exception &e) {
          text = e.what();
          ncclxrtCommAbort(rank->comm, text.c_str()); // the others need not wait
        }
        harness::check(text.empty(), text);
        rank->leave();
      });
  for (auto [rank, outcome] : llvm::enumerate(outcomes))
    if (!outcome.exit.ok())
      wrong += "rank " + std::to_string(rank) + ": " + outcome.text + "\n";
  return wrong;
}

/// The schedule as C++, compiled and loaded; the files are gone when this returns.
llvm::Expected<std::unique_ptr<LoadedCpp>> loadCpp(Compilation &compilation) {
  llvm::SmallString<128> folder;
  if (std::error_code code = llvm::sys::fs::createUniqueDirectory("ncclx-equivalence", folder))
    return llvm::errorCodeToError(code);
  CppOptions options{folder.str().str(), "schedule", ""};
  llvm::Expected<std::unique_ptr<LoadedCpp>> loaded =
      failed(writeCpp(compilation, options))
          ? llvm::createStringError("no C++ can be made of the schedule")
          : LoadedCpp::create(options, NCCLX_TEST_CXX);
  llvm::sys::fs::remove_directories(folder);
  return loaded;
}

} // namespace

/// The graph after passes, and `last` on what they have made.
static std::string passedThen(const std::string &text, const std::string &pipeline,
                              llvm::function_ref<void(ModuleOp)> last) {
  static bool registered = (registerOverlapPasses(), true);
  (void)registered;
  DialectRegistry registry;
  registerDriverDialects(registry);
  MLIRContext context(registry);
  context.disableMultithreading();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  PassManager manager(&context);
  std::string result;
  if (!module || failed(parsePassPipeline(pipeline, manager)) || failed(manager.run(*module))) {
    ADD_FAILURE() << pipeline << " fails on\n" << text;
    return result;
  }
  last(*module);
  llvm::raw_string_ostream(result) << *module;
  return result;
}

std::string equivalence::passed(const std::string &text, const std::string &pipeline) {
  return passedThen(text, pipeline, [](ModuleOp) {});
}

bool equivalence::moves(const std::string &text, const std::string &pipeline) {
  auto forget = [](ModuleOp module) {
    module.walk([](Operation *op) { op->removeDiscardableAttr(kContractAttrName); });
  };
  return passedThen(text, pipeline, forget) != passed(text, "");
}

/// The interpreter on both graphs, where no schedule can be made of them.
static std::string checkMeaning(const GraphText &graph, const Options &options) {
  Expected meant[2];
  DialectRegistry registry;
  registerDriverDialects(registry);
  for (int i : {0, 1}) {
    MLIRContext context(registry);
    context.disableMultithreading();
    std::string text = i ? passed(graph.str(), options.pipeline) : graph.str();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return "does not parse";
    if (std::string wrong = interpret(graph, *module, options, meant[i]); !wrong.empty())
      return wrong;
  }
  return meant[0] == meant[1] ? "" : "the graph means something else behind its passes";
}

std::string equivalence::check(const GraphText &graph, const std::string &transport,
                               const Options &options) {
  if (options.interpretOnly)
    return checkMeaning(graph, options);
  std::string text = graph.str();
  std::optional<Compiled> original;
  if (!options.pipeline.empty()) {
    original.emplace(text, graph.ranks(), transport, Depth::chosen);
    if (!original->failure.empty())
      return original->failure;
    text = passed(text, options.pipeline);
  }
  Compiled compiled(text, graph.ranks(), transport, Depth::code, options.hosts);
  if (!compiled.failure.empty())
    return compiled.failure;
  Compilation &compilation = compiled.compilation;
  for (int64_t seed = 1; seed <= options.adversarial; ++seed) {
    ctran::machine::DataOptions order;
    order.seed = options.seed * 100 + seed;
    for (const GraphBranch &branch : compilation.branches())
      if (ctran::machine::DataResult data = ctran::machine::run(*branch.machine, order); !data)
        return "adversarial order " + std::to_string(order.seed) + " of " + branch.name + ": " +
               data.message + "\n";
  }
  ncclxrtProgram_t program = compilation.entry();
  std::unique_ptr<LoadedCpp> loaded;
  if (options.cpp || getenv("NCCLX_TEST_CPP")) {
    llvm::Expected<std::unique_ptr<LoadedCpp>> made = loadCpp(compilation);
    if (!made)
      return llvm::toString(made.takeError()) + "\n" + compiled.messages;
    loaded = std::move(*made);
    program = loaded->program();
  }
  Expected expected;
  if (std::string error =
          options.withoutReference
              ? std::string()
              : interpret(graph, (original ? original->compilation : compilation).graph(), options,
                          expected);
      !error.empty())
    return error + "\n" + compiled.messages;
  return onRanks<Prepared>(
      graph.ranks(), transport,
      [&](harness::Rank &rank) {
        return Prepared(rank, graph, compilation.plan(), program, options, expected);
      },
      [&](harness::Rank &, Prepared &plan) {
        for (int64_t run = 0; run < options.runs; ++run)
          plan.run(run);
      });
}

std::string equivalence::checkChain(const GraphText &first, const GraphText &second,
                                    const std::string &transport, const Options &options) {
  const GraphText *graphs[] = {&first, &second};
  std::unique_ptr<Compiled> compiled[2];
  std::unique_ptr<LoadedCpp> loaded[2];
  ncclxrtProgram_t programs[2];
  Expected expected[2];
  size_t shared[2] = {};
  for (int i = 0; i < 2; ++i) {
    compiled[i] = std::make_unique<Compiled>(graphs[i]->str(), first.ranks(), transport);
    if (!compiled[i]->failure.empty())
      return compiled[i]->failure;
    Compilation &compilation = compiled[i]->compilation;
    if (std::string error = interpret(*graphs[i], compilation.graph(), options, expected[i],
                                      i ? &expected[0] : nullptr);
        !error.empty())
      return error;
    programs[i] = compilation.entry();
    if (options.cpp) {
      llvm::Expected<std::unique_ptr<LoadedCpp>> made = loadCpp(compilation);
      if (!made)
        return llvm::toString(made.takeError());
      loaded[i] = std::move(*made);
      programs[i] = loaded[i]->program();
    }
    shared[i] = i ? compilation.plan().inputs()[0] : compilation.plan().outputs()[0];
  }
  using Both = std::array<std::unique_ptr<Prepared>, 2>;
  std::string wrong;
  for (int leaves : {0, 1})
    wrong += onRanks<Both>(
        first.ranks(), transport,
        [&](harness::Rank &rank) {
          Both both;
          for (int i = 0; i < 2; ++i) {
            std::vector<ncclxrtSharing_t> sharing;
            if (i)
              sharing.push_back({shared[1], both[0]->handle, shared[0]});
            both[i] = std::make_unique<Prepared>(rank, *graphs[i], compiled[i]->compilation.plan(),
                                                 programs[i], options, expected[i], sharing);
          }
          return both;
        },
        [&](harness::Rank &rank, Both &both) {
          for (int64_t run = 0; run < options.runs; ++run) {
            both[0]->run(run);
            for (int64_t again = 0; again <= run % 2; ++again)
              both[1]->run(run, /*given=*/true);
          }
          // The second finds what the first has left, although that is gone.
          must(rank, ncclxrtPlanDestroy(both[leaves]->handle));
          both[1 - leaves]->run(options.runs - 1, /*given=*/leaves == 0);
          rank.plan = both[1 - leaves]->handle; // destroyed by its rank
        });
  return wrong;
}

void equivalence::expectEqual(const GraphText &graph, const Options &options,
                              const std::vector<std::string> &transports) {
  for (const std::string &transport : transports)
    if (std::string wrong = check(graph, transport, options); !wrong.empty())
      ADD_FAILURE() << "over " << transport << ": " << wrong << "of\n" << graph.str();
}

std::string equivalence::inspect(const GraphText &graph, const std::string &transport,
                                 const std::function<void(Compilation &)> &look) {
  Compiled compiled(graph.str(), graph.ranks(), transport, Depth::proved);
  if (compiled.failure.empty() && look)
    look(compiled.compilation);
  return compiled.failure;
}

std::string equivalence::refusal(const std::string &text, const std::string &transport) {
  return Compiled(text, 64, transport).failure;
}

std::string equivalence::lowered(const std::string &text, int64_t hosts, int64_t ranks) {
  return Compiled(text, ranks, "shm", Depth::lowered, hosts).failure;
}

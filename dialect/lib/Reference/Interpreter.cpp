//===- Interpreter.cpp - What an ncclx function means ---------------------===//
#include "ncclx/Reference/Interpreter.h"

#include "InterpreterLowering.h"
#include "ncclx/Reference/Data.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OwningOpRef.h"

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unordered_map>

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::reference;

namespace {

/// The buffers that a rank's code has made and not freed.
class Arena {
public:
  void *allocate(size_t alignment, size_t bytes) {
    alignment = std::max(alignment, sizeof(void *));
    size_t size = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    void *address = std::aligned_alloc(alignment, size);
    if (!address)
      return nullptr;
    std::memset(address, 0xff, size);
    live.emplace(address, size);
    return address;
  }
  void free(void *address) {
    if (live.erase(address))
      std::free(address);
  }
  ~Arena() {
    for (auto [address, size] : live)
      std::free(address);
  }

private:
  std::unordered_map<void *, size_t> live;
};

/// What the code of one rank's thread needs to find its way back.
struct RankState {
  int64_t rank = 0;
  Rendezvous *rendezvous = nullptr;
  const std::vector<std::string> *chunks = nullptr;
  Arena arena;
  std::jmp_buf escape;
};

thread_local RankState *current = nullptr;

// The run has failed: leave the compiled code, whose frames hold nothing to destroy. No object of
// ours with a destructor may be alive where this is called.
[[noreturn]] void leave() { std::longjmp(current->escape, 1); }

void collective(int64_t site, int64_t in, int64_t sizes, int64_t out) {
  if (!current->rendezvous->meet(current->rank, site, reinterpret_cast<const void *>(in),
                                 reinterpret_cast<const void *>(sizes),
                                 reinterpret_cast<void *>(out)))
    leave();
}

void reportChunk(int64_t place, int64_t index, int64_t count) {
  std::string text = (*current->chunks)[place];
  text.replace(text.find("{0}"), 3, std::to_string(index));
  text.replace(text.find("{1}"), 3, std::to_string(count));
  current->rendezvous->fail("rank " + std::to_string(current->rank) + " " + text);
}

void checkChunk(int64_t place, int64_t index, int64_t count) {
  if (index >= 0 && index < count)
    return;
  reportChunk(place, index, count);
  leave();
}

void reportMemory(size_t bytes) {
  current->rendezvous->fail("rank " + std::to_string(current->rank) + " found no memory for " +
                            std::to_string(bytes) + " bytes");
}

void *allocateAligned(size_t alignment, size_t bytes) {
  if (void *address = current->arena.allocate(alignment, bytes))
    return address;
  reportMemory(bytes);
  leave();
}

void *allocate(size_t bytes) { return allocateAligned(64, bytes); }
void deallocate(void *address) { current->arena.free(address); }

/// One rank from start to end, on its own thread.
void runRank(RankState &state, void (*entry)(void **), void **buffers) {
  current = &state;
  if (setjmp(state.escape) == 0) {
    entry(buffers);
    state.rendezvous->finish(state.rank);
  }
  current = nullptr;
}

} // namespace

Interpreter::Interpreter() = default;
Interpreter::~Interpreter() = default;

FailureOr<std::unique_ptr<Interpreter>> Interpreter::create(ModuleOp module, StringRef function,
                                                            int64_t ranks,
                                                            const InterpreterOptions &options) {
  if (ranks < 1)
    return module.emitError("cannot be interpreted on ") << ranks << " ranks, expected at least 1";
  OwningOpRef<ModuleOp> clone = module.clone();
  FailureOr<LoweredProgram> program = lowerForInterpreter(*clone, function, ranks);
  if (failed(program))
    return failure();
  std::vector<JitSymbol> symbols = {
      {collectiveFunction.str(), reinterpret_cast<void *>(&collective)},
      {chunkFunction.str(), reinterpret_cast<void *>(&checkChunk)},
      {"_mlir_memref_to_llvm_aligned_alloc", reinterpret_cast<void *>(&allocateAligned)},
      {"_mlir_memref_to_llvm_alloc", reinterpret_cast<void *>(&allocate)},
      {"_mlir_memref_to_llvm_free", reinterpret_cast<void *>(&deallocate)},
  };
  llvm::append_range(symbols, options.symbols);
  auto code = JitModule::create(*clone, symbols);
  if (!code)
    return module.emitError("cannot be compiled to be interpreted: ")
           << llvm::toString(code.takeError());
  auto entry = (*code)->lookupAs<void(void **)>(entryFunction);
  if (!entry)
    return module.emitError("cannot be interpreted: ") << llvm::toString(entry.takeError());

  std::unique_ptr<Interpreter> result(new Interpreter());
  result->ranks = ranks;
  result->types = std::move(program->types);
  result->numInputs = program->numInputs;
  result->deadline = options.deadline;
  result->sites = std::move(program->sites);
  result->chunks = std::move(program->chunks);
  result->code = std::move(*code);
  result->entry = *entry;
  return result;
}

llvm::Error Interpreter::run(ArrayRef<std::vector<void *>> buffers, uint8_t padding) {
  auto fail = [](const llvm::Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  if (static_cast<int64_t>(buffers.size()) != ranks)
    return fail("the interpreter has " + llvm::Twine(ranks) + " ranks, but got buffers for " +
                llvm::Twine(buffers.size()));
  for (auto [rank, own] : llvm::enumerate(buffers))
    if (own.size() != types.size())
      return fail("rank " + llvm::Twine(rank) + " needs " + llvm::Twine(types.size()) +
                  " buffers, but got " + llvm::Twine(own.size()));

  Rendezvous rendezvous(sites, ranks, deadline, padding);
  std::vector<RankState> states(ranks);
  std::vector<std::vector<void *>> arguments(buffers.begin(), buffers.end());
  for (int64_t rank = 0; rank < ranks; ++rank) {
    states[rank].rank = rank;
    states[rank].rendezvous = &rendezvous;
    states[rank].chunks = &chunks;
    // Bufferization may write into an argument's buffer; the caller's stays as it is.
    for (size_t i = 0; i < numInputs; ++i) {
      if (!isa<TensorType>(types[i]))
        continue;
      size_t bytes = getDenseBytes(types[i]);
      void *copy = states[rank].arena.allocate(64, bytes);
      if (!copy)
        return fail("no memory for " + llvm::Twine(bytes) + " bytes");
      if (bytes)
        std::memcpy(copy, buffers[rank][i], bytes);
      arguments[rank][i] = copy;
    }
  }
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back(runRank, std::ref(states[rank]), entry, arguments[rank].data());
  for (std::thread &thread : threads)
    thread.join();
  if (!rendezvous.getError().empty())
    return fail(rendezvous.getError());
  return llvm::Error::success();
}

//===- FunctionProblem.cpp - A function as a problem, and back -----------------------===//
#include "FunctionProblem.h"
#include "ncclx/Analysis/Products.h"
#include "ncclx/Overlap/Solve.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;
using overlap::StepKind;

void FunctionProblem::producers(Value value, std::vector<unsigned> &list) {
  Operation *def = value.getDefiningOp();
  if (!def || def->getBlock() != body)
    return;
  if (auto it = numbers.find(def); it != numbers.end()) {
    list.push_back(it->second);
    return;
  }
  if (auto it = behindGlue.find(def); it != behindGlue.end())
    list.insert(list.end(), it->second.begin(), it->second.end());
}

std::vector<unsigned> FunctionProblem::producers(Operation *op) {
  std::vector<unsigned> list;
  for (Value value : usedValues(op))
    producers(value, list);
  llvm::sort(list);
  list.erase(llvm::unique(list), list.end());
  return list;
}

void FunctionProblem::addBuffer(unsigned op, ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += bytesOf(value.getType());
  problem.buffers.push_back({problem.ops[op].name, bytes, op, {}, false});
}

/// Why a collective cannot be in a problem as it is; empty if it can.
static std::string refuses(CollectiveOpInterface op, const overlap::CostModel &cost) {
  if (op.isBufferForm() || op.isAsync())
    return "a collective is on memrefs or is async: run before expand-futures";
  StringRef kind = op->getName().stripDialect();
  return cost.engine(kind)
             ? ""
             : llvm::formatv("no engine of machine '{0}' carries {1}", cost.name, kind).str();
}

/// Of a future that is awaited by chunk, each chunk is a collective, in the order in which they are
/// awaited, and so is what is left: one behind the other.
void FunctionProblem::addCollective(CollectiveOpInterface op, StartOp start,
                                    const overlap::CostModel &cost) {
  Operation *whole = start ? start.getOperation() : op.getOperation();
  std::vector<unsigned> after = producers(whole);
  SmallVector<AwaitOp> chunks;
  SmallVector<AwaitOp, 1> rest;
  if (start)
    for (Operation *user : start.getFuture().getUsers())
      if (auto await = dyn_cast<AwaitOp>(user); await && user->getBlock() == body) {
        if (await.getChunk())
          chunks.push_back(await);
        else
          rest.push_back(await);
        for (Value kept : await.getKeeping()) // must exist: simply before the start
          producers(kept, after);
      }
  llvm::sort(chunks, [](AwaitOp a, AwaitOp b) { return a->isBeforeInBlock(b); });
  struct Part {
    std::optional<int64_t> chunk;
    SmallVector<AwaitOp, 1> awaits;
  };
  SmallVector<Part> parts;
  for (AwaitOp await : chunks) {
    std::optional<int64_t> chunk = getConstantIntValue(await.getChunk());
    Part *same =
        llvm::find_if(parts, [&](const Part &part) { return chunk && part.chunk == chunk; });
    if (same == parts.end())
      same = &parts.emplace_back(Part{chunk, {}});
    same->awaits.push_back(await);
  }
  int64_t shares = chunks.empty() ? 1 : int64_t(*chunks[0].getCount()), left = shares;
  parts.push_back({std::nullopt, rest});
  const overlap::Op priced = *costOfCollective(op, cost);
  const unsigned first = problem.ops.size();
  std::vector<unsigned> all;
  for (const Part &part : parts) {
    unsigned number = problem.ops.size();
    int64_t own = &part == &parts.back() ? left : std::min<int64_t>(left, 1);
    left -= own;
    double share = double(own) / double(shares);
    problem.ops.push_back(priced);
    overlap::Op &made = problem.ops.back();
    made.seconds *= share;
    made.joules *= share;
    made.after = after;
    if (number != first) {
      made.partOf = first;
      made.fences = {number - 1};
    }
    sites.push_back({number == first ? whole : nullptr, op, part.awaits});
    addBuffer(number, op.getResult());
    problem.buffers.back().bytes = int64_t(double(problem.buffers.back().bytes) * share);
    given.push_back({StepKind::start, number});
    for (AwaitOp await : part.awaits) {
      awaited[await] = number;
      behindGlue[await] = {number};
    }
    all.push_back(number);
  }
  for (AwaitOp await : rest)
    behindGlue[await] = all;
  behindGlue[whole] = all;
  if (!start)
    given.push_back({StepKind::await, first});
  else if (rest.empty())
    handedOn.push_back(all.back());
}

std::string FunctionProblem::addAwait(AwaitOp await, const overlap::CostModel &cost) {
  if (auto it = awaited.find(await); it != awaited.end()) {
    if (sites[it->second].awaits.front() == await)
      given.push_back({StepKind::await, it->second});
    return "";
  }
  auto from = comesFrom.find(await);
  if (from == comesFrom.end()) // what a loop or a branch gives is complete, and stands by its user
    return "";
  CollectiveOpInterface collective = from->second.getCollective();
  if (std::string why = refuses(collective, cost); !why.empty())
    return why;
  unsigned number = problem.ops.size();
  problem.ops.push_back(*costOfCollective(collective, cost));
  sites.push_back({nullptr, collective, {await}});
  addBuffer(number, await->getResults());
  numbers[await] = number;
  rests.push_back({number, from->second});
  given.insert(given.begin(), {StepKind::start, number});
  given.push_back({StepKind::await, number});
  return "";
}

/// Whatever is handed on to `op`, or to what is in it, is taken to be complete there: what a loop
/// does with a collective in flight is counted in the loop.
void FunctionProblem::complete(Operation *op) {
  if (isa<AwaitOp>(op))
    return;
  std::erase_if(handedOn, [&](unsigned number) {
    bool here = llvm::any_of(sites[number].collective->getParentOp()->getUsers(),
                             [&](Operation *user) { return op->isAncestor(user); });
    if (here)
      given.push_back({StepKind::await, number});
    return here;
  });
}

std::optional<unsigned> FunctionProblem::productEndedBy(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  std::optional<Scaling> scaling = generic ? matchScaling(generic) : std::nullopt;
  if (!scaling || scaling->extends)
    return std::nullopt;
  Value made = generic.getDpsInputs().front();
  auto product = numbers.find(made.getDefiningOp());
  if (product == numbers.end() || !made.hasOneUse() ||
      producers(op) != std::vector<unsigned>{product->second})
    return std::nullopt;
  auto first = dyn_cast_or_null<linalg::LinalgOp>(sites[product->second].op);
  return first && isProduct(first) ? std::optional(product->second) : std::nullopt;
}

std::string FunctionProblem::add(Operation *op, const overlap::CostModel &cost,
                                 const LoopCosts &loops) {
  complete(op);
  if (isGlue(op) || op->hasTrait<OpTrait::IsTerminator>())
    return "";
  auto start = dyn_cast<StartOp>(op);
  if (auto collective = start ? start.getCollective() : dyn_cast<CollectiveOpInterface>(op)) {
    std::string why = refuses(collective, cost);
    if (why.empty() && start && start.getFuture().use_empty())
      why = "a future is never awaited";
    if (why.empty())
      addCollective(collective, start, cost);
    return why;
  }
  if (auto await = dyn_cast<AwaitOp>(op))
    return addAwait(await, cost);
  if (std::optional<unsigned> product = productEndedBy(op)) {
    sites[*product].ends.push_back(op);
    numbers[op] = *product;
    problem.buffers[*product].bytes = bytesOf(op->getResult(0).getType());
    return "";
  }
  unsigned number = problem.ops.size();
  std::optional<overlap::Op> priced;
  auto loop = loops.find(op);
  if (loop != loops.end()) {
    priced.emplace();
    priced->seconds = loop->second.seconds;
    priced->joules = loop->second.joules;
  } else {
    priced = costOf(op, cost);
  }
  withoutCost += !priced;
  overlap::Op kernel = priced.value_or(overlap::Op());
  kernel.name = describe(op);
  kernel.after = producers(op);
  kernel.opaque = holdsCommunication(op) || !isMemoryEffectFree(op);
  problem.ops.push_back(std::move(kernel));
  sites.push_back({op, nullptr, {}});
  addBuffer(number, op->getResults());
  numbers[op] = number;
  given.push_back({StepKind::run, number});
  if (loop != loops.end()) {
    inner.push_back({number, loop->second.peakBefore});
    innerPeaks.push_back({describe(op), loop->second.peak, number, {}, false});
  }
  return "";
}

void FunctionProblem::findResumed() {
  auto loop = dyn_cast<scf::ForOp>(body->getParentOp());
  if (!loop)
    return;
  for (auto [argument, yielded] : llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    auto start = yielded.getDefiningOp<StartOp>();
    if (!start || start->getBlock() != body || !yielded.hasOneUse() || !argument.hasOneUse())
      continue;
    if (auto await = dyn_cast<AwaitOp>(*argument.user_begin());
        await && await->getBlock() == body && !await.getChunk())
      comesFrom[await] = start;
  }
}

void FunctionProblem::shareTimes() {
  for (auto [rest, start] : rests) {
    unsigned number = behindGlue[start].front();
    overlap::Op &first = problem.ops[number], &second = problem.ops[rest];
    double behind = 0;
    bool started = false;
    for (overlap::Step step : given) {
      started |= step == overlap::Step{StepKind::start, number};
      if (started && step.kind == StepKind::run)
        behind += problem.ops[step.op].seconds;
    }
    double part = first.seconds > behind ? behind / first.seconds : 1;
    for (auto [op, share] : {std::pair(&first, part), std::pair(&second, 1 - part)}) {
      op->seconds *= share;
      op->joules *= share;
    }
  }
}

std::vector<FunctionProblem::Resumed> FunctionProblem::resumed() const {
  std::vector<Resumed> list;
  for (auto [rest, start] : rests) {
    Value future = AwaitOp(sites[rest].awaits.front()).getFuture();
    list.push_back(
        {rest, behindGlue.lookup(start).front(), cast<BlockArgument>(future).getArgNumber() - 1});
  }
  return list;
}

std::vector<std::pair<unsigned, unsigned>> FunctionProblem::carried() {
  std::vector<std::pair<unsigned, unsigned>> edges;
  auto loop = dyn_cast<scf::ForOp>(body->getParentOp());
  if (!loop)
    return edges;
  for (auto [argument, yielded] : llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    std::vector<unsigned> from;
    producers(yielded, from);
    // Whatever needs the argument, glue in between.
    llvm::SetVector<Operation *> reached;
    auto add = [&](Value value) {
      for (Operation *user : value.getUsers())
        if (Operation *here = body->findAncestorOpInBlock(*user))
          reached.insert(here);
    };
    add(argument);
    for (size_t i = 0; i < reached.size(); ++i)
      if (isGlue(reached[i]))
        for (Value result : reached[i]->getResults())
          add(result);
    for (unsigned i = 0; i < sites.size(); ++i)
      if (reached.contains(sites[i].op))
        for (unsigned producer : from)
          edges.push_back({producer, i});
  }
  return edges;
}

int64_t FunctionProblem::peakBefore() const {
  overlap::Problem before = problem;
  for (auto [buffer, bytes] : inner)
    before.buffers[buffer].bytes = bytes;
  return overlap::peakBytes(before, given);
}

FailureOr<FunctionProblem> FunctionProblem::read(Block &block, const overlap::CostModel &cost,
                                                 const LoopCosts &loops, std::string &why) {
  FunctionProblem result;
  result.body = &block;
  result.problem = cost.problem();
  result.findResumed();
  for (Operation &op : *result.body) {
    why = result.add(&op, cost, loops);
    if (!why.empty())
      return failure();
    if (!result.numbers.contains(&op) && !result.behindGlue.contains(&op)) {
      std::vector<unsigned> behind = result.producers(&op);
      result.behindGlue[&op] = std::move(behind);
    }
  }
  result.shareTimes();
  // Each producer's buffer is used by the ops that need it; what is returned lives to the end.
  std::vector<overlap::Op> &ops = result.problem.ops;
  for (unsigned i = 0; i < ops.size(); ++i)
    for (unsigned j : ops[i].after)
      result.problem.buffers[j].users.push_back(i);
  for (unsigned j : result.producers(result.body->getTerminator()))
    result.problem.buffers[j].escapes = true;
  for (size_t i = 0; i < result.inner.size(); ++i) { // buffers of ops stand at the ops' numbers
    result.inner[i].first = result.problem.buffers.size();
    result.problem.buffers.push_back(result.innerPeaks[i]);
  }
  if (std::optional<std::string> wrong = overlap::validate(result.problem)) {
    why = *wrong;
    return failure();
  }
  // What is in flight across an op that may communicate is for its writer to judge.
  if (std::optional<std::string> wrong = overlap::check(result.problem, result.given)) {
    why = "it cannot stay as it is: " + *wrong;
    return failure();
  }
  return result;
}

std::optional<Predicted> mlir::ncclx::predict(Block &block, const overlap::CostModel &cost,
                                              std::string &why) {
  FailureOr<FunctionProblem> f = FunctionProblem::read(block, cost, LoopCosts(), why);
  if (failed(f))
    return std::nullopt;
  overlap::fenceDeferral(f->problem, 8); // as ncclx-overlap does: else the time is no line
  overlap::SolveOptions options;
  options.margin = 0;
  options.effort = 20'000;
  Predicted result;
  for (const overlap::Op &op : f->problem.ops)
    result.communication += op.collective ? op.seconds : 0;
  result.seconds = overlap::solve(f->problem, f->given, options).timeline.seconds;
  return result;
}

void FunctionProblem::place(Operation *last) {
  SmallVector<std::pair<Operation *, bool>> work = {{last, false}}; // whether its needs are placed
  while (!work.empty()) {
    auto [op, isNext] = work.pop_back_val();
    if (isNext) {
      if (op != body->getTerminator())
        op->moveBefore(body->getTerminator());
      continue;
    }
    if (op->getBlock() != body || !placed.insert(op).second)
      continue;
    work.push_back({op, true});
    size_t first = work.size();
    if (auto await = dyn_cast<AwaitOp>(op); await && !await.getChunk())
      for (Operation *user : await.getFuture().getUsers())
        if (auto chunk = dyn_cast<AwaitOp>(user); chunk && chunk.getChunk())
          work.push_back({chunk, false});
    for (Value value : usedValues(op))
      if (Operation *def = value.getDefiningOp())
        work.push_back({def, false});
    std::reverse(work.begin() + first, work.end());
  }
}

void FunctionProblem::apply(const overlap::Schedule &schedule) {
  SmallVector<Operation *> all;
  for (Operation &op : *body)
    all.push_back(&op);
  OpBuilder builder(body->getTerminator());
  std::vector<Value> futures(sites.size());
  for (size_t at = 0; at < schedule.size(); ++at) {
    overlap::Step step = schedule[at];
    Site &site = sites[step.op];
    if (step.kind == StepKind::await) {
      for (AwaitOp await : site.awaits)
        place(await);
      if (!futures[step.op])
        continue;
      Value result = site.collective.getResult();
      auto await =
          AwaitOp::create(builder, site.collective.getLoc(), result.getType(), futures[step.op],
                          Value(), IntegerAttr(), IntegerAttr(), ValueRange());
      placed.insert(await);
      result.replaceUsesWithIf(await.getResult(),
                               [](OpOperand &use) { return !isa<YieldOp>(use.getOwner()); });
      continue;
    }
    if (!site.op)
      continue;
    bool alone =
        at + 1 < schedule.size() && schedule[at + 1] == overlap::Step{StepKind::await, step.op};
    if (step.kind == StepKind::run || isa<StartOp>(site.op) || alone) {
      place(site.op);
      for (Operation *end : site.ends)
        place(end);
      continue;
    }
    for (Value value : usedValues(site.op))
      if (Operation *def = value.getDefiningOp())
        place(def);
    Location loc = site.collective.getLoc();
    Value result = site.collective.getResult();
    auto start =
        StartOp::create(builder, loc, FutureType::get(cast<RankedTensorType>(result.getType())));
    OpBuilder inner = OpBuilder::atBlockBegin(&start.getBody().emplaceBlock());
    auto yield = YieldOp::create(inner, loc, result);
    site.op->moveBefore(yield);
    placed.insert(start);
    placed.insert(site.op);
    futures[step.op] = start.getFuture();
  }
  for (Operation *op : all)
    if (op->getBlock() == body)
      place(op);
}

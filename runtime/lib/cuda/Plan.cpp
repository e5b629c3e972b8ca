//===- Plan.cpp - Preparing and running a program on streams --------------===//
#include "Plan.h"

#include "../Reduce.h"

#include <cstring>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

//===--- preparing ---------------------------------------------------------------------------===//

Status Plan::shapeFrom(const ncclxrtCudaPlanDesc_t *source) {
  ncclxrtCudaPlanDesc_t desc = NCCLXRT_CUDA_PLAN_DESC_INIT;
  if (Status s = readStruct(source, sizeof desc, "the CUDA plan description", desc); !s.ok())
    return s;
  if (Status s = Shape::make(desc.plan, shape); !s.ok())
    return s;
  if ((!shape.slots.empty() && !desc.slot_writers) || (desc.num_kernels && !desc.kernels) ||
      (desc.num_kernels && !desc.module))
    return error(ncclxrtInvalidArgument,
                 "plan '{}': slot_writers, kernels or module is null, but there are some",
                 shape.name);
  writers.assign(desc.slot_writers, desc.slot_writers + shape.slots.size());
  for (size_t k = 0; k < desc.num_kernels; ++k) {
    const ncclxrtCudaKernelDesc_t &d = desc.kernels[k];
    if (!d.name || d.blocks < 1 || d.threads < 1 || d.threads > 1024 || d.num_arguments < 0)
      return error(ncclxrtInvalidArgument,
                   "plan '{}': kernel {}: expected a name, at least 1 block of 1 to 1024 threads "
                   "and at least 0 arguments, found {}, {}, {}",
                   shape.name, k, d.blocks, d.threads, d.num_arguments);
    kernels.push_back(
        {d.name, d.blocks, d.threads, d.num_arguments, d.scratch_bytes, nullptr, 0, 0});
  }
  if (desc.module)
    module = desc.module;
  oneStream = desc.one_stream != 0;
  auto text = [](const char *t) { return std::string(t ? t : ""); };
  compileOptions = {comm.architecture(), text(desc.nvrtc), text(desc.headers), text(desc.cache)};
  return {};
}

Status Plan::prepare(Comm &comm, const ncclxrtCudaPlanDesc_t *desc, ncclxrtProgram_t program,
                     std::unique_ptr<Runnable> &result) {
  std::unique_ptr<Plan> plan(new Plan(comm));
  plan->program = program;
  Status mine =
      program ? plan->shapeFrom(desc) : error(ncclxrtInvalidArgument, "the plan has no program");
  if (Status s = plan->agree(mine, plan->shape.name, "plan descriptions"); !s.ok())
    return s;
  Shape &shape = plan->shape;
  std::vector<uint64_t> hashes(comm.nranks());
  if (Status s = comm.exchange(&shape.hash, sizeof shape.hash, hashes.data(), "plan hashes");
      !s.ok())
    return s;
  for (int r = 0; r < comm.nranks(); ++r)
    if (hashes[r] != hashes[0])
      return error(ncclxrtPlanMismatch, "rank {} brings another plan than rank 0", r);

  plan->counters.resize(comm.nranks());
  if (Status s = comm.counters(shape.slotCount, plan->counters.data()); !s.ok())
    return s;
  for (size_t w = 0; w < shape.windows.size(); ++w) {
    const Shape::Window &window = shape.windows[w];
    size_t bytes = size_t(window.pitch) * (window.generations - 1) + size_t(window.bytes);
    void *given = desc->memory ? desc->memory[w] : nullptr;
    std::vector<void *> peers(comm.nranks());
    if (Status s = comm.window(given, bytes, peers.data()); !s.ok())
      return s;
    auto &places = plan->memory.emplace_back();
    for (void *p : peers)
      places.push_back(static_cast<char *>(p));
  }
  mine = plan->makeStreams();
  if (mine.ok())
    mine = plan->rehearse();
  if (mine.ok())
    mine = plan->loadKernels();
  if (Status s = plan->agree(mine, shape.name, "prepared plans"); !s.ok())
    return s;
  result = std::move(plan);
  return {};
}

Status Plan::makeStreams() {
  const Driver &cuda = comm.cuda();
  lanes.resize(oneStream ? 1 : shape.lanes.size());
  for (Lane &lane : lanes) {
    lane.follows.assign(lanes.size(), 0);
    if (Status s = comm.call(cuda.createStream(&lane.stream, nonBlocking), "cuStreamCreate");
        !s.ok())
      return s;
    if (Status s = comm.call(cuda.createEvent(&lane.event, noTiming), "cuEventCreate"); !s.ok())
      return s;
  }
  for (const Shape::Slots &slots : shape.slots) {
    auto &array = raised.emplace_back(comm.nranks());
    for (Raised &r : array) {
      r.by.assign(slots.count, nobody);
      r.count.assign(slots.count * slots.generations, 0);
    }
  }
  return comm.call(cuda.createEvent(&entered, noTiming), "cuEventCreate");
}

Status Plan::rehearse() {
  rehearsing = true;
  failure = Status();
  int32_t status = program(reinterpret_cast<int64_t>(this));
  rehearsing = false;
  if (failure.ok() && status != 0)
    return error(ncclxrtResult_t(status), "plan '{}': the program failed by itself", shape.name);
  return failure;
}

namespace {
/// By ncclxrtDtype_t.
struct Type {
  const char *name, *text;
};
constexpr Type types[] = {
    {"f32", "float"},          {"f64", "double"},        {"bf16", "__nv_bfloat16"},
    {"f16", "__half"},         {"i32", "int32_t"},       {"i64", "int64_t"},
    {"i8", "int8_t"},          {"i16", "int16_t"},       {"u8", "uint8_t"},
    {"u16", "uint16_t"},       {"u32", "uint32_t"},      {"u64", "uint64_t"},
    {"e4m3", "__nv_fp8_e4m3"}, {"e5m2", "__nv_fp8_e5m2"}};
/// What a kernel of ours can do: by ncclxrtReduceKind_t, then a sum divided and a sum scaled.
constexpr Type operations[] = {{"sum", "Sum"},   {"min", "Min"}, {"max", "Max"},
                               {"prod", "Prod"}, {"avg", "Avg"}, {"scaled", "ScaledSum"}};
constexpr int averages = 4, scales = 5;

std::string nameOf(std::pair<int, int> reduction) {
  return fmt::format("ncclxrt_reduce_{}_{}", operations[reduction.first].name,
                     types[reduction.second].name);
}
} // namespace

Status Plan::loadKernels() {
  const Driver &cuda = comm.cuda();
  auto load = [&](const std::string &image, const char *what) {
    return comm.call(cuda.loadModule(&modules.emplace_back(), image.c_str()), what);
  };
  bool raises = false;
  for (size_t s = 0; s < raised.size(); ++s)
    for (const Raised &r : raised[s])
      for (int32_t by : r.by)
        raises |= by == several || (by != nobody && writers[s] > 1);
  if (raises || !reductions.empty()) {
    std::string source = "#include \"ncclxrt/device/serve.cuh\"\n"
                         "using namespace ncclxrt::device;\n"
                         "extern \"C\" __global__ void ncclxrt_raise(uint64_t *slot) {\n"
                         "  addRelease<Scope::System>(slot, uint64_t(1));\n}\n";
    for (std::pair<int, int> r : reductions)
      source += fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(const "
                            "__grid_constant__ ReduceJob job) {{\n"
                            "  serveReduce<{}, ReduceOp::{}>(job);\n}}\n",
                            device::reduceThreads, nameOf(r), types[r.second].text,
                            operations[r.first].text);
    std::string image;
    if (Status s = compile(source, compileOptions, image); !s.ok())
      return s;
    if (Status s = load(image, "cuModuleLoadData of the runtime's kernels"); !s.ok())
      return s;
    auto find = [&](Function &function, const std::string &name) {
      return comm.call(cuda.getFunction(&function, modules.back(), name.c_str()),
                       "cuModuleGetFunction of the runtime's kernels");
    };
    if (Status s = find(raiseKernel, "ncclxrt_raise"); !s.ok())
      return s;
    for (std::pair<int, int> r : reductions)
      if (Status s = find(reduceKernels[r], nameOf(r)); !s.ok())
        return s;
  }
  if (kernels.empty())
    return {};
  if (Status s = load(module, "cuModuleLoadData of the plan's kernels"); !s.ok())
    return s;
  for (Kernel &kernel : kernels) {
    if (int result = cuda.getFunction(&kernel.function, modules.back(), kernel.name.c_str()))
      return error(ncclxrtInvalidArgument, "plan '{}': the module has no kernel '{}': {}",
                   shape.name, kernel.name, cuda.text(result));
    if (kernel.scratchBytes)
      if (Status s = comm.call(cuda.allocate(&kernel.scratch, kernel.scratchBytes), "cuMemAlloc");
          !s.ok())
        return s;
  }
  return {};
}

Plan::~Plan() {
  const Driver &cuda = comm.cuda();
  (void)comm.enter();
  for (Lane &lane : lanes)
    if (lane.stream)
      cuda.destroyStream(lane.stream);
  for (Lane &lane : lanes)
    if (lane.event)
      cuda.destroyEvent(lane.event);
  if (entered)
    cuda.destroyEvent(entered);
  for (Kernel &kernel : kernels)
    if (kernel.scratch)
      cuda.free(kernel.scratch);
  for (Module m : modules)
    if (m)
      cuda.unloadModule(m);
}

Status Plan::buffer(size_t window, int32_t generation, void **data, size_t *bytes) {
  if (window >= shape.windows.size() || generation < 0 ||
      generation >= shape.windows[window].generations)
    return error(ncclxrtInvalidArgument, "plan '{}' has no generation {} of window {}", shape.name,
                 generation, window);
  *data = memory[window][comm.rank()] + generation * shape.windows[window].pitch;
  *bytes = size_t(shape.windows[window].bytes);
  return {};
}

//===--- running -----------------------------------------------------------------------------===//

Status Plan::run(Stream stream) {
  const Driver &cuda = comm.cuda();
  if (Status s = comm.query(); !s.ok())
    return s;
  if (Status s = comm.enter(); !s.ok())
    return s;
  int capturing = 0;
  if (Status s = comm.call(cuda.isCapturing(stream, &capturing), "cuStreamIsCapturing"); !s.ok())
    return s;
  if (capturing)
    return error(ncclxrtUnsupported,
                 "plan '{}' cannot be captured: its counters carry the number of the run",
                 shape.name);
  if (Status s = comm.call(cuda.record(entered, stream), "cuEventRecord"); !s.ok())
    return s;
  for (Lane &lane : lanes)
    lane.used = false;
  failure = Status();
  int32_t status = program(reinterpret_cast<int64_t>(this));
  ++runNumber;
  if (failure.ok() && status != 0)
    failure = error(ncclxrtResult_t(status), "plan '{}': the program failed", shape.name);
  if (!failure.ok()) {
    comm.abort(failure); // others wait for what will not come
    return failure;
  }
  for (Lane &lane : lanes) {
    if (!lane.used)
      continue;
    if (Status s = comm.call(cuda.record(lane.event, lane.stream), "cuEventRecord"); !s.ok())
      return s;
    if (Status s = comm.call(cuda.waitEvent(stream, lane.event, 0), "cuStreamWaitEvent"); !s.ok())
      return s;
  }
  return comm.watch(stream);
}

ncclxrtResult_t Plan::fail(ncclxrtResult_t code, const std::string &reason) {
  if (failure.ok()) {
    std::string op = currentOp >= 0 && currentOp < int64_t(shape.ops.size())
                         ? shape.ops[currentOp].name
                         : fmt::format("op {}", currentOp);
    failure = error(code, "rank {}, plan '{}', run {}, {}: {}", comm.rank(), shape.name, runNumber,
                    op, reason);
  }
  return failure.code();
}

ncclxrtResult_t Plan::enter(int64_t op, int64_t lane) {
  if (!failure.ok())
    return failure.code();
  currentOp = op;
  if (op < 0 || op >= int64_t(shape.ops.size()) || lane < 0 || lane >= int64_t(shape.lanes.size()))
    return fail(ncclxrtInvalidArgument,
                fmt::format("there is no op {} or lane {}, the plan has {} and {}", op, lane,
                            shape.ops.size(), shape.lanes.size()));
  if (rehearsing)
    return ncclxrtSuccess;
  Lane &at = lanes[oneStream ? 0 : lane];
  ++at.given;
  if (at.used)
    return ncclxrtSuccess;
  at.used = true;
  return check(comm.call(comm.cuda().waitEvent(at.stream, entered, 0), "cuStreamWaitEvent"));
}

int64_t Plan::address(int64_t window) {
  if (window < 0 || window >= int64_t(shape.windows.size())) {
    (void)fail(ncclxrtInvalidArgument,
               fmt::format("there is no window {}, the plan has {}", window, shape.windows.size()));
    return 0;
  }
  const Shape::Window &w = shape.windows[window];
  return reinterpret_cast<int64_t>(memory[window][comm.rank()] +
                                   runNumber % w.generations * w.pitch);
}

bool Plan::findRank(int64_t peer, int &rank) const {
  rank = peer < 0 ? comm.rank() : int(peer);
  return peer >= -1 && peer < comm.nranks();
}

ncclxrtResult_t Plan::place(const char *what, const Where &where, bool isTarget, int64_t moved,
                            int64_t unit, device::Pieces &pieces) {
  int rank;
  if (!findRank(where.peer, rank))
    return fail(ncclxrtInvalidArgument, fmt::format("{}: there is no rank {}, the job has {}", what,
                                                    where.peer, comm.nranks()));
  if (std::string wrong = shape.wrongRange(what, where, isTarget, moved, unit); !wrong.empty())
    return fail(ncclxrtInvalidArgument, wrong);
  const Shape::Window &w = shape.windows[where.window];
  Range range = Range{where.offset, where.rows, where.stride, where.rowBytes}.canonical();
  pieces = {memory[where.window][rank] + runNumber % w.generations * w.pitch +
                (range.rows ? range.offset : 0),
            range.rows, range.stride, range.rowBytes};
  return ncclxrtSuccess;
}

ncclxrtResult_t Plan::order(int64_t op, int64_t lane, int64_t other) {
  if (auto code = enter(op, lane))
    return code;
  if (other < 0 || other >= int64_t(shape.lanes.size()))
    return fail(ncclxrtInvalidArgument, fmt::format("there is no lane {}", other));
  if (rehearsing || oneStream || lane == other)
    return ncclxrtSuccess;
  Lane &later = lanes[lane], &earlier = lanes[other];
  if (!earlier.used || later.follows[other] == earlier.given)
    return ncclxrtSuccess;
  later.follows[other] = earlier.given;
  if (auto code =
          check(comm.call(comm.cuda().record(earlier.event, earlier.stream), "cuEventRecord")))
    return code;
  return check(
      comm.call(comm.cuda().waitEvent(later.stream, earlier.event, 0), "cuStreamWaitEvent"));
}

//===--- ops ---------------------------------------------------------------------------------===//

Status Plan::copyPieces(Lane &lane, const device::Pieces &to, const device::Pieces &from) {
  const Driver &cuda = comm.cuda();
  auto at = [](const char *p) { return reinterpret_cast<Address>(p); };
  if (to.rows == 1 && from.rows == 1)
    return comm.call(cuda.copy(at(to.at), at(from.at), size_t(to.rowBytes), lane.stream),
                     "cuMemcpyAsync");
  // One copy where both have rows of one size, or one is whole.
  constexpr int64_t longest = 0x7fffffff;
  int64_t width = to.rows == 1 ? from.rowBytes : to.rowBytes;
  int64_t height = to.rows == 1 ? from.rows : to.rows;
  int64_t toPitch = to.rows == 1 ? width : to.stride;
  int64_t fromPitch = from.rows == 1 ? width : from.stride;
  if ((to.rows == 1 || from.rows == 1 || to.rowBytes == from.rowBytes) && fromPitch >= width &&
      toPitch <= longest && fromPitch <= longest) {
    Copy2D copy{};
    copy.fromType = copy.toType = unifiedMemory;
    copy.from = at(from.at), copy.fromPitch = size_t(fromPitch);
    copy.to = at(to.at), copy.toPitch = size_t(toPitch);
    copy.width = size_t(width), copy.height = size_t(height);
    return comm.call(cuda.copy2D(&copy, lane.stream), "cuMemcpy2DAsync");
  }
  auto base = [](char *p) { return reinterpret_cast<std::byte *>(p); };
  Cursor into(base(to.at), {0, to.rows, to.stride, to.rowBytes});
  Cursor source(base(from.at), {0, from.rows, from.stride, from.rowBytes});
  while (!into.done()) {
    int64_t n = std::min(into.contiguous(), source.contiguous());
    if (Status s =
            comm.call(cuda.copy(reinterpret_cast<Address>(into.data()),
                                reinterpret_cast<Address>(source.data()), size_t(n), lane.stream),
                      "cuMemcpyAsync");
        !s.ok())
      return s;
    into.advance(n);
    source.advance(n);
  }
  return {};
}

ncclxrtResult_t Plan::copy(int64_t op, int64_t lane, const Where &dst, const Where &src,
                           int64_t notifySlots, int64_t notifyPeer, int64_t notifyIndex) {
  device::Pieces to, from;
  if (auto code = enter(op, lane))
    return code;
  if (auto code = place("destination", dst, true, 0, 1, to))
    return code;
  if (auto code = place("source", src, false, 0, 1, from))
    return code;
  if (to.rows * to.rowBytes != from.rows * from.rowBytes)
    return fail(ncclxrtInvalidArgument,
                fmt::format("the source has {} bytes, the destination {}",
                            from.rows * from.rowBytes, to.rows * to.rowBytes));
  if (!rehearsing && to.rows)
    if (auto code = check(copyPieces(lanes[oneStream ? 0 : lane], to, from)))
      return code;
  return notifySlots < 0 ? ncclxrtSuccess : raise(lane, notifySlots, notifyPeer, notifyIndex);
}

ncclxrtResult_t Plan::raise(int64_t lane, int64_t slots, int64_t peer, int64_t index) {
  int rank;
  if (std::string wrong = shape.wrongSlots(slots, index, 1); !wrong.empty())
    return fail(ncclxrtInvalidArgument, wrong);
  if (!findRank(peer, rank))
    return fail(ncclxrtInvalidArgument,
                fmt::format("there is no rank {}, the job has {}", peer, comm.nranks()));
  Raised &who = raised[slots][rank];
  int32_t stream = oneStream ? 0 : int32_t(lane);
  if (rehearsing) {
    who.by[index] = who.by[index] == nobody || who.by[index] == stream ? stream : several;
    return ncclxrtSuccess;
  }
  const Shape::Slots &array = shape.slots[slots];
  int64_t place = runNumber % array.generations * array.count + index;
  uint64_t *slot = counters[rank] + array.first + place;
  // The value that the counter gets is known where one stream alone raises it.
  if (writers[slots] == 1 && who.by[index] == stream)
    return check(comm.raise(lanes[stream].stream, slot, ++who.count[place]));
  return check(launchOwn(lanes[stream], raiseKernel, 1, &slot));
}

Status Plan::launchOwn(Lane &lane, Function function, unsigned blocks, void *argument) {
  if (!function)
    return error(ncclxrtInvalidUsage, "the program does in this run what it did not rehearse");
  void *parameters[] = {argument};
  unsigned threads = function == raiseKernel ? 1 : device::reduceThreads;
  return comm.call(comm.cuda().launch(function, blocks, 1, 1, threads, 1, 1, 0, lane.stream,
                                      parameters, nullptr),
                   "cuLaunchKernel");
}

ncclxrtResult_t Plan::reduce(int64_t op, int64_t lane, int64_t kind, int64_t dtype, int64_t acc,
                             double scale, int64_t divisor, const Where &dst, const Where &a,
                             int64_t count, int64_t step, const Where &b) {
  if (auto code = enter(op, lane))
    return code;
  if (kind < ncclxrtReduceSum || kind > ncclxrtReduceProd || !sizeOf(dtype) || divisor < 1)
    return fail(ncclxrtInvalidArgument,
                fmt::format("reduction of kind {}, dtype {}, divisor {}", kind, dtype, divisor));
  bool narrow = isFloat(dtype) && sizeOf(dtype) < 4;
  if (acc != (narrow ? int64_t(ncclxrtF32) : dtype))
    return fail(ncclxrtUnsupported, fmt::format("accumulates {} in dtype {}; GPUs add floats of "
                                                "less than 32 bits in f32, all else in itself",
                                                types[dtype].name, acc));
  if ((scale != 1 || divisor != 1) && (kind != ncclxrtReduceSum || (scale != 1 && divisor != 1)))
    return fail(ncclxrtUnsupported,
                "a sum is scaled or divided on a GPU, not both, and nothing else is");
  bool hasB = b.window != -1;
  int64_t unit = sizeOf(dtype), moved = 0;
  if (count < 0 || (count == 0 && !hasB) || step < 0 ||
      (count > 1 && __builtin_mul_overflow(count - 1, step, &moved)))
    return fail(ncclxrtInvalidArgument, fmt::format("{} sources at step {}", count, step));
  device::ReduceJob job{};
  if (auto code = place("destination", dst, true, 0, unit, job.to))
    return code;
  if (count)
    if (auto code = place("a", a, false, moved, unit, job.a))
      return code;
  if (hasB)
    if (auto code = place("b", b, false, 0, unit, job.b))
      return code;
  job.bytes = job.to.rows * job.to.rowBytes;
  if ((count && job.a.rows * job.a.rowBytes != job.bytes) ||
      (hasB && job.b.rows * job.b.rowBytes != job.bytes))
    return fail(ncclxrtInvalidArgument,
                fmt::format("a source has not the {} bytes of the destination", job.bytes));
  int how = scale != 1 ? scales : divisor != 1 ? averages : int(kind);
  std::pair<int, int> key{how, int(dtype)};
  if (rehearsing) {
    reductions.insert(key);
    return ncclxrtSuccess;
  }
  if (!job.bytes)
    return ncclxrtSuccess;
  job.count = count, job.step = step, job.scale = scale, job.divisor = divisor;
  // A thread of the widest path takes 64 bytes at a time.
  int64_t blocks = (job.bytes + 64 * device::reduceThreads - 1) / (64 * device::reduceThreads);
  auto kernel = reduceKernels.find(key);
  return check(launchOwn(lanes[oneStream ? 0 : lane],
                         kernel == reduceKernels.end() ? nullptr : kernel->second,
                         unsigned(std::min<int64_t>(blocks, 32)), &job));
}

ncclxrtResult_t Plan::signal(int64_t op, int64_t lane, int64_t slots, int64_t peer, int64_t index) {
  if (auto code = enter(op, lane))
    return code;
  return raise(lane, slots, peer, index);
}

ncclxrtResult_t Plan::wait(int64_t op, int64_t lane, int64_t slots, int64_t index, int64_t count,
                           int64_t value) {
  if (auto code = enter(op, lane))
    return code;
  if (std::string wrong = shape.wrongSlots(slots, index, count); !wrong.empty())
    return fail(ncclxrtInvalidArgument, wrong);
  if (rehearsing || value <= 0)
    return ncclxrtSuccess;
  const Shape::Slots &array = shape.slots[slots];
  const uint64_t *first =
      counters[comm.rank()] + array.first + runNumber % array.generations * array.count + index;
  for (int64_t i = 0; i < count; ++i)
    if (auto code =
            check(comm.await(lanes[oneStream ? 0 : lane].stream, first + i, uint64_t(value))))
      return code;
  return ncclxrtSuccess;
}

ncclxrtResult_t Plan::argument(int64_t window) {
  if (!failure.ok())
    return failure.code();
  arguments.push_back(Address(address(window)));
  return failure.code();
}

ncclxrtResult_t Plan::launch(int64_t op, int64_t lane, int64_t kernel) {
  std::vector<Address> given = std::move(arguments);
  arguments.clear();
  if (auto code = enter(op, lane))
    return code;
  if (kernel < 0 || kernel >= int64_t(kernels.size()) ||
      int64_t(given.size()) != kernels[kernel].arguments)
    return fail(ncclxrtInvalidArgument,
                fmt::format("kernel {} is launched with {} arguments", kernel, given.size()));
  if (rehearsing)
    return ncclxrtSuccess;
  Kernel &k = kernels[kernel];
  std::vector<void *> parameters;
  for (Address &a : given)
    parameters.push_back(&a);
  if (k.scratch) {
    parameters.push_back(&k.scratch);
    // One launch at a time uses it.
    if (auto code = order(op, lane, std::exchange(k.scratchLane, lane)))
      return code;
  }
  return check(comm.call(
      comm.cuda().launch(k.function, unsigned(k.blocks), 1, 1, unsigned(k.threads), 1, 1, 0,
                         lanes[oneStream ? 0 : lane].stream, parameters.data(), nullptr),
      "cuLaunchKernel"));
}

//===- Plan.cpp - Preparing and running a program on streams --------------===//
#include "Plan.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

//===--- preparing ---------------------------------------------------------------------------===//

Status Plan::shapeFrom(const ncclxrtCudaPlanDesc_t *source) {
  ncclxrtCudaPlanDesc_t desc = NCCLXRT_CUDA_PLAN_DESC_INIT;
  if (Status s = readStruct(source, sizeof desc, "the CUDA plan description", desc); !s.ok())
    return s;
  auto none = [](ncclxrtPlan_t, int64_t &) -> const Shape * { return nullptr; };
  if (Status s = Shape::make(desc.plan, none, shape); !s.ok())
    return s;
  if ((!shape.slots.empty() && !desc.slot_writers) || (desc.num_kernels && !desc.kernels) ||
      (desc.num_reductions && !desc.reductions) || (desc.num_images && !desc.images))
    return error(ncclxrtInvalidArgument,
                 "plan '{}': slot_writers, kernels, reductions or images is null, but there are "
                 "some",
                 shape.name);
  if (Status s = forRanks(desc.ranks, shape.name); !s.ok())
    return s;
  for (size_t r = 0; r < desc.num_reductions; ++r) {
    std::pair<int, int> reduction;
    if (Status s = findReduction(desc.reductions[r], reduction); !s.ok())
      return s;
    reductions.insert(reduction);
  }
  writers.assign(desc.slot_writers, desc.slot_writers + shape.slots.size());
  for (size_t k = 0; k < desc.num_kernels; ++k) {
    const ncclxrtCudaKernelDesc_t &d = desc.kernels[k];
    bool launched = d.blocks >= 1 && d.threads >= 1 && d.threads <= 1024;
    if (!d.name || d.num_arguments < 0 || (!d.gemm && !launched))
      return error(ncclxrtInvalidArgument,
                   "plan '{}': kernel {}: expected a name, at least 1 block of 1 to 1024 threads "
                   "and at least 0 arguments, found {}, {}, {}",
                   shape.name, k, d.blocks, d.threads, d.num_arguments);
    if (!d.gemm && !desc.module)
      return error(ncclxrtInvalidArgument, "plan '{}': there is no module with kernel '{}'",
                   shape.name, d.name);
    Kernel &kernel = kernels.emplace_back();
    kernel.name = d.name;
    kernel.blocks = d.blocks, kernel.threads = d.threads, kernel.arguments = d.num_arguments;
    kernel.scratchBytes = d.scratch_bytes;
    if (!d.gemm)
      continue;
    if (std::string wrong = Gemm::wrong(*d.gemm, d.num_arguments); !wrong.empty())
      return error(ncclxrtInvalidArgument, "plan '{}': product '{}': {}", shape.name, d.name,
                   wrong);
    kernel.gemm = std::make_unique<Gemm>(*d.gemm);
  }
  computes = !kernels.empty();
  if (desc.module)
    module = desc.module;
  gemms = std::make_unique<Gemms>(comm, desc.cublaslt ? desc.cublaslt : "");
  if (desc.streams)
    for (size_t lane = 0; lane < (desc.one_stream ? 1 : shape.lanes.size()); ++lane)
      givenStreams.push_back(static_cast<Stream>(desc.streams[lane]));
  oneStream = desc.one_stream != 0;
  compileOptions = compileOptionsOf(desc, comm.architecture());
  if (Status s = compileOptions.suit(); !s.ok())
    return error(s.code(), "plan '{}' cannot run on rank {}: {}", shape.name, comm.rank(),
                 s.text());
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

  int64_t sharing = 0;
  if (Status s = plan->sharing(sharing); !s.ok())
    return s;
  int64_t streams = (int64_t(shape.lanes.size()) + ncclxrtCudaOtherStreams) * sharing;
  if (plan->givenStreams.empty() && streams > ncclxrtCudaQueues)
    plan->oneStream = true;
  plan->counters.resize(comm.nranks());
  plan->captureFirst = shape.slotCount;
  plan->meetingFirst = plan->captureFirst + shape.slotCount;
  if (Status s =
          comm.counters(plan->meetingFirst + 2 * size_t(comm.nranks()), plan->counters.data());
      !s.ok())
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
  if (mine.ok())
    mine = plan->makeTimelines();
  if (Status s = plan->agree(mine, shape.name, "prepared plans"); !s.ok())
    return s;
  if (Status s = plan->replay.decide(comm); !s.ok())
    return s;
  result = std::move(plan);
  return {};
}

Status Plan::makeStreams() {
  const Driver &cuda = comm.cuda();
  lanes.resize(oneStream ? 1 : shape.lanes.size());
  ownStreams = givenStreams.empty();
  for (size_t l = 0; l < lanes.size(); ++l) {
    Lane &lane = lanes[l];
    lane.follows.assign(lanes.size(), 0);
    if (!ownStreams)
      lane.stream = givenStreams[l];
    else if (Status s = comm.call(cuda.createStream(&lane.stream, nonBlocking), "cuStreamCreate");
             !s.ok())
      return s;
    if (Status s = comm.call(cuda.createEvent(&lane.event, noTiming), "cuEventCreate"); !s.ok())
      return s;
  }
  if (Status s = comm.call(cuda.deviceAttribute(&processors, multiprocessors, comm.deviceNumber()),
                           "cuDeviceGetAttribute");
      !s.ok())
    return s;
  for (const Shape::Slots &slots : shape.slots) {
    auto &array = raised.emplace_back(comm.nranks());
    for (Raised &r : array) {
      r.by.assign(slots.count, nobody);
      r.count.assign(slots.count * slots.generations, 0);
      r.captured = r.count;
    }
  }
  return comm.call(cuda.createEvent(&entered, noTiming), "cuEventCreate");
}

Status Plan::rehearse() {
  rehearsing = true;
  failure = Status();
  counted = 0;
  int32_t status = program(reinterpret_cast<int64_t>(this));
  rehearsing = false;
  if (failure.ok() && status != 0)
    return error(ncclxrtResult_t(status), "plan '{}': the program failed by itself", shape.name);
  return failure;
}

Status Plan::makeTimelines() {
  if (!shape.traceCapacity)
    return {};
  clock = std::make_unique<Clock>(comm);
  if (Status s = clock->init(); !s.ok())
    return s;
  for (auto &timeline : timelines) {
    timeline = std::make_unique<Timeline>(comm);
    if (Status s =
            timeline->init(rehearsed + lanes.size(), size_t(shape.traceCapacity), lanes.size());
        !s.ok())
      return s;
  }
  return {};
}

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
  if (raises || !reductions.empty() || !counts.empty()) {
    std::string image;
    if (Status s = compile(reductionSource(reductions), compileOptions, image); !s.ok())
      return s;
    if (Status s = load(image, "cuModuleLoadData of the runtime's kernels"); !s.ok())
      return s;
    auto find = [&](Function &function, const std::string &name) {
      return comm.call(cuda.getFunction(&function, modules.back(), name.c_str()),
                       "cuModuleGetFunction of the runtime's kernels");
    };
    if (Status s = find(raiseKernel, "ncclxrt_raise"); !s.ok())
      return s;
    if (Status s = counts.empty() ? Status() : makeSizes(find); !s.ok())
      return s;
    for (std::pair<int, int> r : reductions) {
      if (Status s = find(reduceKernels[r], reductionName(r)); !s.ok())
        return s;
      // Where ranks share a GPU, the driver can wait for all of its streams in a kernel's first
      // launch, and by then some wait for this one: so it adds nothing once, while none waits.
      device::ReduceJob nothing{};
      if (Status s = launchOwn(lanes.front(), reduceKernels[r], 1, device::reduceThreads, &nothing);
          !s.ok())
        return s;
    }
    if (Status s = comm.synchronize(lanes.front().stream); !s.ok())
      return s;
  }
  if (Status s = prepareGemms(); !s.ok())
    return s;
  if (std::all_of(kernels.begin(), kernels.end(), [](const Kernel &k) { return bool(k.gemm); }))
    return {};
  std::string image;
  if (Status s = assemble(module, compileOptions, image); !s.ok())
    return s;
  if (Status s = load(image, "cuModuleLoadData of the plan's kernels"); !s.ok())
    return s;
  for (Kernel &kernel : kernels) {
    if (kernel.gemm)
      continue;
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

Status Plan::makeSizes(const std::function<Status(Function &, const std::string &)> &find) {
  if (Status s = find(sizeKernel, "ncclxrt_size"); !s.ok())
    return s;
  if (Status s = find(sizedCopyKernel, "ncclxrt_copy_sized"); !s.ok())
    return s;
  return comm.call(comm.cuda().allocate(&sizes, counts.size() * sizeof(int64_t)), "cuMemAlloc");
}

Status Plan::prepareGemms() {
  uint64_t bytes = 0;
  for (Kernel &kernel : kernels) {
    if (!kernel.gemm)
      continue;
    if (Status s = kernel.gemm->prepare(*gemms, kernel.scratchBytes); !s.ok())
      return error(s.code(), "plan '{}': product '{}': {}", shape.name, kernel.name, s.text());
    bytes = std::max(bytes, kernel.gemm->workspaceBytes());
  }
  if (bytes)
    if (Status s = comm.call(comm.cuda().allocate(&workspace, bytes), "cuMemAlloc"); !s.ok())
      return s;
  for (Kernel &kernel : kernels)
    if (kernel.gemm)
      if (Status s = kernel.gemm->warmUp(kernel.rehearsed, workspace, lanes.front().stream);
          !s.ok())
        return error(s.code(), "plan '{}': product '{}': {}", shape.name, kernel.name, s.text());
  return {};
}

Plan::~Plan() {
  const Driver &cuda = comm.cuda();
  (void)comm.enter();
  for (auto &timeline : timelines)
    timeline.reset();
  clock.reset();
  for (Lane &lane : lanes)
    if (lane.stream && ownStreams)
      cuda.destroyStream(lane.stream);
  for (Lane &lane : lanes)
    if (lane.event)
      cuda.destroyEvent(lane.event);
  if (entered)
    cuda.destroyEvent(entered);
  for (Kernel &kernel : kernels)
    if (kernel.scratch)
      cuda.free(kernel.scratch);
  for (Address at : {workspace, sizes})
    if (at)
      cuda.free(at);
  for (Module m : modules)
    if (m)
      cuda.unloadModule(m);
}

Status Plan::drain() {
  if (Status s = comm.enter(); !s.ok())
    return s;
  for (Lane &lane : lanes)
    if (Status s = comm.synchronize(lane.stream); !s.ok())
      return s;
  return {};
}

Status Plan::timeline(bool captured, std::vector<ncclxrtTraceEvent_t> &events, int64_t &errorNs) {
  if (!clock)
    return error(ncclxrtInvalidUsage,
                 "plan '{}' was prepared without a timeline (trace_capacity is 0)", shape.name);
  if (Status s = comm.enter(); !s.ok())
    return s;
  return timelines[captured]->read(*clock, events, errorNs);
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
  int captured = 0;
  if (Status s = comm.call(cuda.isCapturing(stream, &captured), "cuStreamIsCapturing"); !s.ok())
    return s;
  if (captured)
    return capture(stream);
  Status done = enqueue(stream);
  ++runNumber;
  if (done.ok())
    return comm.watch(stream);
  if (!failure.ok())
    comm.abort(failure); // others wait for what will not come
  return done;
}

Status Plan::enqueue(Stream stream) {
  const Driver &cuda = comm.cuda();
  if (Status s = comm.call(cuda.record(entered, stream), "cuEventRecord"); !s.ok())
    return s;
  for (Lane &lane : lanes) {
    lane.used = false;
    lane.held.clear();
  }
  failure = Status();
  counted = 0;
  times = timelines[capturing].get();
  if (times)
    times->start(runNumber, capturing);
  int32_t status = program(reinterpret_cast<int64_t>(this));
  if (failure.ok() && status != 0)
    failure = error(ncclxrtResult_t(status), "plan '{}': the program failed", shape.name);
  if (!failure.ok())
    return failure;
  for (Lane &lane : lanes) {
    if (!lane.used)
      continue;
    if (Status s = release(lane); !s.ok())
      return s;
    if (times)
      if (Status s = times->end(size_t(&lane - lanes.data()), lane.stream); !s.ok())
        return s;
    if (Status s = comm.call(cuda.record(lane.event, lane.stream), "cuEventRecord"); !s.ok())
      return s;
    if (Status s = comm.call(cuda.waitEvent(stream, lane.event, 0), "cuStreamWaitEvent"); !s.ok())
      return s;
  }
  return {};
}

/// All ranks' streams have come here. The own counters of the meeting are 0 before and after: a
/// peer raises them again only behind the other meeting, in which this rank takes part later.
Status Plan::meet(Stream stream, size_t place) {
  size_t first = meetingFirst + place * size_t(comm.nranks());
  for (int r = 0; r < comm.nranks(); ++r)
    if (r != comm.rank())
      if (Status s = comm.raise(stream, counters[r] + first + comm.rank(), 1); !s.ok())
        return s;
  for (int r = 0; r < comm.nranks(); ++r)
    if (r != comm.rank())
      if (Status s = comm.await(stream, counters[comm.rank()] + first + r, 1); !s.ok())
        return s;
  return {};
}

Status Plan::capture(Stream stream) {
  size_t ranks = size_t(comm.nranks());
  bool meets = !replay.follows();
  auto clear = [&](size_t first, size_t count) {
    return comm.call(comm.cuda().fill(reinterpret_cast<Address>(counters[comm.rank()] + first), 0,
                                      count * sizeof(uint64_t), stream),
                     "cuMemsetD8Async");
  };
  if (Status s = meets ? meet(stream, 0) : Status(); !s.ok())
    return s;
  if (Status s = meets ? clear(meetingFirst, ranks) : Status(); !s.ok())
    return s;
  for (auto &array : raised)
    for (Raised &r : array)
      std::fill(r.captured.begin(), r.captured.end(), 0);
  capturing = true;
  int64_t next = std::exchange(runNumber, 0);
  Status done = enqueue(stream);
  runNumber = next;
  capturing = false;
  if (!done.ok() || !meets)
    return done;
  if (Status s = meet(stream, 1); !s.ok())
    return s;
  // What was raised in this run has come: whoever raised it is here.
  if (shape.slotCount)
    if (Status s = clear(captureFirst, shape.slotCount); !s.ok())
      return s;
  return clear(meetingFirst + ranks, ranks);
}

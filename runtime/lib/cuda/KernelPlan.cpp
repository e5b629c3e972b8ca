//===- KernelPlan.cpp - A program as one kernel -----------------------------===//
#include "../Shape.h"
#include "Compile.h"
#include "Runnable.h"
#include "Timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

Status Runnable::agree(const Status &mine, const std::string &name, const char *what) {
  struct Word {
    int32_t code;
    char text[508];
  };
  Word word{};
  word.code = mine.code();
  std::strncpy(word.text, mine.text().c_str(), sizeof word.text - 1);
  std::vector<Word> all(comm.nranks());
  if (Status s = comm.exchange(&word, sizeof word, all.data(), what); !s.ok())
    return s;
  for (int r = 0; r < comm.nranks(); ++r)
    if (all[r].code != ncclxrtSuccess)
      return r == comm.rank() ? mine
                              : error(ncclxrtResult_t(all[r].code),
                                      "rank {} cannot prepare '{}': {}", r, name, all[r].text);
  return {};
}

Status Runnable::forRanks(int32_t ranks, const std::string &name) const {
  if (!ranks || ranks == comm.nranks())
    return {};
  return error(ncclxrtInvalidArgument, "plan '{}' is for {} ranks, but the communicator has {}",
               name, ranks, comm.nranks());
}

Status Runnable::sharing(int64_t &ranks) {
  std::vector<Uuid> devices(comm.nranks());
  const Uuid &own = comm.deviceUuid();
  Status s = comm.exchange(&own, sizeof own, devices.data(), "devices");
  ranks = std::count_if(devices.begin(), devices.end(), [&](const Uuid &other) {
    return std::memcmp(&other, &own, sizeof own) == 0;
  });
  return s;
}

namespace {

class KernelPlan : public Runnable {
public:
  explicit KernelPlan(Comm &comm) : Runnable(comm) {}
  ~KernelPlan() override;
  Status prepare(const ncclxrtCudaKernelPlanDesc_t *source);
  Status buffer(size_t window, int32_t generation, void **data, size_t *bytes) override;
  Status run(Stream stream) override;
  Status timeline(bool captured, std::vector<ncclxrtTraceEvent_t> &events,
                  int64_t &errorNs) override;

private:
  Status load();
  Status fits();
  size_t stampCount() const { return 2 * size_t(desc.timeline_ops) * size_t(desc.blocks); }

  ncclxrtCudaKernelPlanDesc_t desc = NCCLXRT_CUDA_KERNEL_PLAN_DESC_INIT;
  std::string name, entry;
  CompileOptions compileOptions;
  std::vector<uint64_t> windowBytes;
  std::vector<char *> own; ///< by window
  std::vector<uint64_t> words;
  Address epochs = 0;
  Address stamps = 0; ///< with a timeline, as these
  Function clockKernel = nullptr;
  std::unique_ptr<Clock> clock;
  Module module = nullptr;
  Function function = nullptr;
  /// Its launch may overlap the end of the kernel before: the blocks of two runs of all ranks that
  /// share the GPU fit on it.
  bool early = false;
};

std::string textOf(const char *t) { return t ? t : ""; }

} // namespace

Status KernelPlan::prepare(const ncclxrtCudaKernelPlanDesc_t *source) {
  Status mine = readStruct(source, offsetof(ncclxrtCudaKernelPlanDesc_t, sizes),
                           "the description of a kernel", desc);
  if (mine.ok() && (!desc.source || !desc.entry || desc.blocks < 1 || desc.threads < 1 ||
                    desc.threads > 1024 || desc.timeline_ops < 0 ||
                    (desc.num_windows && !desc.windows) || (desc.num_slots && !desc.slots) ||
                    (desc.num_images && !desc.images) || (desc.num_sizes && !desc.sizes)))
    mine = error(
        ncclxrtInvalidArgument,
        "a kernel has source, entry, windows, slots, images, sizes, at least 1 block and 1 to 1024 "
        "threads, found {} and {}",
        desc.blocks, desc.threads);
  name = textOf(desc.name), entry = textOf(desc.entry);
  if (mine.ok())
    compileOptions = compileOptionsOf(desc, comm.architecture());
  if (mine.ok())
    mine = forRanks(desc.ranks, name);
  if (Status s = compileOptions.suit(); !s.ok())
    mine = error(s.code(), "plan '{}' cannot run on rank {}: {}", name, comm.rank(), s.text());
  if (Status s = agree(mine, name, "descriptions of kernels"); !s.ok())
    return s;
  std::string key = imageKey(desc.source, comm.architecture());
  struct Shape {
    char key[40];
    uint64_t windows, slots, sizes;
    int32_t blocks, threads, steps, none;
  } shape{{},          desc.num_windows, desc.num_slots,    desc.num_sizes,
          desc.blocks, desc.threads,     desc.timeline_ops, 0};
  std::strncpy(shape.key, key.c_str(), sizeof shape.key - 1);
  std::vector<Shape> shapes(comm.nranks());
  if (Status s = comm.exchange(&shape, sizeof shape, shapes.data(), "kernels"); !s.ok())
    return s;
  for (int r = 0; r < comm.nranks(); ++r)
    if (std::memcmp(&shapes[r], &shapes[0], sizeof shape) != 0)
      return error(ncclxrtPlanMismatch, "rank {} brings another kernel than rank 0", r);
  mine = load();
  if (Status s = agree(mine, name, "compiled kernels"); !s.ok())
    return s;
  // After the kernel, since how many fit is known only then.
  if (Status s = fits(); !s.ok())
    return s;
  if (stamps)
    words.push_back(stamps);
  size_t first = words.size();
  auto share = [&](void *given, uint64_t bytes) -> Status {
    std::vector<void *> peers(comm.nranks());
    if (Status s = comm.window(given, bytes, peers.data()); !s.ok())
      return s;
    for (void *p : peers)
      words.push_back(reinterpret_cast<uint64_t>(p));
    return {};
  };
  for (size_t w = 0; w < desc.num_windows; ++w) {
    if (Status s = share(desc.memory ? desc.memory[w] : nullptr, desc.windows[w]); !s.ok())
      return s;
    windowBytes.push_back(desc.windows[w]);
    own.push_back(reinterpret_cast<char *>(words[first + w * comm.nranks() + comm.rank()]));
  }
  words.resize(first + std::max<size_t>(desc.num_windows, 1) * comm.nranks());
  for (size_t s = 0; s < desc.num_slots; ++s)
    if (Status status = share(nullptr, desc.slots[s] * sizeof(uint64_t)); !status.ok())
      return status;
  if (desc.num_slots == 0)
    words.resize(words.size() + comm.nranks());
  void *control;
  uint64_t timeout;
  comm.guard(&control, &timeout);
  for (uint64_t word :
       {uint64_t(epochs), reinterpret_cast<uint64_t>(control), timeout, uint64_t(comm.rank())})
    words.push_back(word);
  if (desc.num_sizes) {
    std::vector<std::string> places;
    for (size_t i = 0; i < desc.num_sizes; ++i)
      places.push_back(fmt::format("plan '{}', {}", name, textOf(desc.sizes[i])));
    words.push_back(comm.numberOf(places));
  }
  return {};
}

Status KernelPlan::load() {
  const Driver &cuda = comm.cuda();
  std::string image;
  if (Status s = comm.enter(); !s.ok())
    return s;
  if (Status s = compile(desc.source, compileOptions, image); !s.ok())
    return s;
  if (Status s = comm.call(cuda.loadModule(&module, image.c_str()), "cuModuleLoadData"); !s.ok())
    return s;
  if (Status s =
          comm.call(cuda.getFunction(&function, module, entry.c_str()), "cuModuleGetFunction");
      !s.ok())
    return s;
  size_t bytes = size_t(desc.blocks) * sizeof(uint64_t);
  if (Status s = comm.call(cuda.allocate(&epochs, bytes), "cuMemAlloc"); !s.ok())
    return s;
  if (Status s = comm.clear(epochs, bytes); !s.ok() || !desc.timeline_ops)
    return s;
  bytes = stampCount() * sizeof(uint64_t);
  if (Status s = comm.call(cuda.allocate(&stamps, bytes), "cuMemAlloc"); !s.ok())
    return s;
  if (Status s = comm.clear(stamps, bytes); !s.ok())
    return s;
  if (Status s =
          comm.call(cuda.getFunction(&clockKernel, module, "ncclxrt_clock"), "cuModuleGetFunction");
      !s.ok())
    return s;
  clock = std::make_unique<Clock>(comm);
  return clock->init();
}

Status KernelPlan::timeline(bool, std::vector<ncclxrtTraceEvent_t> &events, int64_t &errorNs) {
  if (!clock)
    return error(ncclxrtInvalidUsage, "'{}' was compiled without a timeline", name);
  if (Status s = comm.enter(); !s.ok())
    return s;
  Clock::Moment moment;
  if (Status s = clock->find(
          [&](Stream stream, int i) {
            Address to = clock->wordOf(i);
            void *parameters[] = {&to};
            return comm.call(
                comm.cuda().launch(clockKernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr),
                "cuLaunchKernel");
          },
          moment);
      !s.ok())
    return s;
  errorNs = moment.errorNs;
  std::vector<uint64_t> times(stampCount());
  if (Status s = comm.fetch(times.data(), stamps, times.size() * sizeof(uint64_t)); !s.ok())
    return s;
  int64_t blocks = desc.blocks;
  auto ofHost = [&](uint64_t time) {
    return moment.hostNs + int64_t(time - clock->told(moment.which));
  };
  for (int64_t at = 0; at < desc.timeline_ops * blocks; ++at)
    events.push_back({at / blocks, at % blocks, -1, ofHost(times[size_t(2 * at)]),
                      ofHost(times[size_t(2 * at + 1)]), 0});
  return {};
}

/// S29: blocks that wait for each other are all on their GPU at once.
Status KernelPlan::fits() {
  int most = 0, processors = 0;
  const Driver &cuda = comm.cuda();
  Status mine = comm.call(cuda.occupancy(&most, function, desc.threads, 0),
                          "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  if (mine.ok())
    mine = comm.call(cuda.deviceAttribute(&processors, multiprocessors, comm.deviceNumber()),
                     "cuDeviceGetAttribute");
  int64_t ranks = 0;
  if (Status s = sharing(ranks); !s.ok())
    return s;
  if (mine.ok() && int64_t(desc.blocks) * ranks > int64_t(most) * processors)
    mine = error(ncclxrtUnsupported,
                 "{} ranks share GPU {}, and {} blocks of each wait for each other, but only {} "
                 "blocks of '{}' fit on it at once",
                 ranks, comm.deviceNumber(), desc.blocks, int64_t(most) * processors, name);
  early = 2 * int64_t(desc.blocks) * ranks <= int64_t(most) * processors;
  return agree(mine, name, "what fits");
}

KernelPlan::~KernelPlan() {
  (void)comm.enter();
  clock.reset();
  if (stamps)
    comm.cuda().free(stamps);
  if (epochs)
    comm.cuda().free(epochs);
  if (module)
    comm.cuda().unloadModule(module);
}

Status KernelPlan::buffer(size_t window, int32_t generation, void **data, size_t *bytes) {
  if (window >= own.size() || generation != 0)
    return error(ncclxrtInvalidArgument, "'{}' has no generation {} of window {} to be filled",
                 name, generation, window);
  *data = own[window];
  *bytes = windowBytes[window];
  return {};
}

Status KernelPlan::run(Stream stream) {
  if (Status s = comm.query(); !s.ok())
    return s;
  if (Status s = comm.enter(); !s.ok())
    return s;
  void *parameters[] = {words.data()};
  LaunchAttribute attribute{};
  attribute.id = programmaticSerialization;
  attribute.allowed = 1;
  LaunchConfig config{};
  config.blocks[0] = unsigned(desc.blocks);
  config.threads[0] = unsigned(desc.threads);
  config.blocks[1] = config.blocks[2] = config.threads[1] = config.threads[2] = 1;
  config.stream = stream;
  config.attributes = &attribute;
  config.numAttributes = early ? 1 : 0;
  return comm.call(comm.cuda().launchEx(&config, function, parameters, nullptr),
                   "cuLaunchKernelEx");
}

Status cuda::prepareKernel(Comm &comm, const ncclxrtCudaKernelPlanDesc_t *desc,
                           std::unique_ptr<Runnable> &result) {
  auto plan = std::make_unique<KernelPlan>(comm);
  Status s = plan->prepare(desc);
  if (s.ok())
    result = std::move(plan);
  return s;
}

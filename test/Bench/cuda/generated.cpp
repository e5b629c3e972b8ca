//===- generated.cpp - Runs what ncclx-translate --ctran-to-cuda printed ---===//
//
//   generated [processes]: a sum of the program's window 0 into its window 1, NCCLX_PROGRAM of
//   Dtype::NCCLX_DTYPE, by ranks that are threads or processes; then late and missing ranks.
//
//===----------------------------------------------------------------------===//
#include "data.h"

#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace bench;

#define NCCLX_GLUE2(a, b) a##b
#define NCCLX_GLUE(a, b) NCCLX_GLUE2(a, b)
#define NCCLX_NAME(suffix) NCCLX_GLUE(NCCLX_PROGRAM, suffix)
#define NCCLX_TEXT2(a) #a
#define NCCLX_TEXT(a) NCCLX_TEXT2(a)
extern "C" {
extern const int64_t NCCLX_NAME(_shape)[];
extern const char *const NCCLX_NAME(_steps)[];
int64_t NCCLX_NAME(_window_bytes)(int);
int64_t NCCLX_NAME(_slot_words)(int);
int NCCLX_NAME(_launch)(void *const *, void *const *, uint64_t *, void *, uint64_t, int64_t,
                        void *);
}

namespace bench {
void require(cudaError_t result, const char *what) {
  if (result == cudaSuccess)
    return;
  std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(result));
  _exit(1);
}
void require(ncclxrtCudaComm_t comm, ncclxrtResult_t result, const char *what) {
  if (result == ncclxrtSuccess)
    return;
  std::fprintf(stderr, "error: %s: %s\n", what, ncclxrtCudaLastError(comm));
  _exit(1);
}
} // namespace bench

namespace {
/// Where ranks meet: memory that threads and processes share alike.
struct Hall {
  pthread_barrier_t barrier;
  char pieces[16][4096];
};
struct Seat {
  Hall *hall;
  int rank, ranks;
};
int32_t allgather(void *context, const void *mine, size_t bytes, void *all) {
  auto *seat = static_cast<Seat *>(context);
  if (bytes > sizeof seat->hall->pieces[0])
    return 1;
  std::memcpy(seat->hall->pieces[seat->rank], mine, bytes);
  pthread_barrier_wait(&seat->hall->barrier);
  for (int r = 0; r < seat->ranks; ++r)
    std::memcpy(static_cast<char *>(all) + r * bytes, seat->hall->pieces[r], bytes);
  pthread_barrier_wait(&seat->hall->barrier);
  return 0;
}

int body(Hall *hall, int rank, int ranks, const char *how) {
  Seat seat{hall, rank, ranks};
  auto meet = [&] { pthread_barrier_wait(&hall->barrier); };
  int gpus = 0;
  CUDA(cudaGetDeviceCount(&gpus));
  ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
  config.rank = rank, config.nranks = ranks, config.device = rank % gpus, config.timeout_ms = 2000;
  config.allgather = allgather, config.context = &seat;
  ncclxrtCudaComm_t comm;
  require(nullptr, ncclxrtCudaInit(&config, &comm), "ncclxrtCudaInit");
  int64_t windows = NCCLX_NAME(_shape)[1], slots = NCCLX_NAME(_shape)[2];
  std::vector<void *> windowAt(windows * ranks + 1), slotAt(slots * ranks + 1);
  for (int w = 0; w < windows; ++w)
    require(comm,
            ncclxrtCudaWindow(comm, nullptr, NCCLX_NAME(_window_bytes)(w), &windowAt[w * ranks]),
            "window");
  for (int s = 0; s < slots; ++s)
    require(comm,
            ncclxrtCudaWindow(comm, nullptr, NCCLX_NAME(_slot_words)(s) * 8, &slotAt[s * ranks]),
            "slots");
  uint64_t *epochs, *run;
  unsigned long long *bad;
  CUDA(cudaMalloc(reinterpret_cast<void **>(&epochs), NCCLX_NAME(_shape)[3] * 8));
  CUDA(cudaMalloc(reinterpret_cast<void **>(&run), 8));
  CUDA(cudaMalloc(reinterpret_cast<void **>(&bad), 8));
  CUDA(cudaMemset(epochs, 0, NCCLX_NAME(_shape)[3] * 8));
  CUDA(cudaMemset(run, 0, 8));
  CUDA(cudaMemset(bad, 0, 8));
  uint32_t *streamSlots[16];
  require(comm, ncclxrtCudaSlots(comm, 4, streamSlots), "ncclxrtCudaSlots");
  cudaStream_t s;
  cudaEvent_t start, stop;
  CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CUDA(cudaEventCreate(&start));
  CUDA(cudaEventCreate(&stop));
  void *control;
  uint64_t timeout;
  require(comm, ncclxrtCudaGuard(comm, &control, &timeout), "ncclxrtCudaGuard");
  auto launch = [&] {
    CUDA(cudaError_t(
        NCCLX_NAME(_launch)(windowAt.data(), slotAt.data(), epochs, control, timeout, rank, s)));
  };
  char *in = static_cast<char *>(windowAt[0 * ranks + rank]);
  char *out = static_cast<char *>(windowAt[1 * ranks + rank]);
  int64_t bytes = NCCLX_NAME(_window_bytes)(0);
  auto once = [&] {
    countRun(s, run);
    CUDA(cudaMemsetAsync(out, poison, size_t(bytes), s));
    fillInput(s, Dtype::NCCLX_DTYPE, in, bytes, rank, run, ReduceOp::Sum, false);
    delay(s, run, rank, 20);
    launch();
    Expect e;
    e.reduces = true, e.ranks = ranks, e.run = run;
    checkOutput(s, Dtype::NCCLX_DTYPE, out, bytes, e, bad);
  };
  CUDA(cudaDeviceSynchronize());
  meet();
  for (int i = 0; i < 1000; ++i)
    once();
  CUDA(cudaStreamSynchronize(s));
  meet();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  once();
  CUDA(cudaStreamEndCapture(s, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  meet();
  for (int i = 0; i < 10000; ++i)
    CUDA(cudaGraphLaunch(exec, s));
  CUDA(cudaStreamSynchronize(s));
  unsigned long long wrong = 0;
  CUDA(cudaMemcpy(&wrong, bad, 8, cudaMemcpyDeviceToHost));
  require(comm, ncclxrtCudaQuery(comm), "after 11,000 runs");
  cudaGraph_t timed;
  cudaGraphExec_t timedExec;
  CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 20; ++i)
    launch();
  CUDA(cudaStreamEndCapture(s, &timed));
  CUDA(cudaGraphInstantiate(&timedExec, timed, 0));
  CUDA(cudaGraphLaunch(timedExec, s));
  CUDA(cudaStreamSynchronize(s));
  meet();
  CUDA(cudaEventRecord(start, s));
  for (int i = 0; i < 50; ++i)
    CUDA(cudaGraphLaunch(timedExec, s));
  CUDA(cudaEventRecord(stop, s));
  CUDA(cudaStreamSynchronize(s));
  float ms = 0;
  CUDA(cudaEventElapsedTime(&ms, start, stop));
  std::printf(
      "generated @%s, %s, rank %d: 11000 runs (10000 replayed), %llu wrong elements, %.2f us "
      "a call in a graph of 20\n",
      NCCLX_TEXT(NCCLX_PROGRAM), how, rank, wrong, ms * 1e3 / 1000);
  std::fflush(stdout);
  meet();
  // The peers do not come: a kernel's wait, or a stream's, ends by its own deadline.
  int failed = wrong != 0;
  if (rank == 0) {
    launch();
    CUDA(cudaStreamSynchronize(s));
    usleep(50000);
    ncclxrtResult_t result = ncclxrtCudaQuery(comm);
    std::printf("alone: result %d, \"%s\" (step \"%s\")\n", int(result), ncclxrtCudaLastError(comm),
                NCCLX_NAME(_steps)[0]);
    failed |= result != ncclxrtTimeout;
  } else {
    require(comm, ncclxrtCudaWait(comm, s, streamSlots[rank], 1, 1), "ncclxrtCudaWait");
    require(comm, ncclxrtCudaWait(comm, s, streamSlots[rank] + 1, 1, 1), "ncclxrtCudaWait");
    require(comm, ncclxrtCudaWatch(comm, s), "ncclxrtCudaWatch");
    CUDA(cudaStreamSynchronize(s));
    ncclxrtResult_t result = ncclxrtCudaQuery(comm);
    std::printf("stream: result %d, \"%s\"\n", int(result), ncclxrtCudaLastError(comm));
    failed |= result != ncclxrtTimeout;
  }
  std::fflush(stdout);
  meet();
  ncclxrtCudaDestroy(comm);
  return failed;
}
} // namespace

int main(int argc, char **argv) {
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  bool processes = argc > 1 && !std::strcmp(argv[1], "processes");
  int ranks = int(NCCLX_NAME(_shape)[0]);
  auto *hall = static_cast<Hall *>(
      mmap(nullptr, sizeof(Hall), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_barrierattr_t attribute;
  pthread_barrierattr_init(&attribute);
  pthread_barrierattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&hall->barrier, &attribute, ranks);
  int failed = 0;
  if (processes) {
    for (int r = 0; r < ranks; ++r)
      if (fork() == 0)
        _exit(body(hall, r, ranks, "processes"));
    for (int r = 0, status; r < ranks; ++r)
      failed |= wait(&status) < 0 || status != 0;
  } else {
    std::vector<std::thread> threads;
    std::vector<int> results(ranks);
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] { results[r] = body(hall, r, ranks, "threads"); });
    for (int r = 0; r < ranks; ++r) {
      threads[r].join();
      failed |= results[r];
    }
  }
  std::printf("%s\n", failed ? "FAILED" : "ok");
  return failed;
}

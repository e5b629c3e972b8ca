/* Schedules that were compiled ahead of time for GPUs, in a C program: each rank is a thread, or a
 * process that joins the others as ranks on hosts do; it
 * launches on memory that it gave when it prepared the plan, on the plan's own and on other memory,
 * singly and in a replayed graph, and checks every element.
 *
 *   aot-consumer streams|kernel [DRIVER [processes]]     DRIVER may be empty
 */
#define _POSIX_C_SOURCE 200112L
#include "aot_kernel.h"
#include "aot_streams.h"
#include <arpa/inet.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ranks = aot_streams_ranks, inputs = 2, buffers = 4, turns = 6 };
enum { shard = 5, gathered = 13, part = 7 };
static const size_t bytes[buffers] = {4 * shard, 4 * part, 4 * gathered, 4 * part};

/* The two forms have one interface. */
static struct {
  ncclxrtResult_t (*prepare)(ncclxrtCudaComm_t, void *const *, ncclxrtCudaPlan_t *);
  ncclxrtResult_t (*input)(ncclxrtCudaPlan_t, int, void **, size_t *);
  ncclxrtResult_t (*output)(ncclxrtCudaPlan_t, int, void **, size_t *);
  ncclxrtResult_t (*launch)(ncclxrtCudaPlan_t, void *, void *const *);
  ncclxrtResult_t (*destroy)(ncclxrtCudaPlan_t);
} schedule = {aot_streams_prepare, aot_streams_input, aot_streams_output, aot_streams_launch,
              aot_streams_destroy};

static const char *driver;
static int gpus;
static ncclxrtComm_t job; /* where ranks are processes */
static pthread_barrier_t all;
static const void *pieces[ranks];
static void *streams[ranks];

static int32_t allgather(void *rank, const void *mine, size_t size, void *to) {
  pieces[*(int *)rank] = mine;
  pthread_barrier_wait(&all);
  for (int r = 0; r < ranks; ++r)
    memcpy((char *)to + r * size, pieces[r], size);
  pthread_barrier_wait(&all);
  return 0;
}

static void meet(void) {
  if (job)
    ncclxrtCommAllgather(job, NULL, 0, NULL);
  else
    pthread_barrier_wait(&all);
}

static void require(int good, int rank, const char *what, ncclxrtCudaComm_t comm) {
  if (good)
    return;
  printf("error: rank %d: %s: %s\n", rank, what, ncclxrtCudaLastError(comm));
  fflush(stdout);
  _Exit(1);
}

static void refused(ncclxrtResult_t result, const char *sentence, int rank,
                    ncclxrtCudaComm_t comm) {
  require(result == ncclxrtInvalidArgument && strstr(ncclxrtCudaLastError(comm), sentence), rank,
          sentence, comm);
}

/* Fills the inputs of a turn, runs what `once` says, and checks the outputs. */
static void turn(int number, int rank, ncclxrtCudaComm_t comm, void *stream, ncclxrtCudaPlan_t plan,
                 void *const *at, ncclxrtCudaGraph_t graph, void *const *given) {
  int32_t in[shard], out[gathered], poison[gathered];
  float add[part], sum[part];
  for (int i = 0; i < shard; ++i)
    in[i] = 1000 * number + 100 * rank + i;
  for (int i = 0; i < part; ++i)
    add[i] = (float)(number + 10 * rank + i);
  memset(poison, 0xff, sizeof poison);
  require(!ncclxrtCudaCopy(comm, stream, at[0], in, bytes[0]) &&
              !ncclxrtCudaCopy(comm, stream, at[1], add, bytes[1]) &&
              !ncclxrtCudaCopy(comm, stream, at[2], poison, bytes[2]) &&
              !ncclxrtCudaCopy(comm, stream, at[3], poison, bytes[3]) &&
              !ncclxrtCudaSynchronize(comm, stream),
          rank, "fill", comm);
  meet();
  require(!(graph ? ncclxrtCudaGraphLaunch(graph, stream) : schedule.launch(plan, stream, given)),
          rank, "launch", comm);
  require(!ncclxrtCudaCopy(comm, stream, out, at[2], bytes[2]) &&
              !ncclxrtCudaCopy(comm, stream, sum, at[3], bytes[3]) &&
              !ncclxrtCudaSynchronize(comm, stream),
          rank, "read", comm);
  for (int i = 0; i < gathered; ++i)
    require(out[i] == 1000 * number + 100 * (i / shard) + i % shard, rank, "gathered", comm);
  for (int i = 0; i < part; ++i)
    require(sum[i] == (float)(3 * (number + i) + 30), rank, "sum", comm);
  meet();
}

/* What one rank does wrong is told to it alone, and it may try again. */
static void misuse(int rank, ncclxrtCudaComm_t comm, void *stream, ncclxrtCudaPlan_t plan,
                   void **region) {
  void *wrong[buffers] = {0};
  char host[64];
  wrong[0] = host;
  require(schedule.launch(plan, stream, wrong) != ncclxrtSuccess, rank, "takes host memory", comm);
  wrong[0] = (char *)region[rank] + 8192 - 4;
  refused(schedule.launch(plan, stream, wrong), "behind its allocation", rank, comm);
  if (gpus < 2 || job)
    return;
  wrong[0] = region[(rank + 1) % ranks];
  if (rank % gpus != (rank + 1) % ranks % gpus) {
    refused(schedule.launch(plan, stream, wrong), "is memory of GPU", rank, comm);
    refused(schedule.launch(plan, streams[(rank + 1) % ranks], NULL), "is of another GPU", rank,
            comm);
  }
}

static void *run(void *argument) {
  int rank = *(int *)argument;
  ncclxrtCudaComm_t comm = NULL;
  ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
  config.rank = rank, config.nranks = ranks, config.device = rank % gpus;
  config.allgather = allgather, config.context = argument, config.driver = driver;
  if (job)
    config.allgather = ncclxrtCommAllgather, config.failure = ncclxrtCommFailure,
    config.context = job;
  require(!ncclxrtCudaInit(&config, &comm), rank, "init", NULL);
  void *region[ranks], *stream;
  require(!ncclxrtCudaWindow(comm, NULL, 8192, region), rank, "memory", comm);
  require(!ncclxrtCudaStream(comm, &stream), rank, "stream", comm);
  streams[rank] = stream;
  void *first[buffers], *second[buffers];
  for (int b = 0; b < buffers; ++b) {
    first[b] = (char *)region[rank] + 512 * b;
    second[b] = (char *)region[rank] + 4096 + 512 * b;
  }
  /* Rank 0 brings all memory, rank 1 some, and rank 2 none. */
  void *some[buffers] = {first[0], NULL, NULL, first[3]};
  ncclxrtCudaPlan_t plan = NULL;
  require(!schedule.prepare(comm,
                            rank == 0   ? first
                            : rank == 1 ? some
                                        : NULL,
                            &plan),
          rank, "prepare", comm);
  void *own[buffers], *none;
  size_t size;
  for (int b = 0; b < buffers; ++b)
    require(!(b < inputs ? schedule.input(plan, b, &own[b], &size)
                         : schedule.output(plan, b - inputs, &own[b], &size)) &&
                size == bytes[b] &&
                (rank == 0 ? own[b] == first[b] : rank == 2 || !some[b] || own[b] == some[b]),
            rank, "buffers", comm);
  require(schedule.output(plan, 2, &none, &size) == ncclxrtInvalidArgument, rank, "index", comm);
  for (int t = 0; t < turns; ++t)
    if (t % 3 == 0)
      turn(t, rank, comm, stream, plan, own, NULL, rank == 0 ? own : NULL);
    else
      turn(t, rank, comm, stream, plan, second, NULL, second);
  misuse(rank, comm, stream, plan, region);
  ncclxrtCudaGraph_t graph = NULL;
  require(!ncclxrtCudaCaptureBegin(comm, stream) && !schedule.launch(plan, stream, second) &&
              !ncclxrtCudaCaptureEnd(comm, stream, &graph),
          rank, "capture", comm);
  for (int t = 0; t < turns; ++t)
    turn(t, rank, comm, stream, plan, second, t % 3 == 2 ? NULL : graph, second);
  meet();
  ncclxrtCudaGraphDestroy(graph);
  require(!schedule.destroy(plan) && !ncclxrtCudaDestroy(comm), rank, "destroy", NULL);
  return NULL;
}

static int32_t alone(void *context, const void *mine, size_t size, void *to) {
  (void)context;
  memcpy(to, mine, size);
  return 0;
}

/* A schedule is for so many ranks. */
static void tooFew(void) {
  ncclxrtCudaComm_t comm = NULL;
  ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
  config.allgather = alone, config.driver = driver;
  require(!ncclxrtCudaInit(&config, &comm), 0, "init alone", NULL);
  ncclxrtCudaPlan_t plan;
  refused(schedule.prepare(comm, NULL, &plan), "is for 3 ranks, but the communicator has 1", 0,
          comm);
  require(plan == NULL && !ncclxrtCudaDestroy(comm), 0, "destroy", NULL);
}

static void countGpus(char *name, size_t size) {
  int32_t architecture;
  require(!ncclxrtCudaDevices(driver, &gpus, &architecture, name, size) && gpus > 0, 0, "devices",
          NULL);
}

/* An address of this machine where nobody listens. */
static void freeAddress(char *text, size_t size) {
  struct sockaddr_in at = {0};
  socklen_t length = sizeof at;
  int probe = socket(AF_INET, SOCK_STREAM, 0);
  at.sin_family = AF_INET, at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(probe >= 0 && !bind(probe, (struct sockaddr *)&at, sizeof at) &&
              !getsockname(probe, (struct sockaddr *)&at, &length),
          0, "address", NULL);
  snprintf(text, size, "127.0.0.1:%d", (int)ntohs(at.sin_port));
  close(probe);
}

/* Nothing of CUDA before the fork. */
static int asProcesses(void) {
  char address[32];
  freeAddress(address, sizeof address);
  for (int r = 0; r < ranks; ++r)
    if (fork() == 0) {
      char name[256];
      ncclxrtCommConfig_t config = NCCLXRT_COMM_CONFIG_INIT;
      config.rank = r, config.nranks = ranks, config.rendezvous = address, config.job = "aot";
      if (ncclxrtCommInit(&config, &job)) {
        printf("error: rank %d: %s\n", r, ncclxrtGetLastError(NULL));
        fflush(stdout);
        _Exit(1);
      }
      countGpus(name, sizeof name);
      run(&r);
      _Exit(ncclxrtCommDestroy(job) != ncclxrtSuccess);
    }
  int failed = 0, status;
  for (int r = 0; r < ranks; ++r)
    failed |= wait(&status) < 0 || status != 0;
  if (!failed)
    printf("ok: %d processes\n", (int)ranks);
  return failed;
}

int main(int argc, char **argv) {
  char name[256];
  if (argc > 1 && strcmp(argv[1], "kernel") == 0) {
    schedule.prepare = aot_kernel_prepare, schedule.input = aot_kernel_input;
    schedule.output = aot_kernel_output, schedule.launch = aot_kernel_launch;
    schedule.destroy = aot_kernel_destroy;
  }
  driver = argc > 2 && *argv[2] ? argv[2] : NULL;
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  if (argc > 3 && strcmp(argv[3], "processes") == 0)
    return asProcesses();
  countGpus(name, sizeof name);
  tooFew();
  pthread_barrier_init(&all, NULL, ranks);
  pthread_t threads[ranks];
  int numbers[ranks];
  for (int r = 0; r < ranks; ++r) {
    numbers[r] = r;
    pthread_create(&threads[r], NULL, run, &numbers[r]);
  }
  for (int r = 0; r < ranks; ++r)
    pthread_join(threads[r], NULL);
  printf("ok: %d ranks on %d x %s, workspace %d bytes, manifest %d characters\n", ranks, gpus, name,
         (int)aot_streams_workspace_bytes(), (int)strlen(aot_streams_manifest()));
  return 0;
}

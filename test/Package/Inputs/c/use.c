/* A C program that compiles a graph with libncclxc.so and runs it, every rank a process.
 *
 *   use GRAPH TOPOLOGY [run [SIZES]]
 *
 * SIZES: of a graph with one open size, what rank 0, 1, ... takes for it ("5,5,6"; the last stands
 * for the rest).
 */
#include "ncclx-c/ncclx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *readAll(const char *path, size_t *bytes) {
  FILE *f = fopen(path, "rb");
  if (!f) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(1);
  }
  fseek(f, 0, SEEK_END);
  *bytes = (size_t)ftell(f);
  rewind(f);
  char *text = malloc(*bytes + 1);
  if (fread(text, 1, *bytes, f) != *bytes)
    exit(1);
  fclose(f);
  return text;
}

/* What is wrong with a program, and its notes. */
static void printDiagnostics(ncclxProgram_t program) {
  for (size_t i = 0; i < ncclxProgramNumDiagnostics(program); ++i) {
    ncclxDiagnostic_t d = ncclxProgramDiagnostic(program, i);
    const char *kinds[] = {"note", "warning", "error", "remark"};
    if (d.severity != ncclxRemark)
      printf("%s:%lld: %s: %s\n", d.file, (long long)d.line, kinds[d.severity], d.text);
  }
  fflush(stdout);
}

static int64_t sizeOf(const char *list, int rank) {
  for (; rank > 0 && strchr(list, ','); --rank)
    list = strchr(list, ',') + 1;
  return strtoll(list, NULL, 10);
}

static int rankMain(ncclxProgram_t program, int rank, const char *address, const char *sizes) {
  ncclxrtCommConfig_t config = NCCLXRT_COMM_CONFIG_INIT;
  config.rank = rank;
  config.nranks = ncclxProgramRanks(program);
  config.rendezvous = address;
  if (sizes) {
    /* Whatever comes of it, all ranks hear of it when they prepare the plan. */
    int64_t size = sizeOf(sizes, rank);
    ncclxProgram_t again, graph = program;
    ncclxResult_t result = ncclxProgramAt(graph, &size, 1, &program);
    if (ncclxProgramAt(graph, &size, 1, &again) != result || again != program)
      return 1; /* what was made is kept */
    if (result != ncclxSuccess && rank == 0)
      printDiagnostics(program);
  }
  ncclxrtComm_t comm = NULL;
  ncclxrtPlan_t plan = NULL;
  const ncclxrtPlanDesc_t *desc = ncclxProgramPlan(program);
  if (ncclxrtCommInit(&config, &comm) || ncclxrtPlanPrepare(comm, desc, &plan)) {
    fprintf(stderr, "rank %d: %s\n", rank, ncclxrtGetLastError(comm));
    ncclxrtCommDestroy(comm); /* a rank that just went would be one that died */
    return 1;
  }
  /* Inputs are f32 and hold rank + 1 everywhere. */
  for (size_t w = 0; w < desc->num_windows; ++w) {
    void *data;
    size_t bytes;
    if (desc->windows[w].role != ncclxrtRoleInput)
      continue;
    if (ncclxrtPlanBuffer(plan, w, 0, &data, &bytes))
      return 1;
    for (size_t i = 0; i < bytes / sizeof(float); ++i)
      ((float *)data)[i] = (float)(rank + 1);
  }
  if (ncclxrtPlanRun(plan, ncclxProgramEntry(program))) {
    fprintf(stderr, "rank %d: %s\n", rank, ncclxrtGetLastError(comm));
    return 1;
  }
  for (size_t w = 0; w < desc->num_windows; ++w) {
    void *data;
    size_t bytes;
    if (desc->windows[w].role != ncclxrtRoleOutput || rank != 0)
      continue;
    if (ncclxrtPlanBuffer(plan, w, 0, &data, &bytes))
      return 1;
    printf("output of %zu bytes: first %g last %g\n", bytes, ((float *)data)[0],
           ((float *)data)[bytes / sizeof(float) - 1]);
  }
  fflush(stdout);
  ncclxrtPlanDestroy(plan);
  return ncclxrtCommDestroy(comm);
}

int main(int argc, char **argv) {
  if (argc < 3 || ncclxVersion() != NCCLX_C_VERSION)
    return 2;
  size_t graphBytes, topologyBytes;
  char *graph = readAll(argv[1], &graphBytes), *topology = readAll(argv[2], &topologyBytes);
  ncclxCompileOptions_t options = NCCLX_COMPILE_OPTIONS_INIT;
  options.name = argv[1];
  options.topology = topology;
  options.topology_bytes = topologyBytes;
  ncclxProgram_t program;
  ncclxResult_t result = ncclxCompile(&options, graph, graphBytes, &program);
  free(graph); /* nothing is kept of the arguments */
  free(topology);
  printDiagnostics(program);
  if (result != ncclxSuccess) {
    printf("result %d\n", result);
    ncclxProgramDestroy(program);
    return 0;
  }
  printf("report %s\n", ncclxProgramReport(program));
  printf("schedule of %d ranks: %s\n", ncclxProgramRanks(program),
         strstr(ncclxProgramSchedule(program), "ctran.program") ? "there" : "missing");
  for (size_t i = 0; i < ncclxProgramNumSizes(program); ++i) {
    ncclxSize_t size = ncclxProgramSize(program, i);
    printf("size %s from %lld to %lld\n", size.name, (long long)size.min, (long long)size.max);
  }
  fflush(stdout);
  int failed = 0;
  if (argc > 3) {
    char address[64];
    snprintf(address, sizeof(address), "127.0.0.1:%d", 20000 + (int)getpid() % 10000);
    int ranks = ncclxProgramRanks(program);
    for (int rank = 0; rank < ranks; ++rank)
      if (fork() == 0)
        _exit(rankMain(program, rank, address, argc > 4 ? argv[4] : NULL));
    for (int rank = 0; rank < ranks; ++rank) {
      int status;
      wait(&status);
      failed |= status;
    }
    printf(failed ? "failed\n" : "ran\n");
  }
  ncclxProgramDestroy(program);
  return failed != 0;
}

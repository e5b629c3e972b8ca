/* Two schedules of one graph in one C program: each rank fills, runs twice, checks. The communicator is
 * described by the environment. */
#include "gather_a.h"
#include "gather_b.h"

#include <stdio.h>

static int fail(ncclxrtComm_t comm, const char *what) {
  printf("error: %s: %s\n", what, ncclxrtGetLastError(comm));
  return 1;
}

static int check(ncclxrtComm_t comm, int rank, ncclxrtPlan_t plan,
                 ncclxrtResult_t (*input)(ncclxrtPlan_t, int, void **, size_t *),
                 ncclxrtResult_t (*output)(ncclxrtPlan_t, int, void **, size_t *),
                 ncclxrtResult_t (*run)(ncclxrtPlan_t)) {
  void *in, *gathered, *halves;
  size_t bytes;
  if (input(plan, 0, &in, &bytes) || bytes != 5 * 4 || output(plan, 0, &gathered, &bytes) ||
      bytes != 13 * 4 || output(plan, 1, &halves, &bytes) || bytes != 13 * 4)
    return fail(comm, "buffers");
  if (output(plan, 2, &halves, &bytes) != ncclxrtInvalidArgument ||
      input(plan, -1, &halves, &bytes) != ncclxrtInvalidArgument)
    return fail(comm, "an index out of range is taken");
  output(plan, 1, &halves, &bytes);
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < 5; ++i)
      ((int32_t *)in)[i] = 1000 * turn + 100 * rank + i;
    if (run(plan))
      return fail(comm, "run");
    for (int i = 0; i < 13; ++i) {
      int32_t expected = 1000 * turn + 100 * (i / 5) + i % 5;
      if (((int32_t *)gathered)[i] != expected || ((float *)halves)[i] != 0.5f * (float)expected) {
        printf("error: rank %d turn %d element %d: %d and %f, expected %d\n", rank, turn, i,
               ((int32_t *)gathered)[i], ((float *)halves)[i], expected);
        return 1;
      }
    }
  }
  return 0;
}

int main(int argc, char **argv) {
  (void)argc;
  int rank = argv[1][0] - '0';
  ncclxrtComm_t comm = NULL;
  ncclxrtCommConfig_t config = NCCLXRT_COMM_CONFIG_INIT;
  config.rank = rank;
  config.nranks = gather_a_ranks;
  config.rendezvous = argv[2];
  if (ncclxrtCommInit(&config, &comm))
    return fail(comm, "init");
  ncclxrtPlan_t a, b;
  if (gather_a_prepare(comm, &a) || gather_b_prepare(comm, &b))
    return fail(comm, "prepare");
  if (check(comm, rank, a, gather_a_input, gather_a_output, gather_a_run) ||
      check(comm, rank, b, gather_b_input, gather_b_output, gather_b_run) ||
      check(comm, rank, a, gather_a_input, gather_a_output, gather_a_run))
    return 1;
  if (gather_a_destroy(a) || gather_b_destroy(b) || ncclxrtCommDestroy(comm))
    return fail(NULL, "destroy");
  printf("ok: rank %d\n", rank);
  return 0;
}

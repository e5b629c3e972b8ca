/* A schedule made for one of the sizes that its graph leaves open: another one on one rank is an
 * error on all, after which they go on. */
#include "open_5.h"

#include <stdio.h>
#include <string.h>

static int fail(ncclxrtComm_t comm, const char *what) {
  printf("error: %s: %s\n", what, ncclxrtGetLastError(comm));
  return 1;
}

int main(int argc, char **argv) {
  (void)argc;
  int rank = argv[1][0] - '0';
  ncclxrtComm_t comm = NULL;
  ncclxrtCommConfig_t config = NCCLXRT_COMM_CONFIG_INIT;
  config.rank = rank;
  config.nranks = open_5_ranks;
  config.rendezvous = argv[2];
  if (ncclxrtCommInit(&config, &comm))
    return fail(comm, "init");
  ncclxrtPlan_t plan;
  const char *expected =
      "rank 1 cannot prepare it: plan 'f': size 'n' (dimension 0 of argument 0) is 6, expected 5";
  if (open_5_prepare(comm, rank == 1 ? 6 : 5, &plan) != ncclxrtInvalidArgument || plan ||
      !strstr(ncclxrtGetLastError(comm), expected))
    return fail(comm, "another size");
  if (open_5_prepare(comm, 5, &plan))
    return fail(comm, "prepare");
  void *in, *out;
  size_t bytes;
  if (open_5_input(plan, 0, &in, &bytes) || bytes != 5 * 4 ||
      open_5_output(plan, 0, &out, &bytes) || bytes != 15 * 4)
    return fail(comm, "buffers");
  for (int i = 0; i < 5; ++i)
    ((float *)in)[i] = (float)(10 * rank + i);
  if (open_5_run(plan))
    return fail(comm, "run");
  for (int i = 0; i < 15; ++i)
    if (((float *)out)[i] != (float)(10 * (i / 5) + i % 5)) {
      printf("error: rank %d element %d: %f\n", rank, i, ((float *)out)[i]);
      return 1;
    }
  if (open_5_destroy(plan) || ncclxrtCommDestroy(comm))
    return fail(comm, "destroy");
  printf("ok: rank %d\n", rank);
  return 0;
}

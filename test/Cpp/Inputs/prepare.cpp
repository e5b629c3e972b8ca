// Prepares the schedule that it was compiled with, and says what became of it: prepare RANK
// HOST:PORT.
#include "f.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  ncclxrtComm_t comm = nullptr;
  ncclxrtCommConfig_t config = NCCLXRT_COMM_CONFIG_INIT;
  config.rank = std::atoi(argv[1]);
  config.nranks = f_ranks;
  config.rendezvous = argv[2];
  if (ncclxrtCommInit(&config, &comm) != ncclxrtSuccess)
    return 2;
  ncclxrtPlan_t plan;
  ncclxrtResult_t result = f_prepare(comm, &plan);
  std::printf("rank %s: %s: %s\n", argv[1], ncclxrtResultString(result),
              result == ncclxrtSuccess ? "" : ncclxrtGetLastError(comm));
  std::fflush(stdout);
  if (result == ncclxrtSuccess)
    f_destroy(plan);
  ncclxrtCommDestroy(comm);
  return result != ncclxrtSuccess;
}

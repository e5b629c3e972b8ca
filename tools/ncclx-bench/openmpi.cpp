//===- openmpi.cpp - The other side of ncclx-bench --against=openmpi -------===//
//
// Started by mpirun, one process a rank: plays the cells of the stage whose path is its argument.
//
//===----------------------------------------------------------------------===//
#include "Stage.h"

#include <cstring>
#include <mpi.h>
#include <vector>

using namespace ncclx_bench;

namespace {
struct OpenMPI {
  Cell cell{};
  int nranks = 1, rank = 0;
  float *from = nullptr, *to = nullptr;

  bool prepare(const Cell &c) {
    finish();
    cell = c;
    // Buffers as MPI would give them.
    int64_t in = inputCount(c, nranks), out = outputCount(c, nranks);
    return MPI_Alloc_mem(MPI_Aint(in * 4), MPI_INFO_NULL, &from) == MPI_SUCCESS &&
           MPI_Alloc_mem(MPI_Aint(out * 4), MPI_INFO_NULL, &to) == MPI_SUCCESS;
  }
  bool finish() {
    if (from)
      MPI_Free_mem(from);
    if (to)
      MPI_Free_mem(to);
    from = to = nullptr;
    return true;
  }
  float *input() { return from; }
  float *output() { return to; }
  bool meet() { return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS; }
  bool run() {
    auto n = int(cell.count);
    switch (cell.collective) {
    case AllReduce:
      return MPI_Allreduce(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS;
    case AllGather:
      return MPI_Allgather(from, n, MPI_FLOAT, to, n, MPI_FLOAT, MPI_COMM_WORLD) == MPI_SUCCESS;
    case ReduceScatter:
      return MPI_Reduce_scatter_block(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) ==
             MPI_SUCCESS;
    case Broadcast: // out of place, as everything: the root's output gets it, too
      if (rank == 0)
        std::memcpy(to, from, size_t(n) * sizeof(float));
      return MPI_Bcast(to, n, MPI_FLOAT, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
    default:
      return MPI_Alltoall(from, n, MPI_FLOAT, to, n, MPI_FLOAT, MPI_COMM_WORLD) == MPI_SUCCESS;
    }
  }
};
} // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  Stage *stage = argc > 1 ? Stage::open(argv[1]) : nullptr;
  if (!stage)
    return 1;
  OpenMPI library;
  MPI_Comm_rank(MPI_COMM_WORLD, &library.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &library.nranks);
  bool ok = library.nranks == stage->nranks && play(*stage, library, 1, library.rank);
  if (!ok)
    stage->fail();
  MPI_Finalize();
  return ok ? 0 : 1;
}

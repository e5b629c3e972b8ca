// Kernels that move bytes, and the argument blocks of all kernels, for NCCLX_RANKS ranks.
#include "table.cuh"

namespace bench {
template <> const void *movementOf<NCCLX_RANKS>(Coll coll, Algo algo, bool aligned) {
  return movement<NCCLX_RANKS>(coll, algo, aligned);
}
template void *argumentsOf<NCCLX_RANKS>(const Rank &, const Call &, const Config &);
template void *chunkArgumentsOf<NCCLX_RANKS>(const Rank &, const Call &, const Config &);
} // namespace bench

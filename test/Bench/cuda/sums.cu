// Every kernel that sums, for NCCLX_RANKS ranks and elements NCCLX_TYPE (Dtype::NCCLX_DTYPE).
#include "table.cuh"

namespace bench {
template <> const void *sumOf<NCCLX_RANKS, Dtype::NCCLX_DTYPE>(Coll coll, Algo algo, bool aligned) {
  return reduction<NCCLX_RANKS, NCCLX_TYPE, ReduceOp::Sum>(coll, algo, aligned);
}
} // namespace bench

// Every operation on NCCLX_TYPE (Dtype::NCCLX_DTYPE), for its bits: two kernels of 2 ranks.
#include "table.cuh"

namespace bench {
template <ReduceOp Op> static const void *kernel(Algo algo) {
  return algo == Algo::Direct ? (const void *)directAllReduce<2, NCCLX_TYPE, Op>
         : algo == Algo::Packet128
             ? (const void *)packetOneShot<2, Packet128, false, NCCLX_TYPE, Op>
             : nullptr;
}
template <> const void *everyOpOf<Dtype::NCCLX_DTYPE>(Algo algo, ReduceOp op) {
  switch (op) {
  case ReduceOp::Sum:
    return kernel<ReduceOp::Sum>(algo);
  case ReduceOp::Prod:
    return kernel<ReduceOp::Prod>(algo);
  case ReduceOp::Min:
    return kernel<ReduceOp::Min>(algo);
  case ReduceOp::Max:
    return kernel<ReduceOp::Max>(algo);
  case ReduceOp::Avg:
    return kernel<ReduceOp::Avg>(algo);
  case ReduceOp::ScaledSum:
    return kernel<ReduceOp::ScaledSum>(algo);
  }
  return nullptr;
}
} // namespace bench

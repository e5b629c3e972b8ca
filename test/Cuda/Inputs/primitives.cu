// One kernel for each function that speaks of the memory model.
#include "ncclxrt/device/bulk.cuh"
#include "ncclxrt/device/packet.cuh"
#include "ncclxrt/device/serve.cuh"
using namespace ncclxrt::device;
extern "C" {
__global__ void load_acquire_sys(const uint64_t *p, uint64_t *o) {
  *o = loadAcquire<Scope::System>(p);
}
__global__ void load_acquire_gpu(const uint64_t *p, uint64_t *o) {
  *o = loadAcquire<Scope::Device>(p);
}
__global__ void load_acquire_sys_32(const uint32_t *p, uint32_t *o) {
  *o = loadAcquire<Scope::System>(p);
}
__global__ void store_release_sys(uint64_t *p) { storeRelease<Scope::System>(p, 1); }
__global__ void store_release_gpu(uint64_t *p) { storeRelease<Scope::Device>(p, 1); }
__global__ void add_release_sys(uint32_t *p) { addRelease<Scope::System>(p, 1); }
__global__ void add_release_gpu(uint32_t *p) { addRelease<Scope::Device>(p, 1); }
__global__ void load_acquire_gpu_32(const uint32_t *p, uint32_t *o) {
  *o = loadAcquire<Scope::Device>(p);
}
__global__ void add_release_sys_64(uint64_t *p) { addRelease<Scope::System>(p, uint64_t(1)); }
__global__ void add_release_gpu_64(uint64_t *p) { addRelease<Scope::Device>(p, uint64_t(1)); }
__global__ void fence_sys() { fence<Scope::System>(); }
__global__ void fence_gpu() { fence<Scope::Device>(); }
__global__ void load_unit(const Unit *p, Unit *o) { *o = loadUnit(p); }
__global__ void store_unit(Unit *p) { storeUnit(p, Unit{1, 2}); }
__global__ void await_earlier() { awaitEarlierKernels(); }
__global__ void release_later() { releaseLaterKernels(); }
__global__ void now_ns(uint64_t *o) { *o = nowNs(); }
__global__ void signal_block(uint64_t *p) {
  signalFromBlock(1, 7, [&](int) { return p; });
}
__global__ void first_signal_block(uint64_t *p) {
  firstSignalFromBlock(1, 7, [&](int) { return p; });
}
__global__ void wait_block(uint64_t *p, Guard g, uint64_t *o) {
  waitInBlock(1, 7, g, 0, [&](int) { return p; });
  *o = *p;
}
__global__ void raise_block(uint64_t *p) { raiseFromBlock(p); }
__global__ void wait_stream(uint32_t *p, Guard g) { waitStreamSlot(p, 7, g, 0, 0); }
__global__ void end_of_run(uint64_t *words) { Epoch(words).end(); }
__global__ void send_packets(char *to, const char *from, int64_t n, Guard g) {
  sendPackets<Packet128, true>(
      1, [&](int) { return to; }, from, packetSpan<Packet128>(n), PacketRun{1, g, 0});
}
__global__ void receive_packets(char *to, const char *from, int64_t n, Guard g) {
  receivePackets<Packet16, false>(to, from, packetSpan<Packet16>(n), PacketRun{1, g, 0}, 0);
}
__global__ void copy_bytes(char *to, const char *from, int64_t n) {
  copyBytes(gridWorkers(), 1, [&](int) { return to; }, from, n);
}
__global__ void read_size(int64_t *to, const char *at, Guard g) {
  to[threadIdx.x] = readSize(at, 8, 5, g.control, 0);
}
__global__ void copy_sized(char *to, const char *from, int64_t n, int64_t whole) {
  copySized(blockIdx.x, gridDim.x, to, from, n, whole);
}
__global__ void reduce_bf16(char *to, const char *a, const char *b, int64_t n, ReduceArgs args) {
  reduceBytes<__nv_bfloat16, ReduceOp::Sum, 2>(
      blockWorkers(), 1, [&](int) { return to; }, [&](int s) { return s ? b : a; }, n, args);
}
__global__ void avg_i8(uint64_t *p, ReduceArgs args) {
  Accumulator<int8_t, ReduceOp::Avg> sum;
  sum.begin(p[0], args);
  p[0] = sum.end(args);
}
__global__ void serve_f16(const __grid_constant__ ReduceJob job) {
  serveReduce<__half, ReduceOp::Sum>(job);
}
__global__ void min_f32(float a, float b, float *o) { *o = combine<ReduceOp::Min>(a, b); }
__global__ void scaled(float a, float b, float *o) {
  *o = combine<ReduceOp::Sum>(combine<ReduceOp::Prod>(a, 3.f), b);
}
__global__ void copy_bulk(char *to, const char *from, int64_t n) {
  copyBulk(1, [&](int) { return to; }, from, n);
}
}

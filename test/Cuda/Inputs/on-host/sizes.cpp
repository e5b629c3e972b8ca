//===- sizes.cpp - A kernel of all_to_all_v by sizes, on threads of the host ----------------===//
//
// KERNEL is what ncclx-compile prints of a function f(rows, sizes of i32) -> rows for BLOCKS
// blocks, ROWS the rows of a block. Ranks, blocks and threads are threads; each run has other
// sizes, and a block is late at random. Every byte is compared. In the last run rank 1 has a row
// too many.
//
//===----------------------------------------------------------------------===//
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

struct uint4 {
  uint32_t x, y, z, w;
};
struct Place {
  unsigned x;
};
static thread_local Place blockIdx, threadIdx, blockDim, gridDim;
static thread_local std::barrier<> *ofBlock;
static thread_local std::minstd_rand delays;
static void __syncthreads() {
  if (delays() % 40 == 0)
    usleep(delays() % 200);
  ofBlock->arrive_and_wait();
}
static uint32_t atomicCAS_system(uint32_t *p, uint32_t expected, uint32_t v) {
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
static uint32_t atomicExch_system(uint32_t *p, uint32_t v) {
  return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL);
}
static void __threadfence_system() {}
#define __global__
#define __device__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(threads)
#include KERNEL

constexpr size_t ranks = sizeof(Arguments::windows[0]) / sizeof(char *),
                 windows = sizeof(Arguments::windows) / sizeof(char *) / ranks,
                 slots = sizeof(Arguments::slots) / sizeof(char *) / ranks;
constexpr unsigned threads = 32, blocks = BLOCKS;
constexpr int64_t block = windowBytes[0] / int64_t(ranks), unit = block / ROWS;
constexpr int runs = 9;

int main() {
  // Rows, sizes, what comes, and what sizes are told to.
  std::vector<char> memory[windows][ranks];
  std::vector<uint64_t> counters[slots][ranks], epochs[ranks];
  Control controls[ranks] = {};
  for (size_t r = 0; r < ranks; ++r) {
    for (size_t w = 0; w < windows; ++w)
      memory[w][r].resize(size_t(windowBytes[w] * windowGenerations[w]));
    for (size_t s = 0; s < slots; ++s)
      counters[s][r].resize(size_t(slotCounts[s] * slotGenerations[s]));
    epochs[r].resize(blocks);
  }
  std::mt19937 random(1);
  int64_t different = 0;
  for (int run = 0; run <= runs; ++run) {
    int32_t rows[ranks][ranks];
    for (size_t r = 0; r < ranks; ++r) {
      for (int32_t &n : rows[r]) // also none and all
        n = int32_t(run % 3 ? random() % (ROWS + 1) : random() % 2 * ROWS);
      if (run == runs && r == 1)
        rows[r][0] = ROWS + 1;
      std::memcpy(memory[1][r].data(), rows[r], sizeof rows[r]);
      for (char &byte : memory[0][r])
        byte = char(random() | 1);
      std::fill(memory[2][r].begin(), memory[2][r].end(), 0x77);
    }
    std::vector<std::thread> all;
    std::vector<std::unique_ptr<std::barrier<>>> barriers;
    for (size_t r = 0; r < ranks; ++r) {
      Arguments a{};
      for (size_t p = 0; p < ranks; ++p) {
        for (size_t w = 0; w < windows; ++w)
          a.windows[w][p] = memory[w][p].data();
        for (size_t s = 0; s < slots; ++s)
          a.slots[s][p] = counters[s][p].data();
      }
      a.epochs = epochs[r].data();
      a.guard = {&controls[r], 60'000'000'000};
      a.rank = int64_t(r);
      a.sizes = 70;
      for (unsigned b = 0; b < blocks; ++b) {
        barriers.push_back(std::make_unique<std::barrier<>>(threads));
        for (unsigned t = 0; t < threads; ++t)
          all.emplace_back([=, barrier = barriers.back().get()] {
            blockIdx.x = b, threadIdx.x = t, blockDim.x = threads, gridDim.x = blocks;
            ofBlock = barrier;
            delays.seed(unsigned(run * 1009 + int(r) * 101) + b * threads + t);
            f_kernel(a);
          });
      }
    }
    for (std::thread &thread : all)
      thread.join();
    for (size_t r = 0; r < ranks && run < runs; ++r)
      for (size_t p = 0; p < ranks; ++p)
        for (int64_t i = 0; i < block; ++i) {
          char came = memory[2][r][size_t(int64_t(p) * block + i)];
          different +=
              came != (i < rows[p][r] * unit ? memory[0][p][size_t(int64_t(r) * block + i)] : 0);
        }
  }
  std::printf("%zu ranks, %u blocks, %d runs: %lld bytes differ\n", ranks, blocks, runs,
              static_cast<long long>(different));
  for (size_t r = 0; r < ranks; ++r)
    if (controls[r].failed == 2 && controls[r].failure.kind == sizeOutOfRange)
      std::printf("rank %zu: size %u is %lld of %lld\n", r, controls[r].failure.step - 70,
                  static_cast<long long>(controls[r].failure.found),
                  static_cast<long long>(controls[r].failure.expected));
  return different != 0;
}

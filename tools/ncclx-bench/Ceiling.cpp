//===- Ceiling.cpp - What copy engines carry between GPUs -------------------===//
#include "Ceiling.h"

#include "Bench.h"

#include "ncclxrt/cuda.h"

#include <barrier>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

using namespace ncclx_bench;

namespace {

/// Ranks as threads of this process.
struct Ranks {
  explicit Ranks(int count) : all(count), pieces(size_t(count)), taken(size_t(count)) {}
  std::barrier<> all;
  std::vector<const void *> pieces;
  std::vector<double> taken;
  std::mutex lock;
  std::string why;

  bool good() {
    std::lock_guard<std::mutex> hold(lock);
    return why.empty();
  }
  void fail(std::string text) {
    std::lock_guard<std::mutex> hold(lock);
    if (why.empty())
      why = std::move(text);
  }
};

struct Rank {
  Ranks &ranks;
  int me;
  ncclxrtCudaComm_t comm = nullptr;
  void *stream = nullptr;
  std::vector<void *> send = {}, receive = {}; // of each rank, as this GPU sees them

  static int32_t allgather(void *context, const void *mine, size_t bytes, void *to) {
    Rank &rank = *static_cast<Rank *>(context);
    Ranks &ranks = rank.ranks;
    ranks.pieces[size_t(rank.me)] = mine;
    ranks.all.arrive_and_wait();
    for (size_t r = 0; r < ranks.pieces.size(); ++r)
      std::memcpy(static_cast<char *>(to) + r * bytes, ranks.pieces[r], bytes);
    ranks.all.arrive_and_wait();
    return 0;
  }
  bool check(ncclxrtResult_t result) {
    if (result != ncclxrtSuccess)
      ranks.fail(ncclxrtCudaLastError(comm));
    return result == ncclxrtSuccess;
  }
  /// Errors of these are those of all ranks.
  bool open(const std::string &driver, size_t bytes) {
    size_t count = ranks.pieces.size();
    send.resize(count), receive.resize(count);
    ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
    config.rank = config.device = me;
    config.nranks = int32_t(count);
    config.allgather = allgather;
    config.context = this;
    config.driver = driver.empty() ? nullptr : driver.c_str();
    return check(ncclxrtCudaInit(&config, &comm)) &&
           check(ncclxrtCudaWindow(comm, nullptr, bytes, send.data())) &&
           check(ncclxrtCudaWindow(comm, nullptr, bytes, receive.data()));
  }
  /// The median of several batches; each rank comes to every meeting, whatever has failed.
  double time(size_t bytes, bool sends) {
    constexpr int copies = 4, rounds = 5;
    std::vector<double> seconds;
    for (int round = 0; round <= rounds; ++round) { // the first one warms up
      ranks.all.arrive_and_wait();
      auto start = std::chrono::steady_clock::now();
      size_t to = size_t(me + 1) % receive.size();
      for (int i = 0; sends && ranks.good() && i < copies; ++i)
        check(ncclxrtCudaCopy(comm, stream, receive[to], send[size_t(me)], bytes));
      if (ranks.good())
        check(ncclxrtCudaSynchronize(comm, stream));
      std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      ranks.taken[size_t(me)] = spent.count() / copies;
      ranks.all.arrive_and_wait();
      if (round > 0)
        seconds.push_back(*std::max_element(ranks.taken.begin(), ranks.taken.end()));
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
};

} // namespace

std::optional<Ceiling> ncclx_bench::measureCeiling(const std::string &driver, int nranks,
                                                   int64_t bytes, std::string &why) {
  Ranks ranks(nranks);
  Ceiling ceiling;
  auto play = [&](int me) {
    Rank rank{ranks, me};
    if (rank.open(driver, size_t(bytes))) {
      rank.check(ncclxrtCudaStream(rank.comm, &rank.stream));
      double all = rank.time(size_t(bytes), true), one = rank.time(size_t(bytes), me == 0);
      if (me == 0)
        ceiling = {double(bytes) / all, double(bytes) / one};
      ranks.all.arrive_and_wait(); // nobody frees what another copies to
    }
    (void)ncclxrtCudaDestroy(rank.comm);
  };
  std::vector<std::thread> threads;
  for (int me = 0; me < nranks; ++me)
    threads.emplace_back(play, me);
  for (std::thread &thread : threads)
    thread.join();
  why = ranks.why;
  return why.empty() ? std::optional<Ceiling>(ceiling) : std::nullopt;
}

double ncclx_bench::wireSeconds(const Ceiling &ceiling, int collective, int nranks, double bytes) {
  if (nranks < 2)
    return 0;
  if (collective == Broadcast)
    return bytes / ceiling.one;
  if (collective == Permute)
    return bytes / ceiling.all;
  return bytes * busFactor(collective, nranks) / ceiling.all;
}

//===- Measure.cpp - What this machine's cores, memory and sockets do -------===//
#include "Measure.h"

#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cstring>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace mlir::ncclx;

static double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

/// Copied bytes/s of `threads` threads together, each over a buffer that no cache holds.
double topology::copyRate(unsigned threads) {
  constexpr size_t bytes = size_t(32) << 20;
  auto total = std::chrono::steady_clock::duration::zero();
  constexpr unsigned rounds = 3;
  std::vector<std::vector<char>> from(threads), to(threads);
  for (unsigned t = 0; t < threads; ++t) {
    from[t].assign(bytes, char(t));
    to[t].assign(bytes, 0);
  }
  double best = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<std::thread> workers;
    auto start = std::chrono::steady_clock::now();
    for (unsigned t = 0; t < threads; ++t)
      workers.emplace_back([&, t] { std::memcpy(to[t].data(), from[t].data(), bytes); });
    for (std::thread &worker : workers)
      worker.join();
    total = std::chrono::steady_clock::now() - start;
    best = std::max(best, double(bytes) * threads / std::max(seconds(total), 1e-9));
  }
  return best;
}

/// FLOP/s of one core that multiplies and adds f32 vectors from its first-level cache, as plain
/// compiled C++ does it. Not the core's peak.
double topology::multiplyRate() {
  constexpr size_t length = 2048;
  constexpr unsigned rounds = 4000;
  std::vector<float> a(length, 1.0f), b(length, 0.5f);
  auto start = std::chrono::steady_clock::now();
  for (unsigned round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < length; ++i)
      a[i] = a[i] * 0.5f + b[i];
    asm volatile("" : : "r"(a.data()) : "memory"); // each round counts
  }
  return 2.0 * length * rounds / std::max(seconds(std::chrono::steady_clock::now() - start), 1e-9);
}

//===--- sockets ----------------------------------------------------------------------------===//

namespace {
/// Two ends of a connection of this machine with itself. Nothing on them waits longer than a
/// second.
struct Connection {
  int ends[2] = {-1, -1};

  Connection() {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto *any = reinterpret_cast<sockaddr *>(&address);
    if (listener >= 0 && bind(listener, any, size) == 0 && listen(listener, 1) == 0 &&
        getsockname(listener, any, &size) == 0) {
      ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (ends[0] >= 0 && connect(ends[0], any, size) == 0)
        ends[1] = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    }
    if (listener >= 0)
      close(listener);
    timeval second{1, 0};
    int on = 1;
    for (int end : ends) {
      setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
      setsockopt(end, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
      setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
  }
  ~Connection() {
    for (int end : ends)
      if (end >= 0)
        close(end);
  }
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  bool send(int end, const std::vector<char> &data) const {
    for (size_t done = 0; done < data.size();) {
      ssize_t sent = ::send(ends[end], data.data() + done, data.size() - done, MSG_NOSIGNAL);
      if (sent <= 0)
        return false;
      done += size_t(sent);
    }
    return true;
  }
  bool receive(int end, std::vector<char> &data) const {
    return recv(ends[end], data.data(), data.size(), MSG_WAITALL) == ssize_t(data.size());
  }
};
} // namespace

std::optional<topology::LoopbackRates> topology::loopbackRates() {
  constexpr int trips = 200, blocks = 64;
  constexpr size_t message = 64, block = size_t(1) << 20;
  Connection connection;
  if (connection.ends[1] < 0)
    return std::nullopt;
  std::thread other([&] {
    std::vector<char> small(message), large(block);
    bool good = true;
    for (int i = 0; i < trips && good; ++i)
      good = connection.receive(1, small) && connection.send(1, small);
    for (int i = 0; i < blocks && good; ++i)
      good = connection.receive(1, large);
    if (good)
      connection.send(1, small);
  });
  std::vector<char> small(message), large(block);
  std::vector<double> times;
  bool good = true;
  auto now = [] { return std::chrono::steady_clock::now(); };
  for (int i = 0; i < trips && good; ++i) {
    auto start = now();
    good = connection.send(0, small) && connection.receive(0, small);
    times.push_back(seconds(now() - start));
  }
  auto start = now();
  for (int i = 0; i < blocks && good; ++i)
    good = connection.send(0, large);
  good = good && connection.receive(0, small);
  double all = seconds(now() - start);
  other.join();
  if (!good)
    return std::nullopt;
  std::nth_element(times.begin(), times.begin() + trips / 2, times.end());
  return LoopbackRates{double(block) * blocks / std::max(all, 1e-9), times[trips / 2] / 2};
}

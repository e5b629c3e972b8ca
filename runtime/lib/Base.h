//===- Base.h - Status, time, file descriptors ------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_BASE_H
#define NCCLXRT_LIB_BASE_H

#include "ncclxrt/abi.h"

#include <cstdint>
#include <ctime>
#include <fmt/format.h>
#include <string>
#include <unistd.h>
#include <utility>

namespace ncclxrt {

/// A result and, for a failure, the sentence that explains it.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(ncclxrtResult_t code, std::string text) : result(code), sentence(std::move(text)) {}
  bool ok() const { return result == ncclxrtSuccess; }
  ncclxrtResult_t code() const { return result; }
  const std::string &text() const { return sentence; }

private:
  ncclxrtResult_t result = ncclxrtSuccess;
  std::string sentence;
};

template <typename... Args>
Status error(ncclxrtResult_t code, fmt::format_string<Args...> format, Args &&...args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

/// "call failed: reason" for the current errno.
Status systemError(const std::string &call);

/// CLOCK_MONOTONIC: the one clock that all processes of a machine share.
inline int64_t nowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}
constexpr int64_t nsPerMs = 1'000'000;

/// Owns a file descriptor.
class Fd {
public:
  Fd() = default;
  explicit Fd(int value) : fd(value) {}
  Fd(Fd &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Fd &operator=(Fd &&other) noexcept {
    if (this != &other) {
      reset();
      fd = std::exchange(other.fd, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }
  void reset() {
    if (fd >= 0)
      ::close(fd);
    fd = -1;
  }
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }

private:
  int fd = -1;
};

} // namespace ncclxrt

#endif // NCCLXRT_LIB_BASE_H

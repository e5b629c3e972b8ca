//===- Socket.cpp - IPv4 stream sockets -----------------------------------===//
#include "Socket.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <climits>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

using namespace ncclxrt;

Status ncclxrt::systemError(const std::string &call) {
  int code = errno;
  char buffer[128];
  return error(ncclxrtSystemError, "{} failed: {}", call, strerror_r(code, buffer, sizeof(buffer)));
}

static sockaddr_in toSockaddr(const Address &address) {
  sockaddr_in s{};
  s.sin_family = AF_INET;
  s.sin_addr.s_addr = address.ip;
  s.sin_port = htons(address.port);
  return s;
}

static int64_t pollMs(int64_t deadlineNs) {
  int64_t left = (deadlineNs - nowNs() + nsPerMs - 1) / nsPerMs;
  return std::clamp<int64_t>(left, 0, INT_MAX);
}

Status Address::parse(const std::string &text, Address &address) {
  size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  bool digits = !port.empty() && port.size() <= 5 &&
                std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (host.empty() || !digits || std::stoi(port) > 65535)
    return error(ncclxrtInvalidArgument, "expected an address host:port, found '{}'", text);
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (int code = getaddrinfo(host.c_str(), nullptr, &hints, &found))
    return error(ncclxrtInvalidArgument, "cannot resolve host '{}' to an IPv4 address: {}", host,
                 gai_strerror(code));
  address.ip = reinterpret_cast<sockaddr_in *>(found->ai_addr)->sin_addr.s_addr;
  address.port = uint16_t(std::stoi(port));
  freeaddrinfo(found);
  return {};
}

std::string Address::str() const {
  char buffer[INET_ADDRSTRLEN] = "?";
  in_addr in{ip};
  inet_ntop(AF_INET, &in, buffer, sizeof(buffer));
  return fmt::format("{}:{}", buffer, port);
}

Address ncclxrt::localAddress(int fd) {
  sockaddr_in s{};
  socklen_t size = sizeof(s);
  getsockname(fd, reinterpret_cast<sockaddr *>(&s), &size);
  return {s.sin_addr.s_addr, ntohs(s.sin_port)};
}

Status ncclxrt::listenOn(Address &address, Fd &fd) {
  Fd s(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!s)
    return systemError("socket");
  // The port of a job that has just ended may be taken again at once.
  int one = 1;
  setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  sockaddr_in a = toSockaddr(address);
  if (bind(s.get(), reinterpret_cast<sockaddr *>(&a), sizeof(a)))
    return systemError(fmt::format("bind to {}", address.str()));
  if (listen(s.get(), SOMAXCONN))
    return systemError(fmt::format("listen on {}", address.str()));
  address = localAddress(s.get());
  fd = std::move(s);
  return {};
}

static void setNoDelay(int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

bool ncclxrt::pollFor(int fd, short events, int64_t deadlineNs) {
  for (;;) {
    pollfd p{fd, events, 0};
    int n = poll(&p, 1, int(pollMs(deadlineNs)));
    if (n > 0)
      return true;
    if (n == 0 || errno != EINTR)
      return false;
  }
}

Status ncclxrt::connectTo(const Address &address, int64_t deadlineNs, Fd &fd) {
  Fd s(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!s)
    return systemError("socket");
  sockaddr_in a = toSockaddr(address);
  if (connect(s.get(), reinterpret_cast<sockaddr *>(&a), sizeof(a))) {
    if (errno != EINPROGRESS)
      return systemError(fmt::format("connect to {}", address.str()));
    if (!pollFor(s.get(), POLLOUT, deadlineNs))
      return error(ncclxrtTimeout, "no answer from {}", address.str());
    int code = 0;
    socklen_t size = sizeof(code);
    getsockopt(s.get(), SOL_SOCKET, SO_ERROR, &code, &size);
    if (code) {
      errno = code;
      return systemError(fmt::format("connect to {}", address.str()));
    }
  }
  // A port of the ephemeral range that nobody listens on can connect to itself.
  Address local = localAddress(s.get());
  if (local.port == address.port && local.ip == address.ip) {
    errno = ECONNREFUSED;
    return systemError(fmt::format("connect to {}", address.str()));
  }
  setNoDelay(s.get());
  fd = std::move(s);
  return {};
}

Fd ncclxrt::acceptFrom(int listener) {
  Fd s(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (s)
    setNoDelay(s.get());
  return s;
}

bool MessageStream::send(const std::string &message) {
  uint32_t size = uint32_t(message.size());
  out.append(reinterpret_cast<const char *>(&size), sizeof(size));
  out.append(message);
  return flush();
}

bool MessageStream::flush() {
  size_t sent = 0;
  while (sent < out.size() && !bad) {
    ssize_t n = ::send(fd(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
      sent += size_t(n);
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      break;
    else if (errno != EINTR)
      bad = true;
  }
  out.erase(0, sent);
  return !bad;
}

bool MessageStream::receive() {
  char buffer[16384];
  for (;;) {
    ssize_t n = recv(fd(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n > 0)
      in.append(buffer, size_t(n));
    else if (n < 0 && errno == EINTR)
      continue;
    else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return true;
    else
      return false;
  }
}

bool MessageStream::next(std::string &message) {
  constexpr uint32_t maxMessage = 256u << 20; // a stray client must not make us hoard memory
  uint32_t size;
  if (in.size() < sizeof(size))
    return false;
  std::memcpy(&size, in.data(), sizeof(size));
  if (size > maxMessage) {
    bad = true;
    return false;
  }
  if (in.size() - sizeof(size) < size)
    return false;
  message.assign(in, sizeof(size), size);
  in.erase(0, sizeof(size) + size);
  return true;
}

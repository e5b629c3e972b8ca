//===- Socket.h - IPv4 stream sockets ---------------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_SOCKET_H
#define NCCLXRT_LIB_SOCKET_H

#include "Base.h"

namespace ncclxrt {

/// Splits "host:port" and resolves it to an IPv4 address.
struct Address {
  uint32_t ip = 0;   // network order
  uint16_t port = 0; // host order
  static Status parse(const std::string &text, Address &address);
  std::string str() const;
};

/// A non-blocking listening socket; port 0 picks one. `address` becomes what it is bound to.
Status listenOn(Address &address, Fd &fd);

/// One attempt to connect, waiting at most until `deadlineNs`. The socket is non-blocking.
Status connectTo(const Address &address, int64_t deadlineNs, Fd &fd);

/// Accepts one connection if one is there; an empty fd otherwise.
Fd acceptFrom(int listener);

/// This end's address of a connected socket.
Address localAddress(int fd);

/// Polls one descriptor; false when nothing came in time.
bool pollFor(int fd, short events, int64_t deadlineNs);

/// The messages of a control connection: a length, then the bytes. Non-blocking at both ends.
class MessageStream {
public:
  explicit MessageStream(Fd socket) : socket(std::move(socket)) {}
  int fd() const { return socket.get(); }
  /// Queues a message and sends what the socket takes; false when the connection is broken.
  bool send(const std::string &message);
  bool flush();
  bool wantsWrite() const { return !out.empty(); }
  /// Reads what is there; false when the connection ended. Take the messages out first.
  bool receive();
  /// The next whole message; false when there is none. A message of absurd size breaks the stream.
  bool next(std::string &message);
  bool broken() const { return bad; }

private:
  Fd socket;
  std::string in, out;
  bool bad = false;
};

} // namespace ncclxrt

#endif // NCCLXRT_LIB_SOCKET_H

//===- TcpTransport.cpp - Ranks that exchange frames ----------------------===//
//
// One connection for each pair of ranks. A put is a frame: where its bytes go, which slot to raise
// after them, the bytes. The caller queues it and sends what the socket takes; a progress thread
// sends the rest, and reads what comes straight to its place, so that two ranks that both send much
// cannot block each other. Bytes taken by the socket are local completion; a put that must have
// landed (on a lane that is not nic) asks for an acknowledgement and waits for it.
//
//===----------------------------------------------------------------------===//
#include "Comm.h"
#include "Wire.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <poll.h>
#include <random>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

using namespace ncclxrt;

namespace {

struct Frame {
  enum Kind : uint32_t { Data = 1, DataAck, Ack };
  uint32_t kind;
  uint32_t unused;
  int64_t plan;
  int64_t slot; // to raise, or -1; of an Ack: how many puts have landed
  Range target;
};

struct MeshHello {
  uint64_t magic, nonce;
  int64_t rank;
};
constexpr uint64_t meshMagic = 0x3168736d7863636e;

struct Entry {
  Frame frame;
  size_t headerSent;
  Cursor source;
  LaneProgress *lane;
  int64_t *endNs;
};

struct Peer {
  static constexpr size_t queueSize = 128;
  static constexpr size_t bufferSize = 64 << 10;
  static constexpr int64_t smallRow = 2048; // below it rows are packed, not sent piece by piece

  int rank = -1;
  Fd socket;
  std::atomic<bool> closed{false}; // nothing more comes
  int64_t closedNs = 0;

  std::mutex mutex; // of the send side
  std::vector<Entry> queue{queueSize};
  std::atomic<uint64_t> head{0}, tail{0};
  Entry ack{};
  Entry *current = nullptr;
  int64_t acksOwed = 0;
  bool watchesWrite = false, broken = false;
  std::vector<std::byte> packed{bufferSize};
  size_t packedAt = 0, packedEnd = 0;

  int64_t acksWanted = 0; // calling thread
  std::atomic<int64_t> acked{0};

  // The receive side: progress thread only.
  std::vector<std::byte> input{bufferSize};
  size_t inputAt = 0, inputEnd = 0;
  Frame frame{};
  bool inPayload = false;
  int64_t payloadLeft = 0;
  Cursor target;
  std::shared_ptr<Segment> segment; // null: the payload is dropped
};

class TcpTransport : public Transport {
public:
  explicit TcpTransport(Comm &comm) : comm(comm), peers(size_t(comm.nranks())) {}
  ~TcpTransport() override { close(); }
  const char *name() const override { return "tcp"; }

  Status open(uint32_t ip, std::string &contact) override;
  Status connect(const std::vector<std::string> &contacts) override;
  std::string offer(int64_t plan, const std::shared_ptr<Segment> &segment) override;
  Status attach(int64_t, int64_t, const std::vector<std::string> &offers,
                std::vector<std::shared_ptr<Segment>> &mapped) override {
    mapped.resize(offers.size()); // no peer's memory is in reach
    return {};
  }
  void forget(int64_t plan) override;
  Status put(const Put &put) override;
  Status raise(int64_t plan, int peer, int64_t slot) override;
  Status complete(LaneProgress &lane) override;
  Status drain() override;
  void wake() override;
  void close() override;

private:
  Status acceptPeers(std::vector<bool> &there, uint64_t nonce, int64_t deadline);
  Status push(Peer &peer, const Entry &entry);
  template <typename Done> Status await(const char *what, Done done);

  void flush(Peer &peer); // with the peer's lock
  void finish(Peer &peer);
  void watch(Peer &peer, bool write);
  void progress();
  void receive(Peer &peer);
  bool fill(Peer &peer);
  bool consume(Peer &peer);
  bool begin(Peer &peer);
  void landed(Peer &peer);
  std::shared_ptr<Segment> find(int64_t plan);

  Comm &comm;
  std::vector<Peer> peers;
  Fd listener, epoll, wakeup;
  std::thread thread;
  std::atomic<bool> stopping{false}, draining{false};
  std::atomic<int64_t> outstanding{0};
  Doorbell bell;
  std::mutex plansMutex;
  std::map<int64_t, std::shared_ptr<Segment>> plans;
};

//===- Connections --------------------------------------------------------===//

Status TcpTransport::open(uint32_t ip, std::string &contact) {
  wakeup = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Address address{ip, 0};
  if (Status s = listenOn(address, listener); !s.ok())
    return s;
  std::random_device random;
  uint64_t nonce = uint64_t(random()) << 32 | random();
  contact = Writer().put(address.ip).put(address.port).put(nonce).take();
  return {};
}

Status TcpTransport::connect(const std::vector<std::string> &contacts) {
  int64_t deadline = nowNs() + comm.timeoutNs();
  uint64_t nonce = 0;
  std::vector<bool> there(contacts.size());
  there[comm.rank()] = true;
  for (int r = 0; r < comm.nranks(); ++r) {
    Reader reader(contacts[r]);
    Address address;
    address.ip = reader.get<uint32_t>();
    address.port = reader.get<uint16_t>();
    auto theirs = reader.get<uint64_t>();
    if (r == 0)
      nonce = theirs; // rank 0's names the job's mesh
    if (r >= comm.rank())
      continue;
    if (Status s = connectTo(address, deadline, peers[r].socket); !s.ok())
      return error(ncclxrtPeerFailed, "rank {}: no connection to rank {}: {}", comm.rank(), r,
                   s.text());
    MeshHello hello{meshMagic, nonce, comm.rank()};
    if (send(peers[r].socket.get(), &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
      return systemError(fmt::format("rank {}: greeting rank {}", comm.rank(), r));
    there[r] = true;
  }
  if (Status s = acceptPeers(there, nonce, deadline); !s.ok())
    return s;
  listener.reset();
  epoll = Fd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{EPOLLIN, {.ptr = nullptr}};
  if (!epoll || !wakeup || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wakeup.get(), &event))
    return systemError("epoll");
  for (int r = 0; r < comm.nranks(); ++r) {
    peers[r].rank = r;
    event.data.ptr = &peers[r];
    if (r != comm.rank() && epoll_ctl(epoll.get(), EPOLL_CTL_ADD, peers[r].socket.get(), &event))
      return systemError("epoll_ctl");
  }
  thread = std::thread([this] { progress(); });
  return {};
}

Status TcpTransport::acceptPeers(std::vector<bool> &there, uint64_t nonce, int64_t deadline) {
  while (!std::all_of(there.begin(), there.end(), [](bool b) { return b; })) {
    if (comm.failure() != ncclxrtSuccess)
      return comm.failureStatus();
    int64_t now = nowNs();
    if (now >= deadline) {
      std::string missing;
      for (size_t r = 0; r < there.size(); ++r)
        if (!there[r])
          missing += fmt::format("{}rank {}", missing.empty() ? "" : ", ", r);
      return error(ncclxrtTimeout, "rank {}: waited {} ms for connections; missing: {}",
                   comm.rank(), comm.timeoutNs() / nsPerMs, missing);
    }
    if (!pollFor(listener.get(), POLLIN, std::min(deadline, now + 20 * nsPerMs)))
      continue;
    Fd fd = acceptFrom(listener.get());
    MeshHello hello{};
    // A rank greets at once; whoever does not is a stranger.
    if (!fd || !pollFor(fd.get(), POLLIN, std::min(deadline, nowNs() + 1000 * nsPerMs)) ||
        recv(fd.get(), &hello, sizeof(hello), MSG_DONTWAIT) != sizeof(hello) ||
        hello.magic != meshMagic || hello.nonce != nonce || hello.rank <= comm.rank() ||
        hello.rank >= comm.nranks() || there[hello.rank])
      continue;
    peers[hello.rank].socket = std::move(fd);
    there[hello.rank] = true;
  }
  return {};
}

void TcpTransport::wake() {
  bell.ring();
  uint64_t one = 1;
  if (wakeup)
    (void)!write(wakeup.get(), &one, sizeof(one));
}

void TcpTransport::close() {
  stopping = true;
  wake();
  if (thread.joinable())
    thread.join();
  for (Peer &peer : peers)
    peer.socket.reset();
}

//===- Plans --------------------------------------------------------------===//

std::string TcpTransport::offer(int64_t plan, const std::shared_ptr<Segment> &segment) {
  std::lock_guard lock(plansMutex);
  plans[plan] = segment;
  return "";
}

std::shared_ptr<Segment> TcpTransport::find(int64_t plan) {
  std::lock_guard lock(plansMutex);
  auto it = plans.find(plan);
  return it == plans.end() ? nullptr : it->second;
}

void TcpTransport::forget(int64_t plan) {
  {
    std::lock_guard lock(plansMutex);
    plans.erase(plan);
  }
  // Puts of the plan that are still queued: the job has failed, and nobody sends them any more; a
  // flush that had begun ends first.
  if (comm.failure() != ncclxrtSuccess)
    for (Peer &peer : peers) {
      std::lock_guard lock(peer.mutex);
      peer.broken = true;
    }
}

//===- Sending ------------------------------------------------------------===//

template <typename Done> Status TcpTransport::await(const char *what, Done done) {
  bool met = bell.await([&] { return done() || comm.failure() != ncclxrtSuccess; },
                        nowNs() + comm.timeoutNs());
  if (comm.failure() != ncclxrtSuccess)
    return comm.failureStatus();
  if (met)
    return {};
  return error(ncclxrtTimeout, "waited {} ms for {}; {}", comm.timeoutNs() / nsPerMs, what,
               comm.describeOthers());
}

Status TcpTransport::push(Peer &peer, const Entry &entry) {
  auto hasRoom = [&] { return peer.tail - peer.head < Peer::queueSize; };
  if (!hasRoom())
    if (Status s = await("room in the queue of sends", hasRoom); !s.ok())
      return s;
  ++outstanding;
  std::lock_guard lock(peer.mutex);
  peer.queue[peer.tail % Peer::queueSize] = entry;
  ++peer.tail;
  flush(peer);
  return {};
}

Status TcpTransport::put(const Put &put) {
  Peer &peer = peers[put.peer];
  Range source = put.source.canonical();
  Entry entry{
      {put.lane ? Frame::Data : Frame::DataAck, 0, put.plan, put.slot, put.target.canonical()},
      0,
      Cursor(const_cast<std::byte *>(put.sourceBase), source),
      put.lane,
      put.endNs};
  if (put.lane) {
    ++put.lane->issued;
    return push(peer, entry);
  }
  int64_t wanted = ++peer.acksWanted;
  if (Status s = push(peer, entry); !s.ok())
    return s;
  return await("a put to land", [&] { return peer.acked >= wanted; });
}

Status TcpTransport::raise(int64_t plan, int peer, int64_t slot) {
  return push(peers[peer], {{Frame::Data, 0, plan, slot, {}}, 0, {}, nullptr, nullptr});
}

Status TcpTransport::complete(LaneProgress &lane) {
  auto done = [&] { return lane.completed.load(std::memory_order_acquire) == lane.issued; };
  return done() ? Status() : await("puts to be sent", done);
}

Status TcpTransport::drain() {
  draining = true;
  return await("sends to end", [&] { return outstanding == 0; });
}

void TcpTransport::watch(Peer &peer, bool write) {
  if (peer.watchesWrite == write || peer.closed)
    return;
  peer.watchesWrite = write;
  epoll_event event{uint32_t(EPOLLIN | (write ? EPOLLOUT : 0)), {.ptr = &peer}};
  epoll_ctl(epoll.get(), EPOLL_CTL_MOD, peer.socket.get(), &event);
}

void TcpTransport::finish(Peer &peer) {
  Entry &entry = *peer.current;
  peer.current = nullptr;
  if (&entry == &peer.ack)
    return;
  if (entry.endNs)
    __atomic_store_n(entry.endNs, nowNs(), __ATOMIC_RELAXED);
  if (entry.lane)
    entry.lane->completed.fetch_add(1, std::memory_order_release);
  ++peer.head;
  --outstanding;
  bell.ring();
}

void TcpTransport::flush(Peer &peer) {
  while (!peer.broken && comm.failure() == ncclxrtSuccess) {
    if (!peer.current) {
      if (peer.acksOwed) {
        peer.ack = {{Frame::Ack, 0, -1, peer.acksOwed, {}}, 0, {}, nullptr, nullptr};
        peer.acksOwed = 0;
        peer.current = &peer.ack;
      } else if (peer.head != peer.tail) {
        peer.current = &peer.queue[peer.head % Peer::queueSize];
      } else {
        return watch(peer, false);
      }
    }
    Entry &entry = *peer.current;
    if (peer.packedAt == peer.packedEnd && !entry.source.done() &&
        entry.source.contiguous() < Peer::smallRow) {
      peer.packedAt = peer.packedEnd = 0;
      while (!entry.source.done() && peer.packedEnd < Peer::bufferSize) {
        int64_t n = std::min<int64_t>(entry.source.contiguous(), Peer::bufferSize - peer.packedEnd);
        std::memcpy(peer.packed.data() + peer.packedEnd, entry.source.data(), size_t(n));
        entry.source.advance(n);
        peer.packedEnd += size_t(n);
      }
    }
    constexpr int maxPieces = 64;
    iovec pieces[maxPieces];
    int count = 0;
    if (entry.headerSent < sizeof(Frame))
      pieces[count++] = {reinterpret_cast<char *>(&entry.frame) + entry.headerSent,
                         sizeof(Frame) - entry.headerSent};
    if (peer.packedAt < peer.packedEnd)
      pieces[count++] = {peer.packed.data() + peer.packedAt, peer.packedEnd - peer.packedAt};
    else
      for (Cursor c = entry.source; !c.done() && count < maxPieces; c.advance(c.contiguous()))
        pieces[count++] = {c.data(), size_t(c.contiguous())};
    if (count == 0) {
      finish(peer);
      continue;
    }
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = size_t(count);
    ssize_t sent = sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR)
        continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK)
        return watch(peer, true);
      peer.broken = true; // the receive side sees the end and tells
      return;
    }
    size_t header = std::min(size_t(sent), sizeof(Frame) - entry.headerSent);
    entry.headerSent += header;
    sent -= ssize_t(header);
    if (peer.packedAt < peer.packedEnd)
      peer.packedAt += size_t(sent);
    else
      while (sent > 0) {
        int64_t n = std::min<int64_t>(sent, entry.source.contiguous());
        entry.source.advance(n);
        sent -= n;
      }
  }
}

//===- Receiving ----------------------------------------------------------===//

/// Reads into the input buffer, or straight to the payload's place where that is long enough. False
/// when nothing is there now, or never again.
bool TcpTransport::fill(Peer &peer) {
  // The beginning of a header that has not come whole moves to the front.
  size_t kept = peer.inputEnd - peer.inputAt;
  std::memmove(peer.input.data(), peer.input.data() + peer.inputAt, kept);
  peer.inputAt = 0;
  peer.inputEnd = kept;
  std::byte *to = peer.input.data() + kept;
  size_t room = Peer::bufferSize - kept;
  bool straight =
      peer.inPayload && peer.segment && peer.target.contiguous() >= int64_t(Peer::bufferSize / 4);
  if (straight) {
    to = peer.target.data();
    room = size_t(peer.target.contiguous());
  }
  ssize_t n = recv(peer.socket.get(), to, room, MSG_DONTWAIT);
  if (n <= 0) {
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
      return false;
    peer.closed = true;
    peer.closedNs = nowNs();
    epoll_ctl(epoll.get(), EPOLL_CTL_DEL, peer.socket.get(), nullptr);
    return false;
  }
  if (straight) {
    peer.target.advance(n);
    peer.payloadLeft -= n;
  } else {
    peer.inputEnd += size_t(n);
  }
  return true;
}

/// Takes a frame's beginning; false when the peer does not keep to the protocol.
bool TcpTransport::begin(Peer &peer) {
  const Frame &frame = peer.frame;
  if (frame.kind == Frame::Ack) {
    peer.acked += frame.slot;
    bell.ring();
    return true;
  }
  const Range &r = frame.target;
  int64_t end = 0, bytes = 0;
  if ((frame.kind != Frame::Data && frame.kind != Frame::DataAck) || r.rows < 0 || r.rowBytes < 0 ||
      r.stride < 0 || r.offset < 0 || __builtin_mul_overflow(r.rows, r.rowBytes, &bytes))
    return false;
  peer.segment = find(frame.plan); // null after the plan's end here
  if (peer.segment) {
    const Segment &s = *peer.segment;
    if (frame.slot < -1 || frame.slot >= (s.windowsAt() - Segment::slotsAt) / int64_t(sizeof(Slot)))
      return false;
    if (bytes && (r.offset < s.windowsAt() || r.offset > s.size() ||
                  __builtin_mul_overflow(r.rows - 1, r.stride, &end) ||
                  __builtin_add_overflow(end, r.rowBytes, &end) || end > s.size() - r.offset))
      return false;
    peer.target = bytes ? Cursor(s.base(), r) : Cursor();
  }
  peer.payloadLeft = bytes;
  peer.inPayload = true;
  return true;
}

void TcpTransport::landed(Peer &peer) {
  if (peer.segment && peer.frame.slot >= 0)
    peer.segment->raise(peer.frame.slot);
  peer.segment.reset();
  peer.inPayload = false;
  if (peer.frame.kind == Frame::DataAck) {
    std::lock_guard lock(peer.mutex);
    ++peer.acksOwed;
    flush(peer);
  }
}

/// Uses up the input buffer; false when the peer does not keep to the protocol.
bool TcpTransport::consume(Peer &peer) {
  for (;;) {
    size_t have = peer.inputEnd - peer.inputAt;
    if (peer.inPayload) {
      while (have && peer.payloadLeft) {
        int64_t n = std::min<int64_t>(int64_t(have), peer.payloadLeft);
        if (peer.segment) {
          n = std::min(n, peer.target.contiguous());
          std::memcpy(peer.target.data(), peer.input.data() + peer.inputAt, size_t(n));
          peer.target.advance(n);
        }
        peer.inputAt += size_t(n);
        peer.payloadLeft -= n;
        have -= size_t(n);
      }
      if (peer.payloadLeft)
        return true;
      landed(peer);
      continue;
    }
    if (have < sizeof(Frame))
      return true;
    std::memcpy(&peer.frame, peer.input.data() + peer.inputAt, sizeof(Frame));
    peer.inputAt += sizeof(Frame);
    if (!begin(peer))
      return false;
  }
}

void TcpTransport::receive(Peer &peer) {
  constexpr int turns = 64; // then other peers have theirs
  for (int i = 0; i < turns; ++i) {
    if (!fill(peer))
      return;
    if (!consume(peer)) {
      peer.closed = true;
      epoll_ctl(epoll.get(), EPOLL_CTL_DEL, peer.socket.get(), nullptr);
      comm.fail(error(ncclxrtInternalError, "rank {} got a malformed frame from rank {}",
                      comm.rank(), peer.rank));
      return;
    }
  }
}

void TcpTransport::progress() {
  // A killed peer shows here and on the control plane, which knows more; ours is the last word.
  constexpr int64_t graceNs = 500 * nsPerMs;
  epoll_event events[64];
  while (!stopping) {
    bool watchesGrace = false;
    for (Peer &peer : peers)
      if (peer.closedNs && !draining && comm.failure() == ncclxrtSuccess) {
        watchesGrace = true;
        if (nowNs() - peer.closedNs > graceNs)
          comm.fail(error(ncclxrtPeerFailed, "rank {} lost its connection to rank {}", comm.rank(),
                          peer.rank));
      }
    int n = epoll_wait(epoll.get(), events, 64, watchesGrace ? 50 : -1);
    for (int i = 0; i < n; ++i) {
      auto *peer = static_cast<Peer *>(events[i].data.ptr);
      if (!peer) {
        uint64_t count;
        (void)!read(wakeup.get(), &count, sizeof(count));
        continue;
      }
      if (events[i].events & EPOLLOUT) {
        std::lock_guard lock(peer->mutex);
        flush(*peer);
      }
      if (events[i].events & ~uint32_t(EPOLLOUT))
        receive(*peer);
    }
  }
}

} // namespace

std::unique_ptr<Transport> ncclxrt::makeTcpTransport(Comm &comm) {
  return std::make_unique<TcpTransport>(comm);
}

//===- Files.cpp - Open files from process to process ---------------------===//
//
// Each rank has a socket under a name of the kernel's choice, which the bootstrap tells the others
// together with a key: who sends without it is nobody of this job.
//
//===----------------------------------------------------------------------===//
#include "Files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

using namespace ncclxrt;
using namespace ncclxrt::cuda;

namespace {
/// Where a rank takes files.
struct Door {
  sockaddr_un address;
  socklen_t length;
  int32_t ok;
  uint64_t key;
};
/// What comes with a file.
struct Note {
  uint64_t key; ///< the receiver's
  int64_t rank; ///< the sender's
};

Status openDoor(Fd &socket, Door &door) {
  socket = Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket)
    return systemError("socket");
  door.address.sun_family = AF_UNIX;
  door.length = sizeof door.address;
  auto *at = reinterpret_cast<sockaddr *>(&door.address);
  if (::bind(socket.get(), at, sizeof(sa_family_t)) < 0) // of no name: the kernel finds one
    return systemError("bind");
  if (::getsockname(socket.get(), at, &door.length) < 0)
    return systemError("getsockname");
  if (::getrandom(&door.key, sizeof door.key, 0) != sizeof door.key)
    return systemError("getrandom");
  return {};
}

/// A message with room for one file.
struct Letter {
  Note note{};
  iovec part{&note, sizeof note};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};

  Letter() {
    header.msg_iov = &part, header.msg_iovlen = 1;
    header.msg_control = control, header.msg_controllen = sizeof control;
  }
};

/// False: the receiver's queue is full, or this one's; `failed` says what else is wrong.
bool send(const Fd &socket, Door &to, const Fd &file, int64_t rank, Status &failed) {
  Letter letter;
  letter.note = {to.key, rank};
  letter.header.msg_name = &to.address, letter.header.msg_namelen = to.length;
  cmsghdr *rights = CMSG_FIRSTHDR(&letter.header);
  rights->cmsg_level = SOL_SOCKET, rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  int number = file.get();
  std::memcpy(CMSG_DATA(rights), &number, sizeof number);
  if (::sendmsg(socket.get(), &letter.header, MSG_NOSIGNAL) == ssize_t(sizeof(Note)))
    return true;
  if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
    failed = systemError("sendmsg");
  return false;
}

/// The next file and its note; false: there is none yet.
bool receive(const Fd &socket, Note &note, Fd &file) {
  Letter letter;
  ssize_t got = ::recvmsg(socket.get(), &letter.header, MSG_CMSG_CLOEXEC);
  if (got < 0)
    return false;
  cmsghdr *rights = CMSG_FIRSTHDR(&letter.header);
  file = Fd();
  if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
      rights->cmsg_len == CMSG_LEN(sizeof(int))) {
    int number;
    std::memcpy(&number, CMSG_DATA(rights), sizeof number);
    file = Fd(number);
  }
  note = got == ssize_t(sizeof(Note)) ? letter.note : Note{};
  return true;
}
} // namespace

Status cuda::passFiles(Comm &comm, const Fd &file, const std::vector<bool> &gives,
                       const std::vector<bool> &takes, std::vector<Fd> &files) {
  size_t ranks = gives.size();
  Fd socket;
  Door mine{};
  Status local = openDoor(socket, mine);
  mine.ok = local.ok();
  std::vector<Door> doors(ranks);
  if (Status s = comm.exchange(&mine, sizeof mine, doors.data(), "doors"); !s.ok())
    return s;
  for (size_t r = 0; r < ranks; ++r)
    if (!doors[r].ok)
      return local.ok()
                 ? error(ncclxrtPeerFailed, "rank {} cannot take the memory of others (rank={})", r,
                         comm.rank())
                 : error(local.code(), "the memory of others cannot be taken: {} (rank={})",
                         local.text(), comm.rank());
  // By turns: whose queue is full takes from it before it gives.
  std::vector<bool> toGive = gives;
  int64_t deadline = nowNs() + comm.timeoutMs() * nsPerMs;
  for (;;) {
    for (size_t r = 0; r < ranks; ++r)
      if (toGive[r] && send(socket, doors[r], file, comm.rank(), local))
        toGive[r] = false;
    if (!local.ok())
      return error(local.code(), "the memory cannot be given to others: {} (rank={})", local.text(),
                   comm.rank());
    Note note;
    for (Fd got; receive(socket, note, got);)
      if (got && note.key == mine.key && note.rank >= 0 && note.rank < int64_t(ranks) &&
          takes[size_t(note.rank)] && !files[size_t(note.rank)])
        files[size_t(note.rank)] = std::move(got);
    size_t missing = 0;
    while (missing < ranks && (!takes[missing] || files[missing]))
      ++missing;
    bool given = std::find(toGive.begin(), toGive.end(), true) == toGive.end();
    if (given && missing == ranks)
      return {};
    if (const char *why = comm.jobFailure())
      return error(ncclxrtPeerFailed, "{} (rank={})", why, comm.rank());
    if (nowNs() > deadline)
      return error(ncclxrtTimeout, "the memory of rank {} did not come within {} ms (rank={})",
                   missing == ranks ? size_t(comm.rank()) : missing, comm.timeoutMs(), comm.rank());
    pollfd wait{socket.get(), POLLIN, 0};
    ::poll(&wait, 1, given ? 10 : 1);
  }
}

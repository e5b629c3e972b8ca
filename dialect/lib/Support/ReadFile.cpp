//===- ReadFile.cpp -------------------------------------------------------===//
#include "ncclx/Support/ReadFile.h"
#include "llvm/ADT/ScopeExit.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/// What a pipe's reader waits for somebody to write.
static constexpr int millisecondsToStart = 1000;

std::optional<std::string> mlir::ncclx::readFile(llvm::StringRef path, std::string &problem) {
  auto fail = [&](std::string message) {
    problem = std::move(message);
    return std::nullopt;
  };
  auto unreadable = [&](int error) {
    return fail(fmt::format("cannot be read: {}", std::strerror(error)));
  };
  // To open a pipe that nobody writes takes for ever, unless one asks not to wait.
  bool piped = path == "-";
  int file = piped ? STDIN_FILENO : open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return unreadable(errno);
  llvm::scope_exit closing([&] {
    if (!piped)
      close(file);
  });
  struct stat status = {};
  if (fstat(file, &status) != 0)
    return unreadable(errno);
  if (S_ISDIR(status.st_mode))
    return fail("is a directory");
  if (S_ISREG(status.st_mode) && uint64_t(status.st_size) > maxFileBytes)
    return fail(fmt::format("has {} bytes; at most {} are read", status.st_size, maxFileBytes));
  std::string text;
  // What is open already, as standard input, has somebody at its other end.
  bool begun = piped || !S_ISFIFO(status.st_mode);
  for (int waited = 0; text.size() <= maxFileBytes;) {
    size_t before = text.size();
    text.resize(before + (1 << 16));
    ssize_t got = read(file, text.data() + before, text.size() - before);
    int error = errno;
    text.resize(before + (got > 0 ? size_t(got) : 0));
    if (got > 0) {
      begun = true;
    } else if (got == 0 && begun) {
      break;
    } else if (got == 0) { // nobody has the pipe open, yet
      if (waited++ == millisecondsToStart)
        return fail("is a pipe that nobody writes to");
      usleep(1000);
    } else if (error == EAGAIN) {
      begun = true;
      pollfd wait = {file, POLLIN, 0};
      poll(&wait, 1, -1);
    } else if (error != EINTR) {
      return unreadable(error);
    }
  }
  if (text.size() > maxFileBytes)
    return fail(fmt::format("does not end; at most {} bytes are read", maxFileBytes));
  return text;
}

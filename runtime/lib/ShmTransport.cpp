//===- ShmTransport.cpp - Ranks that map each other's memory --------------===//
#include "Comm.h"

#include <climits>
#include <fstream>

using namespace ncclxrt;

namespace {

/// Ranks can open each other's memory if they run under one kernel and see each other's processes.
std::string placeOfThisProcess() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char space[PATH_MAX];
  ssize_t n = readlink("/proc/self/ns/pid", space, sizeof(space));
  return boot + "/" + std::string(space, n > 0 ? size_t(n) : 0);
}

class ShmTransport : public Transport {
public:
  explicit ShmTransport(Comm &comm) : comm(comm) {}
  const char *name() const override { return "shm"; }

  Status open(uint32_t, std::string &contact) override {
    contact = (joinBarriers() ? 'b' : '-') + placeOfThisProcess();
    return {};
  }

  Status connect(const std::vector<std::string> &contacts) override {
    barrier = true;
    for (size_t r = 0; r < contacts.size(); ++r) {
      barrier &= contacts[r].starts_with('b');
      if (contacts[r].substr(1) != contacts[size_t(comm.rank())].substr(1))
        return error(ncclxrtUnsupported,
                     "transport shm needs all ranks on one machine, but rank {} runs elsewhere "
                     "than rank {}",
                     r, comm.rank());
    }
    return {};
  }

  std::string offer(int64_t, const std::shared_ptr<Segment> &segment) override {
    return segment->ticket();
  }

  Status attach(int64_t plan, int64_t bytes, const std::vector<std::string> &offers,
                std::vector<std::shared_ptr<Segment>> &peers) override {
    peers.resize(offers.size());
    for (size_t r = 0; r < offers.size(); ++r)
      if (int(r) != comm.rank())
        if (Status s = Segment::open(offers[r], bytes, uint64_t(plan) << 32 | r, peers[r]); !s.ok())
          return error(s.code(), "rank {}'s memory: {}", r, s.text());
    return {};
  }

  // Everything is done when the call returns, and no peer is out of reach.
  void forget(int64_t) override {}
  Status put(const Put &) override { return error(ncclxrtInternalError, "shm: a put"); }
  Status raise(int64_t, int, int64_t) override {
    return error(ncclxrtInternalError, "shm: a remote signal");
  }
  Status complete(LaneProgress &) override { return {}; }
  Status drain() override { return {}; }
  bool hasBarrier() const override { return barrier; }
  void wake() override {}
  void close() override {}

private:
  Comm &comm;
  bool barrier = false;
};

} // namespace

std::unique_ptr<Transport> ncclxrt::makeShmTransport(Comm &comm) {
  return std::make_unique<ShmTransport>(comm);
}

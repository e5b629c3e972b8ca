//===- Maker.h - How the example schedules are written -------------*- C++ -*-===//
#ifndef NCCLX_TEST_MACHINE_MAKER_H
#define NCCLX_TEST_MACHINE_MAKER_H

#include "Examples.h"

#include <numeric>

namespace mlir::ctran::machine::examples {

using Path = Indices;

inline Index own(unsigned axis, int64_t shift = 0) { return {true, axis, shift}; }
inline Index at(int64_t value) { return {false, 0, value}; }

inline Lane ce(int64_t i = 0) { return {LaneKind::CE, i}; }
inline Lane sm(int64_t i = 0) { return {LaneKind::SM, i}; }
inline Lane nic(int64_t i = 0) { return {LaneKind::NIC, i}; }
inline Lane host() { return {LaneKind::Host, 0}; }
inline Lane user() { return {LaneKind::User, 0}; }

/// Fills one op after another in the same storage.
class Maker {
public:
  explicit Maker(const Example &example) : axes(example.grid.sizes.size()) {}

  Maker &start(OpKind kind, Lane lane, unsigned note) {
    op.kind = kind;
    op.lane = lane;
    op.location = note;
    op.reads.clear();
    op.writes.clear();
    op.slot.reset();
    op.k = 0;
    op.after.clear();
    op.token = llvm::makeIntrusiveRefCnt<Token>();
    if (!op.label.path.empty() || !op.label.summed.empty() || !op.label.shared.empty())
      op.label = {};
    return *this;
  }
  Maker &read(unsigned window, Path path, Peer peer = {}) {
    op.reads.push_back({window, 0, std::move(peer), std::move(path), {}, -1});
    return *this;
  }
  Maker &write(unsigned window, Path path, Peer peer = {}) {
    op.writes.push_back({window, 0, std::move(peer), std::move(path), {}, -1});
    return *this;
  }
  Maker &interval(int64_t first, int64_t count, bool ofWrite = false) {
    Access &access = ofWrite ? op.writes.back() : op.reads.back();
    access.first = at(first);
    access.count = count;
    return *this;
  }
  Maker &slot(unsigned slots, Path path, Peer peer = {}) {
    op.slot = SlotRef{slots, std::move(peer), std::move(path), {}, -1};
    return *this;
  }
  Maker &atLeast(int64_t k) {
    op.k = k;
    return *this;
  }
  Maker &after(const TokenRef &token) {
    op.after.push_back(token);
    return *this;
  }
  Maker &after(const std::vector<TokenRef> &tokens) {
    op.after.insert(op.after.end(), tokens.begin(), tokens.end());
    return *this;
  }
  Maker &label(Path path, std::vector<unsigned> summed = {}, std::vector<unsigned> shared = {}) {
    op.label = {0, std::move(path), std::move(summed), std::move(shared), {}, {}};
    return *this;
  }
  operator Op &() { return op; }
  TokenRef token() const { return op.token; }

  Peer peer(unsigned axis, int64_t d) const {
    Peer peer;
    peer.remote = true;
    peer.shift.assign(axes, 0);
    peer.shift[axis] = d;
    return peer;
  }

private:
  size_t axes;
  Op op;
};

inline Window window(std::string name, std::vector<Dim> dims, int64_t generations = 1) {
  Window out;
  out.name = std::move(name);
  out.peers = Window::Peers::LoadStore;
  out.generations = generations;
  out.elementBytes = 4;
  Space space;
  space.dims = std::move(dims);
  space.extent = 1;
  for (const Dim &dim : space.dims)
    space.extent *= dim.size;
  space.unitBytes = 4;
  out.spaces.push_back(space);
  return out;
}

inline Dim bound(unsigned axis, int64_t size) { return {axis, size}; }
inline Dim freeDim(int64_t size) { return {std::nullopt, size}; }

inline Slots slots(std::string name, std::vector<Dim> dims, int64_t perRun, int64_t writers = 1,
                   int64_t generations = 1) {
  Slots out;
  out.name = std::move(name);
  out.dims = std::move(dims);
  out.perRun = perRun;
  out.writers = writers;
  out.generations = generations;
  return out;
}

inline ExampleRef make(std::string name, std::vector<int64_t> grid,
                       std::vector<std::string> notes) {
  auto out = std::make_shared<Example>();
  out->name = std::move(name);
  out->grid.sizes = std::move(grid);
  for (size_t i = 0; i < out->grid.sizes.size(); ++i)
    out->grid.names.push_back("x" + std::to_string(i));
  out->valueNames = {"v"};
  for (std::string &note : notes)
    out->locations.push_back({std::move(note), "", 0, 0});
  return out;
}

inline std::vector<unsigned> allAxes(const Example &e) {
  std::vector<unsigned> axes(e.grid.sizes.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

} // namespace mlir::ctran::machine::examples
#endif // NCCLX_TEST_MACHINE_MAKER_H

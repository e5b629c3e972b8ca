//===- Schedule.h - A schedule as the abstract machine sees it -----*- C++ -*-===//
//
// Plain C++: no IR. Readers (of `ctran` IR, of XML or JSON plans) and builders make a Schedule; the
// machine (Machine.h) steps it to prove it, to time it, or to move real bytes. The rules S1 to S34
// that the comments cite are those of dialect/SPEC.md, "ctran: semantics".
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_MACHINE_SCHEDULE_H
#define NCCLX_MACHINE_SCHEDULE_H

#include "ncclx/Machine/Layout.h"

#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir::ctran::machine {

/// The rank set: Z_n0 x ... x Z_nk, mixed radix, the last axis fastest (S1).
struct Grid {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;

  int64_t numRanks() const;
  /// Coordinates of `rank`, and back.
  std::vector<int64_t> pointOf(int64_t rank) const;
  int64_t rankOf(const std::vector<int64_t> &point) const;
};

/// x modulo n, from 0 up. What is asked for is mostly less than n away, and a division costs more
/// than all else that is done with an index.
inline int64_t wrapped(int64_t x, int64_t n) {
  if (x < 0)
    x += n;
  else if (x >= n)
    x -= n;
  if (static_cast<uint64_t>(x) < static_cast<uint64_t>(n))
    return x;
  x %= n;
  return x < 0 ? x + n : x;
}

/// An index in a dimension of a window or of slots.
/// `own` true: the own coordinate on `axis`, shifted by `value` (S2); the machine never sees it as
/// a number when it runs one representative. `own` false: the number `value`; in a dimension bound
/// to an axis that makes the program asymmetric (Theorem 1, condition iii).
struct Index {
  bool own = false;
  unsigned axis = 0;
  int64_t value = 0;
};
/// Of a box or slot: few, and made once for each executed op, so they are kept in place.
using Indices = llvm::SmallVector<Index, 4>;

/// Whose memory: nothing (own), or one displacement per axis (S7). `absolute` gives a rank number
/// instead, which makes the program asymmetric.
struct Peer {
  bool remote = false;
  bool absolute = false;
  int64_t rank = 0;                    ///< when absolute
  llvm::SmallVector<int64_t, 4> shift; ///< when not: one entry per axis of the grid
};

/// A box of a window (S6): a prefix path and everything below it, or, with `count` >= 0, the
/// interval [first, first + count) of the next dimension (count 0 is an empty access).
struct Access {
  unsigned window = 0;
  unsigned space = 0; ///< which of the window's index spaces
  Peer peer;
  Indices path;
  Index first; ///< meaningful when count >= 0
  int64_t count = -1;
};

/// One slot, or with `count` >= 0 the slots [first, first + count) of the next dimension.
struct SlotRef {
  unsigned slots = 0;
  Peer peer;
  Indices path;
  Index first;
  int64_t count = -1;
};

enum class LaneKind : uint8_t { CE, Compute, SM, Host, NIC, User };
/// `nic` only issues in order; every other lane completes in order (S9). `User` is the caller's
/// stream, on which entry and exit stand.
inline bool isIssueLane(LaneKind kind) { return kind == LaneKind::NIC; }

struct Lane {
  LaneKind kind = LaneKind::Host;
  int64_t index = 0;
  friend bool operator==(const Lane &, const Lane &) = default;
};

/// What a machine keeps with an op that is over.
struct TokenState : llvm::RefCountedBase<TokenState> {
  virtual ~TokenState() = default;
};

/// Completion of one executed op: local completion and nothing else (S10). Made by the stream,
/// shared by the ops that wait for it; the machine hangs its bookkeeping on `state`, which is null
/// until then. Users are counted without atomics: a stream and the machine that steps it are on one
/// thread at a time.
struct Token : llvm::RefCountedBase<Token> {
  llvm::IntrusiveRefCntPtr<TokenState> state;
};
using TokenRef = llvm::IntrusiveRefCntPtr<Token>;

enum class OpKind : uint8_t {
  Copy,    ///< reads[0] -> every write; notify optional (S18)
  Reduce,  ///< every box of `reads` combined into every write
  Compute, ///< reads and writes as declared; the value is a new term
  Signal,  ///< raises `slot` (S17)
  Wait,    ///< waits for `slot` (all of a range) >= k (S16)
  Flush,   ///< makes the landings this lane knows of visible (S21)
  Count,   ///< reads a size known at run time; at most `countMax` (S25)
  Source,  ///< proof only: from here reads[0] holds `label` (see ValueLabel). Its storage is read,
           ///< so it orders nothing but later writes; on lane User it is the caller's write of it
  Sink,    ///< proof only: reads[0] must hold `label`
  Entry,   ///< the caller has written every input and has read every output (S22)
  Exit,    ///< the caller reads every output after this
  Nop      ///< joins tokens on a lane
};

enum class ReduceKind : uint8_t { Sum, Min, Max, Prod };
const char *toString(ReduceKind kind);

/// What a reduction does to contributions: each times `scale`, combined, the whole divided.
struct Combination {
  ReduceKind kind = ReduceKind::Sum;
  std::optional<double> scale = std::nullopt;
  int64_t divide = 1;
};

/// What a box is said to hold (S8). The values of one collective live in a global array `name`
/// whose leading dimensions are the grid's axes that nothing of `path`, `summed`, `shared` and the
/// box's own inner dimensions mentions (there the own coordinate is meant), followed by `path` and
/// the box's inner dimensions. So the whole of a gathered window is name[x..] with an empty path,
/// and the whole input of an all_to_all needs the path [own x]: name[x][x'..].
/// Source: the box holds name[path]; with `summed` axes, this rank's contribution to the sum over
/// those axes. Sink: the box must hold name[path], with the contribution of every rank along
/// `summed` exactly once.
struct ValueLabel {
  unsigned name = 0; ///< index into Schedule::valueNames
  Indices path;
  std::vector<unsigned> summed; ///< axes
  std::vector<unsigned> shared; ///< axes along which every rank means the same value (a broadcast)
  std::vector<int64_t> among; ///< Sink, summed over all axes: the ranks that contribute; empty: all
  std::optional<Combination> how =
      std::nullopt; ///< Sink: how `summed` is combined; nothing: any way
};

/// Where an op came from, for witnesses and traces.
struct Location {
  std::string op; ///< e.g. "all_gather c0: put"
  std::string file;
  unsigned line = 0, column = 0;
};

struct Op {
  OpKind kind = OpKind::Nop;
  Lane lane;
  std::vector<Access> reads, writes;
  std::optional<SlotRef> slot; ///< of a signal or wait; the notify of a copy or reduce
  int64_t k = 0;               ///< wait: value counted from this run's start (S15)
  std::vector<TokenRef> after;
  TokenRef size;           ///< Copy: a Count; so many units of the start of each box move (S25)
  TokenRef token;          ///< never null
  ValueLabel label;        ///< Source, Sink
  Combination combination; ///< Reduce
  bool inNetwork = false;  ///< Copy, Reduce: by a switch, for all members at once (S35)
  int64_t countMax = 0;
  // What `time` needs of a compute.
  double flops = 0, bytes = 0;
  int64_t sms = 0;
  unsigned location = 0; ///< index into Schedule::locations
  int collective = -1;   ///< index into Schedule::collectives, or -1
};

/// Memory of every rank, the same size on each (S5). `spaces[0]` is the whole (no dimensions);
/// others partition the same bytes in their own way. Accesses through different spaces of one
/// window are taken to overlap wherever both are not empty.
struct Window {
  std::string name;
  /// The caller writes Input and InOut as Entry, and reads Output and InOut as Exit (S22).
  enum class Role : uint8_t { Input, Output, Scratch, InOut } role = Role::Scratch;
  enum class Peers : uint8_t { None, Put, LoadStore } peers = Peers::None;
  int64_t generations = 1; ///< run e uses generation e mod generations
  int64_t elementBytes = 1;
  std::vector<Space> spaces;
};

/// Monotone 64-bit counters (S14, S15).
struct Slots {
  std::string name;
  std::vector<Dim> dims;
  int64_t writers = 1;
  int64_t generations = 1;
  /// Signals that a run adds to each slot it uses (K of S15); -1: counted from the stream. A wait
  /// for k in the i-th run that uses the slot's generation waits for i*K + k.
  int64_t perRun = -1;
  /// A wait for k of them is one for max(0, k - credits): as many may be on their way.
  int64_t credits = 0;
  /// The k of S15 that a wait for `k` means.
  int64_t awaited(int64_t k) const { return credits ? std::max<int64_t>(0, k - credits) : k; }
  enum class Realisation : uint8_t {
    Counter,
    Inband,
    Consume,
    Event
  } realisation = Realisation::Counter;
};

/// A collective of the graph, for reports: which ops belong to it is Op::collective.
struct CollectiveInfo {
  std::string name, kind, algorithm;
  std::vector<unsigned> axes;
  int64_t bytes = 0; ///< payload, as DESIGN's reports count it: the larger of input and output
  unsigned location = 0;
};

/// The ops of one rank in issue order, for one run after another.
class OpStream {
public:
  virtual ~OpStream() = default;
  enum class Result : uint8_t { Op, End, Asymmetric };
  /// Sets every field of `op`, which may hold an earlier op; its token is a new one, made by this
  /// stream. `Asymmetric`: a symmetric stream met a use of a coordinate's value; `why` says where.
  virtual Result next(Op &op) = 0;
  std::string why;
};

class Schedule {
public:
  virtual ~Schedule() = default;
  std::string name;
  Grid grid;
  std::vector<Window> windows;
  std::vector<Slots> slots;
  std::vector<std::string> valueNames;
  std::vector<Location> locations;
  std::vector<CollectiveInfo> collectives;
  /// True where arriving bytes are visible to every agent without a flush (S21).
  bool rxVisible = false;

  /// The ops of run `run` (0, 1, ...). `point` null: the symmetric representative, whose
  /// coordinates have no value; else the rank at that point. Streams are independent.
  virtual std::unique_ptr<OpStream> open(const std::vector<int64_t> *point, int64_t run) const = 0;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_SCHEDULE_H

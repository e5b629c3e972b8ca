//===- Windows.h - One-sided operations become copies, signals and waits --*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_WINDOWS_H
#define NCCLX_LIB_CONVERSION_WINDOWS_H

#include "Buffers.h"
#include "ncclx/Conversion/ProgramGrid.h"
#include "ncclx/Conversion/ScheduleBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

#include <functional>
#include <memory>

namespace mlir::ncclx {

/// The windows of a function whose communication is one straight line.
///
/// A window is taken apart into cells, along the bounds of the boxes that are put and got, so that
/// each box is some of them and boxes meet only in cells that they share. A cell is a buffer of its
/// own: what the own member reads and writes of it are plain copies, and what a peer writes is a
/// copy of the whole of it.
class Windows {
public:
  /// Tells of each window and each put, by the name that its ops have.
  using Describe = std::function<void(StringRef name, StringRef kind, WindowOp, ShapedType)>;
  Windows(const ProgramGrid &grid, Describe describe) : grid(grid), describe(std::move(describe)) {}

  /// Makes the cells, the copies from and to the own ones, and whole buffers of what is sent.
  LogicalResult layOut(func::FuncOp function);
  /// Whether peers reach this buffer.
  bool isRemote(Value root) const { return remote.contains(root); }
  /// Whether `op` is on windows; then `convert` writes it.
  static bool isOnWindow(Operation *op);
  /// `s.of` names the window that `op` makes, if it does.
  LogicalResult convert(Operation *op, ctran::ScheduleBuilder &s, Buffers &buffers);
  /// Once all is written: the slots get as many signals as they do.
  void close();

private:
  struct Peers;
  /// The signals and puts by one map. Both count, so that a wait knows what it is for.
  struct Channel {
    PeerMap map;
    std::string name;
    std::shared_ptr<Peers> peers;
    int64_t allCopies = 0;            ///< of cells, in the whole function
    Value ready, landed;              ///< slots: the window is there; one for each copy
    ctran::SlotsOp told;              ///< signals that no copy brings
    Value granted;                    ///< this member has seen its peer's `ready`
    int64_t copies = 0, raises = 0;   ///< made so far
    int64_t awaited = 0;              ///< signals
    int64_t landings = 0, raised = 0; ///< awaited so far, of copies and raises
    struct Signal {
      int64_t copies, raises; ///< made before it, and with it
    };
    SmallVector<Signal> signals;
  };
  struct Cell {
    SmallVector<int64_t> offsets, sizes;
    Value buffer;
    /// The put of a peer that the text has last, if nothing else is behind it.
    std::string holds;
    std::shared_ptr<Peers> from;
  };
  struct Window {
    std::string name;
    SmallVector<Cell> cells;
    SmallVector<std::unique_ptr<Channel>> channels;
    Value acquired;             ///< the last wait
    SmallVector<Value> sent;    ///< the puts to peers, and what was said of them
    Channel *justPut = nullptr; ///< nothing has been done since but a put to these peers
    int64_t puts = 0;
  };
  /// A cell in a box, and of a put to a peer the buffer that is sent there.
  struct Part {
    size_t cell;
    Value piece;
  };

  LogicalResult layOut(WindowOp op);
  Channel &channelOf(Window &window, const PeerMap &map);
  Window &windowOf(Value handle) { return *windows[handle.getDefiningOp()]; }
  /// All that this rank has done to its window and waited for, or the entry.
  SmallVector<Value> done(Window &window, ctran::ScheduleBuilder &s, Buffers &buffers);
  void open(WindowOp op, ctran::ScheduleBuilder &s, Buffers &buffers);
  void put(PutOp op, ctran::ScheduleBuilder &s, Buffers &buffers);
  void get(GetOp op, ctran::ScheduleBuilder &s, Buffers &buffers);
  void signal(SignalOp op, ctran::ScheduleBuilder &s, Buffers &buffers);
  LogicalResult wait(WaitOp op, ctran::ScheduleBuilder &s, Buffers &buffers);

  const ProgramGrid &grid;
  Describe describe;
  DenseMap<Operation *, std::unique_ptr<Window>> windows; ///< by the op that makes it
  DenseMap<Operation *, SmallVector<Part>> parts;         ///< of the boxes of puts and gets
  llvm::DenseSet<Value> remote;
};

} // namespace mlir::ncclx
#endif // NCCLX_LIB_CONVERSION_WINDOWS_H

//===- Stencil.h - A result in an interior and slabs around it -----------------*- C++ -*-===//
//
// A stencil reads a field into which faces of neighbours have been inserted, or which they have put
// into a window. Which elements of its result need none of those follows from what is read of each
// insertion, for a box of the result that is not known yet; the largest such box is the interior.
// Interior and slabs around it are then made by the same ops on boxes, down to the field and the
// faces themselves: the exchange is awaited by the slabs alone.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_OVERLAP_STENCIL_H
#define NCCLX_LIB_OVERLAP_STENCIL_H

#include "Boxes.h"
#include "ncclx/NCCLX/NCCLX.h"

#include <map>

namespace mlir::ncclx {

/// One result of a stencil, in boxes.
class Stencil {
public:
  /// `done`: fields that have been looked at; what is further back is another step's.
  Stencil(Value root, const DenseSet<Value> &done)
      : root(root), block(*root.getDefiningOp()->getBlock()), done(done) {}

  llvm::SetVector<Operation *> exchanges; ///< that the result needs
  llvm::SetVector<Operation *> puts;      ///< by which neighbours write what it needs of windows
  Box interior;
  SmallVector<Box> slabs;

  /// Finds interior and slabs; or in `why` what is in the way. No reason: there is no halo.
  bool plan(std::string &why);
  /// Makes the result of them; gives it. What needs a window is behind a wait: the interior is put
  /// in front of it where what it is made of is there, and is then in `early`.
  Value rewrite();
  SmallVector<Operation *> early;

private:
  Value root;
  Block &block;
  const DenseSet<Value> &done;
  struct Halo { ///< what a box must not read: an insertion of what has been communicated
    Box read, inserted;
  };
  SmallVector<Halo> halos;
  /// Whether a value comes from an exchange, and whether by another way than a halo.
  struct Reach {
    bool exchange = false, whole = false;
    void operator|=(Reach other) {
      exchange |= other.exchange;
      whole |= other.whole;
    }
  };
  std::map<std::pair<void *, std::vector<Extent>>, Reach> walked;
  llvm::SetVector<Operation *> chain; ///< what is made anew on boxes
  std::map<std::pair<void *, std::vector<Extent>>, Value> parts;

  static std::pair<void *, std::vector<Extent>> key(Value value, const Box &box) {
    return {value.getAsOpaquePointer(), {box.begin(), box.end()}};
  }
  /// What a get of the own window shows: what this member has put last, and in it what others have
  /// put since.
  struct Shown {
    Value own;
    Box place;
    SmallVector<Box> others;
  };
  llvm::DenseMap<Operation *, std::optional<Shown>> gets;
  unsigned depth = 0;
  bool isTooDeep = false, isUnknown = false;
  const std::optional<Shown> &shownBy(GetOp get);
  Reach walk(Value value, const Box &box);
  Reach reach(Operation *op, const Box &box);
  Reach reachWindow(GetOp get, const Box &box);
  bool avoid(const Halo &halo);
  Value part(OpBuilder &b, Value value, const Box &box);
  Value make(OpBuilder &b, Operation *op, const Box &box, Value into = {});
  Value onBox(OpBuilder &b, Operation *op, ValueRange operands);
  void hoist(Operation *from, Operation *to);
};

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_STENCIL_H

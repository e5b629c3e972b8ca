//===- JsonFile.h - Objects of a JSON file, with their faults named ---------*- C++ -*-===//
#ifndef NCCLX_LIB_IMPORT_JSONFILE_H
#define NCCLX_LIB_IMPORT_JSONFILE_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace mlir::ncclx::msccl {

/// A JSON file whose objects are read key by key; what is wrong is an error at the object's line,
/// and sets `bad`.
class JsonFile {
public:
  JsonFile(StringRef text, StringRef file, MLIRContext *context)
      : text(text), file(file), theContext(context) {
    findLines();
  }

  /// An object of the file and where it is: "gpus[0].threadblocks[1]".
  struct Node {
    const llvm::json::Object *object = nullptr;
    std::string path;
    LocationAttr loc;
    const llvm::json::Value *get(StringRef key) const { return object->get(key); }
    std::string name() const { return path.empty() ? "the plan" : path; }
  };

protected:
  bool bad = false;

  /// The whole; nothing after an error.
  std::optional<Node> parse();
  InFlightDiagnostic error(LocationAttr loc) {
    bad = true;
    return emitError(loc);
  }
  InFlightDiagnostic error(const Node &node) {
    InFlightDiagnostic diag = error(node.loc);
    diag << node.name() << ": ";
    return diag;
  }
  void warnOnce(LocationAttr loc, const std::string &what) {
    if (said.insert(what).second)
      emitWarning(loc) << what;
  }

  static std::string show(const llvm::json::Value *value);
  /// A value that is missing is what `ifMissing` says, with a warning, or an error without it.
  int64_t number(const Node &node, StringRef key, std::optional<int64_t> ifMissing, int64_t least,
                 int64_t most);
  std::string word(const Node &node, StringRef key, std::optional<StringRef> ifMissing);
  bool flag(const Node &node, StringRef key, bool ifMissing);
  std::vector<Node> objects(const Node &node, StringRef key, bool required);
  std::vector<int64_t> numbers(const Node &node, StringRef key, bool required, int64_t most);
  /// Other keys than these are errors where `strict`, else warnings.
  void known(const Node &node, ArrayRef<StringRef> keys, bool strict = false);

private:
  using Position = std::pair<unsigned, unsigned>; ///< line and column
  StringRef text, file;
  MLIRContext *theContext;
  std::optional<llvm::json::Value> root;
  llvm::StringMap<Position> starts; ///< of each object of an array
  std::optional<Position> tooDeep;
  std::set<std::string> said; ///< warnings that one file has once

  void findLines();
  LocationAttr at(StringRef path) const {
    auto it = starts.find(path);
    Position place = it == starts.end() ? Position(1, 1) : it->second;
    return FileLineColLoc::get(theContext, file, place.first, place.second);
  }
};

} // namespace mlir::ncclx::msccl
#endif // NCCLX_LIB_IMPORT_JSONFILE_H
